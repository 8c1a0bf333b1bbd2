"""pytest-xdist: one server for all workers, a world for each test, and nothing that is left when processes are killed.

Set DUNLIN_TEST_KILLS to kill more often; a round takes a second or two.
"""

import os
import subprocess
import sys

import dunlin_redis
import pytest
from processes import kill, runs, shown, until

KILLS = int(os.environ.get("DUNLIN_TEST_KILLS", "2"))

SERVER = """
def server_of(dunlin_server):
    return dunlin_server.call("INFO", "server").decode().split("process_id:")[1].split()[0]
"""


def test_workers_have_one_server_and_each_a_world_of_its_own(pytester):
    pytester.makepyfile(
        SERVER
        + """
def test_counts_alone(dunlin_server, dunlin, request):
    assert dunlin_server.client().incr("counter") == 1
    assert dunlin.call("INCR", "counter") == 1
    with open(request.config.rootpath / "servers", "a") as file:
        print(server_of(dunlin_server), file=file)
"""
    )
    pytester.runpytest_subprocess("-n3", "--dist=each").assert_outcomes(passed=3)
    servers = (pytester.path / "servers").read_text().split()
    assert len(servers) == 3 and len(set(servers)) == 1


def test_the_world_of_a_worker_outlives_the_connections_of_its_tests(pytester):
    pytester.makepyfile("""
        import redis

        def test_1_writes(dunlin_server):
            with dunlin_server.client() as client:
                client.set("key", "value")
            worlds = [dunlin_server.world() for _ in range(20)]
            [world.close() for world in worlds]

        def test_2_reads(dunlin_server):
            assert redis.Redis(dunlin_server.host, dunlin_server.port).get("key") == b"value"
            assert dunlin_server.call("GET", "key") == b"value"
            dunlin_server.wait_for_clients(0)
    """)
    pytester.runpytest_subprocess("-n1").assert_outcomes(passed=2)


def test_the_controller_loads_the_data_of_the_run_once(pytester):
    pytester.makeini("[pytest]\ndunlin_fixture = shop.txt")
    pytester.makefile(".txt", shop="SET stock 3\n")
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_sells(dunlin, dunlin_server, number, _dunlin_data):
            assert _dunlin_data is None and dunlin.call("DECR", "stock") == 2
            with dunlin_server.world() as other:
                assert other.call("GET", "stock") == b"3"
    """)
    pytester.runpytest_subprocess("-n2").assert_outcomes(passed=4)


def test_the_controller_leaves_no_connection(pytester):
    pytester.makeini("[pytest]\ndunlin_fixture = shop.txt\nfilterwarnings = error")
    pytester.makefile(".txt", shop="SET stock 3\n")
    pytester.makepyfile("def test_sells(dunlin): assert dunlin.call('DECR', 'stock') == 2")
    result = pytester.runpytest_subprocess("-n1", "-p", "no:asyncio")
    result.assert_outcomes(passed=1)
    assert result.ret == 0


def test_on_a_server_that_runs_each_worker_has_a_world_of_its_own(pytester, dunlin_server, monkeypatch):
    monkeypatch.setenv("DUNLIN_URL", dunlin_server.url)
    pytester.makepyfile("def test_counts_alone(dunlin_server): assert dunlin_server.call('INCR', 'counter') == 1")
    pytester.runpytest_subprocess("-n2", "--dist=each").assert_outcomes(passed=2)
    assert dunlin_server.call("GET", "counter") is None


@pytest.mark.skipif(os.name == "nt", reason="no log is cut there")
def test_the_controller_cuts_a_log_that_has_grown(pytester):
    pytester.makeconftest("""
        import os
        from dunlin_redis.pytest_plugin import _CHILD

        def pytest_configure_node(node):
            node.config.stash[_CHILD]._log.file.write(b"a long line\\n" * 500_000)

        def pytest_sessionfinish(session):
            if _CHILD in session.config.stash:
                size = os.fstat(session.config.stash[_CHILD]._log.file.fileno()).st_size
                (session.config.rootpath / "size").write_text(str(size))
    """)
    pytester.makepyfile("def test_world(dunlin): pass")
    pytester.runpytest_subprocess("-n1").assert_outcomes(passed=1)
    assert int((pytester.path / "size").read_text()) < 2 << 20


def test_data_that_cannot_be_loaded_fail_the_tests_that_need_them(pytester):
    pytester.makeini("[pytest]\ndunlin_fixture = shop.txt")
    pytester.makefile(".txt", shop="GET stock\n")
    pytester.makepyfile("def test_sells(dunlin): pass\ndef test_plain(): pass")
    result = pytester.runpytest_subprocess("-n2")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E *'get' does not write data*"])


def test_a_server_that_cannot_start_fails_the_tests_that_need_it(pytester, monkeypatch):
    monkeypatch.setenv("DUNLIN_BINARY", "/nowhere")
    pytester.makepyfile("def test_world(dunlin): pass\ndef test_plain(): pass")
    result = pytester.runpytest_subprocess("-n2")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E *StartError: there is no program at /nowhere*"])


def test_a_worker_that_replaces_a_crashed_one_has_the_same_server(pytester):
    pytester.makepyfile(
        SERVER
        + """
