"""Whose clock: a monotonic one for leases, and whether worker, database and Redis agree on time.

Business time is the database's, slots are by Redis' clock, leases by the database's wall clock and
here by a monotonic one. No decision compares two of them, but clocks that lie far apart say that
somebody sets them, and then nothing is renewed or collected until they agree again.
"""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import structlog

from billing_shell.throttle import ThrottleUnavailableError

LARGEST_SKEW = timedelta(seconds=60)
"""Clocks further apart than this stop renewing and collecting."""

_CHECK_SECONDS = 5.0

_log = structlog.get_logger(__name__)

# CLOCK_MONOTONIC stands still while a machine is suspended; a lease does not.
_LEASE_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def lease_clock() -> float:
    """Seconds on a clock that nobody can set and that goes on while the machine is suspended."""
    return time.clock_gettime(_LEASE_CLOCK)


def _wall_clock() -> datetime:
    return datetime.now(UTC)


class ClockGuard:
    """Compares the clocks of this process, the database and Redis, every few seconds at most."""

    def __init__(
        self,
        database_time: Callable[[], Awaitable[datetime]],
        redis_time: Callable[[], Awaitable[datetime]],
        local_time: Callable[[], datetime] = _wall_clock,
    ) -> None:
        """Nothing is asked yet.

        Args:
            database_time: the wall clock of the database.
            redis_time: Redis' clock; raises ThrottleUnavailableError where it does not answer.
            local_time: the wall clock of this process.
        """
        self._database_time = database_time
        self._redis_time = redis_time
        self._local_time = local_time
        self._checked_at = -_CHECK_SECONDS
        self._agree = True

    async def agree(self) -> bool:
        """Whether the clocks agree. A Redis that does not answer is left out: it gives no slots.

        Raises:
            DatabaseError: the database does not tell the time.
        """
        now = lease_clock()
        if now - self._checked_at < _CHECK_SECONDS:
            return self._agree
        apart = {"database": await self._skew(self._database_time)}
        try:
            apart["redis"] = await self._skew(self._redis_time)
        except ThrottleUnavailableError as error:
            _log.debug("redis_clock_unknown", error=str(error))
        # Also from each other: one may be ahead of us and the other behind.
        ends = [timedelta(0), *apart.values()]
        agree = max(ends) - min(ends) <= LARGEST_SKEW
        skews = {f"{name}_seconds": skew.total_seconds() for name, skew in apart.items()}
        if not agree:
            _log.error("clocks_apart", **skews, hint="set the clocks; until then nothing is done")
        elif not self._agree:
            _log.info("clocks_agree", **skews)
        self._agree, self._checked_at = agree, now
        return agree

    async def _skew(self, ask: Callable[[], Awaitable[datetime]]) -> timedelta:
        """How far a clock is ahead of ours, at least; zero while the answer's delay explains it."""
        before = self._local_time()
        theirs = await ask()
        after = self._local_time()
        if theirs < before:
            return theirs - before
        return max(theirs - after, timedelta(0))
