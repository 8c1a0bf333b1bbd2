# The patterns of a Python backend with redis-py's asyncio side: `python redis_py_asyncio.py PORT PROTOCOL`.
import asyncio
import sys

import redis
import redis.asyncio

PORT, PROTOCOL = int(sys.argv[1]), int(sys.argv[2])
TASKS, ROUNDS = 20, 20

pool = redis.asyncio.BlockingConnectionPool(
    port=PORT, protocol=PROTOCOL, decode_responses=True, max_connections=4, timeout=10
)
client = redis.asyncio.Redis(connection_pool=pool)


async def more_tasks_than_connections_share_a_pool():
    async def visit():
        for _ in range(ROUNDS):
            await client.incr("visits")

    await asyncio.gather(*(visit() for _ in range(TASKS)))
    assert await client.get("visits") == str(TASKS * ROUNDS)


async def a_pipeline_keeps_a_list_of_what_was_viewed_last():
    for moment in range(35):
        async with client.pipeline(transaction=True) as pipe:
            pipe.zadd("rv:42", {f"page-{moment}": moment}).zremrangebyrank("rv:42", 0, -31).expire("rv:42", 3600)
            await pipe.execute()
    assert await client.zrange("rv:42", 0, 1, desc=True, withscores=True) in (
        [("page-34", 34.0), ("page-33", 33.0)],
        [["page-34", 34.0], ["page-33", 33.0]],
    )


async def a_transaction_that_was_overtaken_is_tried_again():
    await client.set("stock", 100)

    async def sell():
        async def sell_one(pipe):
            left = int(await pipe.get("stock"))
            pipe.multi()
            pipe.set("stock", left - 1)

        await client.transaction(sell_one, "stock")

    # As many as there are connections, since each holds one while it watches.
    await asyncio.gather(*(sell() for _ in range(4)))
    assert await client.get("stock") == "96"


async def a_script_admits_up_to_the_limit():
    limit = client.register_script(
        """
        redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1] - ARGV[2])
        local count = redis.call('ZCARD', KEYS[1])
        if count >= tonumber(ARGV[3]) then return {0, count} end
        redis.call('ZADD', KEYS[1], ARGV[1], ARGV[4])
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
        return {1, count + 1}
        """
    )
    answers = await asyncio.gather(
        *(limit(keys=["rate:ann"], args=[1000, 60000, 5, f"request-{number}"]) for number in range(TASKS))
    )
    assert sorted(answers) == [[0, 5]] * (TASKS - 5) + [[1, number] for number in range(1, 6)], answers


async def messages_reach_who_listens():
    async with client.pubsub(ignore_subscribe_messages=True) as listener:
        await listener.subscribe("news")
        await listener.get_message(timeout=5)

        async def hear():
            heard = []
            async for message in listener.listen():
                heard.append(message["data"])
                if message["data"] == "last":
                    return heard

        hearing = asyncio.create_task(hear())
        for number in range(50):
            await client.publish("news", number)
        await client.publish("news", "last")
        assert await asyncio.wait_for(hearing, 10) == [str(number) for number in range(50)] + ["last"]


async def workers_take_jobs_as_they_come():
    async def work():
        done = 0
        while (taken := await client.blpop("jobs", timeout=5))[1] != "stop":
            done += 1
        return done

    workers = [asyncio.create_task(work()) for _ in range(2)]
    for number in range(60):
        await client.rpush("jobs", number)
    await client.rpush("jobs", "stop", "stop")
    assert sum(await asyncio.gather(*workers)) == 60
    assert await client.blpop("nothing", timeout=0.1) is None


async def a_scan_meets_everything():
    await client.mset({f"user:{number}": number for number in range(500)})
    assert {key async for key in client.scan_iter("user:*", count=50)} == {f"user:{number}" for number in range(500)}


async def what_has_a_deadline_ends():
    await client.set("session", "ann", ex=3600)
    await client.execute_command("DUNLIN ADVANCE", 3_600_000)
    assert await client.pttl("session") == -2


async def main():
    await client.flushall()
    await more_tasks_than_connections_share_a_pool()
    await a_pipeline_keeps_a_list_of_what_was_viewed_last()
    await a_transaction_that_was_overtaken_is_tried_again()
    await a_script_admits_up_to_the_limit()
    await messages_reach_who_listens()
    await workers_take_jobs_as_they_come()
    await a_scan_meets_everything()
    await what_has_a_deadline_ends()
    await pool.disconnect()
    print("redis-py is content")


asyncio.run(main())
