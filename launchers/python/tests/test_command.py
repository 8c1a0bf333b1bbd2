"""The command `dunlin`, which is the program of the package in the place of the process that looks for it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import dunlin_redis
import pytest

PROGRAM = Path(dunlin_redis.__file__).with_name("bin") / "dunlin"
COMMAND = [str(Path(sys.executable).with_name("dunlin"))]
MODULE = [sys.executable, "-m", "dunlin_redis"]
both = pytest.mark.parametrize("command", [COMMAND, MODULE], ids=["dunlin", "python -m dunlin_redis"])


def run(command, *words, **options):
    return subprocess.run([*command, *words], capture_output=True, text=True, **options)


@both
def test_a_command_has_a_server_of_its_own_and_its_status_is_that_of_the_command(command):
    script = "import dunlin_redis, sys; print(dunlin_redis.Server().call('PING')); sys.exit(77)"
    done = run(command, "run", "--", sys.executable, "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (77, "PONG\n", "")


@both
def test_the_words_reach_the_program_as_they_are(command):
    done = run(command, "run", "--env", "A", "--", "printf", "%s,", "", "a b", "--env", "*")
    assert done.stdout == ",a b,--env,*,", done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
@both
def test_the_program_is_in_the_place_of_the_process_and_ignores_the_same_signals(command):
    words = ["run", "--", "sh", "-c", "readlink /proc/$PPID/exe; echo $PPID; grep SigIgn /proc/$PPID/status"]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True)
    program, parent, ignored = process.communicate()[0].splitlines()
    assert program == str(PROGRAM.resolve()) and int(parent) == process.pid
    assert ignored == run([PROGRAM], *words).stdout.splitlines()[2]


@both
def test_a_signal_reaches_the_command(command):
    waits = "trap 'echo told; exit 3' TERM; echo ready; while :; do read -r line; done"
    process = subprocess.Popen(
        [*command, "run", "--", "bash", "-c", waits], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "told\n"
    process.stdin.close()
    assert process.wait() == 3


def test_a_variable_that_names_the_command_itself_does_not_lead_it_back():
    done = run(COMMAND, "--version", env={**os.environ, "DUNLIN_BINARY": COMMAND[0]})
    assert done.returncode == 0 and f"dunlin={dunlin_redis.__version__}" in done.stdout


def test_a_package_without_a_program_is_told_in_a_sentence(tmp_path):
    package = tmp_path / "dunlin_redis"
    package.mkdir()
    for file in Path(dunlin_redis.__file__).parent.glob("*.py"):
        (package / file.name).write_bytes(file.read_bytes())
    done = run(MODULE, "--version", env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 125 and done.stderr.startswith("dunlin: the package dunlin-redis has no program at ")
    assert done.stderr.count("\n") == 1 and "DUNLIN_BINARY" not in done.stderr
