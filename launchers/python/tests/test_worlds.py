"""Servers and their worlds: who sees what, and what ends when."""

import asyncio
import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
from datetime import timedelta
from urllib.parse import quote

import dunlin_redis
import pytest
import redis
from processes import runs, until


def test_two_servers_differ_in_port_and_data():
    with dunlin_redis.Server() as one, dunlin_redis.Server() as two:
        assert one.port != two.port
        one.client().set("key", "value")
        assert two.client().get("key") is None
        assert redis.Redis(one.host, one.port).get("key") == b"value"
        assert redis.Redis(unix_socket_path=one.socket).get("key") == b"value"


def test_directives_are_those_of_a_redis_conf():
    with dunlin_redis.Server(maxmemory="10mb", requirepass="a/b c", hash_max_listpack_entries=7, save="") as server:
        client = server.client(decode_responses=True)
        assert client.config_get("maxmemory", "hash-max-listpack-entries") == {
            "maxmemory": "10485760",
            "hash-max-listpack-entries": "7",
        }
        with server.world() as world:
            world.client().set("key", "value")
            assert world.aio and redis.Redis(world.host, world.port, password="a/b c").get("key") == b"value"


def test_a_server_that_was_closed_can_be_closed_again():
    server = dunlin_redis.Server()
    server.close()
    server.close()
    for use in (server.now, server.client, server.world):
        with pytest.raises(dunlin_redis.DunlinError, match="the server is closed"):
            use()


def test_a_connection_that_the_server_has_closed_is_replaced(dunlin):
    with dunlin.client() as client:
        client.set("key", "value")
        for _ in range(3):
            assert dunlin.call("QUIT") == "OK"
            assert dunlin.call("GET", "key") == b"value"


def test_a_world_that_has_ended_with_its_last_connection_is_not_made_anew(dunlin_server):
    world = dunlin_server.world()
    world.call("SET", "key", "value")
    assert world.call("QUIT") == "OK"
    until(lambda: world.name not in [each["name"] for each in dunlin_server.worlds()])
    with pytest.raises(dunlin_redis.DunlinError, match=f"the world {world.name} has ended with its last connection"):
        world.dump()
    world.close()
    assert world.name not in [each["name"] for each in dunlin_server.worlds()]


def test_a_request_that_the_server_did_not_read_is_sent_again_and_any_other_is_not(dunlin, monkeypatch):
    dunlin.client().incr("counter")
    monkeypatch.setattr("dunlin_redis._connection.Connection.has_ended", lambda connection: False)
    assert dunlin.call("QUIT") == "OK"
    assert dunlin.call("INCR", "counter") == 2
    dunlin.fault("lost", command="INCR", times=1).drop_after()
    with pytest.raises(dunlin_redis.DunlinError, match="has closed the connection"):
        dunlin.call("INCR", "counter")
    assert dunlin.client().get("counter") == b"3"


def test_a_server_that_was_killed_is_told_by_an_error_of_this_package_and_leaves_no_socket():
    with dunlin_redis.Server() as server:
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: not runs(server.pid))
        with pytest.raises(dunlin_redis.DunlinError):
            server.now()
        with pytest.raises(dunlin_redis.DunlinError):
            server.world()
    assert not os.path.exists(server.socket)


def test_a_server_ends_at_once_while_a_client_waits():
    server = dunlin_redis.Server()
    waiting = subprocess.Popen(
        [sys.executable, "-c", f"import redis; redis.Redis(port={server.port}, retry=None).blpop('queue', 0)"],
        stderr=subprocess.DEVNULL,
    )
    server.wait_until_blocked("queue", timeout=20)
    server.close()
    assert waiting.wait(20) != 0
    assert not os.path.exists(server.socket)


def test_a_world_sees_no_other(dunlin_server):
    with dunlin_server.world() as north, dunlin_server.world() as south:
        north.client().set("key", "north")
        south.advance(days=1)
        south.client().flushall()
        south.client().config_set("maxmemory", "1mb")
        south.client(retry=None).shutdown(nosave=True)
        assert north.client().get("key") == b"north"
        assert north.client().config_get("maxmemory") == {"maxmemory": "0"}
        assert dunlin_server.now() - north.now() < timedelta(hours=1)
        assert dunlin_server.call("PING") == "PONG"


