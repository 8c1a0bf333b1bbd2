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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("redis_decode", "whether redisdb decodes replies", type="bool", default=False)
    parser.addini("redis_password", "the password of redis_proc", default=None)


class Process:
    """A server under the names that pytest-redis gives its own."""

    def __init__(self, server: Server, username: str | None, password: str | None) -> None:
        self.server, self.host, self.port, self.unixsocket = server, server.host, server.port, server.socket
        self.username, self.password = username, password
        server.snapshot(_EMPTY)


def _redis_proc(
    *,
    host: str | None = None,
    port: Any = None,
    username: str | None = None,
    password: str | None = None,
    db_count: int | None = None,
    save: str | None = None,
    compression: bool | None = None,
    checksum: bool | None = None,
    loglevel: str | None = None,
    datadir: str | None = None,
) -> Callable[..., Iterator[Process]]:
    """A fixture of a server for the session. Without a whole number as `port` the system picks a free one."""
    given = {
        "bind": host,
        "requirepass": password,
        "databases": db_count,
        "save": save,
        "rdbcompression": compression,
        "rdbchecksum": checksum,
        "loglevel": loglevel,
        "dir": datadir,
        "port": _fixed(port),
    }

    @pytest.fixture(scope="session")
    def redis_proc_fixture(pytestconfig: pytest.Config) -> Iterator[Process]:
        from . import Server

        directives = {name: value for name, value in given.items() if value is not None}
        secret = password or pytestconfig.getini("redis_password")
        if secret:
            directives["requirepass"] = secret
        with Server(**{"save": "", **directives}) as server:
            yield Process(server, username, secret)

    return redis_proc_fixture


def _redisdb(process_fixture_name: str, dbnum: int = 0, *, decode: bool | None = None) -> Callable[..., Iterator[Any]]:
    """A fixture of a client of redis-py; after each test the server is as it was when it started."""

    @pytest.fixture
    def redisdb_fixture(request: pytest.FixtureRequest) -> Iterator[Any]:
        import redis

        process: Process = request.getfixturevalue(process_fixture_name)
        does_decode = request.config.getini("redis_decode") if decode is None else decode
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
        process.server.rollback(_EMPTY)

    return redisdb_fixture


def _fixed(port: Any) -> int | None:
    is_number = isinstance(port, int) or (isinstance(port, str) and port.isdigit())
    return int(port) if is_number and int(port) > 0 else None


factories = SimpleNamespace(redis_proc=_redis_proc, redisdb=_redisdb)
# The fixtures have the names of their factories, as in pytest-redis.
redis_proc, redisdb = _redis_proc(), _redisdb("redis_proc")
