"""Stands in for pytest-redis: `-p dunlin_redis.as_pytest_redis`, with `redisdb` and `redis_proc` as there.

`factories.redis_proc` starts a server of its own for each fixture. It takes the arguments that it has there, by name,
but for those without a meaning here: `executable`, `timeout`, `syslog` and `modules`. After each test all data is gone,
and so are changes of settings and of the clock.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Callable, Iterator

import pytest

if TYPE_CHECKING:
    from ._server import Server

_EMPTY = "as-pytest-redis"
# The settings that are there, each in an ini file and as an option; the last ones have no effect here.
_TEXTS = {"host": "127.0.0.1", "port": None, "username": None, "password": None, "loglevel": "notice", "db_count": 8}
_TEXTS |= {"save": None, "datadir": None, "exec": None, "port_search_count": None, "timeout": None, "modules": None}
_FLAGS = {"compression": "compression", "rdbchecksum": "rdbchecksum", "decode": "client-decode", "syslog": "syslog"}


def pytest_addoption(parser: pytest.Parser) -> None:
    group, about = parser.getgroup("dunlin"), "as of pytest-redis"
    for name, default in _TEXTS.items():
        parser.addini(f"redis_{name}", about, default=default)
        group.addoption(f"--redis-{name.replace('_', '-')}", dest=f"redis_{name}", help=about)
    for name, option in _FLAGS.items():
        parser.addini(f"redis_{name}", about, type="bool", default=False)
        group.addoption(f"--redis-{option}", dest=f"redis_{name}", action="store_true", help=about)


def _setting(config: pytest.Config, name: str) -> Any:
    return config.getoption(f"redis_{name}") or config.getini(f"redis_{name}")


class Process:
    """A server under the names that pytest-redis gives its own."""

    server: Server | None = None

    def __init__(self, directives: dict[str, Any], username: str | None, password: str | None) -> None:
        self._directives, self.username, self.password = directives, username, password
        self.start()

    def start(self) -> Process:
        """Starts the server unless it runs; after `stop` it has the port that it had."""
        if not self.running():
            from . import Server

            self.server = server = Server(**self._directives)
            self.host, self.port, self.unixsocket = server.host, server.port, server.socket
            self.executable = server._child._program if server._child else ""
            self._directives = {**self._directives, "port": self.port, "unixsocket": self.unixsocket or ""}
            server.snapshot(_EMPTY)
        return self

    def running(self) -> bool:
        return self.server is not None and not self.server._has_ended()

    def stop(self) -> Process:
        if self.server is not None:
            self.server.close()
        return self

    def _empty(self) -> None:
        if self.server is not None and self.running():
            self.server.rollback(_EMPTY)


def _redis_proc(
    *,
    host: str | None = None,
    port: Any = -1,
    username: str | None = None,
    password: str | None = None,
    db_count: int | None = None,
    save: str | None = None,
    compression: bool | None = None,
    checksum: bool | None = None,
    loglevel: str | None = None,
    datadir: str | None = None,
) -> Callable[..., Iterator[Process]]:
    """A fixture of a server for the session. Without a whole number as `port`, here or else in the settings, the system
    picks a free one."""

    @pytest.fixture(scope="session")
    def redis_proc_fixture(pytestconfig: pytest.Config) -> Iterator[Process]:
        secret = password or _setting(pytestconfig, "password")
        directives = {
            "bind": host or _setting(pytestconfig, "host"),
            "requirepass": secret,
            "databases": db_count or _setting(pytestconfig, "db_count"),
            "save": save or _setting(pytestconfig, "save") or "",
            "rdbcompression": _setting(pytestconfig, "compression") if compression is None else compression,
            "rdbchecksum": _setting(pytestconfig, "rdbchecksum") if checksum is None else checksum,
            "loglevel": loglevel or _setting(pytestconfig, "loglevel"),
            "dir": datadir or _setting(pytestconfig, "datadir"),
            "port": _fixed(_setting(pytestconfig, "port") if port == -1 else port),
        }
        given = {name: value for name, value in directives.items() if value is not None}
        process = Process(given, username or _setting(pytestconfig, "username"), secret)
        yield process
        process.stop()

    return redis_proc_fixture


def _redisdb(process_fixture_name: str, dbnum: int = 0, *, decode: bool | None = None) -> Callable[..., Iterator[Any]]:
    """A fixture of a client of redis-py; after each test the server is as it was when it started."""

    @pytest.fixture
    def redisdb_fixture(request: pytest.FixtureRequest) -> Iterator[Any]:
        import redis

        process: Process = request.getfixturevalue(process_fixture_name)
        does_decode = _setting(request.config, "decode") if decode is None else decode
        with redis.Redis(
            process.host,
            process.port,
            dbnum,
            username=process.username,
            password=process.password,
            unix_socket_path=process.unixsocket,
            decode_responses=does_decode,
        ) as client:
            yield client
        process._empty()

    return redisdb_fixture


def _fixed(port: Any) -> int | None:
    is_number = isinstance(port, int) or (isinstance(port, str) and port.isdigit())
    return int(port) if is_number and int(port) > 0 else None


factories = SimpleNamespace(redis_proc=_redis_proc, redisdb=_redisdb)
# The fixtures have the names of their factories, as in pytest-redis.
redis_proc, redisdb = _redis_proc(), _redisdb("redis_proc")
