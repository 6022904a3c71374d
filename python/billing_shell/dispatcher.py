"""The dispatcher: sends claimed requests, each at a slot of the throttle and within its lease.

A request that misses its slot waits for another one. What is older than its lease is not sent: by
then somebody else may ask about it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import structlog

from billing_shell.breaker import Breaker
from billing_shell.clocks import lease_clock
from billing_shell.gateway import ChargeRequest, ChargeResult
from billing_shell.settler import Settler
from billing_shell.throttle import Lane, Slot, Throttle, ThrottleUnavailableError

RATE_LIMITED = "rate_limited"

_PAUSE_WITHOUT_RETRY_AFTER = Decimal(1)

_log = structlog.get_logger(__name__)


Call = Callable[[ChargeRequest, float], Awaitable[ChargeResult]]
"""Asks the gateway, for at most so many seconds."""


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
    def interactive(self) -> bool:
        """Whether a person waits for it."""
        return self.request.lane == Lane.INTERACTIVE.name


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
        self._waiting: dict[bool, deque[Claim]] = {True: deque(), False: deque()}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def under_way(self) -> int:
        """Requests that have a slot and no answer yet."""
        return len(self._tasks)

    @property
    def in_flight(self) -> int:
        """Requests that are claimed and not answered: under way, or waiting for a slot."""
        return self.under_way + self.waiting()

    def waiting(self, lane: Lane | None = None) -> int:
        """Requests that wait for a slot."""
        if lane is None:
            return sum(map(len, self._waiting.values()))
        return len(self._waiting[lane is Lane.INTERACTIVE])

    def add(self, claims: Iterable[Claim]) -> None:
        """Takes claimed requests, to be sent at slots that `use` brings."""
        for claim in claims:
            self._waiting[claim.interactive].append(claim)

    def use(self, slots: Sequence[Slot]) -> None:
        """Assigns slots to the requests that wait, interactive ones first, oldest first."""
        for slot in slots:
            lane = self._waiting[True] or self._waiting[False]
            if not lane:
                return
            task = asyncio.create_task(self._send(lane.popleft(), slot))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def drop_expired(self) -> None:
        """Gives back what waits for a slot and is too old to be sent."""
        now = lease_clock()
        expired: list[Claim] = []
        for interactive, lane in self._waiting.items():
            old = [claim for claim in lane if claim.send_before <= now]
            if old:
                expired += old
                self._waiting[interactive] = deque(
                    claim for claim in lane if claim.send_before > now
                )
        self._return(expired, "lease_lapsed")

    async def finish(self, stop: asyncio.Event) -> None:
        """Waits until nothing is under way, or until told to stop."""
        stopped = asyncio.create_task(stop.wait())
        try:
            while self._tasks and not stopped.done():
                await asyncio.wait({stopped, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()

    async def drain(self, seconds: float) -> bool:
        """Gives back what waits for a slot, and waits for what is under way.

        Returns:
            False if something is still under way after so many seconds; it was cancelled, and will
            be looked up.
        """
        deadline = lease_clock() + seconds
        while self.in_flight:
            unsent = [*self._waiting[True], *self._waiting[False]]
            self._waiting = {True: deque(), False: deque()}
            self._return(unsent, "worker_stopped")
            left = deadline - lease_clock()
            if left <= 0:
                for task in self._tasks:
                    task.cancel()
                return False
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        return True

    async def _send(self, claim: Claim, slot: Slot) -> None:
        request = claim.request
        usable = await slot.reached()
        if lease_clock() >= claim.send_before:
            self._return([claim], "lease_lapsed")
            return
        if not usable:
            self._waiting[claim.interactive].append(claim)
            return
        if self._breaker.permits(self.under_way - 1) == 0:
            self._return([claim], "breaker_open")
            return
        result = await self._call(request, claim.timeout)
        self._breaker.record(result)
        self._settler.report(result)
        if result.code == RATE_LIMITED:
            await self._pause(result.retry_after or _PAUSE_WITHOUT_RETRY_AFTER)

    def _return(self, claims: Sequence[Claim], reason: str) -> None:
        if claims:
            _log.warning("requests_given_back", reason=reason, requests=len(claims))
        for claim in claims:
            self._give_back(claim.request, reason)

    async def _pause(self, seconds: Decimal) -> None:
        _log.warning("rate_limited", retry_after_seconds=float(seconds))
        try:
            await self._throttle.pause(float(seconds))
        except ThrottleUnavailableError as error:
            _log.warning("throttle_unavailable", error=str(error))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The attempt stays claimed until its lease lapses, and is looked up then.
            _log.critical("call_failed", exc_info=error)
