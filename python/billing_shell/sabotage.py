"""Breaks the engine on purpose, to see whether the report sees it: a negative control.

What it does in a database it does there only; what it does to a worker it does in that process:
`python -m billing_shell.sabotage NAME worker` is `billing worker`, sabotaged. Nothing else in this
package knows of it.

| name | what is broken | what comes of it |
|---|---|---|
| `random-key` | each send has a key and reference of its own | an unanswered charge is made again |
| `no-epoch` | a result is believed whatever claim it answers | a dead worker's word counts |
| `period-outside-tx` | advancing is a transaction after the invoice's | a kill leaves it undone |
"""

import asyncio
import os
import signal
import sys
import uuid
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, LiteralString, NoReturn

import psycopg

from billing_shell.cli import main as billing
from billing_shell.gateway import ChargeRequest, ChargeResult, Gate, open_gate
from billing_shell.renewer import Renewer
from billing_shell.simulated_gateway import SimulatedGateway

BETWEEN = "renewed_not_advanced"
"""Crash point of `period-outside-tx`: a batch is committed, its subscriptions are not advanced."""
POINT_VARIABLE = "BILLING_SABOTAGE_POINT"
"""Names it, in place of the engine's own BILLING_CRASH_POINT; the signal's variable is the same."""

_DEFINITION = "SELECT pg_catalog.pg_get_functiondef(%s::regproc)"

_BELIEVES_EVERYBODY = (
    "billing.judge_results",
    "r.claim_epoch IS DISTINCT FROM a.claim_epoch",
    "false",
)
_PUTS_OFF_ADVANCING = (
    "billing.renew_claimed",
    "PERFORM billing.advance_subscriptions(v_renewals, p_run_id);",
    "INSERT INTO billing.sabotaged_renewal (run_id, renewals) VALUES (p_run_id, v_renewals);",
)
_ADVANCE_LATER = """
    CREATE TABLE billing.sabotaged_renewal (run_id bigint, renewals billing.renewal[]);
    CREATE FUNCTION billing_worker.sabotaged_advance(p_run_id bigint) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER SET search_path = ''
    AS $function$
        WITH put_off AS (
            DELETE FROM billing.sabotaged_renewal AS r WHERE r.run_id = p_run_id
            RETURNING r.renewals
        )
        SELECT count(billing.advance_subscriptions(p.renewals, p_run_id)) FROM put_off AS p;
    $function$;
    GRANT EXECUTE ON FUNCTION billing_worker.sabotaged_advance TO billing_worker;
"""
_ADVANCE: LiteralString = "SELECT billing_worker.sabotaged_advance(p_run_id => %(run_id)s)"


class Sabotage(StrEnum):
    """What can be broken."""

    RANDOM_KEY = "random-key"
    NO_EPOCH = "no-epoch"
    PERIOD_OUTSIDE_TX = "period-outside-tx"


class SabotageError(Exception):
    """The engine cannot be broken in this way any more: the text to replace is not there."""


def break_database(database_url: str, sabotage: Sabotage) -> None:
    """Break the functions of one database, as far as this sabotage is done there.

    Args:
        database_url: as a member of billing_owner.
        sabotage: how.

    Raises:
        SabotageError: the function does not hold the text that was to be replaced.
    """
    with psycopg.connect(database_url, application_name="billing sabotage") as connection:
        connection.execute("SET ROLE billing_owner")
        if sabotage is Sabotage.NO_EPOCH:
            _rewrite(connection, *_BELIEVES_EVERYBODY)
        elif sabotage is Sabotage.PERIOD_OUTSIDE_TX:
            connection.execute(_ADVANCE_LATER)
            _rewrite(connection, *_PUTS_OFF_ADVANCING)


def _rewrite(
    connection: psycopg.Connection[Any], function: str, text: LiteralString, other: LiteralString
) -> None:
    row = connection.execute(_DEFINITION, (function,)).fetchone()
    definition = "" if row is None else str(row[0])
    if definition.count(text) != 1:
        raise SabotageError(
            f"{function} holds {definition.count(text)} times the text {text!r}, not once:"
            " the sabotage has to follow the engine"
        )
    connection.execute(definition.replace(text, other).encode())


def break_worker(sabotage: Sabotage) -> None:
    """Break the worker of this process, as far as this sabotage is done there."""
    if sabotage is Sabotage.RANDOM_KEY:
        _send_under_random_keys()
    elif sabotage is Sabotage.PERIOD_OUTSIDE_TX:
        _advance_after_the_transaction(_between())


def _send_under_random_keys() -> None:
    charge = SimulatedGateway.charge

    async def charge_under_a_random_key(
        self: SimulatedGateway,
        request: ChargeRequest,
        *,
        timeout: float,  # noqa: ASYNC109  as in what it replaces
        gate: Gate = open_gate,
    ) -> ChargeResult:
        other = replace(request, idempotency_key=f"random-{uuid.uuid4()}")
        return await charge(self, other, timeout=timeout, gate=gate)

    SimulatedGateway.charge = charge_under_a_random_key  # type: ignore[method-assign]


def _advance_after_the_transaction(batches_until_still: int | None) -> None:
    renew_batch = Renewer._batch  # noqa: SLF001  sabotage comes uninvited
    batches = 0

    async def renew_then_advance(self: Renewer, run_id: int, stop: asyncio.Event) -> int:
        nonlocal batches
        taken_up = await renew_batch(self, run_id, stop)
        if taken_up:
            batches += 1
            if batches == batches_until_still:
                _stand_still()
            await self._database.value(_ADVANCE, {"run_id": run_id})
        return taken_up

    Renewer._batch = renew_then_advance  # type: ignore[method-assign]  # noqa: SLF001


def _between() -> int | None:
    """Return after how many batches to stand still; None = never."""
    name, _, number = os.environ.get(POINT_VARIABLE, "").partition(":")
    return int(number or "1") if name == BETWEEN else None


def _stand_still() -> NoReturn:
    with Path(os.environ["BILLING_CRASH_SIGNAL"]).open("a", encoding="ascii") as file:
        file.write(f"{BETWEEN}\n")
    while True:
        signal.pause()


def main(arguments: list[str]) -> None:
    """Run `billing` with a sabotaged worker: NAME, then what `billing` takes."""
    break_worker(Sabotage(arguments[0]))
    sys.argv = ["billing", *arguments[1:]]
    billing()


if __name__ == "__main__":
    main(sys.argv[1:])
