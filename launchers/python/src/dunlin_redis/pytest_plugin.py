"""The pytest plugin: `dunlin`, a world for each test, on a server that starts with the first test that asks for it.

Each process of pytest-xdist has a server of its own; all of them use the one that DUNLIN_URL names, if there is one.
A test that fails shows the last commands of its world and the seed; one that passes fails for findings of strict mode.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any, AsyncIterator, Iterator

import pytest

if TYPE_CHECKING:
    from ._world import Server, World

# An asynchronous fixture needs the mark of pytest-asyncio in its strict mode; anyio takes a plain one.
if importlib.util.find_spec("pytest_asyncio"):
    from pytest_asyncio import fixture as async_fixture
else:
    async_fixture = pytest.fixture

_WORLD = pytest.StashKey["World"]()
_SEED = pytest.StashKey[int]()


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
    # Workers of pytest-xdist get the options, and the run's number, of their controller.
    run = getattr(config, "workerinput", {}).get("testrunuid")
    config.stash[_SEED] = random.Random(run).randrange(2**31) if given is None else given


@pytest.fixture(scope="session")
def dunlin_server() -> Iterator[Server]:
    """The server of this process, or the one that DUNLIN_URL names."""
    from . import Server

    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def _dunlin_data(dunlin_server: Server, pytestconfig: pytest.Config) -> bytes | None:
    """What each world has to load: nothing where the server's template has it."""
    name = pytestconfig.getini("dunlin_fixture")
    if not name:
        return None
    data = Path(pytestconfig.inipath.parent if pytestconfig.inipath else pytestconfig.rootpath, name).read_bytes()
    if not dunlin_server.is_own:
        return data
    with dunlin_server.world() as world:
        world.load(data)
        world.make_template()
    return None


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


@async_fixture
async def dunlin_async_client(dunlin: World) -> AsyncIterator[Any]:
    """A client of redis-py for asyncio in this test's world; needs pytest-asyncio or anyio."""
    client = dunlin.async_client()
    yield client
    await client.aclose()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    result = yield
    if _WORLD in item.stash:
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
