"""Servers: processes of our own, the one that DUNLIN_URL names, and worlds that are servers to a process."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from typing import Any

from ._connection import Address, CommandError, Connection, DunlinError, Pool, checked
from ._kit import maps
from ._program import Child
from ._world import _PATIENCE_S, World

# How long a connection may take to leave a world; some replies may be missing, as after CLIENT REPLY OFF.
_LEAVE_S = 1


class Server(World):
    """A server of its own, on a free port; directives are those of a redis.conf: `Server(maxmemory="10mb")`.

    Where the variable DUNLIN_URL names a server that runs, one without directives starts nothing: it is a world of its
    own there.
    """

    def __init__(self, **directives: Any) -> None:
        given = os.environ.get("DUNLIN_URL") if not directives else None
        if not given:
            self._begin(Child(directives))
            return
        try:
            self._join(given, None, f"w-{os.urandom(8).hex()}")
        except CommandError as error:
            raise DunlinError(
                f"the server at DUNLIN_URL ({given}) has no test kit ({error}); start it with 'dunlin --test-kit yes'"
            ) from None

    @classmethod
    def _of(cls, child: Child) -> Server:
        """The server of a child that was started before, and may still be starting."""
        server = cls.__new__(cls)
        server._begin(child)
        return server

    @classmethod
    def _joined(cls, url: str, socket: str | None, name: str) -> Server:
        """A world of its own on a server that another process has started; to this process it is the server."""
        server = cls.__new__(cls)
        server._join(url, socket, name)
        return server

    def _begin(self, child: Child) -> None:
        self._child: Child | None = child
        self._holder: Connection | None = None
        self.announcement: dict[str, Any] = child.announcement
        address = Address.of_url(self.announcement["url"])
        self.socket: str | None = self.announcement.get("socket")
        World.__init__(self, self, "default", Pool(address.by(self.socket)), address)

    def _join(self, url: str, socket: str | None, name: str) -> None:
        self._child, self.announcement, self.socket = None, {}, None
        address = Address.of_url(url)
        pool = Pool(address.by(socket), ("DUNLIN", "WORLD", name, "TEMPORARY"))
        # The world lives while this connection does. The others of the pool go on to the worlds of the tests.
        self._holder = pool.take()
        World.__init__(self, self, name, pool, address)

    @property
    def is_own(self) -> bool:
        """Whether it was started by this handle, and ends with it."""
        return self._child is not None

    @property
    def url(self) -> str:
        return self._address.url() if self._child else super().url

    @property
    def host(self) -> str:
        return self._address.host or "127.0.0.1"

    @property
    def port(self) -> int:
        return self._address.port or 0 if self._child else super().port

    @property
    def pid(self) -> int | None:
        return self.announcement.get("pid")

    @property
    def page_url(self) -> str | None:
        """The link to the page, with its token, of a server that was started with `page_port=0`; otherwise None."""
        return self.announcement.get("page")

    def world(self, name: str | None = None, *, seed: int | None = None, journal: bool = False) -> World:
        """A new temporary world, or another handle to the one of this name."""
        if self._child:
            self._child.cut_log()
        name = name or f"w-{os.urandom(8).hex()}"
        entrance = ("DUNLIN", "WORLD", name, "TEMPORARY")
        self._must_be_open()
        world = World(self, name, Pool(self._pool.address, entrance), self._address)
        commands: list[tuple[Any, ...]] = [entrance]
        commands += [] if seed is None else [("DUNLIN", "SEED", seed)]
        commands += [("DUNLIN", "JOURNAL", "START")] if journal else []
        connection, replies = self._pool.ask(commands, _PATIENCE_S)
        self._pool.lose()
        try:
            for reply in replies:
                checked(reply)
        except CommandError:
            connection.close()
            raise
        world._pool.adopt(connection)
        return world

    def worlds(self) -> list[dict[str, Any]]:
        return maps(self._dunlin("WORLDS"))

    def _end_world(self, world: World) -> None:
        idle = world._pool.drain()
        first = idle.pop() if idle else None
        for connection in idle:
            connection.close()
        drop = ("DUNLIN", "DROP-WORLD", world.name)
        if first is not None and self._leaves(first, drop):
            self._pool.adopt(first)
            return
        with contextlib.suppress(DunlinError, OSError):
            self._pool.call_all([drop], _PATIENCE_S)

    def _leaves(self, connection: Connection, drop: tuple[Any, ...]) -> bool:
        """Whether a connection has left the world that is dropped, and serves the next one as if nobody had used it."""
        login = self._pool.address.login()
        leaving = [("DUNLIN", "WORLD", self.name), ("RESET",), *([("AUTH", *login)] if login else [])]
        try:
            replies = connection.call_all([*leaving, drop], _LEAVE_S)[:-1]
        except (DunlinError, OSError):
            return False
        # A world whose last client has left is gone before it is dropped, so that may be refused.
        if replies[0] == "OK" and not any(isinstance(reply, CommandError) for reply in replies):
            return True
        connection.close()
        return False

    def _has_ended(self) -> bool:
        return self._is_closed or (self._child is not None and self._child.has_ended())

    def log(self) -> str:
        """The last lines of the server's log."""
        return self._child.log() if self._child else ""

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._close_clients()
            self._pool.close()
            if self._holder:
                self._holder.close()
            if self._child:
                self._child.end()


_shared: list[tuple[int, Server]] = []
_shared_lock = threading.Lock()


def shared_server() -> Server:
    """The server that all tests of this process share; the first call starts it."""
    with _shared_lock:
        if not _shared or _shared[-1][0] != os.getpid() or _shared[-1][1]._has_ended():
            server = Server()
            atexit.register(server.close)
            _shared.append((os.getpid(), server))
        return _shared[-1][1]
