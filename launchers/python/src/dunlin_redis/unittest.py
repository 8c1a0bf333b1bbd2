"""A base for tests of unittest: `self.dunlin` is a world of the test's own.

    class CartTest(dunlin_redis.unittest.TestCase):
        def test_a_cart_is_kept_for_an_hour(self):
            ...
            self.dunlin.advance(hours=1)

A test that fails shows the last commands of its world and the seed on the standard error.
"""

from __future__ import annotations

import contextlib
import random
import sys
import unittest
from typing import Any, Callable

from ._connection import DunlinError, WorldEnded
from ._kit import seed_of_variable
from ._server import shared_server
from ._world import World

_given = seed_of_variable()
_seed = random.randrange(2**31) if _given is None else _given


class DunlinMixin:
    """Gives any TestCase its world. `dunlin_strict`, `dunlin_seed` and `dunlin_data` of the class change it."""

    dunlin: World
    dunlin_strict = "off"
    dunlin_seed: int = _seed
    dunlin_data: str | bytes | None = None

    def setUp(self) -> None:
        super().setUp()  # type: ignore[misc]
        self.dunlin = shared_server().world(seed=self.dunlin_seed, journal=True)
        self.addCleanup(self.dunlin.close)  # type: ignore[attr-defined]
        if self.dunlin_data is not None:
            self.dunlin.load(self.dunlin_data)
        if self.dunlin_strict != "off":
            self.dunlin.strict.set(self.dunlin_strict)

    def _callTestMethod(self, method: Callable[[], Any]) -> None:
        """Checks the findings of strict mode after a test, and prints what the world knows of one that fails."""
        try:
            super()._callTestMethod(method)  # type: ignore[misc]
            with contextlib.suppress(WorldEnded):  # as by SHUTDOWN
                self.dunlin.strict.check()
        except unittest.SkipTest:
            raise
        except Exception:
            self._show_failure()
            raise
        if not self._outcome.success:  # type: ignore[attr-defined]
            self._show_failure()  # of a subTest, which does not raise it

    def _show_failure(self) -> None:
        name = self.id()  # type: ignore[attr-defined]
        print(f"\n{name} failed; {self._report()}\nseed {self.dunlin_seed}", file=sys.stderr)

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
