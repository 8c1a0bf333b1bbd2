"""Servers: processes of our own, the one that DUNLIN_URL names, and worlds that are servers to a process."""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from typing import Any

from ._connection import Address, CommandError, Connection, DunlinError, Pool, checked
from ._kit import maps, text
from ._program import Child
from ._world import _PATIENCE_S, World

# How long a connection may take to leave a world; some replies may be missing, as after CLIENT REPLY OFF.
_LEAVE_S = 1


class Server(World):
    """A server of its own, on a free port; directives are those of a redis.conf: `Server(maxmemory="10mb")`.

    Where the variable DUNLIN_URL names a server that runs, one without directives is a handle to that: it starts
    nothing, and `close` ends nothing.
    """

    def __init__(self, **directives: Any) -> None:
        given = os.environ.get("DUNLIN_URL") if not directives else None
        self._begin(None if given else Child(directives), given)

    @classmethod
    def _of(cls, child: Child) -> Server:
        """The server of a child that was started before, and may still be starting."""
        server = cls.__new__(cls)
        server._begin(child, None)
        return server

    def _begin(self, child: Child | None, given: str | None) -> None:
        self._child = child
        self.announcement: dict[str, Any] = child.announcement if child else {}
        address = Address.of_url(given or self.announcement["url"])
        self.socket: str | None = address.socket or self.announcement.get("socket")
        near = Address(None, None, self.socket, address.user, address.password) if self.socket else address
        World.__init__(self, self, "default", Pool(near), address)
        try:
            if given:
                self.name = text(self._dunlin("WORLD"))
        except CommandError as error:
            self.close()
            raise DunlinError(
                f"the server at DUNLIN_URL ({given}) has no test kit ({error}); start it with 'dunlin --test-kit yes'"
            ) from None

    @property
    def is_own(self) -> bool:
        """Whether it was started by this handle, and ends with it."""
        return self._child is not None

    @property
    def url(self) -> str:
        return self._address.url()

    @property
    def host(self) -> str:
        return self._address.host or "127.0.0.1"

    @property
    def port(self) -> int:
        return self._address.port or 0

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
        near = self._pool.address
        world = World(
            self, name, Pool(Address(near.host, near.port, near.socket, "", near.password), entrance), self._address
        )
        commands: list[tuple[Any, ...]] = [entrance]
        commands += [] if seed is None else [("DUNLIN", "SEED", seed)]
        commands += [("DUNLIN", "JOURNAL", "START")] if journal else []
        connection = self._pool.take()
        try:
            for reply in connection.call_all(commands, _PATIENCE_S):
                checked(reply)
        except CommandError:
            connection.close()
            self._pool.lose()
            raise
        except BaseException:
            self._pool.lose()
            raise
        self._pool.lose()
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

    def log(self) -> str:
        """The last lines of the server's log."""
        return self._child.log() if self._child else ""

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._close_clients()
            for connection in self._pool.drain():
                connection.close()
            if self._child:
                self._child.end()


class JoinedServer(Server):
    """A world of its own on a server that another process has started; to this process it is the server."""

    url, port = World.url, World.port

    def __init__(self, url: str, socket: str | None, name: str) -> None:
        self._child, self.announcement, self.socket = None, {}, None
        address = Address.of_url(url)
        near = Address(None, None, socket, "", address.password) if socket else address
        pool = Pool(near, ("DUNLIN", "WORLD", name, "TEMPORARY"))
        # The world lives while this connection does. The others of the pool go on to the worlds of the tests.
        self._holder = pool.take()
        World.__init__(self, self, name, pool, address)

    def close(self) -> None:
        super().close()
        self._holder.close()


_shared: list[tuple[int, Server]] = []
_shared_lock = threading.Lock()


def shared_server() -> Server:
    """The server that all tests of this process share; the first call starts it."""
    with _shared_lock:
        if not _shared or _shared[-1][0] != os.getpid() or _shared[-1][1]._is_closed:
            server = Server()
            atexit.register(server.close)
            _shared.append((os.getpid(), server))
        return _shared[-1][1]
