"""How the program is found and started, and that it never outlives the tests."""

import contextlib
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import dunlin_redis
import pytest
from processes import runs, until

PROGRAM = Path(dunlin_redis.__file__).with_name("bin") / "dunlin"


def program(folder, lines):
    """A program of our own in the place of dunlin."""
    path = folder / "dunlin"
    path.write_text("#!/bin/sh\n" + lines)
    path.chmod(0o755)
    return str(path)


def refusal(monkeypatch, path):
    monkeypatch.setenv("DUNLIN_BINARY", str(path))
    with pytest.raises(dunlin_redis.StartError) as raised:
        dunlin_redis.Server()
    return str(raised.value)


def test_a_variable_that_names_no_program_is_named(monkeypatch):
    assert refusal(monkeypatch, "/nowhere/dunlin").startswith(
        "there is no program at /nowhere/dunlin, which the variable"
    )


def test_a_package_without_a_program_names_both_places(monkeypatch):
    monkeypatch.delenv("DUNLIN_BINARY", raising=False)
    monkeypatch.setattr("dunlin_redis._program._OWN", Path("/nowhere/bin/dunlin"))
    with pytest.raises(
        dunlin_redis.StartError, match="DUNLIN_BINARY is not set.* no program at /nowhere/bin/dunlin; install"
    ):
        dunlin_redis.Server()


def test_a_file_that_is_no_program_is_refused(monkeypatch, tmp_path):
    (tmp_path / "dunlin").write_text("text")
    assert "Permission denied; its file system may forbid" in refusal(monkeypatch, tmp_path / "dunlin")
    (tmp_path / "dunlin").chmod(0o755)
    assert "Exec format error" in refusal(monkeypatch, tmp_path / "dunlin")


def test_a_bare_name_is_one_of_this_folder_and_not_of_path(monkeypatch, tmp_path):
    path = program(tmp_path, """echo '{"dunlin":"9.9.9","url":"redis://127.0.0.1:1"}'; exec cat\n""")
    monkeypatch.chdir(tmp_path)
    assert refusal(monkeypatch, "dunlin").startswith(f"{path} is dunlin 9.9.9")


def test_another_version_is_refused_by_name(monkeypatch, tmp_path):
    path = program(tmp_path, """echo '{"dunlin":"9.9.9","url":"redis://127.0.0.1:1"}'; exec cat\n""")
    assert "is dunlin 9.9.9, but dunlin-redis" in refusal(monkeypatch, path)


def test_a_program_that_does_not_announce_says_what_it_is(monkeypatch, tmp_path):
    path = program(tmp_path, """[ "$1" = --version ] && echo Redis server v=7 || echo bad directive >&2; exit 1\n""")
    said = refusal(monkeypatch, path)
    assert "says it is: Redis server v=7" in said and said.endswith("\n  bad directive")


def test_a_program_that_says_nothing_is_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr("dunlin_redis._program.PATIENCE_S", 0.1)
    path = program(tmp_path, """[ "$1" = --version ] || { echo starting >&2; exec cat; }\n""")
    assert "within 0.1 s" in refusal(monkeypatch, path)


def test_an_announcement_that_comes_byte_by_byte_is_read(monkeypatch, tmp_path):
    with dunlin_redis.Server() as real:
        line = '{"dunlin":"%s","url":"%s","pid":1}' % (dunlin_redis.__version__, real.url)
        path = program(tmp_path, f"""printf '%s' '{line}' | dd bs=1 2>/dev/null; echo; exec cat\n""")
        monkeypatch.setenv("DUNLIN_BINARY", path)
        with dunlin_redis.Server() as server:
            assert server.port == real.port and server.call("PING") == "PONG"


def test_a_directive_that_does_not_exist_is_told_in_the_words_of_the_server():
    with pytest.raises(dunlin_redis.StartError, match="could not start: .*no-such.*Bad directive"):
        dunlin_redis.Server(no_such="1")


def test_a_port_that_is_taken_is_named():
    with dunlin_redis.Server() as first:
        with pytest.raises(dunlin_redis.StartError, match=f"{first.port}.*[Aa]ddress (already )?in use"):
            dunlin_redis.Server(port=first.port)


def test_the_log_is_there_when_the_server_has_ended():
    with dunlin_redis.Server() as server:
        server.now()
    assert "Ready to accept connections" in server.log() and "bye bye" in server.log()


def test_the_log_is_read_where_the_system_has_no_pread(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.delattr(os, "pread")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with dunlin_redis.Server() as server:
        assert "Ready to accept connections" in server.log()
    assert "Ready to accept connections" in server.log() and "bye bye" in server.log()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="the log is in a file there, at whose end nobody writes")
def test_a_log_that_has_grown_is_cut_and_goes_on():
    with dunlin_redis.Server(enable_debug_command="yes") as server:
        log = server._child._log.file
        log.write(b"a long line\n" * 500_000)
        server.world().close()
        assert os.fstat(log.fileno()).st_size <= 1 << 20
        server.call("DEBUG", "LOG", "the next line")
        assert "a long line\n" in server.log() and server.log().endswith("the next line") and "\0" not in server.log()
        log.write(b"a long line\n" * 500_000)
        server.log()
        assert os.fstat(log.fileno()).st_size <= 1 << 20


