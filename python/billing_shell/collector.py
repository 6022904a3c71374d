"""The collector: starts attempts for due invoices, as many as there are slots, and sends them.

Count, reserve, start, send: slots are reserved only for what is due, an attempt is started only
where a slot is there for it, and nothing is sent before its attempt is committed. No lock and no
transaction is held while a gateway is waited for. Hints from the queue keep the collector awake;
what there is to do it reads from the database alone.
"""

import asyncio
import time
from dataclasses import dataclass

import structlog

from billing_shell import crashpoints, queries
from billing_shell.breaker import Breaker
from billing_shell.clocks import ClockGuard, lease_clock
from billing_shell.database import Database
from billing_shell.dispatcher import Claim, Dispatcher
from billing_shell.errors import BillingError, DatabaseError
from billing_shell.gateway import ChargeRequest
from billing_shell.gateway_accounts import AccountWatch, GatewayAccount
from billing_shell.throttle import Lane, Slot, Throttle, ThrottleUnavailableError
from billing_shell.waiting import pause

MOST_IN_FLIGHT = 480
"""Claimed requests of one process: fewer than the connections that it keeps to a gateway."""

# People who wait at a check-out are looked for this often, and everything else at least as often.
_COUNT_EVERY = 0.25
_COUNT_LIMIT = 500
_MOST_SLOTS = 64
# Seconds from the reservation to the first slot, in which to claim: what it took, and half as much.
_SHORTEST_LEAD = 0.02
_LONGEST_LEAD = 0.15
_LEAD_FACTOR = 1.5
_LEAD_MEMORY = 0.8
_SHORTEST_PAUSE = 0.02
_THROTTLE_PAUSE = 0.5
_DATABASE_PAUSE = 1.0
_REFUSED_PAUSE = 10.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class DueCount:
    """Due invoices per lane, each counted up to a limit."""

    interactive: int = 0
    backlog: int = 0

    def of(self, lane: Lane) -> int:
        """Those of one lane."""
        return self.interactive if lane is Lane.INTERACTIVE else self.backlog


