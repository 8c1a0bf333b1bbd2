"""The waits of a world as coroutines.

All other methods of a world return within a fraction of a millisecond, so a coroutine calls them as they are. Each
wait has a connection of its own in the loop that runs it, so it is bound to no loop, and cancelling it closes that.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ._connection import CommandError, DunlinError, packed
from ._kit import filter_words
from ._world import World, _in_vain


class Waits:
    """What a test can wait for; each raises TimeoutError after `timeout` seconds."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def wait_until_blocked(self, key: str, count: int = 1, *, timeout: float = 5.0) -> None:
        """Waits until so many clients are blocked on a key of database 0."""
        await self._wait(timeout, "BLOCKED", key, count)

    async def wait_for_subscribers(self, channel: str, count: int = 1, *, timeout: float = 5.0) -> None:
        await self._wait(timeout, "SUBSCRIBERS", channel, count)

    async def wait_until_fired(self, fault: str, times: int = 1, *, timeout: float = 5.0) -> None:
        await self._wait(timeout, "FAULT", fault, times)

    async def wait_for_clients(self, count: int, *, timeout: float = 5.0) -> None:
        """Waits until the application has exactly so many connections to this world."""
        await self._wait(timeout, "CLIENTS", count + self._world._pool.count)

    async def wait_for_commands(self, count: int, *, timeout: float = 5.0, **filter: Any) -> None:
        """Waits until the journal has so many commands that match the filter."""
        await self._wait(timeout, "JOURNAL", count, *filter_words(**filter))

    async def _wait(self, timeout: float, *words: Any) -> None:
        self._world._must_be_open()
        try:
            reply = await asyncio.wait_for(self._ask(words), timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(_in_vain(self._world, timeout, words)) from None
        except OSError as error:
            raise DunlinError(f"no reply to WAIT: {error.strerror or error}") from None
        if reply.startswith(b"-"):
            raise CommandError(reply[1:].strip().decode("utf-8", "backslashreplace"))

    async def _ask(self, words: tuple[Any, ...]) -> bytes:
        address = self._world._pool.address
        if address.socket is not None:
            reader, writer = await asyncio.open_unix_connection(address.socket)
        else:
            reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            entrance = self._world._pool.entrance
            login = (address.user or "default", address.password or "any")
            before = ([("AUTH", *login)] if address.password or address.user else []) + ([entrance] if entrance else [])
            writer.write(b"".join(map(packed, [*before, ("DUNLIN", "WAIT", *words)])))
            for _ in before:
                reply = await reader.readline()
                if not reply.startswith(b"+"):
                    return reply or b"-ERR the server has closed the connection"
            return await reader.readline() or b"-ERR the server has closed the connection"
        finally:
            writer.close()
