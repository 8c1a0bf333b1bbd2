"""The pytest plugin, its options, and the base for unittest."""

import os
import subprocess
import sys

import dunlin_redis
import pytest
from processes import runs, until

MANY = """
import pytest

@pytest.mark.parametrize("number", range(60))
def test_each_has_a_world_of_its_own(dunlin, number):
    client = dunlin.client()
    assert client.incr("counter") == 1
    client.flushall()
    client.incr("counter")
    dunlin.advance(days=1)
    assert client.get("counter") == b"1"
"""


RUNS = [["-p", "no:xdist"], ["-n0"], ["-n2"], ["-n4"], ["-n2", "--dist=each"], ["-n2", "--dist=loadfile"]]


@pytest.mark.parametrize("arguments", RUNS, ids=" ".join)
def test_any_number_of_workers_see_only_their_own_keys(pytester, arguments):
    pytester.makepyfile(MANY)
    times = 2 if "--dist=each" in arguments else 1
    pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=60 * times)


def test_workers_share_the_server_that_a_variable_names(pytester, monkeypatch):
    with dunlin_redis.Server() as server:
        monkeypatch.setenv("DUNLIN_URL", server.url)
        monkeypatch.setenv("DUNLIN_BINARY", "/nowhere")
        pytester.makepyfile(MANY)
        pytester.runpytest_subprocess("-n2").assert_outcomes(passed=60)
        assert [each["name"] for each in server.worlds()] == ["default"]


def test_a_test_that_fails_shows_its_commands_and_the_seed_and_one_that_passes_nothing(pytester):
    pytester.makepyfile("""
        def test_fails(dunlin):
            dunlin.call("SET", "user:1", "ann")
            assert not dunlin.call("GET", "user:1")

        def test_passes(dunlin):
            dunlin.call("SET", "user:2", "ben")
    """)
    result = pytester.runpytest_subprocess("--dunlin-seed", "42")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- dunlin -*",
            "the last 2 of 2 commands in the world *",
            "  1 client *: SET user:1 ann -> OK",
            '  2 client *: GET user:1 -> "ann"',
            "seed 42: repeat with --dunlin-seed 42",
        ]
    )
    result.stdout.no_fnmatch_line("*user:2*")


def test_the_seed_of_a_run_draws_the_same_in_each_test(pytester):
    pytester.makepyfile("""
        import pytest

        drawn = set()

        @pytest.mark.parametrize("number", range(3))
        def test_draws(dunlin, number):
            dunlin.call("SADD", "raffle", *range(1000))
            drawn.add(dunlin.call("SRANDMEMBER", "raffle"))
            assert len(drawn) == 1
    """)
    pytester.runpytest_subprocess().assert_outcomes(passed=3)


def test_a_variable_has_the_seed_unless_an_option_has(pytester, monkeypatch):
    monkeypatch.setenv("DUNLIN_SEED", "7")
    pytester.makepyfile("def test_fails(dunlin): assert False")
    pytester.runpytest_subprocess().stdout.fnmatch_lines(["seed 7: repeat with *"])
    pytester.runpytest_subprocess("--dunlin-seed", "8").stdout.fnmatch_lines(["seed 8: repeat with *"])
    monkeypatch.setenv("DUNLIN_SEED", "seven")
    refused = pytester.runpytest_subprocess()
    refused.stderr.fnmatch_lines(["ERROR: the variable DUNLIN_SEED is 'seven', but a seed is a whole number"])


def test_findings_of_strict_mode_fail_a_test_that_would_pass(pytester):
    pytester.makeini("[pytest]\ndunlin_strict = error")
    pytester.makepyfile("""
        def test_leaves_a_set_for_ever(dunlin):
            dunlin.call("SADD", "seen", "event-1")

        def test_leaves_nothing(dunlin):
            dunlin.call("SET", "seen", "event-1", "EX", 60)
    """)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["E * unbounded-collection*seen is never trimmed*"])


def test_a_test_that_ends_its_world_passes(pytester):
    pytester.makepyfile("def test_shuts_down(dunlin): dunlin.client(retry=None).shutdown(nosave=True)")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_level_that_does_not_exist_is_refused(pytester):
    pytester.makeini("[pytest]\ndunlin_strict = loud")
    pytester.makepyfile("def test_any(dunlin): pass")
    pytester.runpytest_subprocess().assert_outcomes(errors=1)


