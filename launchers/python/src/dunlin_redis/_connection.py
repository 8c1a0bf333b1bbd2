"""Connections to the server that the launcher keeps for itself: RESP2, and nothing of redis-py.

A world ends with its last client, so its connection also keeps the world while the application has none.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import weakref
from typing import Any
from urllib.parse import quote, unquote, urlsplit


class DunlinError(Exception):
    """The base of all errors of this package."""


class CommandError(DunlinError):
    """The server refused a command; the text is the server's."""


class _Unread(DunlinError):
    """The connection had ended before the server read the request."""


class WorldEnded(DunlinError):
    """The world has ended with its last connection; entering it again would make an empty one of its name."""


def checked(reply: Any) -> Any:
    """Raises a reply that is an error."""
    if isinstance(reply, CommandError):
        raise reply
    return reply


class Address:
    """Where a server is, and the password that it wants."""

    def __init__(
        self, host: str | None, port: int | None, socket: str | None = None, user: str = "", password: str = ""
    ) -> None:
        self.host, self.port, self.socket, self.user, self.password = host, port, socket, user, password

    @classmethod
    def of_url(cls, url: str) -> Address:
        with contextlib.suppress(ValueError):  # of a port that is no number, or of half an IPv6 address
            parts = urlsplit(url)
            user, password = unquote(parts.username or ""), unquote(parts.password or "")
            if parts.scheme == "unix" and parts.path:
                return cls(None, None, unquote(parts.path), user, password)
            if parts.scheme == "redis" and parts.hostname:
                return cls(parts.hostname, parts.port or 6379, None, user, password)
        raise DunlinError(f"'{url}' is no address of a server; it should be like redis://127.0.0.1:6379")

    def by(self, socket: str | None) -> Address:
        """The same server by its Unix socket, if it has one."""
        return Address(None, None, socket, self.user, self.password) if socket else self

    def url(self, user: str = "") -> str:
        """The URL of a user, which may be a world."""
        user = user or self.user
        secret = self.password or ("any" if user else "")
        login = f"{quote(user, safe='')}:{quote(secret, safe='')}@" if secret else ""
        if self.port is None:
            return f"unix://{login}{quote(str(self.socket))}"
        return f"redis://{login}{f'[{self.host}]' if ':' in str(self.host) else self.host}:{self.port}"

    def login(self) -> tuple[str, ...]:
        """The words after AUTH, or none where nobody has to log in."""
        if self.user:
            return (self.user, self.password or "any")
        return (self.password,) if self.password else ()


