"""The fixture for coroutines. It is a module of its own, imported when it is known whether pytest-asyncio is in use.

An asynchronous fixture needs the mark of pytest-asyncio in its strict mode; anyio takes a plain one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, AsyncIterator

import pytest

if TYPE_CHECKING:
    from ._world import World

_asyncio = sys.modules.get("pytest_asyncio")


@_asyncio.fixture if _asyncio else pytest.fixture
async def dunlin_async_client(dunlin: World) -> AsyncIterator[Any]:
    """A client of redis-py for asyncio in this test's world; needs pytest-asyncio or anyio."""
    client = dunlin.async_client()
    yield client
    await client.aclose()
