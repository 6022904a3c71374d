"""The global throttle: instants at which a call to the gateway may be sent, shared through Redis.

Every process asks the same Lua script, which reserves slots on Redis' own clock at least 1/R apart
and at most 250 ms ahead. A call arrives within the jitter allowance J after its slot or is not
made, so the calls of any half-open second come from slots within 1 + J seconds: at most
1 + R(1 + J) of them, whatever the number of processes and wherever the second starts.

Nothing here falls back. Redis not answering means `ThrottleUnavailableError` and no calls.

The script needs the permission to run TIME, INFO, HMGET and HSET. Redis' clock is taken to be
disciplined, that is slewed, not stepped; a step forward that a running process can notice pauses
everybody for a second.
"""

import asyncio
import hashlib
import importlib.resources
import math
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError

HORIZON = 0.25
"""Seconds ahead of Redis' time up to which slots are reserved."""
DEFAULT_JITTER = 0.035
"""Seconds that a call may arrive after its slot."""
LONGEST_PAUSE = 3600.0
"""Seconds; a longer pause is cut to this, and the next 429 asks for the rest."""

_SOCKET_TIMEOUT = 0.5
_MOST_SLOTS = 1000
_MOST_CALLS_PER_SECOND = 100_000
_WIDEST_JITTER = 0.25
_MICROSECOND = 1_000_000
_CLOCK_DRIFT = 500e-6
_CLOCK_STEP = 0.005

_SCRIPT = importlib.resources.files("billing_shell").joinpath("throttle.lua").read_text("utf-8")
_SCRIPT_SHA = hashlib.sha1(_SCRIPT.encode(), usedforsecurity=False).hexdigest()


class ThrottleUnavailableError(Exception):
    """Redis did not answer, or not with slots. No call may be made; ask again later."""


class Lane(StrEnum):
    """Who waits for the call."""

    INTERACTIVE = "interactive"
    """A person: served first, up to 80 % of the slots while backlog waits."""
    BACKLOG = "backlog"
    """Nobody in particular."""


@dataclass(slots=True)
class _Pause:
    """Until when this process knows that everybody is paused, on the local monotonic clock."""

    until: float = -math.inf


@dataclass(frozen=True, slots=True)
class Slot:
    """The permission for one call.

    Attributes:
        at: seconds on `time.monotonic()`. The call is not sent before.
        late_after: seconds on `time.monotonic()`. After it the permission is void.
    """

    at: float
    late_after: float
    _pause: _Pause = field(repr=False, compare=False)

    def usable(self, now: float | None = None) -> bool:
        """Whether the call may still be made: not missed, and no pause was learnt of since.

        Args:
            now: seconds on `time.monotonic()`; None reads the clock.
        """
        instant = time.monotonic() if now is None else now
        return instant <= self.late_after and instant >= self._pause.until

    async def reached(self) -> bool:
        """Sleeps until the slot. False if it must be dropped; else send now."""
        await asyncio.sleep(max(0.0, self.at - time.monotonic()))
        return self.usable()


@dataclass(frozen=True, slots=True)
class Reservation:
    """What `Throttle.reserve` got.

    Attributes:
        slots: in ascending order, at most as many as wanted.
        wait: seconds to wait before asking for the rest; 0 if all were granted.
        paused: seconds for which everybody is paused, by a 429 or a cold start; mostly 0.
    """

    slots: tuple[Slot, ...]
    wait: float
    paused: float = 0.0


def rate_within(limit_per_second: int, jitter: float = DEFAULT_JITTER) -> float:
    """The highest R for which 1 + R(1 + J) stays within the limit: whole, unless below one.

    A limit of one is served by slots 1 + J apart: two arrivals then never share a second.

    Args:
        limit_per_second: the most calls in any second.
        jitter: J in seconds.

    Returns:
        Calls per second.
    """
    rate = max(limit_per_second - 1, 1) / (1 + jitter)
    return float(math.floor(rate)) if rate >= 1 else rate


def connect(url: str) -> Redis:
    """The one connection pool of a process, with time-outs shorter than any slot's worth.

    Args:
        url: `redis://`, `rediss://` or `unix://`.
    """
    return Redis.from_url(
        url,
        socket_timeout=_SOCKET_TIMEOUT,
        socket_connect_timeout=_SOCKET_TIMEOUT,
        retry=Retry(NoBackoff(), 0),
    )


