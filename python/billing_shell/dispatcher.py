"""The dispatcher: sends claimed requests, each at a slot of the throttle and within its lease.

A request gets its connection as soon as it is claimed, and waits for its slot with that in hand, so
that a slow handshake delays no arrival. One that misses its slot waits for another. What is older
than its lease is not sent: by then somebody else may ask about it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import structlog

from billing_shell.breaker import Breaker
from billing_shell.clocks import lease_clock
from billing_shell.gateway import ChargeRequest, ChargeResult, Gate, NotSentError
from billing_shell.rate_limits import RATE_LIMITED, pause_all
from billing_shell.settler import Settler
from billing_shell.throttle import Lane, Slot, Throttle

# A server may have closed a connection that was silent for longer.
_LONGEST_SILENCE = 5.0

_log = structlog.get_logger(__name__)

Call = Callable[[ChargeRequest, float, Gate], Awaitable[ChargeResult]]
"""Asks the gateway: what, for at most how many seconds, and through which gate."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claimed request.

    Attributes:
        request: what to send.
        send_before: instant of `lease_clock` after which it is not sent any more, so that the
            answer comes within the lease.
        timeout: seconds to wait for the answer.
    """

    request: ChargeRequest
    send_before: float
    timeout: float

    @property
    def lane(self) -> Lane:
        """Who waits for it."""
        return Lane[self.request.lane]


class _SilentTooLongError(NotSentError):
    """A connection stood idle before its gate; the call begins anew on another."""


class _Ticket:
    """A claim on its way: at first without a slot, until one is assigned or it is turned away."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self._verdict: asyncio.Future[Slot | str] = asyncio.get_running_loop().create_future()

    def settle(self, verdict: Slot | str) -> None:
        """Assigns a slot, or says why it is not sent."""
        self._verdict.set_result(verdict)

    async def slot(self) -> Slot:
        """Waits for a slot.

        Raises:
            NotSentError: it is turned away.
        """
        try:
            async with asyncio.timeout(_LONGEST_SILENCE):
                verdict = await asyncio.shield(self._verdict)
        except TimeoutError as error:
            raise _SilentTooLongError("silent_too_long") from error
        if isinstance(verdict, str):
            raise NotSentError(verdict)
        return verdict

    def renew(self) -> None:
        """Makes it wait for another slot."""
        self._verdict = asyncio.get_running_loop().create_future()


class Dispatcher:
    """The calls of one operation of one gateway account."""

    def __init__(
        self,
        call: Call,
        *,
        throttle: Throttle,
        breaker: Breaker,
        settler: Settler,
        give_back: Callable[[ChargeRequest, str], None],
    ) -> None:
        """Nothing is sent yet.

        Args:
            call: the operation.
            throttle: its slots.
            breaker: learns of every answer.
            settler: gets every answer.
            give_back: told of a request that was definitely not sent, and why.
        """
        self._call = call
        self._throttle = throttle
        self._breaker = breaker
        self._settler = settler
        self._give_back = give_back
        self._waiting: dict[Lane, deque[_Ticket]] = {lane: deque() for lane in Lane}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def in_flight(self) -> int:
        """Requests that are claimed and not answered."""
        return len(self._tasks)

    @property
    def under_way(self) -> int:
        """Requests that have a slot, and no answer yet."""
        return len(self._tasks) - self.waiting()

    def waiting(self, lane: Lane | None = None) -> int:
        """Requests that wait for a slot."""
        return sum(map(len, self._waiting.values())) if lane is None else len(self._waiting[lane])

    def add(self, claims: Iterable[Claim]) -> None:
        """Takes claimed requests; they wait for slots that `use` brings."""
        for claim in claims:
            ticket = _Ticket(claim)
            self._waiting[claim.lane].append(ticket)
            task = asyncio.create_task(self._send(ticket))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def use(self, slots: Sequence[Slot]) -> None:
        """Assigns slots to the requests that wait, interactive ones first, oldest first."""
        for slot in slots:
            lane = self._waiting[Lane.INTERACTIVE] or self._waiting[Lane.BACKLOG]
            if not lane:
                return
            lane.popleft().settle(slot)

    def drop_expired(self) -> None:
        """Gives back what waits for a slot and is too old to be sent."""
        now = lease_clock()
        self._turn_away(lambda ticket: ticket.claim.send_before <= now, "lease_lapsed")

    async def drain(self, seconds: float) -> bool:
        """Gives back what waits for a slot, and waits for what is under way.

        Returns:
            False if something is still under way after so many seconds; it was cancelled, and will
            be looked up.
        """
        deadline = lease_clock() + seconds
        while self._tasks:
            self._turn_away(lambda _: True, "worker_stopped")
            left = deadline - lease_clock()
            if left <= 0:
                for task in self._tasks:
                    task.cancel()
                return False
            await asyncio.wait(self._tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return True

    async def _send(self, ticket: _Ticket) -> None:
        claim = ticket.claim

        async def gate() -> None:
            await self._pass(ticket)

        while True:
            try:
                result = await self._call(claim.request, claim.timeout, gate)
            except _SilentTooLongError:
                continue
            except NotSentError as error:
                self._give_back(claim.request, error.reason)
                return
            break
        # It may have ended before it came to the gate.
        self._forget(ticket)
        self._breaker.record(result)
        self._settler.report(result)
        if result.code == RATE_LIMITED:
            await pause_all(self._throttle, result.retry_after)

    async def _pass(self, ticket: _Ticket) -> None:
        """Returns when the call may be sent, at its slot; raises NotSentError if it must not."""
        while True:
            slot = await ticket.slot()
            usable = await slot.reached()
            if lease_clock() >= ticket.claim.send_before:
                raise NotSentError("lease_lapsed")
            if self._breaker.permits(self.under_way - 1) == 0:
                raise NotSentError("breaker_open")
            if usable:
                return
            ticket.renew()
            self._waiting[ticket.claim.lane].appendleft(ticket)

    def _turn_away(self, condition: Callable[[_Ticket], bool], reason: str) -> None:
        turned_away = 0
        for lane, tickets in self._waiting.items():
            chosen = [ticket for ticket in tickets if condition(ticket)]
            if chosen:
                self._waiting[lane] = deque(t for t in tickets if not condition(t))
                turned_away += len(chosen)
            for ticket in chosen:
                ticket.settle(reason)
        if turned_away:
            _log.warning("requests_given_back", reason=reason, requests=turned_away)

    def _forget(self, ticket: _Ticket) -> None:
        tickets = self._waiting[ticket.claim.lane]
        if ticket in tickets:
            tickets.remove(ticket)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The attempt stays claimed until its lease lapses, and is looked up then.
            _log.critical("call_failed", exc_info=error)
