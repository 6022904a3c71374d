"""The queue: jobs are hints, so none of them matters."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import psycopg
import pytest
from procrastinate import PsycopgConnector
from procrastinate.exceptions import ConnectorException
from psycopg.pq import TransactionStatus
from structlog.testing import capture_logs

from billing_shell.errors import RetryableError
from billing_shell.job_queue import JobQueue, PeriodicTask
from tests.py.support.outage import outage
from tests.py.support.world import until

EVERY_SECOND = "* * * * * *"
YEARLY = "0 0 1 1 *"
# The clock may have made one more that waits for whoever works next.
BEGUN = "SELECT status FROM procrastinate_jobs WHERE status <> 'todo'"

Jobs = Callable[[str], list[tuple[Any, ...]]]


class Counter:
    """A task that counts, and waits for leave to end."""

    def __init__(self) -> None:
        self.runs = 0
        self.at_once = 0
        self.most_at_once = 0
        self.leave = asyncio.Event()
        self.leave.set()

    async def __call__(self) -> None:
        self.runs += 1
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await self.leave.wait()
        self.at_once -= 1


@pytest.fixture
def jobs(database_url: str) -> Iterator[Jobs]:
    """Asks the queue's own tables."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SET search_path = procrastinate")
        yield lambda query: connection.execute(query.encode()).fetchall()


def task(run: Callable[[], Awaitable[object]], **more: Any) -> PeriodicTask:  # noqa: ANN401
    return PeriodicTask(**{"name": "renew", "cron": EVERY_SECOND, "run": run, **more})


def queue(url: str, *tasks: PeriodicTask, **options: float) -> JobQueue:
    return JobQueue(url, tasks, worker=f"test {uuid.uuid4().hex[:8]}", **options)


@contextlib.asynccontextmanager
async def running(*queues: JobQueue) -> AsyncIterator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for each in queues:
            group.create_task(each.run(stop))
        try:
            yield
        finally:
            stop.set()


async def test_a_task_is_run_again_and_again_and_leaves_no_jobs(
    database_url: str, jobs: Jobs
) -> None:
    counter = Counter()
    async with running(queue(database_url, task(counter))):
        await until(lambda: counter.runs >= 3, "3 runs")
    assert jobs(BEGUN) == []
    assert jobs("SELECT id FROM procrastinate_workers") == []


async def test_a_tick_makes_one_job_however_many_workers_there_are(database_url: str) -> None:
    counter = Counter()
    started = time.monotonic()
    async with running(*(queue(database_url, task(counter)) for _ in range(3))):
        await until(lambda: counter.runs >= 6, "6 runs")
    # The first is of the tick before. With a job for each worker it would be over within two.
    assert time.monotonic() - started >= 4


async def test_a_job_that_waits_twice_is_run_once_at_a_time(database_url: str, jobs: Jobs) -> None:
    """Case A08: the same job enqueued twice, and then once more."""
    counter = Counter()
    counter.leave.clear()
    hints: list[None] = []
    for _ in range(3):
        jobs(
            "INSERT INTO procrastinate_jobs (task_name, queue_name, args)"
            " VALUES ('renew', 'billing', '{\"timestamp\": 1}') RETURNING id"
        )
    watched = queue(database_url, task(counter, cron=YEARLY, hint=lambda: hints.append(None)))
    async with running(watched):
        await until(lambda: len(hints) == 3, "3 hints")
        await until(lambda: len(jobs("SELECT 1 FROM procrastinate_jobs")) == 1, "2 ends")
        counter.leave.set()
    assert (counter.runs, counter.most_at_once) == (1, 1)


async def test_workers_of_one_gateway_account_leave_the_jobs_of_another(database_url: str) -> None:
    one, other = Counter(), Counter()
    mine = queue(database_url, task(one, name="collect", gateway_account="one"))
    async with running(mine, queue(database_url, task(other, name="collect", gateway_account="b"))):
        await until(lambda: one.runs >= 2 and other.runs >= 2, "runs of both")


