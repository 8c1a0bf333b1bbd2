"""What the test kit returns and takes: journals, faults and strict mode, as the commands of DUNLIN."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._entries import Entry, Finding
    from ._world import World

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def text(value: Any) -> Any:
    """A reply with text in place of bytes."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return [text(each) for each in value] if isinstance(value, list) else value


def maps(reply: Any) -> list[dict[str, Any]]:
    """A reply of maps, which RESP2 writes as flat lists."""
    return [dict(zip(each[::2], each[1::2])) for each in text(reply)]


def milliseconds(duration: timedelta | None, units: dict[str, float]) -> int:
    """A duration as the server takes it."""
    if duration is not None and not isinstance(duration, timedelta):
        raise TypeError("a duration is a timedelta or has a unit: advance(seconds=60)")
    if (duration is None) != bool(units):
        raise TypeError("give a duration, as a timedelta or with units: advance(minutes=1, seconds=30)")
    count, rest = divmod(timedelta(**units) if duration is None else duration, timedelta(milliseconds=1))
    if rest:
        raise ValueError("the server's clock has whole milliseconds")
    return count


def seed_of_variable() -> int | None:
    """The seed that the variable DUNLIN_SEED has, if it is set."""
    given = os.environ.get("DUNLIN_SEED")
    try:
        return int(given) if given else None
    except ValueError:
        raise ValueError(f"the variable DUNLIN_SEED is '{given}', but a seed is a whole number") from None


def filter_words(
    command: str | None = None,
    key: str | None = None,
    client: str | None = None,
    errors: bool = False,
    redirected: bool = False,
) -> list[Any]:
    words: list[Any] = []
    for name, value in (("COMMAND", command), ("KEY", key), ("CLIENT", client)):
        words += [] if value is None else [name, value]
    return words + (["ERRORS"] if errors else []) + (["REDIRECTED"] if redirected else [])


class Journal:
    """The commands of the application, from `start` on.

    A filter is any of `command`, `key`, `client`, `errors` and `redirected` (the reply is MOVED or ASK).
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def start(self, count: int = 10_000) -> Journal:
        self._world._dunlin("JOURNAL", "START", count)
        return self

    def stop(self) -> None:
        self._world._dunlin("JOURNAL", "STOP")

    def clear(self) -> None:
        self._world._dunlin("JOURNAL", "CLEAR")

    def entries(self, **filter: Any) -> list[Entry]:
        from ._entries import Entry

        return [Entry.of(each) for each in maps(self._world._dunlin("JOURNAL", "LIST", *filter_words(**filter)))]

    def count(self, **filter: Any) -> int:
        return self._world._dunlin("JOURNAL", "COUNT", *filter_words(**filter))

    def expect(
        self,
        *,
        exactly: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        none: bool = False,
        **filter: Any,
    ) -> None:
        """Raises an AssertionError that lists the commands found, unless there are as many as expected."""
        bounds = [("EXACTLY", exactly), ("AT-LEAST", at_least), ("AT-MOST", at_most), ("NONE", none or None)]
        given = [(word, number) for word, number in bounds if number is not None]
        if not given:
            raise TypeError("how many are expected? exactly=1, at_least=1, at_most=1 or none=True")
        for word, number in given:
            words = [word] if word == "NONE" else [word, number]
            self._world._assert("JOURNAL", "EXPECT", *words, *filter_words(**filter))

    def export(self) -> str:
        """The journal as a transcript, which can be replayed."""
        return text(self._world._dunlin("JOURNAL", "EXPORT"))

    def wait_for(self, count: int, *, timeout: float = 5.0, **filter: Any) -> None:
        self._world._wait(timeout, "JOURNAL", count, *filter_words(**filter))


class Strict:
    """The rules of strict mode and what they found. A level is "off", "warn" or "error"."""

    def __init__(self, world: World) -> None:
        self._world = world

    def set(self, level: str, rule: str = "ALL", limit: int | None = None) -> Strict:
        self._world._dunlin("STRICT", "SET", rule, level, *([] if limit is None else ["LIMIT", limit]))
        return self

    def allow(self, pattern: str, rule: str = "ALL") -> Strict:
        self._world._dunlin("STRICT", "ALLOW", rule, pattern)
        return self

    def findings(self) -> list[Finding]:
        from ._entries import Finding

        found = maps(self._world._dunlin("STRICT", "FINDINGS"))
        return [Finding(**{name.replace("-", "_"): value for name, value in each.items()}) for each in found]

    def check(self) -> None:
        """Raises an AssertionError that lists the findings of rules whose level is error."""
        self._world._assert("STRICT", "CHECK")

    def clear(self) -> None:
        self._world._dunlin("STRICT", "CLEAR")


class FaultRule:
    """A rule without its failure: the method that names the failure adds the rule to the server."""

    def __init__(self, world: World, name: str, words: list[Any]) -> None:
        self._world, self._name, self._words = world, name, words

    def _add(self, *failure: Any) -> None:
        self._world._dunlin("FAULT", "ADD", self._name, *self._words, *failure)

    def delay(self, duration: timedelta | None = None, **units: float) -> None:
        """The command runs this much later by the server's clock."""
        self._add("DELAY", milliseconds(duration, units))

    def error(self, message: str) -> None:
        """The command is not run; its reply is this error, whose text begins with its code: "TRYAGAIN later"."""
        self._add("ERROR", message)

    def moved(self, slot: int, address: str) -> None:
        """Commands with keys are redirected to the node at this address."""
        self._add("MOVED", slot, address)

    def ask(self, slot: int, address: str) -> None:
        """Commands with keys are redirected to the node at this address, each time anew."""
        self._add("ASK", slot, address)

    def drop_before(self) -> None:
        """The connection closes; the command was not run."""
        self._add("DROP-BEFORE")

    def drop_after(self) -> None:
        """The command takes effect; the connection closes without its reply."""
        self._add("DROP-AFTER")

    def half_reply(self) -> None:
        """The command takes effect; the connection closes in the middle of its reply."""
        self._add("HALF-REPLY")

    def split_reply(self) -> None:
        """Each byte of the reply is written separately."""
        self._add("SPLIT-REPLY")

    def silence(self) -> None:
        """The command is not run; the connection stays open and gets no more replies."""
        self._add("SILENCE")

    def loading(self) -> None:
        """The server refuses what one that loads its data refuses."""
        self._add("LOADING")

    def busy(self) -> None:
        """The server refuses what one that runs a long script refuses."""
        self._add("BUSY")

    def readonly(self) -> None:
        """The server refuses what a read-only replica refuses."""
        self._add("READONLY")

    def oom(self) -> None:
        """The server refuses what one without memory refuses."""
        self._add("OOM")

    def masterdown(self) -> None:
        """The server refuses what a replica without its master refuses."""
        self._add("MASTERDOWN")

    def clusterdown(self) -> None:
        """Commands with keys are refused, as by a node of a cluster that is down."""
        self._add("CLUSTERDOWN")

    def tryagain(self) -> None:
        """Commands with several keys are refused, as by a node of which some of these have moved."""
        self._add("TRYAGAIN")

    def crossslot(self) -> None:
        """Commands with several keys are refused, as if their keys were in different slots."""
        self._add("CROSSSLOT")
