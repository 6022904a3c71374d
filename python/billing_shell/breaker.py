"""The breaker: after many calls in a row without an answer, a growing pause, then single probes.

It only keeps a gateway that is down from being asked, and the queue from being emptied into doubt:
while it is open no attempt is started, and nothing counts against anybody.
"""

import time
from collections.abc import Callable

import structlog

from billing_shell.gateway import ChargeResult, Outcome, RefundResult

_log = structlog.get_logger(__name__)

_OPENS_AFTER = 20
_SHORTEST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0

_NO_LIMIT = 1_000_000

# The gateway answered, though not what became of the payment.
_ANSWERED = frozenset(
    {"idempotency_key_in_use", "idempotency_mismatch", "reference_mismatch", "rate_limited"}
)
# Our own doing; says nothing about the gateway.
_OURS = frozenset({"no_free_connection", "unsendable_request"})
_NOT_LET_IN = frozenset({"unauthorized", "forbidden"})


class Breaker:
    """One gateway account's."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Closed: calls pass.

        Args:
            clock: seconds.
        """
        self._clock = clock
        self._failures = 0
        self._pause = 0.0
        self._open_until = 0.0

    @property
    def closed(self) -> bool:
        """Whether calls pass freely."""
        return self._pause == 0.0

    def permits(self, in_flight: int) -> int:
        """How many calls may begin now, when so many are under way; one where it is a probe."""
        if self.closed:
            return _NO_LIMIT
        if self._clock() < self._open_until:
            return 0
        return max(0, 1 - in_flight)

    def record(self, result: ChargeResult | RefundResult) -> None:
        """Takes in what came of a call."""
        if result.code in _OURS:
            return
        if result.code in _NOT_LET_IN:
            self._open(str(result.code))
        elif _is_failure(result):
            self._failures += 1
            if not self.closed or self._failures >= _OPENS_AFTER:
                self._open(result.code or result.outcome)
        else:
            if not self.closed:
                _log.info("breaker_closed")
            self._failures = 0
            self._pause = 0.0

    def _open(self, reason: str) -> None:
        now = self._clock()
        if not self.closed and now < self._open_until:
            # One of those that were under way when it opened.
            return
        self._pause = min(max(2 * self._pause, _SHORTEST_PAUSE), _LONGEST_PAUSE)
        self._open_until = now + self._pause
        _log.error(
            "breaker_opened",
            reason=reason,
            failures=self._failures,
            pause_seconds=self._pause,
            hint="check the credentials of the gateway" if reason in _NOT_LET_IN else None,
        )


def _is_failure(result: ChargeResult | RefundResult) -> bool:
    if result.outcome == Outcome.UNKNOWN:
        return result.code not in _ANSWERED
    return result.outcome == Outcome.NOT_ATTEMPTED and result.code == "connection_refused"