import os

def test_1_crashes(dunlin_server, dunlin, request):
    (request.config.rootpath / "server").write_text(server_of(dunlin_server))
    os._exit(1)

def test_2_is_there(dunlin_server, dunlin, request):
    assert (request.config.rootpath / "server").read_text() == server_of(dunlin_server)
    others = [each["name"] for each in dunlin_server.worlds() if each["name"].startswith("gw")]
    assert others == [dunlin_server.name]
"""
    )
    result = pytester.runpytest_subprocess("-n1")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*worker 'gw0' crashed*"])


SLEEPS = """
import os, pathlib, time

def test_sleeps(dunlin_server, dunlin, request):
    told = request.config.workerinput["dunlin"]
    pid = dunlin_server.call("INFO", "server").decode().split("process_id:")[1].split()[0]
    mine = request.config.rootpath / f"of-{request.config.workerinput['workerid']}"
    mine.with_suffix(".new").write_text(f"{os.getpid()} {pid} {told['url']} {told['socket']}")
    mine.with_suffix(".new").rename(mine)
    time.sleep(60)
"""


class Run:
    """A run of two workers, each of which is within a test."""

    def __init__(self, folder):
        (folder / "test_sleeps.py").write_text(SLEEPS)
        (folder / "pytest.ini").write_text("[pytest]\n")
        words = ["-q", "-n2", "--dist=each", "-p", "no:cacheprovider", "-p", "no:asyncio"]
        self.controller = subprocess.Popen(
            [sys.executable, "-m", "pytest", *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.workers, self.server, self.socket = [], None, ""
        self.files = [folder / "of-gw0", folder / "of-gw1"]

    def start(self):
        until(lambda: all(file.exists() for file in self.files))
        told = [file.read_text().split() for file in self.files]
        for file in self.files:
            file.unlink()
        self.workers = [int(each[0]) for each in told]
        assert told[0][1:] == told[1][1:]
        self.server, self.url, self.socket = int(told[0][1]), told[0][2], told[0][3]
        return self

    def is_over(self):
        return not runs(self.server) and not os.path.exists(self.socket)

    def end(self):
        kill(*(pid for pid in [self.controller.pid, *self.workers] if runs(pid)))
        self.controller.wait()
        assert self.server is None or until(self.is_over) is not None


@pytest.fixture
def run(tmp_path):
    all_runs = []

    def start():
        all_runs.append(Run(tmp_path))
        return all_runs[-1].start()

    yield start
    for each in all_runs:
        each.end()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
@pytest.mark.parametrize("killed", ["the controller", "all"])
def test_no_server_outlives_the_run(run, capsys, killed):
    times = []
    for _ in range(KILLS):
        started = run()
        kill(started.controller.pid, *(started.workers if killed == "all" else []))
        times.append(until(started.is_over, 2))
        started.end()
    with capsys.disabled():
        print(f"\n{killed} killed, the server was gone {shown(times)}")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
def test_no_world_outlives_its_worker(run, capsys, monkeypatch):
    times = []
    for _ in range(KILLS):
        started = run()
        with monkeypatch.context() as patch:
            patch.setenv("DUNLIN_URL", started.url)
            server = dunlin_redis.Server()
        with server:
            kill(started.workers[0])
            of_it = lambda: [each["name"] for each in server.worlds() if each["name"].startswith("gw0-")]  # noqa: E731
            times.append(until(lambda: not of_it(), 2))
            assert runs(started.server) and [each for each in server.worlds() if each["name"].startswith("gw1-")]
        started.end()
    with capsys.disabled():
        print(f"\na worker killed, its worlds were gone {shown(times)}")
