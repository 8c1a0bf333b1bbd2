# A Python backend on a cluster, with redis-py, while slots move: `python redis_py_cluster.py PORT PROTOCOL`.
import sys

import redis
from redis.cluster import RedisCluster

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])
COUNTERS, ROUNDS = 20, 40

client = RedisCluster(host="127.0.0.1", port=PORT, protocol=PROTOCOL, decode_responses=True)
assert len(client.get_primaries()) == 3

for _ in range(ROUNDS):
    for number in range(COUNTERS):
        client.incr(f"counter:{number}")
counts = [client.get(f"counter:{number}") for number in range(COUNTERS)]
assert counts == [str(ROUNDS)] * COUNTERS, counts

# A pipeline is split by slots, and each part goes to its node.
pipeline = client.pipeline()
for number in range(COUNTERS):
    pipeline.get(f"counter:{number}")
assert pipeline.execute() == counts

# What belongs together has one hash tag.
client.mset({"{cart:7}:apples": 1, "{cart:7}:pears": 2})
assert client.mget("{cart:7}:apples", "{cart:7}:pears") == ["1", "2"]
take = client.register_script("return {redis.call('DECR', KEYS[1]), redis.call('INCR', KEYS[2])}")
assert take(keys=["{cart:7}:apples", "{cart:7}:pears"]) == [0, 3]
try:
    client.execute_command("MSET", "a", 1, "b", 2)
    raise AssertionError("keys of two slots are refused")
except redis.exceptions.RedisClusterException:
    pass

# What one node publishes, subscribers of every node receive.
listener = redis.Redis(port=PORT, protocol=PROTOCOL, decode_responses=True).pubsub(ignore_subscribe_messages=True)
listener.subscribe("news")
listener.get_message(timeout=5)
client.publish("news", "hello")
message = None
while message is None:
    message = listener.get_message(timeout=5)
assert message["data"] == "hello", message

assert client.dbsize(target_nodes=RedisCluster.PRIMARIES) == COUNTERS + 2
print("redis-py is content")