class Collector:
    """Collects through one gateway account while it is kept awake."""

    def __init__(
        self,
        database: Database,
        *,
        accounts: AccountWatch,
        dispatcher: Dispatcher,
        throttle: Throttle,
        breaker: Breaker,
        clocks: ClockGuard,
        worker: str,
    ) -> None:
        """Asleep.

        Args:
            database: where invoices and attempts stand.
            accounts: the account to collect through.
            dispatcher: sends what is claimed.
            throttle: slots for charges.
            breaker: whether the gateway is to be called at all.
            clocks: whether the clocks agree.
            worker: name of this process, written into the attempts that it claims.
        """
        self._database = database
        self._accounts = accounts
        self._dispatcher = dispatcher
        self._throttle = throttle
        self._breaker = breaker
        self._clocks = clocks
        self._worker = worker
        self._awake_until = 0.0
        self._woken = asyncio.Event()
        self._due = DueCount()
        self._counted_at = float("-inf")
        self._lead = _SHORTEST_LEAD
        self._throttle_answers = True

    @property
    def awake_seconds(self) -> float:
        """How much longer it stays awake without another hint; 0 = it sleeps."""
        return max(0.0, self._awake_until - time.monotonic())

    def stay_awake(self, seconds: float) -> None:
        """Keeps it at work for at least so long from now."""
        self._awake_until = max(self._awake_until, time.monotonic() + seconds)
        self._woken.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Collects until told to stop; what is in flight then is the dispatcher's to finish."""
        while not stop.is_set():
            if self.awake_seconds == 0 and not self._dispatcher.waiting():
                self._woken.clear()
                await pause(_COUNT_EVERY, stop, self._woken)
                continue
            await pause(await self._round(), stop)

    async def _round(self) -> float:
        """One round. Returns seconds until the next one."""
        try:
            wait = await self._collect()
        except ThrottleUnavailableError as error:
            if self._throttle_answers:
                _log.error("throttle_unavailable", error=str(error), hint="nothing is collected")
            self._throttle_answers = False
            return _THROTTLE_PAUSE
        except BillingError as error:
            _log.error("collecting_refused", code=error.code, error=error.message)
            return _REFUSED_PAUSE
        except DatabaseError as error:
            _log.warning("collecting_waits", code=error.code, error=error.message)
            return _DATABASE_PAUSE
        return wait

    async def _collect(self) -> float:
        account = await self._accounts.current()
        if account is None or not await self._clocks.agree():
            return _DATABASE_PAUSE
        self._dispatcher.drop_expired()
        permitted = self._breaker.permits(self._dispatcher.under_way)
        if permitted == 0:
            return _COUNT_EVERY
        await self._count(account)
        slots, fresh, wait = await self._reserve(min(permitted, _MOST_SLOTS))
        if fresh:
            crashpoints.reach("slots_reserved")
            await self._start(account, fresh)
        self._dispatcher.use(sorted(slots, key=lambda slot: slot.at))
        return wait

    async def _count(self, account: GatewayAccount) -> None:
        """Learns what is due, unless that is known from a moment ago."""
        now = time.monotonic()
        if now - self._counted_at < _COUNT_EVERY:
            return
        (self._due,) = await self._database.rows(
            queries.COUNT_DUE_INVOICES,
            {"account": account.code, "limit": _COUNT_LIMIT},
            DueCount,
        )
        self._counted_at = now

    async def _reserve(self, budget: int) -> tuple[list[Slot], int, float]:
        """Gets slots for what waits and what is due.

        Returns:
            the slots; how many of them nothing waits for yet; seconds until the next round.
        """
        slots: list[Slot] = []
        fresh = 0
        waits: list[float] = []
        free = max(0, MOST_IN_FLIGHT - self._dispatcher.in_flight)
        for lane in (Lane.INTERACTIVE, Lane.BACKLOG):
            waiting = self._dispatcher.waiting(lane)
            wanted = min(waiting + min(self._due.of(lane), free - fresh), budget - len(slots))
            if wanted <= 0:
                continue
            reservation = await self._throttle.reserve(wanted, lane, self._lead)
            if not self._throttle_answers:
                _log.info("throttle_available")
                self._throttle_answers = True
            slots += reservation.slots
            fresh += max(0, len(reservation.slots) - waiting)
            waits.append(reservation.wait)
        if not waits:
            return slots, fresh, max(_SHORTEST_PAUSE, self._until_count())
        return slots, fresh, min(max(*waits, _SHORTEST_PAUSE), self._until_count())

    def _until_count(self) -> float:
        return max(0.0, self._counted_at + _COUNT_EVERY - time.monotonic())

    async def _start(self, account: GatewayAccount, number: int) -> None:
        """Claims so many due invoices, or as many as there are, for the dispatcher."""
        claimed_at = lease_clock()
        requests = await self._database.rows(
            queries.START_ATTEMPTS,
            {"account": account.code, "limit": number, "worker": self._worker},
            ChargeRequest,
            crash_point="claim_made",
        )
        took = lease_clock() - claimed_at
        lead = max(_LEAD_MEMORY * self._lead, _LEAD_FACTOR * took, _SHORTEST_LEAD)
        self._lead = min(lead, _LONGEST_LEAD)
        if requests:
            crashpoints.reach("attempts_started")
        send_before = claimed_at + account.lease_margin.total_seconds()
        timeout = account.request_timeout.total_seconds()
        claims = [Claim(request, send_before, timeout) for request in requests]
        self._dispatcher.add(claims)
        if len(claims) < number:
            # There is no more, whatever was counted.
            self._due = DueCount()
        else:
            interactive = sum(claim.lane is Lane.INTERACTIVE for claim in claims)
            self._due.interactive = max(0, self._due.interactive - interactive)
            self._due.backlog = max(0, self._due.backlog - (len(claims) - interactive))