def test_a_port_leads_straight_into_a_world(dunlin_server):
    with dunlin_server.world() as world:
        direct = redis.Redis(world.host, world.port)
        direct.set("key", "value")
        assert world.client().get("key") == b"value"
        assert dunlin_server.client().get("key") is None


def test_data_outlives_the_connections_of_the_application(dunlin):
    with dunlin.client() as client:
        client.set("key", "value")
    assert dunlin.client().get("key") == b"value"


def test_a_world_that_was_closed_is_gone(dunlin_server):
    world = dunlin_server.world("gone")
    client = redis.Redis.from_url(world.url, retry=None)
    client.set("key", "value")
    world.close()
    world.close()
    assert "gone" not in [each["name"] for each in dunlin_server.worlds()]
    # A client that connects again finds another world of that name, which ends with it.
    assert client.get("key") is None
    client.close()


def test_hundreds_of_worlds_are_there_at_once_each_with_its_keys_channels_scripts_and_clock(dunlin_server):
    worlds = [dunlin_server.world() for _ in range(300)]
    scripts = [world.call("SCRIPT", "LOAD", f"return {number}") for number, world in enumerate(worlds)]
    listeners = [world.client().pubsub() for world in worlds[:20]]
    for listener in listeners:
        listener.subscribe("news")
        assert listener.get_message(timeout=5)["type"] == "subscribe"
    start = dunlin_server.now()
    for number, world in enumerate(worlds):
        world.call("SET", "number", number)
        world.advance(days=number)
        assert world.call("PUBLISH", "news", f"of {number}") == (1 if number < 20 else 0)
    for number, world in enumerate(worlds):
        assert int(world.call("GET", "number")) == number
        assert world.call("SCRIPT", "EXISTS", scripts[number], scripts[number - 1]) == [1, 0]
        assert timedelta(days=number) <= world.now() - start < timedelta(days=number, hours=1)
    for number, listener in enumerate(listeners):
        assert listener.get_message(timeout=5)["data"] == f"of {number}".encode()
        assert listener.get_message(timeout=0) is None
    for world in worlds:
        world.close()
    left = {each["name"] for each in dunlin_server.worlds()}
    assert not left & {world.name for world in worlds}


def test_worlds_start_as_a_copy_of_a_template():
    with dunlin_redis.Server() as server, server.world() as first:
        first.load("SET price 30")
        first.make_template()
        with server.world() as second:
            assert second.call("GET", "price") == b"30"
        first.drop_template()
        with server.world() as third:
            assert third.call("GET", "price") is None


