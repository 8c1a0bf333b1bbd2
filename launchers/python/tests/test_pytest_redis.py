"""The stand-in for pytest-redis."""

import socket

import pytest


def test_the_fixtures_of_pytest_redis_have_a_stand_in(pytester):
    pytester.makeconftest("""
        from dunlin_redis.as_pytest_redis import factories

        redis_second_proc = factories.redis_proc(port=None, password="secret", db_count=4)
        second = factories.redisdb("redis_second_proc", dbnum=1, decode=True)
    """)
    pytester.makepyfile("""
        import pytest, redis

        @pytest.mark.parametrize("number", range(2))
        def test_is_empty_each_time(redisdb, redis_proc, number):
            assert redisdb.incr("counter") == 1
            assert redis.Redis(redis_proc.host, redis_proc.port).get("counter") == b"1"

        @pytest.mark.parametrize("number", range(2))
        def test_is_another_server(redisdb, second, redis_second_proc, number):
            assert second.incr("counter") == 1 and second.get("counter") == "1"
            assert redisdb.get("counter") is None
            assert second.config_get("databases") == {"databases": "4"}
            assert second.config_get("maxmemory") == {"maxmemory": "0"}
            second.config_set("maxmemory", "1mb")
    """)
    pytester.runpytest_subprocess("-p", "dunlin_redis.as_pytest_redis", "-n2").assert_outcomes(passed=4)


@pytest.mark.parametrize("place", ["an ini file", "options"])
def test_the_settings_of_pytest_redis_are_taken_by_its_stand_in(pytester, place):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    used = {"port": port, "host": "127.0.0.1", "password": "s", "username": "default", "db_count": 3, "loglevel": "verbose"}
    used |= {"save": "900 1", "datadir": str(pytester.path)}
    unused = {"exec": "/nowhere", "timeout": 1, "port_search_count": 2, "modules": "x.so"}
    flags = {"compression": "compression", "rdbchecksum": "rdbchecksum", "syslog": "syslog", "decode": "client-decode"}
    if place == "options":
        words = [f"--redis-{name.replace('_', '-')}={value}" for name, value in {**used, **unused}.items()]
        words += [f"--redis-{option}" for option in flags.values()]
    else:
        words = []
        lines = [f"redis_{name} = {value}" for name, value in {**used, **unused, **dict.fromkeys(flags, "yes")}.items()]
        pytester.makeini("\n".join(["[pytest]", *lines]))
    pytester.makepyfile(f"""
        import os

        def test_has_them(redisdb, redis_proc):
            assert redis_proc.port == {port} and redis_proc.password == "s" and redis_proc.username == "default"
            wanted = dict(databases="3", loglevel="verbose", save="900 1", dir={str(pytester.path)!r})
            wanted |= dict(rdbcompression="yes", rdbchecksum="yes")
            assert redisdb.config_get(*wanted) == wanted
    """)
    pytester.runpytest_subprocess("-p", "dunlin_redis.as_pytest_redis", *words).assert_outcomes(passed=1)


def test_the_server_of_the_stand_in_stops_and_starts(pytester):
    pytester.makepyfile("""
        import os, pytest, redis

        def test_1_has_the_databases_that_it_has_there(redisdb):
            assert redisdb.config_get("databases") == {"databases": "8"}

        def test_2_stops_and_starts(redisdb, redis_proc):
            assert redis_proc.running() and os.access(redis_proc.executable, os.X_OK)
            redisdb.set("key", "value")
            redis_proc.stop()
            assert not redis_proc.running()
            with pytest.raises(redis.ConnectionError):
                redis.Redis(redis_proc.host, redis_proc.port, retry=None).ping()
            assert redis_proc.start().running()
            assert redisdb.get("key") is None

        def test_3_stops(redis_proc, redisdb):
            redis_proc.stop()
    """)
    pytester.runpytest_subprocess("-p", "dunlin_redis.as_pytest_redis").assert_outcomes(passed=3)
