"""What a journal and strict mode list. Most tests look at neither, so this is imported only when it is used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ._kit import EPOCH


def _cut(line: str) -> str:
    return line if len(line) <= 120 else line[:117] + "..."


@dataclass(frozen=True)
class Entry:
    """A command in the journal."""

    number: int
    time: datetime
    duration: timedelta
    client: int
    client_name: str
    world: str
    database: int
    source: str
    command: list[str]
    reply: str | None

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Entry:
        return cls(
            fields["number"],
            EPOCH + timedelta(microseconds=fields["unix-time-microseconds"]),
            timedelta(microseconds=fields["duration-microseconds"]),
            fields["client"],
            fields["client-name"],
            fields["world"],
            fields["database"],
            fields["source"],
            fields["command"],
            fields["reply"],
        )

    def __str__(self) -> str:
        who = self.client_name or f"client {self.client}"
        words = " ".join(repr(word) if not word or " " in word else word for word in self.command)
        reply = "(blocked)" if self.reply is None else "; ".join(self.reply.splitlines())
        return f"{self.number} {who}: {_cut(words)} -> {_cut(reply)}"


@dataclass(frozen=True)
class Finding:
    """What strict mode has found."""

    rule: str
    level: str
    text: str
    command: str
    client: int
    client_name: str
    times: int
