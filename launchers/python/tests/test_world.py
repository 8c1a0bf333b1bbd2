"""The clock, randomness, state, faults, journals, strict mode and waits of a world."""

import sys
import threading
from datetime import datetime, timedelta, timezone

import dunlin_redis
import pytest
import redis
from processes import until


def test_a_session_ends_when_the_clock_has_moved(dunlin):
    client = dunlin.client(decode_responses=True)
    client.set("session", "ann", ex=60)
    dunlin.advance(seconds=59)
    assert client.get("session") == "ann"
    dunlin.advance(timedelta(seconds=1))
    assert client.get("session") is None


def test_the_clock_stops_jumps_and_runs_faster(dunlin):
    moment = datetime(2030, 1, 1, tzinfo=timezone.utc)
    dunlin.freeze()
    assert dunlin.set_time(moment) == moment == dunlin.now()
    dunlin.call("SET", "key", "value", "PX", 1500)
    assert dunlin.advance_to_next() == moment + timedelta(milliseconds=1500)
    assert dunlin.advance_to_next() is None
    dunlin.speed(1_000_000)
    dunlin.resume()
    assert dunlin.now() > moment


@pytest.mark.parametrize(
    "arguments, units", [((), {}), ((60,), {}), ((timedelta(1),), {"hours": 1})], ids=["nothing", "a number", "both"]
)
def test_a_duration_without_a_unit_is_refused(dunlin, arguments, units):
    with pytest.raises(TypeError, match="advance"):
        dunlin.advance(*arguments, **units)


def test_half_a_millisecond_is_refused(dunlin):
    with pytest.raises(ValueError, match="whole milliseconds"):
        dunlin.advance(microseconds=500)


def test_the_same_seed_draws_the_same_members(dunlin):
    def drawn(seed):
        dunlin.seed(seed)
        return dunlin.call("SRANDMEMBER", "raffle", 5)

    dunlin.call("SADD", "raffle", *range(100))
    assert drawn(7) == drawn(7) != drawn(8)


def test_data_goes_back_to_a_snapshot(dunlin):
    dunlin.load("SET stock 3")
    dunlin.snapshot("fixture")
    dunlin.call("DECR", "stock")
    assert dunlin.diff("SET stock 3") == "- SET stock 3\n+ SET stock 2\n"
    dunlin.rollback("fixture")
    assert dunlin.diff("SET stock 3") == ""
    assert dunlin.snapshots() == ["fixture"]
    dunlin.drop_snapshot("fixture")
    with pytest.raises(dunlin_redis.CommandError, match="no snapshot named 'fixture'"):
        dunlin.rollback("fixture")


def test_data_is_loaded_from_a_file_and_compared_with_another_world(dunlin, dunlin_server, tmp_path):
    (tmp_path / "fixture.txt").write_text("SET é 1\n", encoding="utf-8")
    dunlin.load(tmp_path / "fixture.txt")
    assert dunlin.diff(tmp_path / "fixture.txt") == ""
    with dunlin_server.world() as other:
        assert dunlin.diff(other) == "+ " + dunlin.dump().splitlines()[1] + "\n"
        other.load(dunlin.dump())
        assert dunlin.diff(other) == ""


def test_a_text_with_a_fault_names_its_line(dunlin):
    with pytest.raises(dunlin_redis.CommandError, match="line 2"):
        dunlin.load("SET a 1\nGET a")


def test_a_reply_is_lost_once(dunlin):
    dunlin.fault("the reply is lost", command="ZADD", times=1).drop_after()
    client = dunlin.client(retry=None)
    with pytest.raises(redis.ConnectionError):
        client.zadd("board", {"ann": 7})
    assert client.zadd("board", {"ann": 7}) == 0
    assert dunlin.faults()[0]["matched"] == 2
    dunlin.wait_until_fired("the reply is lost")


@pytest.mark.parametrize("name", ["loading", "busy", "oom", "readonly", "masterdown"])
def test_a_server_in_a_state_refuses_writes(dunlin, name):
    getattr(dunlin.fault("state", command="SET"), name)()
    with pytest.raises(redis.RedisError):
        dunlin.client(retry=None).set("key", "value")
    dunlin.remove_fault("state")
    assert dunlin.client().set("key", "value")


@pytest.mark.parametrize("name", ["clusterdown", "tryagain", "crossslot"])
def test_a_node_of_a_cluster_refuses_keys(dunlin, name):
    getattr(dunlin.fault("state", times=1), name)()
    client = dunlin.client(retry=None)
    assert client.ping()
    with pytest.raises(redis.ResponseError):
        client.mset({"one": 1, "two": 2})
    assert client.mset({"one": 1, "two": 2})


def test_a_key_is_at_another_node_for_once(dunlin):
    dunlin.fault("moves").ask(7, "127.0.0.1:1")
    with pytest.raises(redis.ResponseError, match="7 127.0.0.1:1"):
        dunlin.client(retry=None).get("key")


def test_an_error_can_be_chosen(dunlin):
    dunlin.fault("later", command="GET", nth=2).error("TRYAGAIN later")
    dunlin.fault("other", command="SET").moved(7, "127.0.0.1:1")
    client = dunlin.client()
    assert client.get("key") is None
    with pytest.raises(redis.ResponseError, match="later"):
        client.get("key")
    dunlin.clear_faults()
    assert client.set("key", 1)


def test_a_late_command_runs_when_the_clock_is_moved(dunlin):
    dunlin.freeze()
    dunlin.fault("late", command="SET").delay(seconds=1)
    client = dunlin.client()
    writer = threading.Thread(target=client.set, args=("key", "value"))
    writer.start()
    dunlin.wait_until_fired("late")
    dunlin.advance(seconds=1)
    writer.join()
    assert client.get("key") == b"value"


