"""The gateway's own limit: an exact log, not a counter."""

from bisect import bisect_left, bisect_right, insort

_WINDOW_US = 1_000_000
# How much older than the newest an arrival may be stamped and still be judged exactly.
_MEMORY_US = 10 * _WINDOW_US


class ArrivalLimit:
    """Admits at most `limit` arrivals in any half-open second, wherever that second starts.

    Refused arrivals are not counted against those that follow: the caller who slows down is served.
    Arrivals may be told a little out of order, as they are read from many connections.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._admitted: list[int] = []

    def remember(self, arrived_us: int) -> None:
        """Count an arrival that was admitted before a restart."""
        insort(self._admitted, arrived_us)

    def admit(self, arrived_us: int) -> int | None:
        """Return None when admitted, else the microseconds until one more would be."""
        if self._fullest_second_with(arrived_us) <= self._limit:
            insort(self._admitted, arrived_us)
            self._forget(self._admitted[-1] - _MEMORY_US)
            return None
        return max(1, self._admitted[-self._limit] + _WINDOW_US - arrived_us)

    def _fullest_second_with(self, arrived_us: int) -> int:
        """Return the most admitted arrivals in any second that holds this one, this one included.

        The fullest such second starts at an arrival: at this one, or at one up to a second earlier.
        """
        log = self._admitted
        first = bisect_right(log, arrived_us - _WINDOW_US)
        position = bisect_right(log, arrived_us)
        if position == len(log):
            # The newest so far: every second that holds it ends with it.
            return position - first + 1
        starts = [*log[first:position], arrived_us]
        return 1 + max(
            bisect_left(log, start + _WINDOW_US) - bisect_left(log, start) for start in starts
        )

    def _forget(self, before_us: int) -> None:
        # In large bites, since what is left moves up each time.
        old = bisect_left(self._admitted, before_us)
        if old > self._limit:
            del self._admitted[:old]
