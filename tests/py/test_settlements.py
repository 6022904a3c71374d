"""The job that compares settlement reports: a worker asks the gateway for each day that is over."""

import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from billing_shell.embedded import RedisServer
from tests.py.support.simulator import SimulatorProcess, client_of, put, smooth_simulator
from tests.py.support.worker_process import QUICK, WorkerProcess
from tests.py.support.world import ACCOUNT, DUE, World, until

_DAY = timedelta(days=1)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path) as process:
        yield process


async def test_a_worker_compares_every_day_that_is_over_both_ways(
    database_url: str, data_dir: Path, gateway: SimulatorProcess, tmp_path: Path
) -> None:
    world = World(database_url)
    world.subscribe(3)
    async with client_of(gateway) as client:
        await put(client, "clock", now=DUE.isoformat())
    with RedisServer(data_dir / "redis") as redis:
        worker = WorkerProcess(
            tmp_path / "worker.log",
            {
                "database_url": world.url,
                "redis_url": redis.url,
                "gateway_url": gateway.url,
                "gateway_account": ACCOUNT,
                "cadence": {**QUICK, "settlements": "* * * * * *"},
            },
        )
        worker.start()
        try:
            await until(lambda: world.count("invoice", "amount_paid > 0") == 3, "payments")
            assert world.count("settlement_report") == 0
            # Their books lose one payment, and hold one that nobody here has asked for.
            with sqlite3.connect(gateway.ledger, timeout=180) as books:
                (lost,) = books.execute("SELECT min(payment_id) FROM charges").fetchone()
                books.execute("DELETE FROM charges WHERE payment_id = ?", (lost,))
                books.execute(
                    "INSERT INTO charges (payment_id, reference, amount, currency, status, token,"
                    " description, requested_amount, created_at, captured_at, booked_us)"
                    " SELECT 'ch_foreign', 'by hand', 77, currency, status, token, description,"
                    " 77, created_at, captured_at, booked_us FROM charges LIMIT 1"
                )
            world.set_clock(DUE + 3 * _DAY)
            await until(
                lambda: world.count("settlement_report", "compared_at IS NOT NULL") == 2, "two days"
            )
            # It says so after it has committed.
            await until(lambda: len(worker.logged("settlement_compared")) == 2, "two lines")
        finally:
            worker.kill()
            print(worker.log())  # noqa: T201 - shown where the test has failed
    assert world.rows(
        "SELECT kind, detail ->> 'gatewayId', amount FROM billing_ops.open_cases ORDER BY kind"
    ) == [("MISSING_AT_GATEWAY", lost, 3000), ("MISSING_HERE", "ch_foreign", 77)]
    days = worker.logged("settlement_compared")
    assert [(day["day"], day["differences"]) for day in days] == [
        ("2027-03-01", 2),
        ("2027-03-02", 0),
    ]
    assert world.rows(
        "SELECT covers_from, covers_to, is_fetched FROM billing.settlement_report ORDER BY 1"
    ) == [(DUE, DUE + _DAY, True), (DUE + _DAY, DUE + 2 * _DAY, True)]
    world.close()


async def test_what_is_no_span_of_time_is_refused(gateway: SimulatorProcess) -> None:
    day = {"from": "2027-05-01T00:00:00Z", "to": "2027-05-02T00:00:00+00:00"}
    async with client_of(gateway) as client:
        assert (await client.get("/v1/settlements", params=day)).json() == {
            "object": "list",
            "data": [],
            "next_cursor": None,
        }
        for name, value in (
            ("from", ""),
            ("to", "2027-05-02T00:00:00"),
            ("cursor", "charge"),
            ("limit", "0"),
            ("limit", "501"),
        ):
            answer = await client.get("/v1/settlements", params=day | {name: value})
            assert (answer.status_code, answer.json()["param"]) == (400, name)