def test_the_journal_tells_what_the_application_asked(dunlin):
    client = dunlin.client(client_name="shop")
    client.set("user:1", "ann")
    client.get("user:1")
    dunlin.journal.expect(exactly=1, command="GET", key="user:*", client="shop")
    dunlin.journal.expect(none=True, command="KEYS")
    dunlin.journal.expect(at_least=1, at_most=2, key="user:*")
    with pytest.raises(AssertionError, match="expected at most 0 of COMMAND GET, found 1"):
        dunlin.journal.expect(at_most=0, command="GET")
    with pytest.raises(TypeError, match="how many"):
        dunlin.journal.expect(command="GET")
    with pytest.raises(dunlin_redis.CommandError, match="GETT"):
        dunlin.journal.expect(none=True, command="GETT")
    entry = dunlin.journal.entries(command="GET")[0]
    assert (entry.command, entry.reply, entry.client_name) == (["GET", "user:1"], '"ann"', "shop")
    assert str(entry).endswith('shop: GET user:1 -> "ann"')
    assert dunlin.journal.count(command="GET", errors=True) == 0
    assert "GET user:1" in dunlin.journal.export()
    dunlin.journal.clear()
    assert dunlin.journal.entries() == []


def test_strict_mode_finds_a_set_that_lives_for_ever(dunlin):
    dunlin.strict.set("error").allow("countries", rule="unbounded-collection")
    client = dunlin.client()
    client.sadd("countries", "de")
    client.sadd("seen", "event-1")
    with pytest.raises(AssertionError, match="unbounded-collection.*seen is never trimmed"):
        dunlin.strict.check()
    (finding,) = dunlin.strict.findings()
    assert (finding.rule, finding.level, finding.command) == ("unbounded-collection", "error", "SADD seen")
    assert "strict mode, unbounded-collection (error): seen" in dunlin.report()
    dunlin.strict.clear()


def test_a_worker_that_waits_gets_the_job(dunlin):
    client = dunlin.client()
    found = []
    worker = threading.Thread(target=lambda: found.append(client.blpop("queue", 0)))
    worker.start()
    dunlin.wait_until_blocked("queue")
    client.rpush("queue", "job")
    worker.join()
    assert found == [[b"queue", b"job"]] or found == [(b"queue", b"job")]


def test_a_wait_in_vain_says_what_was_missing(dunlin):
    dunlin.call("SET", "key", "value")
    with pytest.raises(TimeoutError, match=f"waited 0.01 s in vain for BLOCKED queue 1 in the world {dunlin.name}"):
        dunlin.wait_until_blocked("queue", timeout=0.01)
    with pytest.raises(TimeoutError, match="news"):
        dunlin.wait_for_subscribers("news", timeout=0.01)
    with pytest.raises(TimeoutError):
        dunlin.journal.wait_for(1, command="DEL", timeout=0.01)
    assert dunlin.call("GET", "key") == b"value"


def test_a_call_of_a_command_that_blocks_says_what_to_use(dunlin, monkeypatch):
    dunlin.client().ping()
    monkeypatch.setattr("dunlin_redis._world._PATIENCE_S", 0.1)
    with pytest.raises(TimeoutError, match="no reply to BLPOP queue within 0.1 s; use a client for"):
        dunlin.call("BLPOP", "queue", 0)
    with pytest.raises(TimeoutError, match="no reply to DUNLIN WAIT within 0.1 s$"):
        dunlin.call("DUNLIN", "WAIT", "BLOCKED", "queue", 1)


def test_a_client_without_its_package_says_what_to_install(dunlin, monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    for make in (dunlin.client, dunlin.async_client):
        with pytest.raises(ImportError, match=rf"^{make.__name__}\(\) needs redis-py: pip install"):
            make()


def test_a_wait_takes_real_time_however_the_clock_of_the_server_goes(dunlin):
    dunlin.speed(1_000_000)
    waiter = Waiter(target=dunlin.wait_until_blocked, args=("queue",), kwargs={"timeout": 20})
    waiter.start()
    until(lambda: b"cmd=dunlin|wait" in dunlin.call("CLIENT", "LIST"))
    dunlin.advance(hours=1)
    worker = threading.Thread(target=dunlin.client().blpop, args=("queue", 0))
    worker.start()
    waiter.join()
    dunlin.call("RPUSH", "queue", "job")
    worker.join()
    assert waiter.error is None
    dunlin.freeze()
    with pytest.raises(TimeoutError, match="in vain"):
        dunlin.wait_until_blocked("queue", timeout=0.01)
    assert dunlin.call("PING") == "PONG"


class Waiter(threading.Thread):
    """A thread whose error is kept."""

    error = None

    def run(self):
        try:
            super().run()
        except TimeoutError as error:
            self.error = error


def test_a_thread_that_waits_keeps_no_other_from_moving_the_clock(dunlin):
    dunlin.freeze()
    waiter = threading.Thread(target=dunlin.wait_until_blocked, args=("queue",))
    waiter.start()
    dunlin.advance(seconds=1)
    client = dunlin.client()
    worker = threading.Thread(target=client.blpop, args=("queue", 1))
    worker.start()
    waiter.join()
    dunlin.advance(seconds=1)
    worker.join()


def test_the_connections_of_the_application_are_counted_without_ours(dunlin):
    dunlin.wait_for_clients(0)
    client = dunlin.client()
    client.ping()
    dunlin.wait_for_clients(1)
    client.close()
    dunlin.wait_for_clients(0)


def test_subscribers_are_waited_for(dunlin):
    listener = dunlin.client().pubsub()
    listener.subscribe("news")
    dunlin.wait_for_subscribers("news")
    dunlin.client().publish("news", "hello")
    listener.close()
