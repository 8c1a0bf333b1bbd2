"""Coroutines: the client, the waits, and servers in `async with`."""

import asyncio

import dunlin_redis
import pytest
import pytest_asyncio

pytestmark = pytest.mark.asyncio


async def work(url):
    import redis.asyncio

    async with redis.asyncio.Redis.from_url(url, retry=None) as client:
        await client.blmove("queue", "claimed", 0)


async def test_a_worker_dies_between_two_commands(dunlin, dunlin_async_client):
    dunlin.fault("dies", command="BLMOVE", times=1).drop_after()
    worker = asyncio.create_task(work(dunlin.url))
    await dunlin.aio.wait_until_blocked("queue")
    await dunlin_async_client.rpush("queue", "job")
    await dunlin.aio.wait_until_fired("dies")
    with pytest.raises(Exception, match="[Cc]onnection"):
        await worker
    assert await dunlin_async_client.lrange("claimed", 0, -1) == [b"job"]


async def test_others_run_while_a_wait_lasts(dunlin):
    dunlin.freeze()
    waiting = asyncio.create_task(dunlin.aio.wait_for_commands(1, command="SET"))
    await asyncio.sleep(0)
    dunlin.advance(seconds=1)
    dunlin.call("SET", "key", "value")
    await waiting


async def test_a_wait_in_vain_says_what_was_missing(dunlin):
    with pytest.raises(TimeoutError, match="waited 0.01 s in vain for BLOCKED queue 1 in the world "):
        await dunlin.aio.wait_until_blocked("queue", timeout=0.01)
    dunlin.freeze()
    with pytest.raises(TimeoutError, match="in vain"):
        await dunlin.aio.wait_for_subscribers("news", timeout=0.01)


async def test_a_wait_takes_real_time_however_the_clock_of_the_server_goes(dunlin):
    waiting = asyncio.create_task(dunlin.aio.wait_for_commands(1, command="SET", timeout=20))
    while b"cmd=dunlin|wait" not in dunlin.call("CLIENT", "LIST"):
        await asyncio.sleep(0)
    dunlin.advance(hours=1)
    dunlin.call("SET", "key", "value")
    await waiting


async def test_the_connections_of_the_application_are_counted_without_ours(dunlin):
    await dunlin.aio.wait_for_clients(0)
    client = dunlin.client()
    client.ping()
    await dunlin.aio.wait_for_clients(1)


async def test_a_server_with_a_password_ends_with_its_block():
    async with dunlin_redis.Server(requirepass="secret") as server:
        with pytest.raises(TimeoutError):
            await server.aio.wait_until_blocked("queue", timeout=0.01)
        async with server.world() as world:
            with pytest.raises(TimeoutError):
                await world.aio.wait_until_blocked("queue", timeout=0.01)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def loop_of_the_module():
    return asyncio.get_running_loop()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_world_is_bound_to_no_loop(dunlin, loop_of_the_module):
    assert loop_of_the_module is asyncio.get_running_loop()
    await dunlin.aio.wait_for_clients(0)
