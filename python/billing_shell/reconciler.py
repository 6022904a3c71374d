"""The reconciler: asks gateways what became of attempts whose outcome is not known.

Which attempts, and when again, the database says; an answer is settled like that of a charge. A
look-up that errs changes nothing. Look-ups take slots of their own operation.
"""

import asyncio

import structlog

from billing_shell import crashpoints, queries
from billing_shell.breaker import Breaker
from billing_shell.clocks import ClockGuard, lease_clock
from billing_shell.database import Database
from billing_shell.dispatcher import Claim, Dispatcher
from billing_shell.gateway import ChargeRequest
from billing_shell.gateway_accounts import AccountWatch, GatewayAccount
from billing_shell.throttle import Lane, Reservation, Throttle, ThrottleUnavailableError
from billing_shell.waiting import pause

_BATCH = 32
_MOST_SLOTS = 500
_LEAD = 0.03
_LOOK_AGAIN = 0.05
_NO_SLOTS = Reservation((), wait=0.25)

_log = structlog.get_logger(__name__)


class Reconciler:
    """Looks up the doubtful attempts of one gateway account."""

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
        """Nothing is asked yet.

        Args:
            database: where attempts stand.
            accounts: the account to ask about.
            dispatcher: of look-ups.
            throttle: slots for look-ups.
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

    async def run(self, stop: asyncio.Event) -> int:
        """Looks up until nothing is due, and waits for the answers. Returns how many it asked.

        Raises:
            DatabaseError: attempts could not be claimed.
        """
        account = await self._accounts.current()
        if account is None or not await self._clocks.agree():
            return 0
        asked = 0
        more = True
        while not stop.is_set():
            self._dispatcher.drop_expired()
            waiting = self._dispatcher.waiting()
            if not more and self._dispatcher.in_flight == 0:
                break
            wait = _LOOK_AGAIN
            if more or waiting:
                reservation = await self._reserve(waiting + (_BATCH if more else 0))
                free = len(reservation.slots) - waiting
                if more and free > 0:
                    crashpoints.reach("lookup_slots_reserved")
                    claimed = await self._claim(account, free)
                    asked += claimed
                    more = claimed == free
                elif more and not reservation.slots and not waiting:
                    # Nobody can be asked now.
                    more = False
                self._dispatcher.use(reservation.slots)
                wait = max(reservation.wait, _LOOK_AGAIN)
            await pause(wait, stop)
        return asked

    async def _reserve(self, number: int) -> Reservation:
        """Slots, as many as there are; none while the gateway or Redis does not answer."""
        permitted = self._breaker.permits(self._dispatcher.under_way)
        if permitted == 0:
            return _NO_SLOTS
        try:
            return await self._throttle.reserve(
                min(number, permitted, _MOST_SLOTS), Lane.BACKLOG, _LEAD
            )
        except ThrottleUnavailableError as error:
            _log.warning("lookups_wait", error=str(error))
            return _NO_SLOTS

    async def _claim(self, account: GatewayAccount, number: int) -> int:
        claimed_at = lease_clock()
        requests = await self._database.rows(
            queries.ATTEMPTS_TO_LOOK_UP,
            {"account": account.code, "limit": number, "worker": self._worker},
            ChargeRequest,
            crash_point="claim_made",
        )
        if requests:
            crashpoints.reach("lookups_started")
        send_before = claimed_at + account.lease_margin.total_seconds()
        timeout = account.request_timeout.total_seconds()
        self._dispatcher.add(Claim(request, send_before, timeout) for request in requests)
        return len(requests)
