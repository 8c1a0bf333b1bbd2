"""A Redis-compatible server for tests, with a clock that the test moves.

    import dunlin_redis as dunlin

    with dunlin.Server() as server:
        application = Shop(server.url)       # any client; server.client() makes one of redis-py
        server.advance(minutes=30)           # no test sleeps

The server is a program that this package carries. It runs as a child process, answers on a free port of 127.0.0.1, and
ends with the process that started it, even if that is killed.
"""

import sys
import threading
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from ._connection import CommandError, DunlinError
    from ._entries import Entry, Finding
    from ._kit import FaultRule, Journal, Strict
    from ._program import StartError
    from ._server import Server, shared_server
    from ._world import World

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


_lock = threading.RLock()
# Each after those that it imports.
_MODULES = ("_connection", "_client", "_kit", "_program", "_world", "_server", "_entries")


def _load(*names: str) -> None:
    """Imports modules of this package in the ordinary way. pytest would compile each anew, to rewrite assertions."""
    with _lock:
        for name in names:
            full = f"{__name__}.{name}"
            if full not in sys.modules:
                globals()[name] = _executed(full)


def _executed(full: str) -> ModuleType:
    spec = PathFinder.find_spec(full, __path__)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {full!r}", name=full)
    module = sys.modules[full] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[full]
        raise
    return module


def __getattr__(name: str) -> Any:
    # Every run of pytest imports this package for its plugin, so the rest is imported when it is used.
    if name in __all__:
        for home in _MODULES:
            _load(home)
            if hasattr(sys.modules[f"{__name__}.{home}"], name):
                return getattr(sys.modules[f"{__name__}.{home}"], name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
