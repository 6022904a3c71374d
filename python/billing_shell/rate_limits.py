"""What a gateway asks for by 429: that everybody is silent for a while."""

from decimal import Decimal

import structlog

from billing_shell.throttle import Throttle, ThrottleUnavailableError

RATE_LIMITED = "rate_limited"
"""The code of a result that says so."""

_WITHOUT_RETRY_AFTER = Decimal(1)

_log = structlog.get_logger(__name__)


async def pause_all(throttle: Throttle, retry_after: Decimal | None) -> None:
    """Pause an operation in all processes; where Redis does not answer, in this one alone.

    Args:
        throttle: of the operation.
        retry_after: seconds; None or 0 = a second.
    """
    seconds = float(retry_after or _WITHOUT_RETRY_AFTER)
    _log.warning("rate_limited", operation=throttle.operation, retry_after_seconds=seconds)
    try:
        await throttle.pause(seconds)
    except ThrottleUnavailableError as error:
        _log.warning("throttle_unavailable", error=str(error))
