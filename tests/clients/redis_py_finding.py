# Reads a key of a cluster with redis-py for each line of its input: `python redis_py_finding.py PORT PROTOCOL KEY`.
import sys

from redis.cluster import RedisCluster

PORT, PROTOCOL, KEY = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

client = RedisCluster(host="127.0.0.1", port=PORT, protocol=PROTOCOL, decode_responses=True)
for _ in sys.stdin:
    print(client.get(KEY), flush=True)
