"""Worlds: what a test holds in its hands."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ._client import redis_py
from ._connection import Address, CommandError, DunlinError, Pool, checked
from ._kit import EPOCH, FaultRule, Journal, Strict, filter_words, maps, milliseconds, text

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import Redis as AsyncRedis

    from ._server import Server
    from .aio import Waits

_Self = TypeVar("_Self", bound="World")
# How long a reply may take, but for that to a wait.
_PATIENCE_S = 10


class World:
    """A private server behind the port of another: its own keys, channels, scripts, settings, users and clock.

    It is temporary: its data goes with `close`, or with the end of a `with` block, and its clients are disconnected.
    """

    def __init__(self, server: Server, name: str, pool: Pool, address: Address) -> None:
        self._server, self.name, self._pool, self._address = server, name, pool, address
        self._clients: list[Any] = []
        self._port: int | None = None
        self._is_closed = False
        self._owner = os.getpid()
        self.journal, self.strict = Journal(self), Strict(self)

    @property
    def url(self) -> str:
        """The URL by which any client comes into this world."""
        return self._address.url(f"temporary-world.{self.name}")

    @property
    def host(self) -> str:
        return self._server.host

    @property
    def port(self) -> int:
        """A port whose clients come straight into this world, for what takes a host and a port but no URL."""
        if self._port is None:
            self._port = self._dunlin("LISTEN", self.name)
        return self._port

    def client(self, **options: Any) -> Redis:
        """A client of redis-py, with its options; it is closed with this world."""
        self._must_be_open()
        client = redis_py("client").Redis.from_url(self.url, **options)
        self._clients.append(client)
        return client

    def async_client(self, **options: Any) -> AsyncRedis:
        """A client of redis-py for asyncio; `await client.aclose()` before its loop ends."""
        self._must_be_open()
        return redis_py("async_client").asyncio.Redis.from_url(self.url, **options)

    @property
    def aio(self) -> Waits:
        """The waits, as coroutines for any event loop."""
        from .aio import Waits

        return Waits(self)

    # The clock

    def now(self) -> datetime:
        """The time of this world, in UTC."""
        return self._time("ADVANCE", 0)

    def advance(self, duration: timedelta | None = None, **units: float) -> datetime:
        """Moves the clock: `advance(hours=1)`. Whatever is due on the way has happened when this returns."""
        return self._time("ADVANCE", milliseconds(duration, units))

    def advance_to_next(self) -> datetime | None:
        """Moves the clock to the next moment when something is due; returns None if nothing is."""
        moment = self._dunlin("ADVANCE-TO-NEXT")
        return None if moment is None else EPOCH + timedelta(milliseconds=moment)

    def freeze(self) -> datetime:
        """Stops the clock. A blocked client, such as one in BLPOP, then waits until the clock is moved."""
        return self._time("FREEZE")

    def resume(self) -> None:
        self._dunlin("RESUME")

    def set_time(self, moment: datetime) -> datetime:
        return self._time("SET-TIME", (moment.astimezone(EPOCH.tzinfo) - EPOCH) // timedelta(milliseconds=1))

    def speed(self, factor: float) -> None:
        """Lets the clock run this many times as fast as real time."""
        self._dunlin("SPEED", factor)

    # Randomness and state

    def seed(self, number: int) -> None:
        """Makes every random answer and the order of SCAN repeatable."""
        self._dunlin("SEED", number)

    def snapshot(self, name: str) -> None:
        self._dunlin("SNAPSHOT", name)

    def rollback(self, name: str) -> None:
        self._dunlin("ROLLBACK", name)

    def snapshots(self) -> list[str]:
        return text(self._dunlin("SNAPSHOTS"))

    def drop_snapshot(self, name: str) -> None:
        self._dunlin("DROP-SNAPSHOT", name)

    def load(self, data: str | bytes | Path) -> None:
        """Replaces all data by that of a text, of an RDB file's bytes, or of a file of either."""
        self._dunlin("LOAD", data.read_bytes() if isinstance(data, Path) else data)

    def dump(self) -> str:
        """The data as text: a line for each command that would create a part of it."""
        return text(self._dunlin("DUMP"))

    def diff(self, other: str | Path | World) -> str:
        """How the data differs from a text, or from another world of this server; empty if it does not."""
        if isinstance(other, World):
            return text(self._dunlin("DIFF", "WORLD", other.name))
        return text(self._dunlin("DIFF", other.read_bytes() if isinstance(other, Path) else other))

    def make_template(self) -> None:
        """Makes new worlds start as a copy of the present state of this one."""
        self._dunlin("TEMPLATE")

    def drop_template(self) -> None:
        self._dunlin("DROP-TEMPLATE")

    # Faults

    def fault(
        self,
        name: str,
        *,
        command: str | None = None,
        key: str | None = None,
        client: str | None = None,
        nth: int | None = None,
        times: int | None = None,
        percent: float | None = None,
    ) -> FaultRule:
        """A failure for certain commands: `fault("dies", command="LMOVE", times=1).drop_after()`."""
        words = filter_words(command, key, client)
        for word, value in (("NTH", nth), ("TIMES", times), ("PERCENT", percent)):
            words += [] if value is None else [word, value]
        return FaultRule(self, name, words)

    def faults(self) -> list[dict[str, Any]]:
        """Each rule with how many commands it matched, and how often it fired."""
        return maps(self._dunlin("FAULT", "LIST"))

    def remove_fault(self, name: str) -> None:
        self._dunlin("FAULT", "REMOVE", name)

    def clear_faults(self) -> None:
        self._dunlin("FAULT", "CLEAR")

    # Waits: each has a timeout in seconds of real time, and raises TimeoutError

    def wait_until_blocked(self, key: str, count: int = 1, *, timeout: float = 5.0) -> None:
        """Waits until so many clients are blocked on a key of database 0."""
        self._wait(timeout, "BLOCKED", key, count)

    def wait_for_subscribers(self, channel: str, count: int = 1, *, timeout: float = 5.0) -> None:
        self._wait(timeout, "SUBSCRIBERS", channel, count)

    def wait_until_fired(self, fault: str, times: int = 1, *, timeout: float = 5.0) -> None:
        self._wait(timeout, "FAULT", fault, times)

    def wait_for_clients(self, count: int, *, timeout: float = 5.0) -> None:
        """Waits until the application has exactly so many connections to this world."""
        self._wait(timeout, "CLIENTS", count + self._pool.count)

    # Calls

    def call(self, *words: Any) -> Any:
        """Any command, from a connection of the launcher; texts in the reply are bytes. Raises CommandError."""
        return checked(self._call_all([words])[0])

    def _call_all(self, commands: list[tuple[Any, ...]]) -> list[Any]:
        self._must_be_open()
        try:
            return self._pool.call_all(commands, _PATIENCE_S)
        except TimeoutError:
            first = commands[0]
            hint = "" if first[0] == "DUNLIN" else "; use a client for a command that blocks, such as BLPOP"
            raise TimeoutError(f"no reply to {' '.join(map(str, first[:2]))} within {_PATIENCE_S} s{hint}") from None

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise DunlinError("the server is closed" if self._server is self else f"the world {self.name} is closed")

    def _dunlin(self, *words: Any) -> Any:
        return self.call("DUNLIN", *words)

    def _time(self, *words: Any) -> datetime:
        return EPOCH + timedelta(milliseconds=self._dunlin(*words))

    def _assert(self, *words: Any) -> None:
        __tracebackhide__ = True
        try:
            self._dunlin(*words)
        except CommandError as error:
            failure = str(error).removeprefix("ERR ")
            if not failure.startswith(("expected", "strict mode", "STRICT")):
                raise
        else:
            return
        raise AssertionError(failure)

    def _wait(self, timeout: float, *words: Any) -> None:
        self._must_be_open()
        # On a connection of its own, since one that waits in vain is closed, and a world ends with its last one.
        connection = self._pool.open()
        try:
            checked(connection.call(("DUNLIN", "WAIT", *words), max(timeout, 0.001)))
        except TimeoutError:
            raise TimeoutError(_in_vain(self, timeout, words)) from None
        finally:
            connection.close()
            self._pool.lose()

    def report(self, last: int = 20) -> str:
        """What to show when a test fails: the last commands, if there is a journal, and the findings."""
        from ._entries import Entry

        asked = [("DUNLIN", "JOURNAL", "LIST"), ("DUNLIN", "STRICT", "FINDINGS")]
        listed, findings = self._call_all(asked)
        lines: list[str] = []
        if isinstance(listed, list):
            entries = [Entry.of(each) for each in maps(listed)]
            shown = entries[-last:]
            lines.append(f"the last {len(shown)} of {len(entries)} commands in the world {self.name}:")
            lines.extend(f"  {entry}" for entry in shown)
        if isinstance(findings, list):
            lines.extend(f"strict mode, {each['rule']} ({each['level']}): {each['text']}" for each in maps(findings))
        return "\n".join(lines)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._close_clients()
            if self._owner == os.getpid():
                self._server._end_world(self)
            else:
                self._pool.close()  # the world is the parent's

    def _close_clients(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self: _Self) -> _Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def _in_vain(world: World, timeout: float, words: tuple[Any, ...]) -> str:
    return f"waited {timeout:g} s in vain for {' '.join(map(str, words))} in the world {world.name}"