@dataclass(frozen=True, slots=True)
class ThrottleState:
    """How the throttle of one operation of one account stands, to be looked at.

    Attributes:
        granted: slots since it last lost its state.
        reserved_ahead: seconds from now to the last slot that was reserved, 0 if that is past.
        paused: seconds for which everybody is paused.
    """

    granted: int
    reserved_ahead: float
    paused: float


async def look_at(client: Redis, account: str, operation: str) -> ThrottleState:
    """Reads how a throttle stands, and reserves nothing.

    Args:
        client: from `connect`.
        account: code of the gateway account.
        operation: `charge`, `look_up` or `refund`.

    Raises:
        ThrottleUnavailableError: Redis did not answer.
    """
    try:
        seconds, microseconds = await client.time()
        fields = await cast(
            "Awaitable[list[bytes | None]]",
            client.hmget(_key(account, operation), ["granted", "last", "paused_until"]),
        )
    except (RedisError, OSError) as error:
        raise ThrottleUnavailableError(f"Redis tells nothing: {error}") from error
    now = int(seconds) * _MICROSECOND + int(microseconds)
    granted, last, paused_until = (float(value or 0) for value in fields)
    return ThrottleState(
        granted=int(granted),
        reserved_ahead=max(last - now, 0) / _MICROSECOND,
        paused=max(paused_until - now, 0) / _MICROSECOND,
    )


