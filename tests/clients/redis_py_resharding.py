# A Python backend that goes on while its cluster changes, with redis-py: `python redis_py_resharding.py PORT PROTOCOL`.
# What it reads and prints is in resharding.rs.
import sys
import threading
import time

import redis
from redis.cluster import RedisCluster

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])
PAUSE = 0.002  # between two messages

client = RedisCluster(host="127.0.0.1", port=PORT, protocol=PROTOCOL, decode_responses=True)
changed = threading.Condition()
is_done = threading.Event()


class Worker:
    """Does one thing again and again, with the numbers from 1 on."""

    def __init__(self, kind, work, keys=(), channel=None):
        self.kind, self.work, self.keys, self.channel = kind, work, keys, channel
        self.sent, self.acknowledged, self.unknown, self.heard = 0, 0, [], []
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

    def hear(self, message):
        with changed:
            self.heard.append(message)
            changed.notify_all()

    def arrived(self):
        """The last number that was acknowledged; of a publisher, that was heard."""
        return max(self.heard[-1:], default=0) if self.channel else self.acknowledged


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


def publish(worker, value):
    time.sleep(PAUSE)
    client.publish(worker.channel, value)


def publish_sharded(worker, value):
    time.sleep(PAUSE)
    client.spublish(worker.channel, value)


def workers_of(number):
    tag = f"{{{number}}}"
    return [
        Worker("append", append, [f"{tag}:appended"]),
        Worker("pipeline", pipeline, [f"piped:{number}:{key}" for key in range(8)]),
        Worker("transaction", transaction, [f"{tag}:left", f"{tag}:right"]),
        Worker("watch", watch),
        Worker("script", script, [f"{tag}:script:left", f"{tag}:script:right"]),
        Worker("news", publish, channel=f"news:{number}"),
        Worker("events", publish_sharded, channel=f"{tag}:events"),
    ]


workers = workers_of(0) + workers_of(1)
publishers = {worker.channel: worker for worker in workers if worker.channel}


def listen(next_message):
    while True:
        try:
            message = next_message()
        except (redis.RedisError, IndexError):
            # IndexError is how redis-py reads a reply that belongs to the thread which follows the slots.
            continue
        if message and message["type"] in ("message", "smessage"):
            publishers[message["channel"]].hear(int(message["data"]))


news, events = client.pubsub(), client.pubsub()
news.subscribe(*[worker.channel for worker in workers if worker.kind == "news"])
events.ssubscribe(*[worker.channel for worker in workers if worker.kind == "events"])
# A sharded channel's messages are asked for node by node, so none is waited for long.
for next_message in (lambda: news.get_message(timeout=5), lambda: events.get_sharded_message(timeout=0.001)):
    threading.Thread(target=listen, args=[next_message], daemon=True).start()
for worker in workers:
    worker.thread.start()
print("leaves out news while killed: a subscription stays at its node, and waits until that is there again")
print("ready", flush=True)
for line in sys.stdin:
    awaited = [(worker, worker.sent) for worker in workers if worker.kind in line.split()]
    with changed:
        changed.wait_for(lambda: all(worker.arrived() > sent for worker, sent in awaited))
    print("went on", flush=True)

is_done.set()
for worker in workers:
    worker.thread.join()


def printed(values):
    return ",".join(map(str, values)) or "-"


for worker in workers:
    for key in worker.keys:
        print("list", key, worker.sent, printed(worker.unknown))
    if worker.channel:
        print("channel", worker.channel, worker.sent, printed(worker.unknown), printed(worker.heard))
watchers = [worker for worker in workers if worker.kind == "watch"]
tried, unknown = sum(worker.sent for worker in watchers), sum(len(worker.unknown) for worker in watchers)
print("counter {0}:watched", tried, tried - unknown, flush=True)