CHANGES = {
    "another database": lambda world: world.call("SELECT", 3),
    "a transaction": lambda world: world.call("MULTI"),
    "a subscription": lambda world: world.call("SUBSCRIBE", "news"),
    "no replies": lambda world: world.call("CLIENT", "REPLY", "OFF"),
    "a password": lambda world: world.call("CONFIG", "SET", "requirepass", "secret"),
    "a lost connection": lambda world: world.call("QUIT"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_test_has_done_to_its_connection_is_undone_for_the_next(monkeypatch, change):
    monkeypatch.setattr("dunlin_redis._world._PATIENCE_S", 0.2)
    with dunlin_redis.Server() as server:
        with server.world() as first, contextlib.suppress(TimeoutError):
            CHANGES[change](first)
        assert [each["name"] for each in server.worlds()] == ["default"]
        with server.world() as second:
            second.call("SET", "key", "value")
            assert second.diff("SET key value") == ""
            assert b" name= " in second.call("CLIENT", "INFO") and b" db=0 " in second.call("CLIENT", "INFO")


@pytest.mark.parametrize("directives", [{}, {"requirepass": "top/secret"}], ids=["open", "password"])
def test_worlds_that_follow_each_other_share_one_connection(directives):
    clients = set()
    with dunlin_redis.Server(unixsocket="", **directives) as server:
        for _ in range(20):
            with server.world() as world:
                assert world.call("INCR", "counter") == 1
                clients.add(re.search(rb" addr=(\S+)", world.call("CLIENT", "INFO"))[1])
    assert len(clients) == 1


def test_the_name_of_a_world_is_checked(dunlin_server):
    with pytest.raises(dunlin_redis.CommandError, match="letters, digits"):
        dunlin_server.world("a/b")
    assert dunlin_server.world("still-works").close() is None


def test_a_server_that_runs_is_used(dunlin_server, monkeypatch):
    monkeypatch.setenv("DUNLIN_URL", dunlin_server.url)
    monkeypatch.setenv("DUNLIN_BINARY", "/nowhere")
    with dunlin_redis.Server() as same, same.world() as world:
        assert not same.is_own and same.url != dunlin_server.url
        world.client().set("key", "value")
        assert world.name in [each["name"] for each in dunlin_server.worlds()]


def test_on_a_server_that_runs_each_is_a_world_of_its_own(dunlin_server, monkeypatch):
    monkeypatch.setenv("DUNLIN_URL", dunlin_server.url)
    with dunlin_redis.Server() as one, dunlin_redis.Server() as other:
        one.client().set("key", "value")
        assert redis.Redis(one.host, one.port).get("key") == b"value"
        assert other.client().get("key") is None
        assert {one.name, other.name} <= {each["name"] for each in dunlin_server.worlds()}
    until(lambda: not {one.name, other.name} & {each["name"] for each in dunlin_server.worlds()})
    assert dunlin_server.call("PING") == "PONG"


def test_a_server_without_test_kit_is_refused(monkeypatch):
    with dunlin_redis.Server(test_kit=False) as plain:
        monkeypatch.setenv("DUNLIN_URL", plain.url)
        with pytest.raises(dunlin_redis.DunlinError, match="start it with 'dunlin --test-kit yes'"):
            dunlin_redis.Server()


def test_a_login_that_is_refused_leaves_no_connection(monkeypatch):
    with dunlin_redis.Server(requirepass="right") as server:
        monkeypatch.setenv("DUNLIN_URL", server.url.replace("right", "wrong"))
        with pytest.raises(dunlin_redis.DunlinError, match="WRONGPASS"):
            dunlin_redis.Server()
        server.wait_for_clients(0, timeout=1)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1", "redis://127.0.0.1:1", "redis://127.0.0.1:port", "redis://127.0.0.1:65536", "redis://[::1"]
)
def test_an_address_where_no_server_is_is_named(monkeypatch, url):
    monkeypatch.setenv("DUNLIN_URL", url)
    with pytest.raises(dunlin_redis.DunlinError, match=re.escape(url)):
        dunlin_redis.Server()


def test_an_address_may_have_a_user_and_a_socket_of_any_name(monkeypatch, tmp_path):
    socket = f"{tmp_path}/a#b?c d.sock"
    with dunlin_redis.Server(unixsocket=socket) as server:
        server.call("ACL", "SETUSER", "ann", "on", ">pass", "~*", "&*", "+@all")
        monkeypatch.setenv("DUNLIN_URL", f"unix://ann:pass@{quote(socket)}")
        with dunlin_redis.Server() as joined, joined.world() as world:
            joined.client().set("key", "value")
            assert joined.call("GET", "key") == b"value" and world.client().get("key") is None
            with pytest.raises(TimeoutError, match="waited 0.01 s in vain"):
                world.wait_until_blocked("queue", timeout=0.01)


def test_a_world_that_is_closed_refuses_all_use(dunlin_server):
    world = dunlin_server.world()
    world.close()
    waits = [lambda: world.wait_for_clients(0), lambda: asyncio.run(world.aio.wait_for_clients(0))]
    for use in (world.dump, world.client, world.async_client, world.report, *waits):
        with pytest.raises(dunlin_redis.DunlinError, match=f"the world {world.name} is closed"):
            use()
    assert world.name not in [each["name"] for each in dunlin_server.worlds()]


def _child(world, results):
    world.call("SET", "from", "child")
    results.put(world.now() is not None)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_uses_the_world_on_connections_of_its_own(dunlin):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    children = [context.Process(target=_child, args=(dunlin, results)) for _ in range(3)]
    for child in children:
        child.start()
    for _ in range(100):
        dunlin.now()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert dunlin.call("GET", "from") == b"child"


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_that_leaves_the_block_leaves_the_world(dunlin_server):
    def leave(world):
        with world:
            assert world.call("GET", "key") == b"value"

    with dunlin_server.world() as world:
        world.call("SET", "key", "value")
        child = multiprocessing.get_context("fork").Process(target=leave, args=(world,))
        child.start()
        child.join()
        assert child.exitcode == 0
        assert world.call("GET", "key") == b"value"
