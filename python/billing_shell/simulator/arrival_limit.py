"""The gateway's own limit: an exact log, not a counter."""

from collections import deque

_WINDOW_US = 1_000_000


class ArrivalLimit:
    """Admits at most `limit` arrivals in any half-open second, wherever that second starts.

    Refused arrivals are not counted against those that follow: the caller who slows down is served.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._admitted: deque[int] = deque()

    def remember(self, arrived_us: int) -> None:
        """Count an arrival that was admitted before a restart; in order of time."""
        self._admitted.append(arrived_us)

    def admit(self, now_us: int) -> int | None:
        """Return None when admitted, else the microseconds until the next arrival would be."""
        while self._admitted and self._admitted[0] <= now_us - _WINDOW_US:
            self._admitted.popleft()
        if len(self._admitted) < self._limit:
            self._admitted.append(now_us)
            return None
        return self._admitted[0] + _WINDOW_US - now_us
