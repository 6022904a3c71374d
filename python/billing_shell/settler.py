"""The settler: takes what gateways answered and has it recorded, in batches, until it is.

A batch that the database refuses is split until the one that it refuses stands alone. That one is
logged loudly and tried again, less and less often. Nothing is ever given up while the process
lives: whatever is left when it ends was committed as an attempt before, and is looked up.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from billing_shell import crashpoints, queries
from billing_shell.database import Database
from billing_shell.errors import DatabaseError, RetryableError
from billing_shell.gateway import ChargeResult
from billing_shell.waiting import happened

_BATCH = 200
_GATHER_SECONDS = 0.1
_SHORTEST_BACKOFF = 0.1
_LONGEST_BACKOFF = 5.0
_FIRST_RETRY = 5.0
_LAST_RETRY = 60.0
# A batch that waits for a lock again and again is divided, so that one row holds up nobody else.
_FAILURES_BEFORE_DIVIDING = 3

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Settlement:
    """What became of one result: verdict APPLIED, STALE, DUPLICATE or REJECTED."""

    customer_id: int
    attempt_id: int
    outcome: str
    verdict: str
    attempt_status: str | None


class Settler:
    """Settles results in the order in which they were reported, but for those that fail.

    Attributes:
        settled: results that were recorded so far.
    """

    def __init__(self, database: Database) -> None:
        """Nothing is settled before `run`."""
        self._database = database
        self._results: list[ChargeResult] = []
        self._in_hand: Sequence[ChargeResult] = ()
        self._refused: dict[ChargeResult, asyncio.TimerHandle] = {}
        self._delays: dict[ChargeResult, float] = {}
        self._news = asyncio.Event()
        self._enough = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._hurry = False
        self.settled = 0

    def report(self, result: ChargeResult) -> None:
        """Takes a result; it is recorded within about 100 ms where the database answers."""
        crashpoints.reach("answer_received")
        self._add([result])

    @property
    def unsettled(self) -> int:
        """Results that are not recorded yet."""
        return len(self._results) + len(self._in_hand) + len(self._refused)

    async def run(self) -> None:
        """Settles until cancelled."""
        while True:
            await self._news.wait()
            if not self._hurry and len(self._results) < _BATCH:
                await happened(self._enough, _GATHER_SECONDS)
            self._in_hand, self._results = self._results[:_BATCH], self._results[_BATCH:]
            if not self._results:
                self._news.clear()
            if len(self._results) < _BATCH:
                self._enough.clear()
            await self._settle(self._in_hand)
            self._in_hand = ()
            if self.unsettled == 0:
                self._empty.set()

    async def drain(self, seconds: float) -> bool:
        """Waits until all is recorded, for at most so long. False if something is left."""
        self._hurry = True
        self._enough.set()
        for result, timer in list(self._refused.items()):
            timer.cancel()
            self._again(result)
        return await happened(self._empty, seconds)

    def _add(self, results: Sequence[ChargeResult]) -> None:
        self._results.extend(results)
        self._empty.clear()
        self._news.set()
        if len(self._results) >= _BATCH:
            self._enough.set()

    async def _settle(self, results: Sequence[ChargeResult]) -> None:
        backoff = _SHORTEST_BACKOFF
        failures = 0
        while True:
            try:
                settlements = await self._database.rows(
                    queries.SETTLE_ATTEMPTS,
                    {"results": list(results)},
                    Settlement,
                    crash_point="settlement_made",
                )
            except RetryableError as error:
                failures += 1
                _log.warning(
                    "settling_waits", results=len(results), code=error.code, error=error.message
                )
                reached = not error.code.startswith("08")
                if reached and failures >= _FAILURES_BEFORE_DIVIDING and len(results) > 1:
                    await self._divide(results)
                    return
                await asyncio.sleep(backoff)
                backoff = min(2 * backoff, _LONGEST_BACKOFF)
            except DatabaseError as error:
                if len(results) > 1:
                    await self._divide(results)
                else:
                    self._set_aside(results[0], error)
                return
            else:
                for result in self._delays.keys() & set(results) if self._delays else ():
                    del self._delays[result]
                self._note(settlements)
                await self._keep_intents(results)
                return

    async def _keep_intents(self, results: Sequence[ChargeResult]) -> None:
        """Keeps what later tries confirm again; without it, they make a new one."""
        found = [result for result in results if result.gateway_intent_id is not None]
        if not found:
            return
        try:
            await self._database.value(
                queries.KEEP_INTENTS,
                {
                    "customers": [result.customer_id for result in found],
                    "attempts": [result.attempt_id for result in found],
                    "intents": [result.gateway_intent_id for result in found],
                },
            )
        except DatabaseError as error:
            _log.warning("intents_not_kept", code=error.code, error=error.message)

    async def _divide(self, results: Sequence[ChargeResult]) -> None:
        middle = len(results) // 2
        await self._settle(results[:middle])
        await self._settle(results[middle:])

    def _set_aside(self, result: ChargeResult, error: DatabaseError) -> None:
        _log.critical(
            "result_refused",
            customer_id=result.customer_id,
            attempt_id=result.attempt_id,
            outcome=result.outcome,
            gateway_payment_id=result.gateway_payment_id,
            code=error.code,
            error=error.message,
            hint="it is tried again until this process ends, and then looked up",
        )
        delay = min(2 * self._delays.get(result, _FIRST_RETRY / 2), _LAST_RETRY)
        self._delays[result] = delay
        loop = asyncio.get_running_loop()
        self._refused[result] = loop.call_later(delay, self._again, result)

    def _again(self, result: ChargeResult) -> None:
        del self._refused[result]
        self._add([result])

    def _note(self, settlements: Sequence[Settlement]) -> None:
        self.settled += len(settlements)
        for settlement in settlements:
            if settlement.verdict == "REJECTED":
                _log.error(
                    "result_rejected",
                    customer_id=settlement.customer_id,
                    attempt_id=settlement.attempt_id,
                    outcome=settlement.outcome,
                )
            elif settlement.verdict == "STALE":
                _log.warning(
                    "result_stale",
                    customer_id=settlement.customer_id,
                    attempt_id=settlement.attempt_id,
                    outcome=settlement.outcome,
                )
        crashpoints.reach("settled")
