# The first steps of a Python backend with a server: defaults, a pipeline, expiry, sorted sets, server facts.
import sys
import redis

client = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
assert client.ping()
assert client.set("greeting", "hello", ex=100) and client.get("greeting") == "hello"
assert 99 <= client.ttl("greeting") <= 100
pipe = client.pipeline(transaction=False)
pipe.zadd("board", {"ann": 10, "ben": 20.5}).zincrby("board", 5, "ann").zrange("board", 0, -1, withscores=True)
added, score, ranked = pipe.execute()
assert added == 2 and score == 15.0, (added, score)
assert [tuple(pair) for pair in ranked] == [("ann", 15.0), ("ben", 20.5)], ranked
assert client.zscore("board", "nobody") is None
assert sorted(client.scan_iter("*")) == ["board", "greeting"]
assert client.info()["redis_version"].startswith("8.0") and client.info()["role"] == "master"
assert client.config_get("databases") == {"databases": "16"}
assert client.client_getname() is None and client.client_id() > 0
try:
    client.incr("greeting")
    raise SystemExit("INCR of a word must fail")
except redis.ResponseError as error:
    assert str(error) == "value is not an integer or out of range", error
for protocol in (2, 3):
    other = redis.Redis(port=int(sys.argv[1]), protocol=protocol)
    assert other.mget("greeting", "nothing") == [b"hello", None]
print("redis-py is content")
