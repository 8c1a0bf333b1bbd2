"""The command `dunlin`: the program of the package, in the place of this process, so its signals and exit status are exact."""

import contextlib
import os
import signal
import subprocess
import sys
from typing import NoReturn

from ._program import StartError, packaged

# As `dunlin run` ends when its server cannot be started: no status of a command that has run.
_NOT_STARTED = 125


def main() -> NoReturn:
    try:
        # Not that of DUNLIN_BINARY, which may name this very command.
        program = packaged()
        _become([program, *sys.argv[1:]])
    except (StartError, OSError) as error:
        print(f"dunlin: {error}", file=sys.stderr)
        sys.exit(_NOT_STARTED)


def _become(words: list[str]) -> NoReturn:
    if os.name == "nt":
        sys.exit(_run(words))
    # Python ignores these, and what is ignored stays so in another program.
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execv(words[0], words)


def _run(words: list[str]) -> int:
    """Runs the program as a child, since on Windows it would not take the place of this process for its parent."""
    child = subprocess.Popen(words)
    while True:
        # Ctrl-C reaches the child, too, which decides.
        with contextlib.suppress(KeyboardInterrupt):
            return child.wait()


if __name__ == "__main__":
    main()
