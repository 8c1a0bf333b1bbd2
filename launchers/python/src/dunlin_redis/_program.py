"""The program as a child process: where it is, how it starts, and how it ends.

The child holds the other end of a pipe and ends when that closes, which the system does however this process ends. A
process that is forked from this one closes its copy. No thread and no signal handler is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any

from ._connection import DunlinError
from ._version import __version__

PATIENCE_S = 10.0
# How many bytes of the log are looked at for its last lines, and beyond how many its beginning is cut off.
_TAIL = 1 << 20
_LONGEST = 4 << 20
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
        return os.path.abspath(named)  # a bare name would be looked for in PATH
    try:
        return packaged()
    except StartError as error:
        raise StartError(
            f"the variable DUNLIN_BINARY is not set, and {error}, or set DUNLIN_BINARY to a program's path"
        ) from None


def packaged() -> str:
    """The path of the program in this package."""
    if _OWN.is_file():
        return str(_OWN)
    archive = getattr(getattr(__spec__, "loader", None), "archive", None)
    if archive:
        raise StartError(
            f"the package dunlin-redis is imported from the archive {archive}, where no program can run; install it "
            "unpacked, as pip does"
        )
    raise StartError(
        f"the package dunlin-redis has no program at {_OWN}; install a wheel of dunlin-redis for this platform"
    )


def words_of(directives: dict[str, Any]) -> list[str]:
    """Directives of a redis.conf as the words of a command line."""
    words = []
    for name, value in directives.items():
        words.append("--" + name.replace("_", "-"))
        for each in value if isinstance(value, (list, tuple)) else [value]:
            words.append({True: "yes", False: "no"}[each] if isinstance(each, bool) else str(each))
    return words


class Child:
    """A server that runs, or starts, and the announcement that it makes."""

    def __init__(self, directives: dict[str, Any]) -> None:
        self._program = find()
        self._log = _Log()
        self._owner = os.getpid()
        launch: dict[str, Any] = {"free-port": True, "test-kit": True}
        self._socket = None if {"unixsocket", "port"} & directives.keys() else _socket_path()
        if self._socket:
            launch.update({"unixsocket": self._socket, "unixsocketperm": "700"})
        if "port" in directives:
            del launch["free-port"]
        words = words_of({**launch, **directives, "announce": True, "end-with": "stdin"})
        try:
            # A session of its own, on Windows a process group: Ctrl-C in a terminal ends the tests, and those end the
            # server.
            self._process = subprocess.Popen(
                [self._program, *words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log.file,
                bufsize=0,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            self._log.close()
            hint = "; its file system may forbid programs (noexec)" if isinstance(error, PermissionError) else ""
            raise StartError(
                f"cannot run {self._program}: {error.strerror}{hint}; set DUNLIN_BINARY to the path of a dunlin "
                "program for this platform"
            ) from None
        assert self._process.stdin and self._process.stdout, "both are pipes"
        self._input, self._output = self._process.stdin, self._process.stdout
        self._announcement: dict[str, Any] | None = None
        _children.add(self)

    @property
    def announcement(self) -> dict[str, Any]:
        """What the server says when it is ready, which is waited for."""
        if self._announcement is None:
            try:
                self._announcement = self._announced()
            except BaseException:
                self.end()
                raise
        return self._announcement

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
        return self._log.tail()

    def cut_log(self) -> None:
        """Keeps a log that has grown from taking more and more memory."""
        self._log.cut()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

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
            _wait_for(self._output, 5)
            self._process.wait(0.1 if os.name != "nt" else 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()
        self._log.close()
        if self._socket:
            # A server that was killed has left it.
            with contextlib.suppress(OSError):
                os.unlink(self._socket)


class _Log:
    """The file that the server writes its log to. Its last lines are still there when it is closed."""

    def __init__(self) -> None:
        self._last = ""
        self._path = ""
        if hasattr(os, "memfd_create"):
            # In memory no folder has to be writable.
            self.file = open(os.memfd_create("dunlin-log"), "w+b", buffering=0)
        elif hasattr(os, "pread"):
            self.file = tempfile.TemporaryFile(buffering=0)
        else:
            # Windows lets nobody open a temporary file again that it deletes by itself.
            descriptor, self._path = tempfile.mkstemp(prefix="dunlin-", suffix=".log")
            self.file = open(descriptor, "w+b", buffering=0)
        if not self._path:
            _append_only(self.file.fileno())

    def cut(self) -> None:
        """Cuts off the beginning of a long log, and perhaps a line that the server writes meanwhile."""
        # On Windows the server would go on where it was, behind a gap.
        if self.file.closed or self._path or os.fstat(self.file.fileno()).st_size <= _LONGEST:
            return
        end = self._end()
        os.ftruncate(self.file.fileno(), 0)
        self.file.write(end)

    def tail(self) -> str:
        if self.file.closed:
            return self._last
        self.cut()
        lines = self._end().decode("utf-8", "replace").splitlines()[-200:]
        return "".join(f"\n  {line}" for line in lines if line)

    def _end(self) -> bytes:
        start = max(0, os.fstat(self.file.fileno()).st_size - _TAIL)
        # The child shares the position in the file, so a seek in it would move where the child writes.
        if not self._path:
            return os.pread(self.file.fileno(), _TAIL, start)
        with open(self._path, "rb") as again:
            again.seek(start)
            return again.read(_TAIL)

    def close(self) -> None:
        self._last = self.tail()
        self.file.close()
        if self._path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)


def _append_only(descriptor: int) -> None:
    """Has all processes that share an open file write at its end, wherever that is by then."""
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_SETFL, fcntl.fcntl(descriptor, fcntl.F_GETFL) | os.O_APPEND)


def _socket_path() -> str | None:
    """A path for a Unix socket, or nothing where there is no folder for it or its path is too long."""
    if os.name == "nt":
        return None
    try:
        path = os.path.join(tempfile.gettempdir(), f"dunlin-{os.urandom(8).hex()}.sock")
    except OSError:
        return None
    return path if len(os.fsencode(path)) < 100 else None


def _wait_for(output: Any, seconds: float) -> bool:
    """Whether a pipe has something to read, or its end, within some seconds. On Windows only a read can tell."""
    if os.name == "nt":
        return True
    # The plain select() refuses descriptors from 1024 on.
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def _first_line(output: Any, deadline: float) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        if not _wait_for(output, max(0.0, deadline - time.monotonic())):
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
