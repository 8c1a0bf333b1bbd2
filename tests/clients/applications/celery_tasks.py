# Tasks in the background with Celery, Redis as broker and as the place of results: `python celery_tasks.py PORT`.
import sys

import celery
import redis
from celery.contrib.testing.worker import start_worker

address = f"redis://127.0.0.1:{sys.argv[1]}"
redis.Redis(port=int(sys.argv[1])).flushall()
app = celery.Celery("shop", broker=address + "/0", backend=address + "/1")
app.conf.update(result_expires=60, worker_hijack_root_logger=False, broker_connection_retry_on_startup=True)


@app.task
def add(first, second):
    return first + second


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=3)
def stubborn(task):
    if task.request.retries < 2:
        raise task.retry(countdown=0)
    return task.request.retries


@app.task
def broken():
    raise ValueError("as it must be")


with start_worker(app, perform_ping_check=False, pool="threads", concurrency=4, loglevel="CRITICAL"):
    assert add.delay(1, 2).get(timeout=20) == 3
    assert celery.group(add.s(number, number) for number in range(20))().get(timeout=20) == list(range(0, 40, 2))
    assert (add.s(1, 2) | add.s(3) | add.s(4))().get(timeout=20) == 10
    assert celery.chord(add.s(number, 1) for number in range(10))(total.s()).get(timeout=20) == 55
    assert stubborn.delay().get(timeout=20) == 2
    assert add.apply_async((1, 1), countdown=0.2).get(timeout=20) == 2
    failed = broken.delay()
    try:
        failed.get(timeout=20)
        raise SystemExit("its error must come back")
    except ValueError as error:
        assert str(error) == "as it must be"
    assert failed.state == "FAILURE"
    results = redis.Redis(port=int(sys.argv[1]), db=1)
    assert 0 < results.ttl(f"celery-task-meta-{failed.id}") <= 60
    failed.forget()
    assert not results.exists(f"celery-task-meta-{failed.id}")
print("Celery is content")
