"""The waits of a world as coroutines.

All other methods of a world return within a fraction of a millisecond, so a coroutine calls them as they are. Each
wait has a connection of its own in the loop that runs it, so it is bound to no loop, and cancelling it closes that.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ._connection import CommandError, packed
from ._kit import filter_words
from ._world import _MARGIN_S, World, _in_vain, _timeout_or


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
        # The wait's own connection is the caller here, so all of the launcher's others count.
        await self._wait(timeout, *self._world._clients_words(count, own=1))

    async def wait_for_commands(self, count: int, *, timeout: float = 5.0, **filter: Any) -> None:
        """Waits until the journal has so many commands that match the filter."""
        await self._wait(timeout, "JOURNAL", count, *filter_words(**filter))

    async def _wait(self, timeout: float, *words: Any) -> None:
        try:
            reply = await asyncio.wait_for(self._ask(timeout, words), timeout + _MARGIN_S)
        except asyncio.TimeoutError:
            raise TimeoutError(_in_vain(timeout, words)) from None
        if reply.startswith(b"-"):
            raise _timeout_or(CommandError(reply[1:].strip().decode("utf-8", "backslashreplace")))

    async def _ask(self, timeout: float, words: tuple[Any, ...]) -> bytes:
        address = self._world._pool.address
        if address.socket is not None:
            reader, writer = await asyncio.open_unix_connection(address.socket)
        else:
            reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            entrance = self._world._pool.entrance
            login = (address.user or "default", address.password or "any")
            before = ([("AUTH", *login)] if address.password or address.user else []) + ([entrance] if entrance else [])
            wait = ("DUNLIN", "WAIT", *words, "TIMEOUT", max(1, round(timeout * 1000)))
            writer.write(b"".join(map(packed, [*before, wait])))
            for _ in before:
                reply = await reader.readline()
                if not reply.startswith(b"+"):
                    return reply or b"-ERR the server has closed the connection"
            return await reader.readline() or b"-ERR the server has closed the connection"
        finally:
            writer.close()
