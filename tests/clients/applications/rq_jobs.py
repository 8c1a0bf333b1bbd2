# Jobs in the background with RQ: `python rq_jobs.py PORT`.
import datetime
import operator
import sys

import redis
import rq
from rq.job import JobStatus
from rq.registry import FailedJobRegistry, FinishedJobRegistry, ScheduledJobRegistry

connection = redis.Redis(port=int(sys.argv[1]))
connection.flushall()
high, low = rq.Queue("high", connection=connection), rq.Queue("low", connection=connection)
quotient = low.enqueue(operator.truediv, 42, 6)
after = low.enqueue(operator.add, "behind ", "it", depends_on=quotient)
urgent = high.enqueue(operator.mul, 6, 7, result_ttl=60)
fails = high.enqueue(operator.truediv, 1, 0, retry=rq.Retry(max=1))
later = low.enqueue_in(datetime.timedelta(hours=1), operator.add, 1, 2)
assert [len(high), len(low)] == [2, 1] and after.get_status() == JobStatus.DEFERRED
assert later.id in ScheduledJobRegistry(queue=low)

worker = rq.SimpleWorker([high, low], connection=connection)
assert worker.work(burst=True, with_scheduler=False, logging_level="CRITICAL")
assert [job.return_value() for job in (quotient, urgent, after)] == [7.0, 42, "behind it"]
assert fails.get_status(refresh=True) == JobStatus.FAILED and "ZeroDivisionError" in fails.latest_result().exc_string
assert fails.id in FailedJobRegistry(queue=high) and urgent.id in FinishedJobRegistry(queue=high)
assert 0 < connection.ttl(urgent.key) <= 60

fails.requeue()
assert high.job_ids == [fails.id]
fails.delete()
later.cancel()
assert high.is_empty() and later.id not in ScheduledJobRegistry(queue=low)

# A worker of its own process, as it is run in production.
forked = low.enqueue(operator.add, 1, 2)
rq.Worker([low], connection=connection).work(burst=True, logging_level="CRITICAL")
assert forked.return_value() == 3 and rq.Worker.count(connection=connection) == 0
print("RQ is content")
