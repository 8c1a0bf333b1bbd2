# A Python backend that goes on while its cluster changes, with redis-py: `python redis_py_resharding.py PORT PROTOCOL`.
# What it reads and prints is in resharding.rs.
import sys
import threading

import redis
from redis.cluster import RedisCluster

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])

client = RedisCluster(host="127.0.0.1", port=PORT, protocol=PROTOCOL, decode_responses=True)
changed = threading.Condition()
is_done = threading.Event()


class Worker:
    """Does one thing again and again, with the numbers from 1 on."""

    def __init__(self, kind, work, keys=()):
        self.kind, self.work, self.keys = kind, work, keys
        self.sent, self.acknowledged, self.unknown = 0, 0, []
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not is_done.is_set():
            self.sent += 1
            try:
                self.work(self, self.sent)
                self.acknowledged = self.sent
            except redis.RedisError:
                self.unknown.append(self.sent)
            with changed:
                changed.notify_all()


def append(worker, value):
    client.rpush(worker.keys[0], value)


def pipeline(worker, value):
    pipe = client.pipeline()
    for key in worker.keys:
        pipe.rpush(key, value)
    pipe.execute()


def transaction(worker, value):
    with client.pipeline(transaction=True) as pipe:
        for key in worker.keys:
            pipe.rpush(key, value)
        pipe.execute()


def watch(worker, value):
    def add_next(pipe):
        length = pipe.llen("{0}:watched")
        pipe.multi()
        pipe.rpush("{0}:watched", length + 1)

    # A cluster's client would send what follows WATCH again to another node, on a connection that watches nothing.
    node = client.get_redis_connection(client.get_node_from_key("{0}:watched"))
    node.transaction(add_next, "{0}:watched")


both = client.register_script("""
    redis.call('RPUSH', KEYS[1], ARGV[1])
    return redis.call('RPUSH', KEYS[2], ARGV[1])""")


def script(worker, value):
    both(keys=worker.keys, args=[value])


def workers_of(number):
    tag = f"{{{number}}}"
    return [
        Worker("append", append, [f"{tag}:appended"]),
        Worker("pipeline", pipeline, [f"piped:{number}:{key}" for key in range(8)]),
        Worker("transaction", transaction, [f"{tag}:left", f"{tag}:right"]),
        Worker("watch", watch),
        Worker("script", script, [f"{tag}:script:left", f"{tag}:script:right"]),
    ]


workers = workers_of(0) + workers_of(1)
for worker in workers:
    worker.thread.start()
print("leaves out news: a subscription stays at its node, and at times is not renewed when that is there again")
print("leaves out events: a subscription is not always renewed when its slot has moved")
print("ready", flush=True)
for line in sys.stdin:
    awaited = [(worker, worker.sent) for worker in workers if worker.kind in line.split()]
    with changed:
        changed.wait_for(lambda: all(worker.acknowledged > sent for worker, sent in awaited))
    print("went on", flush=True)

is_done.set()
for worker in workers:
    worker.thread.join()


def printed(values):
    return ",".join(map(str, values)) or "-"


for worker in workers:
    for key in worker.keys:
        print("list", key, worker.sent, printed(worker.unknown))
watchers = [worker for worker in workers if worker.kind == "watch"]
tried, unknown = sum(worker.sent for worker in watchers), sum(len(worker.unknown) for worker in watchers)
print("counter {0}:watched", tried, tried - unknown, flush=True)
