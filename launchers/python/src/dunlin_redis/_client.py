"""The clients of redis-py, which this package does not need itself."""

from __future__ import annotations

from typing import Any


def redis_py(caller: str) -> Any:
    """The module redis, for a method that makes a client of it."""
    try:
        import redis.asyncio
    except ImportError:
        raise ImportError(
            f"{caller}() needs redis-py: pip install 'dunlin-redis[redis]', or give world.url to your own client"
        ) from None
    return redis
