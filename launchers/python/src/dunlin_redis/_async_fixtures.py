"""The fixture for coroutines. It is a module of its own, imported when it is known whether pytest-asyncio is in use.

With pytest-asyncio a fixture and a test may have different event loops. A client belongs to the loop that it connects in,
which is the test's, so it is closed there. With anyio both have the same.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, AsyncIterator, Iterator

import pytest

if TYPE_CHECKING:
    from ._world import World


def _of_any_loop(dunlin: World) -> Iterator[Any]:
    """A client of redis-py for asyncio in this test's world; needs pytest-asyncio or anyio."""
    import asyncio

    loops = []

    async def connect(connection: Any) -> None:
        loops.append(asyncio.get_running_loop())
        await connection.on_connect()

    client = dunlin.async_client(redis_connect_func=connect)
    yield client
    if loops and not loops[0].is_closed():
        loops[0].run_until_complete(client.aclose())


async def _of_one_loop(dunlin: World) -> AsyncIterator[Any]:
    """A client of redis-py for asyncio in this test's world; needs pytest-asyncio or anyio."""
    client = dunlin.async_client()
    yield client
    await client.aclose()


_client = _of_any_loop if "pytest_asyncio" in sys.modules else _of_one_loop
dunlin_async_client = pytest.fixture(name="dunlin_async_client")(_client)
