"""A Redis-compatible server for tests, with a clock that the test moves.

    import dunlin_redis as dunlin

    with dunlin.Server() as server:
        application = Shop(server.url)       # any client; server.client() makes one of redis-py
        server.advance(minutes=30)           # no test sleeps

The server is a program that this package carries. It runs as a child process, answers on a free port of 127.0.0.1, and
ends with the process that started it, even if that is killed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._connection import CommandError, DunlinError
    from ._kit import Entry, FaultRule, Finding, Journal, Strict
    from ._program import StartError
    from ._world import Server, World, shared_server

__all__ = [
    "CommandError",
    "DunlinError",
    "Entry",
    "FaultRule",
    "Finding",
    "Journal",
    "Server",
    "StartError",
    "Strict",
    "World",
    "__version__",
    "shared_server",
]


def __getattr__(name: str) -> Any:
    # Every run of pytest imports this package for its plugin, so the rest is imported when it is used.
    for home in ("_world", "_kit", "_program", "_connection") if name in __all__ else ():
        module = import_module(f".{home}", __name__)
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
