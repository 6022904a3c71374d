"""Sweeps: functions of the database that are called until there is nothing left for them."""

import asyncio
from typing import LiteralString

import structlog

from billing_shell import queries
from billing_shell.database import Database

_BATCH = 500

_log = structlog.get_logger(__name__)


async def sweep(
    database: Database, query: LiteralString, stop: asyncio.Event, **parameters: object
) -> int:
    """Calls a function that returns how many rows it took up, until that is none.

    Args:
        database: whom to call.
        query: one of `queries`, with a parameter `limit`.
        stop: ends the sweep after the batch in hand.
        parameters: what else the query takes.

    Returns:
        how many rows it took up in all.

    Raises:
        DatabaseError: a call failed; what was done before stays done.
    """
    total = 0
    while not stop.is_set():
        taken_up: int = await database.value(query, {"limit": _BATCH, **parameters})
        if taken_up == 0:
            break
        total += taken_up
    return total


async def process_webhooks(database: Database, stop: asyncio.Event) -> None:
    """Processes the events of gateways that wait in the inbox."""
    processed = await sweep(database, queries.PROCESS_WEBHOOKS, stop)
    if processed:
        _log.info("webhooks_processed", events=processed)


async def end_dunning(database: Database, stop: asyncio.Event) -> None:
    """Ends what dunning gave up and check-outs that nobody paid; tells of trials that will end."""
    ended = await sweep(database, queries.END_DUNNING, stop)
    expired = await sweep(database, queries.EXPIRE_CHECKOUTS, stop)
    told = await sweep(database, queries.ANNOUNCE_TRIAL_ENDINGS, stop)
    if ended or expired or told:
        _log.info(
            "dunning_swept",
            subscriptions_ended=ended,
            checkouts_expired=expired,
            trial_endings_told=told,
        )