@pytest.mark.parametrize("is_shared", [False, True], ids=["own", "shared"])
def test_variables_and_a_fixture_are_there_for_each_test(pytester, dunlin_server, monkeypatch, is_shared):
    if is_shared:
        monkeypatch.setenv("DUNLIN_URL", dunlin_server.url)
    pytester.makeini("[pytest]\ndunlin_env = REDIS_URL CACHE_URL\ndunlin_fixture = shop.txt")
    pytester.makefile(".txt", shop="SET stock 3\n")
    pytester.makepyfile("""
        import os, pytest, redis

        @pytest.mark.parametrize("number", range(2))
        def test_sells(dunlin, number):
            assert redis.Redis.from_url(os.environ["REDIS_URL"]).decr("stock") == 2
            assert os.environ["CACHE_URL"] == dunlin.url
            assert dunlin.diff("SET stock 2") == ""

        def test_has_no_world():
            assert "REDIS_URL" not in os.environ
    """)
    pytester.runpytest_subprocess().assert_outcomes(passed=3)


def test_no_server_starts_where_no_test_asks_for_one(pytester, monkeypatch):
    monkeypatch.setenv("DUNLIN_BINARY", "/nowhere")
    pytester.makepyfile("def test_plain(): pass\ndef test_other(dunlin): pass")
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["E *StartError: there is no program at /nowhere*"])


@pytest.mark.parametrize("arguments", [["--collect-only"], ["--deselect=test_with.py"]], ids=" ".join)
def test_no_server_starts_where_no_test_will_run(pytester, monkeypatch, arguments):
    (pytester.path / "dunlin").write_text(f"#!/bin/sh\necho started >{pytester.path}/started\nexec cat\n")
    (pytester.path / "dunlin").chmod(0o755)
    monkeypatch.setenv("DUNLIN_BINARY", str(pytester.path / "dunlin"))
    pytester.makepyfile(test_with="def test_with(dunlin): pass", test_without="def test_without(): pass")
    assert pytester.runpytest_subprocess(*arguments).ret == 0
    assert not (pytester.path / "started").exists()


def test_modules_are_imported_where_they_are_used_and_as_they_were_installed(pytester):
    pytester.makepyfile("""
        import sys

        def test_plain():
            assert "dunlin_redis._program" not in sys.modules

        def test_world(dunlin):
            for module in (sys.modules[f"dunlin_redis.{name}"] for name in ("_connection", "_program", "_world", "_server")):
                assert "Rewriting" not in type(module.__loader__).__name__
    """)
    pytester.runpytest_subprocess("-k", "plain").assert_outcomes(passed=1, deselected=1)
    pytester.runpytest_subprocess("-k", "world").assert_outcomes(passed=1, deselected=1)
    imported = subprocess.check_output(
        [sys.executable, "-c", "import sys, dunlin_redis; print('redis' in sys.modules)"]
    )
    assert imported == b"False\n"


@pytest.mark.parametrize("mode", ["auto", "strict"])
@pytest.mark.parametrize("test_loop", ["function", "session"])
@pytest.mark.parametrize("fixture_loop", ["function", "session"])
def test_clients_of_asyncio_work_in_each_mode_and_loop(pytester, mode, test_loop, fixture_loop):
    mark = "" if mode == "auto" else "@pytest.mark.asyncio"
    pytester.makepyfile(f"""
        import asyncio, pytest

        {mark}
        @pytest.mark.parametrize("number", range(2))
        async def test_asks(dunlin_async_client, dunlin_client, dunlin, number):
            assert await dunlin_async_client.incr("counter") == 1
            assert dunlin_client.get("counter") == b"1"
            blocked = asyncio.create_task(dunlin_async_client.blpop("queue"))
            await dunlin.aio.wait_until_blocked("queue")
            dunlin_client.rpush("queue", "job")
            assert await blocked
    """)
    pytester.makeini(f"""
        [pytest]
        asyncio_default_test_loop_scope = {test_loop}
        asyncio_default_fixture_loop_scope = {fixture_loop}
    """)
    pytester.runpytest_subprocess(f"--asyncio-mode={mode}", "-W", "error").assert_outcomes(passed=2)


def test_a_class_has_its_world_by_a_fixture_of_its_own(pytester):
    pytester.makepyfile("""
        import pytest

        class TestShop:
            @pytest.fixture(autouse=True)
            def shop(self, dunlin):
                self.redis = dunlin.client()
                self.redis.set("stock", 3)

            @pytest.mark.parametrize("number", range(3))
            def test_sells(self, number):
                assert self.redis.decr("stock") == 2

            def test_begins_with_what_the_fixture_has_made(self, dunlin):
                assert dunlin.diff("SET stock 3") == ""

        class TestServer:
            @pytest.fixture(scope="class")
            @classmethod
            def world(cls, dunlin_server):
                with dunlin_server.world() as world:
                    yield world

            @pytest.mark.parametrize("number", range(1, 4))
            def test_shares_it(self, world, number):
                assert world.call("INCR", "counter") == number
    """)
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=7)


