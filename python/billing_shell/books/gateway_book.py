"""The gateway's book: its ledger file, opened read-only with SQLite alone.

The schema is `docs/simulated-gateway.md`'s. Nothing here asks the gateway itself, which may run or
be dead.
"""

import contextlib
import sqlite3
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_SECOND_US = 1_000_000

_CHARGES = """
    SELECT payment_id, reference, idempotency_key, amount, currency, status, code, description
    FROM charges
    ORDER BY charge_no
"""
_REFUNDS = "SELECT coalesce(sum(amount), 0), currency FROM refunds GROUP BY currency"
_ARRIVALS = """
    SELECT arrived_us, operation, coalesce(subject, ''), http_status = 429
    FROM calls
    ORDER BY arrived_us, call_no
"""
_COUNTS = """
    SELECT
        count(*) FILTER (WHERE operation = 'charge' AND fault = 'timeout_charged'),
        count(*) FILTER (WHERE replayed = 1),
        count(*) FILTER (WHERE http_status = 429),
        count(*) FILTER (WHERE limited = 1),
        count(*) FILTER (WHERE operation = 'look_up'),
        count(*) FILTER (WHERE fault IS NOT NULL)
    FROM calls
"""


@dataclass(frozen=True, slots=True)
class Charge:
    """One payment that the gateway made or refused; money moved where `status` is `succeeded`.

    Attributes:
        amount: minor units of `currency`.
        code: why it was declined, or None.
        description: what stands on the statement.
    """

    payment_id: str
    reference: str
    idempotency_key: str | None
    amount: int
    currency: str
    status: str
    code: str | None
    description: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """One call at the gateway's door.

    Attributes:
        at_us: microseconds since 1970 by the gateway's clock, which never goes back.
        operation: `charge`, `look_up` or `refund`.
        subject: idempotency key of a charge, reference or payment id of a look-up.
        refused: it was answered 429.
    """

    at_us: int
    operation: str
    subject: str
    refused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayBook:
    """Everything that the ledger holds and the report needs.

    Attributes:
        charges: in the order in which they were booked.
        refunded: minor units per currency.
        arrivals: every call, in order of arrival.
        timeouts_after_charge: sends that were executed and never answered, on purpose.
        replays: answers that were given again under their key.
        refusals: calls that were answered 429, for whatever reason.
        over_limit: those of them that came while the limit was used up.
        look_ups: questions about payments.
        faults: calls to which something was done on purpose.
    """

    charges: tuple[Charge, ...]
    refunded: dict[str, int]
    arrivals: tuple[Arrival, ...]
    timeouts_after_charge: int
    replays: int
    refusals: int
    over_limit: int
    look_ups: int
    faults: int


def read_gateway_book(ledger: Path) -> GatewayBook:
    """Read a ledger file.

    Raises:
        sqlite3.Error: it is none.
    """
    address = f"{ledger.absolute().as_uri()}?mode=ro"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
        connection.execute("BEGIN")
        (timeouts, replays, refusals, over_limit, look_ups, faults) = connection.execute(
            _COUNTS
        ).fetchone()
        return GatewayBook(
            charges=tuple(Charge(*row) for row in connection.execute(_CHARGES)),
            refunded={currency: amount for amount, currency in connection.execute(_REFUNDS)},
            arrivals=tuple(
                Arrival(at_us, operation, subject, bool(refused))
                for at_us, operation, subject, refused in connection.execute(_ARRIVALS)
            ),
            timeouts_after_charge=timeouts,
            replays=replays,
            refusals=refusals,
            over_limit=over_limit,
            look_ups=look_ups,
            faults=faults,
        )


def most_in_a_second(arrivals: Iterable[Arrival]) -> int:
    """Return the most arrivals in any half-open second that starts at an arrival.

    No second that starts elsewhere holds more: moved forward to its first arrival it loses none.
    """
    most = 0
    window: deque[int] = deque()
    for arrival in arrivals:
        window.append(arrival.at_us)
        while window[0] <= arrival.at_us - _SECOND_US:
            window.popleft()
        most = max(most, len(window))
    return most
