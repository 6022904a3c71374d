"""The queue: Procrastinate as a clock that all workers share. It never holds the truth.

A job is a hint, "there may be something to do". What there is the database says, so a job that is
lost, doubled, late or run by a worker taken for dead changes nothing. Jobs are made by the clock
alone; a queueing lock keeps one of a kind from waiting twice, and no other lock is used, since a
killed holder would block everybody. Finished jobs are deleted at once, those of dead workers by a
sweep.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import structlog
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import DeleteJobCondition, Status
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from billing_shell import crashpoints
from billing_shell.database import WORKER_ROLE, session_conninfo
from billing_shell.errors import DatabaseError
from billing_shell.waiting import pause

_CONNECTIONS = 4
_SPARE_JOBS = 2
_ABORT_POLLING_SECONDS = 60.0
_GRACE_SECONDS = 20.0
_SHORTEST_BACKOFF = 1.0
_LONGEST_BACKOFF = 5.0
_WAIT_SECONDS = 5.0

_log = structlog.get_logger(__name__)


def _ignore() -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicTask:
    """What is to be looked after again and again.

    Attributes:
        name: of the task.
        cron: when, with seconds in the sixth field.
        run: looks after it, and returns something true if it found anything to do; not called
            while it still runs in this process.
        hint: called for every job, also while `run` runs.
        gateway_account: whose workers it concerns; empty for all workers.
    """

    name: str
    cron: str
    run: Callable[[], Awaitable[object]]
    hint: Callable[[], None] = _ignore
    gateway_account: str = ""

    @property
    def queue(self) -> str:
        """Name of the queue that its jobs wait in."""
        return f"gateway.{self.gateway_account}" if self.gateway_account else "billing"


async def _commit_each_statement(connection: AsyncConnection) -> None:
    """Each statement is a transaction of its own.

    A process that is frozen before its COMMIT would keep its locks, and its heartbeat's alone keeps
    every other worker from starting.
    """
    await connection.set_autocommit(True)


class _Pool(AsyncConnectionPool):
    """Gives up an attempt to connect soon, so that the next one begins anew."""

    async def open(self, wait: bool = False, timeout: float = _WAIT_SECONDS) -> None:  # noqa: ASYNC109, FBT001, FBT002 - as what it overrides
        """Open, and wait for the first connection if asked to."""
        await super().open(wait, timeout)


class JobQueue:
    """One process' share in the queue.

    Attributes:
        app: Procrastinate's own.
    """

    def __init__(
        self,
        database_url: str,
        tasks: Sequence[PeriodicTask],
        *,
        worker: str,
        heartbeat_seconds: float = 10.0,
        stalled_after_seconds: float = 30.0,
    ) -> None:
        """Nothing is connected yet.

        Args:
            database_url: as `BILLING_DATABASE_URL`.
            tasks: what this process looks after.
            worker: its name.
            heartbeat_seconds: how often it says that it is alive.
            stalled_after_seconds: how long after its last word a worker counts as dead.
        """
        self._tasks = tasks
        self._worker = worker
        self._heartbeat_seconds = heartbeat_seconds
        self._stalled_after_seconds = stalled_after_seconds
        self.app = App(
            connector=PsycopgConnector(
                conninfo=session_conninfo(
                    database_url,
                    role=WORKER_ROLE,
                    application_name=f"billing queue {worker}",
                    search_path="procrastinate",
                ),
                pool_factory=_Pool,
                configure=_commit_each_statement,
                min_size=1,
                max_size=_CONNECTIONS,
                timeout=_WAIT_SECONDS,
                reconnect_timeout=_WAIT_SECONDS,
            )
        )
        for task in tasks:
            self._register(task)

    async def run(self, stop: asyncio.Event) -> None:
        """Takes part until told to stop, through every outage of the database."""
        backoff = _SHORTEST_BACKOFF
        while not stop.is_set():
            try:
                async with self.connected():
                    await self._work(stop)
                    backoff = _SHORTEST_BACKOFF
            except ConnectorException as error:
                # Its text is that of the driver, beneath.
                _log.warning("queue_waits", error=str(error.__cause__ or error))
            await pause(backoff, stop)
            backoff = min(2 * backoff, _LONGEST_BACKOFF)

    def connected(self) -> AbstractAsyncContextManager[object]:
        """Holds connections for as long as the context lasts; `run` does so by itself."""
        return self.app.open_async()

    async def sweep_stalled_jobs(self) -> int:
        """Deletes the jobs of workers that are dead. Returns how many.

        The next tick brings another job of the kind, so none of them has to be run again. A worker
        that was only taken for dead finishes its work all the same.
        """
        manager = self.app.job_manager
        swept = 0
        stalled = await manager.get_stalled_jobs(
            seconds_since_heartbeat=self._stalled_after_seconds
        )
        for job in stalled:
            try:
                await manager.finish_job(job, Status.FAILED, delete_job=True)
            except ConnectorException as error:
                _log.debug("stalled_job_was_gone", job_id=job.id, error=str(error.__cause__))
            else:
                swept += 1
                _log.warning("stalled_job_swept", job_id=job.id, task=job.task_name)
        await manager.prune_stalled_workers(self._stalled_after_seconds)
        return swept

    async def _work(self, stop: asyncio.Event) -> None:
        """One life of Procrastinate's worker: until told to stop, or until it ends by itself."""
        working = asyncio.create_task(
            self.app.run_worker_async(
                queues=sorted({task.queue for task in self._tasks}),
                name=self._worker,
                concurrency=len(self._tasks) + _SPARE_JOBS,
                delete_jobs=DeleteJobCondition.ALWAYS,
                install_signal_handlers=False,
                abort_job_polling_interval=_ABORT_POLLING_SECONDS,
                update_heartbeat_interval=self._heartbeat_seconds,
                stalled_worker_timeout=self._stalled_after_seconds,
                shutdown_graceful_timeout=_GRACE_SECONDS,
            )
        )
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            # It finishes what it runs, and answers a cancellation with one of its own.
            working.cancel()
            await asyncio.wait({working})
        if not working.cancelled() and (error := working.exception()) is not None:
            raise error

    def _register(self, task: PeriodicTask) -> None:
        runs = False

        async def job(timestamp: int) -> None:  # noqa: ARG001 - by this name Procrastinate passes it
            nonlocal runs
            task.hint()
            if runs:
                return
            runs = True
            try:
                if await task.run():
                    crashpoints.reach(f"{task.name}_job_ending")
            except DatabaseError as error:
                _log.warning("task_failed", task=task.name, code=error.code, error=error.message)
            finally:
                runs = False

        name = f"{task.name}:{task.gateway_account}" if task.gateway_account else task.name
        periodic = self.app.periodic(
            cron=task.cron,
            periodic_id=task.gateway_account,
            queue=task.queue,
            queueing_lock=name,
        )
        periodic(self.app.task(name=task.name)(job))