def test_a_thousand_parameters_have_a_thousand_worlds_one_after_the_other(pytester):
    pytester.makepyfile("""
        import pytest

        names = set()

        @pytest.mark.parametrize("number", range(1000))
        def test_each(dunlin, dunlin_server, number):
            assert dunlin.call("INCR", "counter") == 1
            names.add(dunlin.name)
            assert len(names) == number + 1
            assert [each["name"] for each in dunlin_server.worlds()] == ["default", dunlin.name]
    """)
    pytester.runpytest_subprocess("-p", "no:xdist").assert_outcomes(passed=1000)


FORKS = """
import os, pytest

def pytest_addoption(parser):
    parser.addoption("--forked", action="store_true")

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    from _pytest.runner import runtestprotocol

    if os.fork() == 0:
        os._exit(any(report.failed for report in runtestprotocol(item, log=False)))
    item.session.testsfailed += os.wait()[1] != 0
    return True
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
@pytest.mark.parametrize("arguments", [["-p", "no:xdist"], ["-n2"]], ids=" ".join)
def test_forked_tests_use_the_server_of_the_process_that_forked_them(pytester, arguments):
    # As pytest-forked does it, which fails with this version of pytest.
    pytester.makeconftest(FORKS)
    pytester.makepyfile("""
        import os, pytest

        @pytest.mark.parametrize("number", range(10))
        def test_each(dunlin, dunlin_server, request, number):
            assert dunlin.call("INCR", "counter") == 1
            server = dunlin_server.call("INFO", "server").decode().split("process_id:")[1].split()[0]
            with open(request.config.rootpath / "servers", "a") as file:
                print(server, os.getpid(), file=file)
    """)
    assert pytester.runpytest_subprocess("--forked", *arguments).ret == 0
    told = [line.split() for line in (pytester.path / "servers").read_text().splitlines()]
    assert len(told) == 10 and len({pid for _, pid in told}) == 10
    assert len({server for server, _ in told}) == 1
    until(lambda: not runs(int(told[0][0])))


def test_unittest_has_a_base_with_a_world(tmp_path):
    (tmp_path / "test_cart.py").write_text("""
import os, pickle, signal, unittest
from dunlin_redis import shared_server
from dunlin_redis.unittest import IsolatedAsyncioTestCase, TestCase

class CartTest(TestCase):
    def test_1_is_kept(self):
        self.dunlin.call("SET", "cart", "apple", "EX", 60)
        self.dunlin.advance(seconds=59)
        self.assertEqual(self.dunlin.call("GET", "cart"), b"apple")

    def test_2_starts_empty(self):
        self.assertIsNone(self.dunlin.call("GET", "cart"))

    def test_3_fails(self):
        self.dunlin.call("SET", "cart", "pear")
        self.fail("on purpose")

    def test_4_skips(self):
        self.skipTest("on purpose")

    def test_5_fails_within(self):
        with self.subTest("part"):
            self.dunlin.call("SET", "cart", "plum")
            self.fail("on purpose")

    def test_6_travels(self):
        self.assertEqual(pickle.loads(pickle.dumps(CartTest("test_1_is_kept"))).id(), self.id()[:-9] + "1_is_kept")

class StrictTest(IsolatedAsyncioTestCase):
    dunlin_strict = "error"
    dunlin_data = "SET stock 3"

    async def test_5_leaves_a_set(self):
        assert self.dunlin.call("GET", "stock") == b"3"
        self.dunlin.call("SADD", "seen", "event-1")

class TheServerEndsTest(TestCase):
    def test_6_fails_without_a_server(self):
        shared_server().close()
        self.fail("the reason of the test")

    def test_7_has_a_new_server(self):
        server = shared_server()
        os.kill(server.pid, signal.SIGKILL)
        server._child._process.wait()
        self.assertNotEqual(shared_server().pid, server.pid)
        self.dunlin = shared_server().world()

unittest.main()
""")
    environment = {**os.environ, "DUNLIN_SEED": "7"}
    done = subprocess.run(
        [sys.executable, "test_cart.py"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert "FAILED (failures=4, skipped=1)" in done.stderr, done.stderr
    assert "CartTest.test_3_fails failed; the last 1 of 1 commands in the world" in done.stderr
    assert "SET cart pear -> OK\nseed 7\n" in done.stderr
    assert "CartTest.test_5_fails_within failed; the last 1 of 1" in done.stderr
    assert "SET cart plum -> OK\nseed 7\n" in done.stderr
    assert "unbounded-collection" in done.stderr
    assert "without_a_server failed; there is no report: " in done.stderr
    assert "AssertionError: the reason of the test" in done.stderr