async def test_a_task_that_fails_is_run_again(database_url: str, jobs: Jobs) -> None:
    runs: list[None] = []

    async def failing() -> None:
        runs.append(None)
        if len(runs) == 1:
            raise RetryableError("55P03", "locked")
        if len(runs) == 2:
            raise ZeroDivisionError

    with capture_logs() as logs:
        async with running(queue(database_url, task(failing))):
            await until(lambda: len(runs) >= 3, "3 runs")
    (line,) = [line for line in logs if line["event"] == "task_failed"]
    assert (line["task"], line["code"]) == ("renew", "55P03")
    assert jobs(BEGUN) == []


async def test_an_outage_of_the_database_is_waited_out(database_url: str) -> None:
    counter = Counter()
    async with running(queue(database_url, task(counter))):
        await until(lambda: counter.runs >= 1, "a run")
        with capture_logs() as logs, outage(database_url):
            await until(lambda: any(line["event"] == "queue_waits" for line in logs), "a failure")
        before = counter.runs
        await until(lambda: counter.runs >= before + 2, "2 more runs")


async def test_a_worker_that_was_taken_for_dead_comes_back(database_url: str, jobs: Jobs) -> None:
    counter = Counter()
    counter.leave.clear()
    async with running(queue(database_url, task(counter))):
        await until(lambda: counter.runs == 1, "a run")
        # What a sweep does to it; it is in the middle of its job.
        jobs("DELETE FROM procrastinate_jobs WHERE status = 'doing' RETURNING id")
        jobs("DELETE FROM procrastinate_workers RETURNING id")
        counter.leave.set()
        await until(lambda: counter.runs >= 3, "2 more runs")
    assert jobs(BEGUN) == []


async def test_the_jobs_of_dead_workers_are_swept_and_those_of_the_living_stay(
    database_url: str, jobs: Jobs
) -> None:
    jobs(
        "INSERT INTO procrastinate_workers (last_heartbeat)"
        " VALUES (now() - interval '1 minute'), (now()) RETURNING id"
    )
    jobs(
        "INSERT INTO procrastinate_jobs (task_name, queue_name, status, worker_id, queueing_lock)"
        " SELECT 'renew', 'billing', 'doing', id, 'renew' FROM procrastinate_workers RETURNING id"
    )
    # One more waits under the same queueing lock: a retry of the swept job would clash with it.
    jobs(
        "INSERT INTO procrastinate_jobs (task_name, queue_name, queueing_lock)"
        " VALUES ('renew', 'billing', 'renew') RETURNING id"
    )
    sweeping = [queue(database_url, task(Counter(), cron=YEARLY)) for _ in range(2)]
    async with contextlib.AsyncExitStack() as stack:
        for each in sweeping:
            await stack.enter_async_context(each.connected())
        swept = await asyncio.gather(*(each.sweep_stalled_jobs() for each in sweeping))
    assert sum(swept) == 1
    assert jobs("SELECT id, status::text FROM procrastinate_jobs ORDER BY id") == [
        (2, "doing"),
        (3, "todo"),
    ]
    assert len(jobs("SELECT id FROM procrastinate_workers")) == 1


async def test_it_has_the_rights_of_a_worker_and_no_more(database_url: str) -> None:
    one = queue(database_url, task(Counter(), cron=YEARLY))
    async with one.connected():
        with pytest.raises(ConnectorException) as caught:
            await one.app.connector.execute_query_async("SELECT 1 FROM billing.customer")
    assert "permission denied" in str(caught.value.__cause__)


async def test_no_statement_leaves_a_transaction_open(database_url: str) -> None:
    """Whoever is frozen in one would keep its locks from everybody."""
    one = queue(database_url, task(Counter(), cron=YEARLY))
    async with one.connected():
        connector = one.app.connector
        assert isinstance(connector, PsycopgConnector)
        async with connector.pool.connection() as connection:
            await connection.execute("SELECT 1")
            assert connection.info.transaction_status is TransactionStatus.IDLE
