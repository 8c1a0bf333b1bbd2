"""A base for tests of unittest: `self.dunlin` is a world of the test's own.

    class CartTest(dunlin_redis.unittest.TestCase):
        def test_a_cart_is_kept_for_an_hour(self):
            ...
            self.dunlin.advance(hours=1)

A test that fails shows the last commands of its world and the seed on the standard error.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import sys
import unittest
from typing import Any, Callable, Iterator

from ._connection import DunlinError
from ._server import shared_server
from ._world import World

_seed = random.randrange(2**31)


class DunlinMixin:
    """Gives any TestCase its world. `dunlin_strict`, `dunlin_seed` and `dunlin_data` of the class change it."""

    dunlin: World
    dunlin_strict = "off"
    dunlin_seed: int = _seed
    dunlin_data: str | bytes | None = None

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)  # type: ignore[call-arg]
        test = getattr(self, methodName, None)
        if test is not None:
            setattr(self, methodName, self._watched(test))

    def setUp(self) -> None:
        super().setUp()  # type: ignore[misc]
        self.dunlin = shared_server().world(seed=self.dunlin_seed, journal=True)
        self.addCleanup(self.dunlin.close)  # type: ignore[attr-defined]
        if self.dunlin_data is not None:
            self.dunlin.load(self.dunlin_data)
        if self.dunlin_strict != "off":
            self.dunlin.strict.set(self.dunlin_strict)

    def _watched(self, test: Callable[[], Any]) -> Callable[[], Any]:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def watched_coroutine() -> None:
                with self._reporting():
                    await test()

            return watched_coroutine

        @functools.wraps(test)
        def watched() -> None:
            with self._reporting():
                test()

        return watched

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        """Checks the findings of strict mode after a test, and prints what the world knows of one that fails."""
        try:
            yield
            self.dunlin.strict.check()
        except unittest.SkipTest:
            raise
        except Exception:
            name = self.id()  # type: ignore[attr-defined]
            print(f"\n{name} failed; {self._report()}\nseed {self.dunlin_seed}", file=sys.stderr)
            raise

    def _report(self) -> str:
        # The server may be gone, which must not hide why the test failed.
        try:
            return self.dunlin.report()
        except (DunlinError, OSError) as error:
            return f"there is no report: {error}"


class TestCase(DunlinMixin, unittest.TestCase):
    """A test with a world."""


class IsolatedAsyncioTestCase(DunlinMixin, unittest.IsolatedAsyncioTestCase):
    """A test of coroutines with a world."""
