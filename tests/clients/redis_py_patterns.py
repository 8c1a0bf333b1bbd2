# The patterns of a Python backend with redis-py: `python redis_py_patterns.py PORT PROTOCOL`.
import sys
import threading
import time

import redis

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])
WORKERS, ROUNDS = 8, 50

pool = redis.BlockingConnectionPool(port=PORT, protocol=PROTOCOL, decode_responses=True, max_connections=4, timeout=10)
client = redis.Redis(connection_pool=pool)


def in_threads(work):
    """Runs `work` in several threads, and raises what one of them raised."""
    faults = []

    def guarded(number):
        try:
            work(number)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def more_workers_than_connections_share_a_pool():
    in_threads(lambda number: [client.incr("visits") for _ in range(ROUNDS)])
    assert client.get("visits") == str(WORKERS * ROUNDS)


def a_pipeline_keeps_a_list_of_what_was_viewed_last():
    for moment in range(40):
        with client.pipeline(transaction=False) as pipe:
            pipe.zadd("rv:42", {f"page-{moment}": moment}).zremrangebyrank("rv:42", 0, -31).expire("rv:42", 3600)
            assert pipe.execute() == [1, 1 if moment >= 30 else 0, True]
    assert client.zrevrange("rv:42", 0, 1) == ["page-39", "page-38"] and client.zcard("rv:42") == 30
    assert client.zscore("rv:42", "page-39") == 39.0 and 3590 <= client.ttl("rv:42") <= 3600
    with client.pipeline(transaction=False) as pipe:
        pipe.set("word", "x").incr("word").get("word")
        first, second, third = pipe.execute(raise_on_error=False)
    assert first is True and isinstance(second, redis.ResponseError) and third == "x"


def a_transaction_that_was_overtaken_is_tried_again():
    client.set("stock", WORKERS * 5 + 3)

    def sell(_):
        for _ in range(5):
            client.transaction(lambda pipe: sell_one(pipe), "stock")

    def sell_one(pipe):
        left = int(pipe.get("stock"))
        pipe.multi()
        pipe.set("stock", left - 1)
        pipe.rpush("sold", left)

    in_threads(sell)
    assert client.get("stock") == "3" and len(set(client.lrange("sold", 0, -1))) == WORKERS * 5


def a_script_is_sent_once_and_called_by_its_name():
    first_seen = client.register_script(
        "local added = redis.call('SADD', KEYS[1], ARGV[1]) redis.call('EXPIRE', KEYS[1], ARGV[2]) return added"
    )
    client.script_flush()
    assert [first_seen(keys=["dedupe"], args=["event-1", 7200]) for _ in range(3)] == [1, 0, 0]
    assert client.script_exists(first_seen.sha) == [True] and client.ttl("dedupe") > 7000
    fails = client.register_script("return redis.call('INCR', KEYS[1])")
    client.set("word", "x")
    try:
        fails(keys=["word"])
        raise SystemExit("INCR of a word must fail in a script too")
    except redis.ResponseError as error:
        assert str(error).startswith("value is not an integer or out of range script: "), error
    client.function_load(
        "#!lua name=tools\nredis.register_function('twice', function(keys, args) return args[1] * 2 end)", replace=True
    )
    assert client.fcall("twice", 0, 21) == 42 and client.function_list("tools")[0]


def messages_reach_who_listens_in_order():
    listener = client.pubsub()
    listener.subscribe("news")
    listener.psubscribe("new*")
    heard = []
    while len(heard) < 2:
        heard.append(listener.get_message(timeout=5))
    assert [(message["type"], message["channel"]) for message in heard] == [("subscribe", "news"), ("psubscribe", "new*")]
    for number in range(100):
        assert client.publish("news", number) == 2
    messages = [listener.get_message(timeout=5) for _ in range(200)]
    for kind in ("message", "pmessage"):
        data = [message["data"] for message in messages if message["type"] == kind]
        assert data == [str(number) for number in range(100)], data
    assert client.pubsub_numsub("news") == [("news", 1)] and client.pubsub_numpat() == 1
    listener.close()


def workers_take_jobs_as_they_come():
    done = []

    def work(number):
        while True:
            taken = client.blpop(["urgent", "jobs"], timeout=5)
            if taken[1] == "stop":
                return
            done.append(taken[1])

    worker = threading.Thread(target=work, args=(0,))
    worker.start()
    for number in range(100):
        client.rpush("jobs", number)
    client.rpush("jobs", "stop")
    worker.join()
    assert done == [str(number) for number in range(100)]
    before = time.monotonic()
    assert client.blpop(["nothing"], timeout=0.1) is None and time.monotonic() - before >= 0.09
    client.rpush("in", "a")
    assert client.blmove("in", "out", 1, "LEFT", "RIGHT") == "a" and client.lrange("out", 0, -1) == ["a"]
    client.zadd("due", {"later": 2, "sooner": 1})
    assert tuple(client.bzpopmin("due", 1)) == ("due", "sooner", 1.0)


def a_scan_meets_everything():
    with client.pipeline(transaction=False) as pipe:
        for number in range(1000):
            pipe.set(f"user:{number}", number)
            pipe.hset("names", f"user:{number}", number)
            pipe.sadd("numbers", number)
            pipe.zadd("scores", {number: number})
        pipe.execute()
    assert set(client.scan_iter("user:*", count=50)) == {f"user:{number}" for number in range(1000)}
    assert dict(client.hscan_iter("names")) == {f"user:{number}": str(number) for number in range(1000)}
    assert set(client.sscan_iter("numbers")) == {str(number) for number in range(1000)}
    assert dict(client.zscan_iter("scores")) == {str(number): float(number) for number in range(1000)}


def what_has_a_deadline_ends_and_tells():
    client.config_set("notify-keyspace-events", "Ex")
    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("__keyevent@0__:expired")
    listener.get_message(timeout=5)
    client.set("session", "ann", px=50)
    assert 0 < client.pttl("session") <= 50
    message = None
    while message is None:
        message = listener.get_message(timeout=5)
    assert message["data"] == "session" and client.get("session") is None and client.ttl("session") == -2
    listener.close()


def main():
    client.flushall()
    more_workers_than_connections_share_a_pool()
    a_pipeline_keeps_a_list_of_what_was_viewed_last()
    a_transaction_that_was_overtaken_is_tried_again()
    a_script_is_sent_once_and_called_by_its_name()
    messages_reach_who_listens_in_order()
    workers_take_jobs_as_they_come()
    a_scan_meets_everything()
    what_has_a_deadline_ends_and_tells()
    pool.disconnect()
    print("redis-py is content")


main()
