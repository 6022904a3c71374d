"""The refunder: sends money back, and asks what became of it where no answer came.

The order is that of charges: count, reserve, claim, send at the slot, settle. Refunds are few, so
they go in small batches, each settled before the next is claimed, and what is left unanswered by a
process that dies is looked up once its lease has lapsed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import LiteralString

import structlog

from billing_shell import crashpoints, queries
from billing_shell.breaker import Breaker
from billing_shell.clocks import ClockGuard, lease_clock
from billing_shell.database import Database
from billing_shell.errors import RetryableError
from billing_shell.gateway import Gateway, Outcome, RefundRequest, RefundResult, Source
from billing_shell.gateway_accounts import AccountWatch, GatewayAccount
from billing_shell.rate_limits import RATE_LIMITED, pause_all
from billing_shell.throttle import Lane, Slot, Throttle, ThrottleUnavailableError
from billing_shell.waiting import pause

_BATCH = 32
_LEAD = 0.03
_SLOT_MISSED = "slot_missed"
_SHORTEST_BACKOFF = 0.1
_LONGEST_BACKOFF = 5.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RefundSettlement:
    """What became of one result: verdict APPLIED, STALE, DUPLICATE or REJECTED."""

    customer_id: int
    refund_id: int
    outcome: str
    verdict: str
    refund_status: str | None


class Refunder:
    """Refunds through one gateway account."""

    def __init__(
        self,
        database: Database,
        *,
        accounts: AccountWatch,
        gateway: Callable[[], Gateway],
        throttle: Throttle,
        breaker: Breaker,
        clocks: ClockGuard,
        worker: str,
    ) -> None:
        """Nothing is sent yet.

        Args:
            database: where refunds stand.
            accounts: the account to refund through.
            gateway: its adapter, once the account has been read.
            throttle: slots for refunds.
            breaker: whether the gateway is to be called at all.
            clocks: whether the clocks agree.
            worker: name of this process, written into the refunds that it claims.
        """
        self._database = database
        self._accounts = accounts
        self._gateway = gateway
        self._throttle = throttle
        self._breaker = breaker
        self._clocks = clocks
        self._worker = worker

    async def run(self, stop: asyncio.Event) -> int:
        """Sends and asks until nothing is due. Returns how many calls it made.

        Raises:
            DatabaseError: refunds could not be claimed.
        """
        calls = 0
        account = await self._accounts.current()
        if account is None or not await self._clocks.agree():
            return calls
        while not stop.is_set() and (due := await self._due(account)):
            permitted = self._breaker.permits(0)
            if permitted == 0:
                break
            try:
                reservation = await self._throttle.reserve(
                    min(due, permitted, _BATCH), Lane.BACKLOG, _LEAD
                )
            except ThrottleUnavailableError as error:
                _log.warning("refunds_wait", error=str(error))
                break
            if reservation.slots:
                crashpoints.reach("refund_slots_reserved")
                made = await self._round(account, reservation.slots)
                if made == 0:
                    break
                calls += made
            await pause(reservation.wait, stop)
        return calls

    async def _due(self, account: GatewayAccount) -> int:
        due: int = await self._database.value(
            queries.COUNT_DUE_REFUNDS, {"account": account.code, "limit": _BATCH}
        )
        return due

    async def _round(self, account: GatewayAccount, slots: Sequence[Slot]) -> int:
        """Claims as many as there are slots: what is to be asked first, then what is to be sent.

        Returns how many calls were made; one that missed its slot waits for the next round.
        """
        claimed_at = lease_clock()
        asked = await self._claim(queries.REFUNDS_TO_LOOK_UP, account, len(slots))
        free = len(slots) - len(asked)
        sent = await self._claim(queries.START_REFUNDS, account, free) if free else []
        if asked or sent:
            crashpoints.reach("refunds_started")
        send_before = claimed_at + account.lease_margin.total_seconds()
        timeout = account.request_timeout.total_seconds()
        gateway = self._gateway()
        calls = [
            *(self._call(gateway.look_up_refund, Source.LOOKUP, request) for request in asked),
            *(self._call(gateway.refund, Source.SEND, request) for request in sent),
        ]
        results = await asyncio.gather(
            *(
                call(slot, send_before, timeout)
                for call, slot in zip(calls, sorted(slots, key=lambda slot: slot.at), strict=False)
            )
        )
        answers = [result for result in results if result is not None]
        await self._settle(answers)
        return sum(answer.code != _SLOT_MISSED for answer in answers)

    async def _claim(
        self, query: LiteralString, account: GatewayAccount, number: int
    ) -> list[RefundRequest]:
        return await self._database.rows(
            query,
            {"account": account.code, "limit": number, "worker": self._worker},
            RefundRequest,
            crash_point="claim_made",
        )

    def _call(
        self,
        operation: Callable[..., Awaitable[RefundResult]],
        source: Source,
        request: RefundRequest,
    ) -> Callable[[Slot, float, float], Awaitable[RefundResult | None]]:
        """One call, ready for its slot; None where it was a look-up that was not made.

        A look-up takes slot after slot for as long as its claim permits: nothing says of it that it
        was not made, so that nobody else would ask before the lease has lapsed.
        """

        async def call(slot: Slot, send_before: float, timeout: float) -> RefundResult | None:  # noqa: ASYNC109  as in Gateway
            usable = await slot.reached()
            while source is Source.LOOKUP and not usable and lease_clock() < send_before:
                usable = await self._reached_another()
            if not usable or lease_clock() >= send_before:
                return _not_made(request, _SLOT_MISSED) if source is Source.SEND else None
            result = await operation(request, timeout=timeout)
            crashpoints.reach("refund_answered")
            self._breaker.record(result)
            if result.code == RATE_LIMITED:
                await pause_all(self._throttle, result.retry_after)
            return result

        return call

    async def _reached_another(self) -> bool:
        """Waits for another slot; False where it was missed as well, or there is none as yet."""
        try:
            reservation = await self._throttle.reserve(1, Lane.BACKLOG, _LEAD)
        except ThrottleUnavailableError as error:
            _log.warning("refunds_wait", error=str(error))
            await asyncio.sleep(_SHORTEST_BACKOFF)
            return False
        if reservation.slots:
            return await reservation.slots[0].reached()
        await asyncio.sleep(reservation.wait)
        return False

    async def _settle(self, results: Sequence[RefundResult]) -> None:
        """Records answers; while the database does not, they are kept, and nothing else is done."""
        backoff = _SHORTEST_BACKOFF
        while results:
            try:
                settlements = await self._database.rows(
                    queries.SETTLE_REFUNDS,
                    {"results": list(results)},
                    RefundSettlement,
                    crash_point="settlement_made",
                )
            except RetryableError as error:
                _log.warning("refunds_unsettled", code=error.code, error=error.message)
                await asyncio.sleep(backoff)
                backoff = min(2 * backoff, _LONGEST_BACKOFF)
                continue
            for settlement in settlements:
                if settlement.verdict == "REJECTED" or settlement.refund_status == "FAILED":
                    _log.error(
                        "refund_needs_a_person",
                        customer_id=settlement.customer_id,
                        refund_id=settlement.refund_id,
                        outcome=settlement.outcome,
                        verdict=settlement.verdict,
                    )
            crashpoints.reach("refunds_settled")
            return


def _not_made(request: RefundRequest, reason: str) -> RefundResult:
    """A send that did not happen: the refund goes back into the queue at once."""
    return RefundResult(
        customer_id=request.customer_id,
        refund_id=request.refund_id,
        claim_epoch=request.claim_epoch,
        outcome=Outcome.NOT_ATTEMPTED,
        gateway_refund_id=None,
        amount=None,
        currency=None,
        code=reason,
        retry_after=None,
        source=Source.SEND,
    )
