"""The program as a child process: where it is, how it starts, and how it ends.

The child holds the other end of a pipe and ends when that closes, which the system does however this process ends. A
process that is forked from this one closes its copy. No thread and no signal handler is needed.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any, BinaryIO

from ._connection import DunlinError
from ._version import __version__

PATIENCE_S = 10.0
_SUFFIX = ".exe" if os.name == "nt" else ""
_OWN = Path(__file__).with_name("bin") / f"dunlin{_SUFFIX}"


class StartError(DunlinError):
    """The server could not start."""


def find() -> str:
    """The path of the program."""
    named = os.environ.get("DUNLIN_BINARY")
    if named:
        if not os.path.isfile(named):
            raise StartError(
                f"there is no program at {named}, which the variable DUNLIN_BINARY names; set it to the path of a "
                "dunlin program, or unset it to use the one in the package dunlin-redis"
            )
        return named
    if not _OWN.is_file():
        raise StartError(
            "there is no dunlin program: the variable DUNLIN_BINARY is not set, and the package dunlin-redis has none "
            f"at {_OWN}; install a wheel of dunlin-redis for this platform, or set DUNLIN_BINARY to a program's path"
        )
    return str(_OWN)


def words_of(directives: dict[str, Any]) -> list[str]:
    """Directives of a redis.conf as the words of a command line."""
    words = []
    for name, value in directives.items():
        words.append("--" + name.replace("_", "-"))
        for each in value if isinstance(value, (list, tuple)) else [value]:
            words.append({True: "yes", False: "no"}[each] if isinstance(each, bool) else str(each))
    return words


class Child:
    """A server that runs, and the announcement that it made."""

    def __init__(self, directives: dict[str, Any]) -> None:
        self._program = find()
        self._log = _memory_file()
        self._last_log = ""
        self._owner = os.getpid()
        launch: dict[str, Any] = {"free-port": True, "test-kit": True}
        socket = None if {"unixsocket", "port"} & directives.keys() else _socket_path()
        if socket:
            launch.update({"unixsocket": socket, "unixsocketperm": "700"})
        if "port" in directives:
            del launch["free-port"]
        words = words_of({**launch, **directives, "announce": True, "end-with": "stdin"})
        try:
            # A session of its own: Ctrl-C in a terminal ends the tests, and those end the server.
            self._process = subprocess.Popen(
                [self._program, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            hint = "; its file system may forbid programs (noexec)" if isinstance(error, PermissionError) else ""
            raise StartError(
                f"cannot run {self._program}: {error.strerror}{hint}; set DUNLIN_BINARY to the path of a dunlin "
                "program for this platform"
            ) from None
        assert self._process.stdin and self._process.stdout, "both are pipes"
        self._input, self._output = self._process.stdin, self._process.stdout
        _children.add(self)
        try:
            self.announcement = self._announced()
        except BaseException:
            self.end()
            raise

    def _announced(self) -> dict[str, Any]:
        line = _first_line(self._output, time.monotonic() + PATIENCE_S)
        try:
            said = json.loads(line)
        except ValueError:
            said = None
        ours = __version__
        if not isinstance(said, dict) or not ({"dunlin", "error"} & said.keys()):
            raise StartError(
                f"{self._program} did not announce a server within {PATIENCE_S:g} s; dunlin-redis {ours} needs dunlin "
                f"{ours}, and this program says it is: {_version_of(self._program)}{self.log()}"
            )
        if "error" in said:
            raise StartError(f"{self._program} could not start: {said['error']}{self.log()}")
        if said["dunlin"] != ours:
            raise StartError(
                f"{self._program} is dunlin {said['dunlin']}, but dunlin-redis {ours} needs dunlin {ours}; set "
                "DUNLIN_BINARY to that version, or unset it to use the one in the package"
            )
        return said

    def log(self) -> str:
        """The last lines that the server has written to its log."""
        if self._log.closed:
            return self._last_log
        # The child shares the position in the file, so a plain seek would move where it writes.
        data = os.pread(self._log.fileno(), 1 << 20, max(0, os.fstat(self._log.fileno()).st_size - (1 << 20)))
        lines = data.decode("utf-8", "replace").splitlines()[-200:]
        return "".join(f"\n  {line}" for line in lines if line)

    def release(self) -> None:
        """Closes the copies of the pipes in a forked process."""
        self._input.close()
        self._output.close()

    def end(self) -> None:
        """Ends the server, once, and only from the process that started it."""
        if self._owner != os.getpid() or self._input.closed:
            return
        self._input.close()
        try:
            # Its output ends with it, which is seen at once; a wait with a timeout looks again and again.
            if os.name != "nt":
                select.select([self._output], [], [], 5)
            self._process.wait(0.1 if os.name != "nt" else 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()
        self._last_log = self.log()
        self._log.close()


def _memory_file() -> BinaryIO:
    # In memory where the system has that, so that no folder has to be writable.
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("dunlin-log"), "w+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)


def _socket_path() -> str | None:
    """A path for a Unix socket, or nothing where there is no folder for it or its path is too long."""
    if os.name == "nt":
        return None
    try:
        path = os.path.join(tempfile.gettempdir(), f"dunlin-{os.urandom(8).hex()}.sock")
    except OSError:
        return None
    return path if len(os.fsencode(path)) < 100 else None


def _first_line(output: Any, deadline: float) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        if os.name != "nt" and not select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
            break
        data = output.read(4096)
        if not data:
            break
        line += data
    return line


def _version_of(program: str) -> str:
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=2, errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        return "nothing"
    return (done.stdout or done.stderr).strip()[:200] or "nothing"


_children: weakref.WeakSet[Child] = weakref.WeakSet()


def _release_in_child() -> None:
    for child in list(_children):
        child.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)