def packed(words: tuple[Any, ...]) -> bytes:
    """A command as it is sent."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = bytes(word) if isinstance(word, (bytes, bytearray)) else str(word).encode("utf-8", "surrogateescape")
        parts.append(b"$%d\r\n%b\r\n" % (len(data), data))
    return b"".join(parts)


def _connected(address: Address, patience: float) -> socket.socket:
    if address.socket is None:
        connected = socket.create_connection((address.host, address.port or 0), timeout=patience)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connected
    connected = socket.socket(socket.AF_UNIX)
    try:
        connected.connect(address.socket)
    except OSError:
        connected.close()
        raise
    return connected


class Connection:
    """One connection. A call that fails halfway closes it."""

    def __init__(self, address: Address, patience: float) -> None:
        try:
            self._socket = _connected(address, patience)
        except OSError as error:
            raise DunlinError(f"no dunlin answers at {address.url()}: {error.strerror or error}") from None
        self._reader = self._socket.makefile("rb")
        if login := address.login():
            try:
                checked(self.call(("AUTH", *login), patience))
            except CommandError:
                self.close()
                raise

    def call(self, words: tuple[Any, ...], patience: float | None) -> Any:
        return self.call_all([words], patience)[0]

    def call_all(self, commands: list[tuple[Any, ...]], patience: float | None) -> list[Any]:
        """Sends all commands at once; a reply that is an error is a value here."""
        replies: list[Any] = []
        try:
            self._socket.settimeout(patience)
            self._socket.sendall(b"".join(map(packed, commands)))
            for _ in commands:
                replies.append(self._reply())
            return replies
        except BaseException as error:
            self.close()
            if isinstance(error, OSError) and not isinstance(error, TimeoutError):
                is_unread = isinstance(error, ConnectionError) and not replies
                lost = _Unread if is_unread else DunlinError
                raise lost(f"the connection to the server has ended: {error.strerror or error}") from None
            raise

    def has_ended(self) -> bool:
        """Whether the server has closed a connection on which no reply is awaited."""
        try:
            self._socket.settimeout(0)
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _reply(self) -> Any:
        line = self._reader.readline()
        if not line.endswith(b"\r\n"):
            raise DunlinError("the server has closed the connection: it has ended, or the world was dropped")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b":":
            return int(rest)
        if kind == b"-":
            return CommandError(rest.decode("utf-8", "backslashreplace"))
        length = int(rest)
        if length < 0:
            return None
        if kind == b"*":
            return [self._reply() for _ in range(length)]
        data = self._reader.read(length + 2)
        if len(data) != length + 2:
            raise DunlinError("the server has closed the connection within a reply")
        return data[:-2]

    def close(self) -> None:
        self._reader.close()
        self._socket.close()


# How many connections without work a pool keeps: as many as tests that end together begin again soon.
_IDLE = 16


class Pool:
    """The connections of a server or a world: one for each call that is under way, so that a thread that waits keeps no
    other thread from moving the clock."""

    def __init__(self, address: Address, entrance: tuple[Any, ...] = ()) -> None:
        self.address, self.entrance, self._was_entered = address, entrance, False
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self.count = 0

    def _enter(self, connection: Connection, patience: float) -> None:
        # While another connection of ours is there, so is the world; in a forked process the parent may have one.
        if self._was_entered and self.count == 1:
            worlds = checked(connection.call(("DUNLIN", "WORLDS"), patience))
            if not any(str(self.entrance[2]).encode() in each for each in worlds):
                raise WorldEnded(f"the world {self.entrance[2]} has ended with its last connection")
        checked(connection.call(self.entrance, patience))
        self._was_entered = True

    def take(self) -> Connection:
        """An idle connection, or a new one; where one has ended, another one takes its place."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                connection = self._idle.pop()
            if not connection.has_ended():
                return connection
            connection.close()
            self.lose()
        return self.open()

    def open(self, patience: float = 10) -> Connection:
        """A new connection."""
        with self._lock:
            self.count += 1
        connection = None
        try:
            connection = Connection(self.address, patience)
            if self.entrance:
                self._enter(connection, patience)
        except BaseException:
            if connection is not None:
                connection.close()
            self.lose()
            raise
        return connection

    def give(self, connection: Connection) -> None:
        with self._lock:
            self._idle.append(connection)

    def adopt(self, connection: Connection) -> None:
        """Takes over the connection of another pool, unless enough are idle here."""
        self._was_entered = True
        with self._lock:
            if len(self._idle) < _IDLE:
                self.count += 1
                self._idle.append(connection)
                return
        connection.close()

    def lose(self) -> None:
        with self._lock:
            self.count -= 1

    def call_all(self, commands: list[tuple[Any, ...]], patience: float | None) -> list[Any]:
        connection, replies = self.ask(commands, patience)
        self.give(connection)
        return replies

    def ask(self, commands: list[tuple[Any, ...]], patience: float | None) -> tuple[Connection, list[Any]]:
        """The replies, and the connection that they came on; a request that was not read is sent once more."""
        try:
            return self._ask(self.take(), commands, patience)
        except _Unread:
            return self._ask(self.open(), commands, patience)

    def _ask(
        self, connection: Connection, commands: list[tuple[Any, ...]], patience: float | None
    ) -> tuple[Connection, list[Any]]:
        try:
            return connection, connection.call_all(commands, patience)
        except BaseException:
            self.lose()
            raise

    def drain(self) -> list[Connection]:
        """Takes all idle connections away."""
        with self._lock:
            idle, self._idle = self._idle, []
            self.count -= len(idle)
        return idle

    def close(self) -> None:
        """Closes all idle connections."""
        for connection in self.drain():
            connection.close()

    def forget(self) -> None:
        """Gives up the connections in a forked process: the parent uses them."""
        for connection in self._idle:
            connection.close()
        self._reset()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forget_in_child() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
