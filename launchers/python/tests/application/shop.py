"""A shop whose orders are worked on by Celery, and whose report is a job of RQ. All three find Redis by the variables of
the environment, and none has an address of its own: Celery reads CELERY_BROKER_URL and CELERY_RESULT_BACKEND by itself.
"""

import os

import celery
import redis
import rq

app = celery.Celery("shop")
app.conf.update(result_expires=3600, task_acks_late=True, worker_prefetch_multiplier=1)
data = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
take = data.register_script(
    """
    local left = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
    if left < tonumber(ARGV[2]) then return 0 end
    redis.call('HINCRBY', KEYS[1], ARGV[1], -ARGV[2])
    return 1
    """
)


class SoldOut(Exception):
    pass


@app.task
def reserve(product, count):
    """Takes some pieces out of the stock; returns the order."""
    if not take(keys=["stock"], args=[product, count]):
        raise SoldOut(product)
    return {"product": product, "count": count}


@app.task(bind=True, autoretry_for=(ConnectionError,), retry_backoff=False, default_retry_delay=0, max_retries=3)
def charge(task, order, user):
    """The bank's line breaks twice, and a broken charge must not be counted."""
    if data.incr("bank:calls") <= 2:
        raise ConnectionError("the bank does not answer")
    data.hincrby("charged", user, 3 * order["count"])
    return {**order, "user": user, "attempt": task.request.retries + 1}


@app.task
def total(orders):
    return sum(order["count"] for order in orders)


def order(user, product, count):
    return (reserve.s(product, count) | charge.s(user)).delay()


def order_all(product, counts):
    return celery.chord(reserve.s(product, count) for count in counts)(total.s())


def report():
    """What each user has paid, as a job of RQ."""
    return {user: int(paid) for user, paid in data.hgetall("charged").items()}


reports = rq.Queue("reports", connection=redis.Redis.from_url(os.environ["REDIS_URL"]))