def test_a_server_starts_and_ends_in_a_process_with_many_open_files():
    script = "import os, resource, dunlin_redis\n"
    script += "resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
    script += "held = [os.dup(0) for _ in range(1100)]\n"
    script += "with dunlin_redis.Server() as server: print(server.call('PING'))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "PONG\n" and done.stderr == "", done.stderr


def test_the_page_has_a_link_with_its_token_where_it_is_served():
    with dunlin_redis.Server(page_port=0) as server:
        link, token = server.page_url.split("#token=")
        headers = {"X-Dunlin": token, "Content-Type": "application/json"}
        asked = urllib.request.Request(link + "command", b'{"commands":[["PING"]]}', headers)
        assert urllib.request.urlopen(asked).read() == b'{"replies":[{"status":"PONG"}]}'
    with dunlin_redis.Server() as server:
        assert server.page_url is None


RUNNER = """
import os, sys, time
import dunlin_redis
server = dunlin_redis.Server()
print(server.pid, server.socket, flush=True)
{then}
time.sleep(60)
"""


def start(then=""):
    """A process with a server; the ids of both, and the server's socket."""
    runner = subprocess.Popen([sys.executable, "-c", RUNNER.format(then=then)], stdout=subprocess.PIPE, text=True)
    pid, socket = runner.stdout.readline().split()
    return runner, int(pid), socket


def ends_soon(pid, within_s):
    until(lambda: not runs(pid), within_s)
    return True


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_server_ends_with_its_process(end):
    runner, pid, socket = start()
    assert runs(pid)
    runner.send_signal(end)
    runner.wait()
    assert ends_soon(pid, 2) and not os.path.exists(socket)


def children_with(mark, parent):
    """The processes with this text in their environment, less the one that was given it."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if int(each.name) != parent and mark.encode() in (each / "environ").read_bytes():
                found.append(int(each.name))
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
def test_a_process_that_is_killed_while_its_server_starts_leaves_none():
    for number in range(8):
        mark = f"{os.getpid()}-{number}."
        runner = subprocess.Popen(
            [sys.executable, "-c", RUNNER.format(then="")],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "DUNLIN_TEST_MARK": mark},
        )
        until(lambda: children_with(f"DUNLIN_TEST_MARK={mark}", runner.pid))
        runner.kill()
        runner.wait()
        for pid in children_with(f"DUNLIN_TEST_MARK={mark}", runner.pid):
            assert ends_soon(pid, 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_server_does_not_live_as_long_as_a_forked_process():
    runner, pid, _ = start("pid = os.fork()\nif pid: print(pid, flush=True)")
    forked = int(runner.stdout.readline())
    runner.kill()
    runner.wait()
    try:
        assert ends_soon(pid, 2) and runs(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


def test_a_forked_process_that_ends_leaves_the_server():
    runner, pid, _ = start("if os.fork() == 0: sys.exit()\nos.wait(); print(server.call('PING'), flush=True)")
    assert runner.stdout.readline() == "PONG\n"
    runner.kill()
    runner.wait()
    assert ends_soon(pid, 2)


def test_an_executed_process_does_not_keep_the_server():
    runner, pid, _ = start("import subprocess; print(subprocess.Popen(['sleep', '60']).pid, flush=True)")
    other = int(runner.stdout.readline())
    runner.kill()
    runner.wait()
    try:
        assert ends_soon(pid, 2)
    finally:
        os.kill(other, signal.SIGKILL)


def test_a_server_starts_without_a_home_and_without_a_folder_to_write_in():
    script = "import tempfile, dunlin_redis; tempfile.tempdir = '/nowhere/' + 'x' * 120\n"
    script += "with dunlin_redis.Server() as server: print(server.socket, server.call('PING'))"
    done = subprocess.run([sys.executable, "-c", script], env={}, cwd="/", capture_output=True, text=True)
    assert done.stdout == "None PONG\n", done.stderr


def test_the_program_in_the_package_can_be_executed():
    assert stat.S_IMODE(PROGRAM.stat().st_mode) & 0o111 == 0o111
    assert re.search(
        rf"dunlin={re.escape(dunlin_redis.__version__)}\b", subprocess.check_output([PROGRAM, "--version"], text=True)
    )


def test_a_package_in_a_folder_of_its_own_finds_its_program(tmp_path):
    package = Path(dunlin_redis.__file__).parent
    shutil.copytree(package, tmp_path / package.name)
    (information,) = package.parent.glob("dunlin_redis-*.dist-info")
    shutil.copytree(information, tmp_path / information.name)
    script = "import dunlin_redis\nwith dunlin_redis.Server() as server: print(dunlin_redis.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.stdout.startswith(str(tmp_path)), done.stderr


def test_a_package_in_an_archive_says_that_it_must_be_unpacked(tmp_path):
    package = Path(dunlin_redis.__file__).parent
    archive = tmp_path / "dunlin_redis.whl"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in package.rglob("*.py"):
            packed.write(file, file.relative_to(package.parent))
        packed.write(PROGRAM, PROGRAM.relative_to(package.parent))
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import dunlin_redis; dunlin_redis.Server()"],
        env={"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
    )
    assert f"imported from the archive {archive}, where no program can run; install it unpacked" in done.stderr
