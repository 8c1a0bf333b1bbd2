"""The pytest plugin: `dunlin`, a world for each test, on a server that starts where a test asks for one.

The workers of pytest-xdist on this machine share one server, which their controller starts; all processes use the one
that DUNLIN_URL names, if there is one. A test that fails shows the last commands of its world and the seed; one that
passes fails for findings of strict mode.
"""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

import pytest

from . import _load

if TYPE_CHECKING:
    from ._program import Child
    from ._server import Server
    from ._world import World

_WORLD = pytest.StashKey["World"]()
_SEED = pytest.StashKey[int]()
# A server that was started before a test asked for it.
_CHILD = pytest.StashKey["Child"]()
# What the workers of pytest-xdist get to know of the server.
_TOLD = pytest.StashKey["dict[str, Any] | None"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("dunlin").addoption(
        "--dunlin-seed", type=int, help="the seed of each test's world; a test that fails shows the one that it had"
    )
    parser.addini("dunlin_strict", "the level of the general rules of strict mode: off, warn or error", default="off")
    parser.addini("dunlin_env", "variables to set to the URL of each test's world, such as REDIS_URL", type="args")
    parser.addini(
        "dunlin_fixture", "a text or an RDB file, by its path from here, that each world starts with", default=""
    )


def pytest_configure(config: pytest.Config) -> None:
    given = config.getoption("--dunlin-seed")
    if given is None and os.environ.get("DUNLIN_SEED"):
        given = _seed_of_variable()
    # Workers of pytest-xdist get the options, and the run's number, of their controller.
    run = getattr(config, "workerinput", {}).get("testrunuid")
    config.stash[_SEED] = random.Random(run).randrange(2**31) if given is None else given
    _load("_async_fixtures")
    from . import _async_fixtures

    if not config.pluginmanager.is_registered(_async_fixtures):
        config.pluginmanager.register(_async_fixtures, "dunlin-asyncio")


def _seed_of_variable() -> int | None:
    _load("_kit")
    from ._kit import seed_of_variable

    try:
        return seed_of_variable()
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None


def _start(config: pytest.Config) -> None:
    """Starts a server ahead. Why one does not start is told to the test that asks for it."""
    if os.environ.get("DUNLIN_URL"):
        return
    _load("_connection", "_program")
    from ._program import Child, StartError

    with contextlib.suppress(StartError):
        config.stash[_CHILD] = Child({})
    # While it starts.
    _load("_client", "_kit", "_world", "_server")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Starts the server once it is known that a test asks for it, so that the first one that does need not wait."""
    config = session.config
    if config.option.collectonly or _told_by_controller(config):
        return
    if any("dunlin_server" in getattr(item, "fixturenames", ()) for item in session.items):
        _start(config)
    if _CHILD in config.stash and config.getoption("forked", False):
        # The forked processes have no pipe from it, so it must have said where it is.
        _ = config.stash[_CHILD].announcement


def pytest_unconfigure(config: pytest.Config) -> None:
    if _CHILD in config.stash:
        config.stash[_CHILD].end()


# Of pytest-xdist, in the controller


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Starts the server of the run, beside the workers."""
    _start(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells a worker where the server is. One on another machine cannot reach it, and starts its own."""
    stash = node.config.stash
    if _TOLD not in stash:
        stash[_TOLD] = _told(node.config)
    if stash[_TOLD] and node.gateway.spec.popen:
        node.workerinput["dunlin"] = stash[_TOLD]


def pytest_report_teststatus(config: pytest.Config) -> None:
    """Keeps the log of the run's server short, since it is the workers that make worlds, which cannot."""
    if _CHILD in config.stash:
        config.stash[_CHILD].cut_log()


def _told(config: pytest.Config) -> dict[str, Any] | None:
    if _CHILD not in config.stash:
        return None
    from . import DunlinError, Server

    try:
        server = Server._of(config.stash[_CHILD])
    except DunlinError:
        return None
    has_data = False
    # What is wrong with a file of data is told by the tests, which load it themselves then.
    with contextlib.suppress(DunlinError, OSError):
        has_data = bool(config.getini("dunlin_fixture")) and _make_template(server, _data(config))
    server._pool.close()  # the server goes on for the workers
    return {"url": server.url, "socket": server.socket, "has_data": has_data}


def _told_by_controller(config: pytest.Config) -> dict[str, Any]:
    return getattr(config, "workerinput", {}).get("dunlin", {})


# The data that each world starts with


def _data(config: pytest.Config) -> bytes:
    return Path(config.inipath.parent if config.inipath else config.rootpath, config.getini("dunlin_fixture")).read_bytes()


def _make_template(server: Server, data: bytes) -> bool:
    with server.world() as world:
        world.load(data)
        world.make_template()
    return True


@pytest.fixture(scope="session")
def _dunlin_data(dunlin_server: Server, pytestconfig: pytest.Config) -> bytes | None:
    """What each world has to load: nothing where the server's template has it."""
    if not pytestconfig.getini("dunlin_fixture") or _told_by_controller(pytestconfig).get("has_data"):
        return None
    data = _data(pytestconfig)
    if not dunlin_server.is_own:
        return data
    _make_template(dunlin_server, data)
    return None


# Fixtures


@pytest.fixture(scope="session")
def dunlin_server(pytestconfig: pytest.Config) -> Iterator[Server]:
    """The server of this process; in a worker of pytest-xdist, and on the one that DUNLIN_URL names, a world of its own."""
    with _server(pytestconfig) as server:
        yield server


def _server(config: pytest.Config) -> Server:
    from . import Server

    told = _told_by_controller(config)
    if told:
        return Server._joined(told["url"], told["socket"], f"{config.workerinput['workerid']}-{os.urandom(8).hex()}")
    if _CHILD not in config.stash:
        return Server()
    child = config.stash[_CHILD]
    del config.stash[_CHILD]  # the fixture ends it, or in a forked process nobody
    return Server._of(child)


@pytest.fixture
def dunlin(
    dunlin_server: Server, _dunlin_data: bytes | None, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A private Redis for this test: `dunlin.url`, `dunlin.client()`, `dunlin.advance(hours=1)`."""
    config = request.config
    with dunlin_server.world(seed=config.stash[_SEED], journal=True) as world:
        if _dunlin_data is not None:
            world.load(_dunlin_data)
        level = config.getini("dunlin_strict")
        if level != "off":
            world.strict.set(level)
        for name in config.getini("dunlin_env"):
            monkeypatch.setenv(name, world.url)
        request.node.stash[_WORLD] = world
        yield world


@pytest.fixture
def dunlin_client(dunlin: World) -> Any:
    """A client of redis-py in this test's world."""
    return dunlin.client()


# What a test shows and fails for


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    result = yield
    if _WORLD in item.stash:
        from ._connection import WorldEnded

        with contextlib.suppress(WorldEnded):  # as by SHUTDOWN
            item.stash[_WORLD].strict.check()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.failed and report.when == "call" and _WORLD in item.stash:
        report.sections.append(("dunlin", _shown(item)))
    return report


def _shown(item: pytest.Item) -> str:
    from . import DunlinError

    seed = f"seed {item.config.stash[_SEED]}: repeat with --dunlin-seed {item.config.stash[_SEED]}"
    try:
        return f"{item.stash[_WORLD].report()}\n{seed}"
    except (DunlinError, OSError) as error:
        return f"{error}\n{seed}"
