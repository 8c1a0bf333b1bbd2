"""The shop's own tests, with workers of their own processes: `dunlin run -- pytest`."""

import subprocess
import sys

import pytest
import shop


@pytest.fixture(scope="module", autouse=True)
def worker():
    """A worker as it is run in production, with two processes of its own."""
    words = ["-A", "shop", "worker", "--concurrency", "2", "--loglevel", "WARNING", "--without-mingle", "--without-gossip"]
    process = subprocess.Popen([sys.executable, "-m", "celery", *words])
    yield process
    process.terminate()
    assert process.wait(30) == 0


@pytest.fixture(autouse=True)
def stock():
    shop.data.delete("charged", "bank:calls")
    shop.data.hset("stock", "apple", 10)


def test_an_order_is_charged_once_although_the_bank_fails_twice():
    placed = shop.order("ann", "apple", 2)
    assert placed.get(timeout=30) == {"product": "apple", "count": 2, "user": "ann", "attempt": 3}
    assert shop.data.hgetall("charged") == {"ann": "6"}
    assert shop.data.hget("stock", "apple") == "8"


def test_what_is_sold_out_is_not_charged():
    placed = shop.order("ann", "apple", 11)
    with pytest.raises(shop.SoldOut, match="apple"):
        placed.parent.get(timeout=30)
    with pytest.raises(shop.SoldOut):
        placed.get(timeout=30)
    assert not shop.data.exists("charged")


def test_no_piece_is_sold_twice():
    shop.data.hset("stock", "apple", 30)
    assert shop.order_all("apple", [1, 2, 3] * 5).get(timeout=30) == 30
    assert shop.data.hget("stock", "apple") == "0"


def test_a_result_is_gone_after_an_hour():
    placed = shop.reserve.delay("apple", 1)
    placed.get(timeout=30)
    key = placed.backend.get_key_for_task(placed.id)
    shop.data.execute_command("DUNLIN", "ADVANCE", 3_599_000)
    assert placed.backend.client.exists(key)
    shop.data.execute_command("DUNLIN", "ADVANCE", 1000)
    assert not placed.backend.client.exists(key)


def test_the_report_is_made_by_a_worker_of_rq():
    shop.data.hset("charged", mapping={"ann": 6, "bob": 9})
    job = shop.reports.enqueue(shop.report, result_ttl=60)
    subprocess.run([sys.executable, "-m", "rq.cli", "worker", "--burst", "--quiet", "reports"], check=True)
    assert job.return_value() == {"ann": 6, "bob": 9}
