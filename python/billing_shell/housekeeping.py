"""Housekeeping: partitions of the outbox, and what is kept no longer.

Each task stands for itself: one that cannot get its lock is tried again in the next round.
"""

import asyncio
from dataclasses import dataclass

import structlog

from billing_shell import queries
from billing_shell.database import Database
from billing_shell.errors import RetryableError
from billing_shell.sweeps import sweep

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long things are kept, in days.

    Attributes:
        outbox_ahead: days for which partitions of the outbox are made in advance.
        outbox: days of the outbox that stay; events not published yet stay longer.
        idempotency_keys: callers' keys, but for those of operations that move money.
        webhook_payloads: what gateways sent; the events themselves stay.
    """

    outbox_ahead: int = 7
    outbox: int = 14
    idempotency_keys: int = 30
    webhook_payloads: int = 45


async def keep_house(database: Database, stop: asyncio.Event, retention: Retention) -> None:
    """Does one round.

    Raises:
        DatabaseError: a task failed for another reason than a lock or a time-out.
    """
    one_call = (
        ("outbox_partitions_made", queries.ENSURE_OUTBOX_PARTITIONS, retention.outbox_ahead),
        ("outbox_partitions_dropped", queries.DROP_OUTBOX_PARTITIONS, retention.outbox),
    )
    many_calls = (
        ("runs_closed", queries.CLOSE_ABANDONED_RUNS, 0),
        ("keys_dropped", queries.DROP_IDEMPOTENCY_KEYS, retention.idempotency_keys),
        ("payloads_dropped", queries.DROP_WEBHOOK_PAYLOADS, retention.webhook_payloads),
    )
    done: dict[str, int] = {}
    for name, query, days in one_call:
        try:
            done[name] = await database.value(query, {"days": days})
        except RetryableError as error:
            _log.warning("housekeeping_waits", task=name, code=error.code, error=error.message)
    for name, query, days in many_calls:
        try:
            done[name] = await sweep(database, query, stop, days=days)
        except RetryableError as error:
            _log.warning("housekeeping_waits", task=name, code=error.code, error=error.message)
    if any(done.values()):
        _log.info("house_kept", **{name: count for name, count in done.items() if count})