class Throttle:
    """The slots of one operation of one gateway account.

    Attributes:
        operation: `charge`, `look_up` or `refund`.
        limit_per_second: may be assigned at any time; the next reservation goes by it.
    """

    def __init__(
        self,
        client: Redis,
        account: str,
        operation: str,
        limit_per_second: int,
        jitter: float = DEFAULT_JITTER,
    ) -> None:
        """Nothing is sent yet.

        Args:
            client: from `connect`, shared by all throttles of the process.
            account: code of the gateway account.
            operation: `charge`, `look_up` or `refund`.
            limit_per_second: the most calls in any second, 1 to 100,000.
            jitter: seconds that a call may arrive after its slot, 0 to 0.25.

        Raises:
            ValueError: an argument is out of range.
        """
        if not account or not operation:
            raise ValueError("account and operation must not be empty")
        if not 0 <= jitter <= _WIDEST_JITTER:
            raise ValueError(f"jitter must be 0 to {_WIDEST_JITTER} seconds, not {jitter}")
        self.operation = operation
        self._client = client
        self._key = _key(account, operation)
        self._jitter = jitter
        self._clock = _ServerClock()
        self._pause = _Pause()
        self.limit_per_second = limit_per_second

    @property
    def limit_per_second(self) -> int:
        """The most calls in any second."""
        return self._limit_per_second

    @limit_per_second.setter
    def limit_per_second(self, limit: int) -> None:
        if not 1 <= limit <= _MOST_CALLS_PER_SECOND:
            raise ValueError(f"limit must be 1 to {_MOST_CALLS_PER_SECOND}, not {limit}")
        self._limit_per_second = limit

    @property
    def rate(self) -> float:
        """Slots per second that are handed out under steady demand."""
        return rate_within(self._limit_per_second, self._jitter)

    async def reserve(self, n: int, lane: Lane, lead: float = 0.0) -> Reservation:
        """Reserves up to n slots. A slot that is not used is lost, so ask for what is needed.

        Args:
            n: slots wanted, 1 to 1000.
            lane: who waits.
            lead: seconds that the caller needs before it can send, 0 to 0.2. No slot is earlier.

        Raises:
            ThrottleUnavailableError: Redis did not answer. No slot was granted.
            ValueError: an argument is out of range.
        """
        if not 1 <= n <= _MOST_SLOTS:
            raise ValueError(f"n must be 1 to {_MOST_SLOTS}, not {n}")
        if not 0 <= lead < HORIZON:
            raise ValueError(f"lead must be 0 to less than {HORIZON} seconds, not {lead}")
        return await self._call(n, lane, lead)

    async def pause(self, seconds: float) -> None:
        """Stops everybody, as a 429 demands. The longest of several pauses counts.

        Slots that this process holds become unusable at once; other processes learn of it at their
        next reservation, and what they hold reaches 250 ms ahead at most.

        Args:
            seconds: Retry-After; cut to an hour.

        Raises:
            ThrottleUnavailableError: Redis did not answer. This process is paused all the same.
            ValueError: not a positive number.
        """
        if not 0 < seconds < math.inf:
            raise ValueError(f"a pause must last more than 0 seconds, not {seconds}")
        seconds = min(seconds, LONGEST_PAUSE)
        self._pause.until = max(self._pause.until, time.monotonic() + seconds)
        await self._call(0, Lane.INTERACTIVE, pause=seconds)

    async def server_time(self) -> datetime:
        """Redis' clock, in UTC, for the comparison of clocks; as old as the way back took.

        Raises:
            ThrottleUnavailableError: Redis did not answer.
        """
        try:
            seconds, microseconds = await self._client.time()
        except (RedisError, OSError) as error:
            raise ThrottleUnavailableError(f"Redis does not tell the time: {error}") from error
        return datetime.fromtimestamp(int(seconds), UTC).replace(microsecond=int(microseconds))

    async def _call(self, n: int, lane: Lane, lead: float = 0.0, pause: float = 0.0) -> Reservation:
        spacing = math.ceil(_MICROSECOND / self.rate)
        arguments = [
            str(n),
            lane.value,
            str(spacing),
            str(math.ceil(lead * _MICROSECOND)),
            str(math.ceil(pause * _MICROSECOND)),
        ]
        before, reply, after = await self._run_script(arguments)
        now, wait, paused, *instants = (value / _MICROSECOND for value in reply)
        stepped = self._clock.observe(before, now, after)
        if paused > 0:
            self._pause.until = max(self._pause.until, after + paused)
        if stepped and n > 0:
            # Slots by the clock before and after the step overlap: start anew, for everybody.
            await self.pause(1.0)
            return Reservation((), wait=1.0, paused=1.0)
        slots = tuple(
            Slot(
                at=self._clock.latest(instant),
                late_after=self._clock.earliest(instant) + self._jitter,
                _pause=self._pause,
            )
            for instant in instants
        )
        return Reservation(slots, wait, paused)

    async def _run_script(self, arguments: list[str]) -> tuple[float, list[int], float]:
        """The script's reply between the local instants just before and after it."""
        try:
            before = time.monotonic()
            try:
                reply = await cast(
                    "Awaitable[list[int]]",
                    self._client.evalsha(_SCRIPT_SHA, 1, self._key, *arguments),
                )
            except NoScriptError:
                before = time.monotonic()
                reply = await cast(
                    "Awaitable[list[int]]", self._client.eval(_SCRIPT, 1, self._key, *arguments)
                )
            return before, reply, time.monotonic()
        except (RedisError, OSError) as error:
            raise ThrottleUnavailableError(f"Redis grants no slots: {error}") from error


def _key(account: str, operation: str) -> str:
    return f"billing:throttle:{account}:{operation}"


class _ServerClock:
    """Where Redis' time lies on the local monotonic clock, between two bounds.

    One reply says only that Redis read its clock between the request and the answer. The bounds of
    earlier replies, widened by what two clocks may drift apart, narrow that to the best of them, so
    a single slow answer costs no slots.
    """

    def __init__(self) -> None:
        self._lowest = -math.inf
        self._highest = math.inf
        self._seen = 0.0

    def observe(self, before: float, server: float, after: float) -> bool:
        """Takes in one reply. True if Redis' clock was stepped since the one before."""
        drift = (after - self._seen) * _CLOCK_DRIFT
        lowest = max(before - server, self._lowest - drift)
        highest = min(after - server, self._highest + drift)
        gap = lowest - highest
        if gap > 0:
            lowest, highest = before - server, after - server
        self._lowest, self._highest, self._seen = lowest, highest, after
        return gap > _CLOCK_STEP

    def earliest(self, server: float) -> float:
        """The local instant that the server's instant cannot precede."""
        return server + self._lowest

    def latest(self, server: float) -> float:
        """The local instant by which the server's instant has surely come."""
        return server + self._highest
