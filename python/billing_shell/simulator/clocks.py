"""Two clocks: one that stamps arrivals and never goes back, one that tests may freeze."""

import time
from datetime import UTC, datetime


class ArrivalClock:
    """Microseconds since 1970 on a clock that only goes forward.

    The wall clock is read once, at the start; from then on the monotonic clock counts, so that a
    correction of the machine's time can neither hide nor invent two arrivals in one second.
    """

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def now_us(self) -> int:
        """Return the present instant."""
        return self.at_us(time.monotonic_ns())

    def at_us(self, monotonic_ns: int) -> int:
        """Return an instant of the machine's monotonic clock."""
        return (monotonic_ns + self._offset_ns) // 1_000


class BusinessClock:
    """The instant at which a payment happens: the wall clock, or the one it was frozen at."""

    def __init__(self, frozen_at: datetime | None) -> None:
        self.frozen_at = frozen_at

    def now(self) -> datetime:
        """Return the present business instant, aware, in UTC."""
        return self.frozen_at if self.frozen_at is not None else datetime.now(UTC)


def to_text(instant: datetime) -> str:
    """Write an instant with microseconds and `Z`, so that texts sort as instants do."""
    return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Read an ISO 8601 instant; raises ValueError where it names no offset from UTC."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise ValueError(f"{text!r} names no offset from UTC")
    return instant.astimezone(UTC)
