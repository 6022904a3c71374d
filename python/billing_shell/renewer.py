"""The renewer: one run after another, batch by batch, until nothing is due.

Each batch is one call and one transaction; a run only counts what its batches did. Any number of
renewers may run at once, and any of them may die: what is due stays due.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from billing_shell import queries
from billing_shell.clocks import ClockGuard
from billing_shell.database import Database
from billing_shell.errors import BillingError, RetryableError
from billing_shell.waiting import pause

BATCH = 500
"""Subscriptions per transaction: more gain nothing, and hold their locks for longer."""

_SHORTEST_BACKOFF = 0.1
_FAILURES_IN_A_ROW = 6
_RUN_IS_OVER = "SB208"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RenewalRun:
    """What one run did: periods opened, subscriptions ended, renewals parked.

    `limit_reached` counts those that were advanced as far as one run may, and go on in the next;
    `status` is DONE, or STOPPED where too many were parked.
    """

    billing_run_id: int
    status: str
    renewed: int
    ended: int
    parked: int
    limit_reached: int


class Renewer:
    """Renews whatever is due."""

    def __init__(self, database: Database, *, clocks: ClockGuard, worker: str) -> None:
        """Nothing is renewed yet.

        Args:
            database: where subscriptions stand.
            clocks: whether the clocks agree.
            worker: name of this process, shown in the run.
        """
        self._database = database
        self._clocks = clocks
        self._worker = worker

    async def run(
        self, stop: asyncio.Event, on_batch: Callable[[int], None] = lambda _: None
    ) -> RenewalRun | None:
        """Makes one run. None where there was nothing to do.

        Args:
            stop: ends the run after the batch in hand.
            on_batch: told how many subscriptions each batch took up.

        Raises:
            DatabaseError: a call failed, for a retryable one several times. The run stays open;
                housekeeping closes it.
        """
        if not await self._clocks.agree():
            return None
        run_id = await self._database.value(queries.START_RENEWAL_RUN, {"worker": self._worker})
        while not stop.is_set() and await self._clocks.agree():
            taken_up = await self._batch(run_id, stop)
            if taken_up == 0:
                break
            on_batch(taken_up)
        ended = await self._database.rows(
            queries.FINISH_RENEWAL_RUN, {"run_id": run_id}, RenewalRun
        )
        if not ended:
            return None
        (run,) = ended
        log = _log.warning if run.parked or run.status != "DONE" else _log.info
        log(
            "renewal_run_ended",
            run_id=run.billing_run_id,
            status=run.status,
            renewed=run.renewed,
            ended=run.ended,
            parked=run.parked,
            limit_reached=run.limit_reached,
        )
        return run

    async def _batch(self, run_id: int, stop: asyncio.Event) -> int:
        """Renews one batch. 0 = the run is over."""
        backoff = _SHORTEST_BACKOFF
        for failures in range(1, _FAILURES_IN_A_ROW + 1):
            try:
                taken_up: int = await self._database.value(
                    queries.RENEW_DUE, {"limit": BATCH, "run_id": run_id}
                )
            except RetryableError as error:
                if failures == _FAILURES_IN_A_ROW or stop.is_set():
                    raise
                _log.warning("renewing_waits", code=error.code, error=error.message)
                await pause(backoff, stop)
                backoff *= 2
            except BillingError as error:
                if error.code != _RUN_IS_OVER:
                    raise
                # We were taken for dead. What is left is due in the next run.
                _log.warning("renewal_run_was_closed", run_id=run_id)
                return 0
            else:
                return taken_up
        return 0
