"""Writes the example files: a catalogue, customers, and 5,100 subscriptions of which 5,000 are due.

    python examples/generate.py [DIRECTORY]

The files are the same on every machine and at every run: each draw is a hash of what is drawn for.
They describe a business at noon on 27 February 2027 UTC, the day before the shortest month ends:
subscriptions of the 28th to 31st all renew on the 28th, and those of the 1st a day later. The last
100 rows of `subscriptions.csv` are not due before 5 March.

Uses the standard library only, and nothing of the engine: its months, zones and gaps are Python's.
"""

import csv
import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

# ruff: noqa: INP001  a script beside its files, no package

DUE = 5_000
LATER = 100
TAKEN_OVER_AT = datetime(2027, 2, 27, 12, 0, tzinfo=UTC)
"""Every current period runs at this instant."""
RENEWED_AT = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)
"""Every current period but those of the last rows has ended by this instant."""
NOT_BEFORE = datetime(2027, 3, 5, tzinfo=UTC)
"""The last rows' periods end at this instant or later."""

MONTH_ENDS = (27, 28, 28, 29, 30, 30, 31, 31, 31, 1, 1)
MIDDLES = tuple(range(6, 26))

CURRENCIES = ("USD", "EUR", "JPY", "KWD")
ZONES = {
    "USD": ("America/New_York", "America/Chicago", "America/Los_Angeles", "UTC"),
    "EUR": ("Europe/Berlin", "Europe/Madrid", "Europe/Helsinki"),
    "JPY": ("Asia/Tokyo",),
    "KWD": ("Asia/Kuwait",),
}
CURRENCY_WEIGHTS = (50, 30, 12, 8)
BRANDS = ("visa", "mastercard", "amex")


@dataclass(frozen=True)
class Plan:
    """A plan and its price in each currency, in minor units (JPY has none, KWD has three)."""

    code: str
    name: str
    unit: str
    count: int
    prices: tuple[int, int, int, int]
    most: int = 1
    """Largest quantity."""


PLANS = (
    Plan("STARTER_MONTHLY", "Starter", "MONTH", 1, (900, 850, 1300, 2_750)),
    Plan("PRO_MONTHLY", "Pro", "MONTH", 1, (4_900, 4_500, 7_400, 15_000)),
    Plan("TEAM_MONTHLY", "Team, per seat", "MONTH", 1, (1_200, 1_100, 1_800, 3_700), most=40),
    Plan("BUSINESS_QUARTERLY", "Business", "MONTH", 3, (13_900, 12_900, 21_000, 42_500)),
    Plan("PRO_YEARLY", "Pro, paid yearly", "YEAR", 1, (49_000, 45_000, 74_000, 150_000)),
    Plan("SUPPORT_WEEKLY", "Support, by the week", "WEEK", 1, (2_500, 2_300, 3_800, 7_650)),
    Plan("COMMUNITY_MONTHLY", "Community", "MONTH", 1, (0, 0, 0, 0)),
)
WEIGHTS = (30, 28, 22, 8, 6, 4, 2)

# What becomes of a charge, by place within each run of 250 rows: about one in twenty is declined.
# A token says it after its first underscore; what follows the full stop makes it unique.
TROUBLES = {
    7: "decline_insufficient_funds_then_ok_1",
    23: "timeout_charged",
    38: "decline_insufficient_funds",
    54: "decline_do_not_honor_then_ok_1",
    71: "decline_expired_card",
    88: "timeout_lost",
    97: "decline_insufficient_funds_then_ok_1",
    113: "none",
    126: "decline_do_not_honor",
    139: "decline_generic_decline_then_ok_1",
    152: "timeout_charged",
    167: "decline_insufficient_funds",
    178: "decline_insufficient_funds_then_ok_1",
    191: "decline_stolen_card",
    204: "decline_insufficient_funds",
    219: "decline_insufficient_funds_then_ok_1",
    232: "decline_call_issuer_then_ok_1",
}
# Rarer: of the whole file, not of each run.
RARE_TROUBLES = {43: "429_1", 61: "500_stored", 1_861: "429_1", 2_061: "500_stored", 3_443: "429_1"}

_Row = Sequence[object]


def draw(below: int, *purpose: object) -> int:
    """Draw a number from 0 to `below` - 1."""
    digest = hashlib.blake2b("/".join(map(str, purpose)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) % below


def boundary(anchor: datetime, plan: Plan, number: int) -> datetime:
    """Return the `number`-th boundary after a local anchor, clamped to the end of the month."""
    if plan.unit == "WEEK":
        return _in_zone(anchor + timedelta(weeks=number * plan.count))
    months = number * plan.count * (12 if plan.unit == "YEAR" else 1)
    month = anchor.month - 1 + months
    year, month = anchor.year + month // 12, month % 12 + 1
    following = datetime(year + month // 12, month % 12 + 1, 1)  # noqa: DTZ001  local by meaning
    last_day = (following - timedelta(days=1)).day
    return _in_zone(anchor.replace(year=year, month=month, day=min(anchor.day, last_day)))


def _in_zone(local: datetime) -> datetime:
    """Return the instant of a local time.

    One that comes twice is meant by standard time; one that is skipped moves forward.
    """
    instant = local.replace(fold=1).astimezone(UTC)
    skipped = instant.astimezone(local.tzinfo).replace(fold=1) != local.replace(fold=1)
    return local.replace(fold=0).astimezone(UTC) if skipped else instant


@dataclass(frozen=True)
class Period:
    """The current period of a subscription and its anchor, all aware."""

    anchor: datetime
    start: datetime
    end: datetime


def current_period(row: int, plan: Plan, zone: ZoneInfo, *, due: bool) -> Period:
    """Draw an anchor whose current period ends when it should."""
    for attempt in range(100_000):
        seed = ("anchor", row, attempt)
        days = MONTH_ENDS if due else MIDDLES
        months_ago = 1 + draw(36, *seed, "months")
        month = 2026 * 12 + 14 - months_ago - 1
        day = days[draw(len(days), *seed, "day")]
        minute = draw(24 * 60, *seed, "minute")
        try:
            anchor = datetime(
                month // 12, month % 12 + 1, day, minute // 60, minute % 60, tzinfo=zone
            )
        except ValueError:
            continue
        if anchor.astimezone(UTC) != _in_zone(anchor):
            continue  # a time that was skipped, or came twice
        number = 1
        while boundary(anchor, plan, number) < TAKEN_OVER_AT:
            number += 1
        start, end = boundary(anchor, plan, number - 1), boundary(anchor, plan, number)
        fits = end <= RENEWED_AT if due else end >= NOT_BEFORE
        if start <= TAKEN_OVER_AT and fits:
            return Period(anchor, start, end)
    raise AssertionError(f"no period for row {row}")


def weighted(weights: Sequence[int], *purpose: object) -> int:
    """Draw an index by weights."""
    ticket = draw(sum(weights), *purpose)
    index = 0
    while ticket >= weights[index]:
        ticket -= weights[index]
        index += 1
    return index


def customer_row(number: int, trouble: str | None) -> list[object]:
    """Make up a customer for a subscription's row."""
    reference = f"customer-{number:05}"
    currency = CURRENCIES[weighted(CURRENCY_WEIGHTS, "currency", number)]
    zones = ZONES[currency]
    zone = zones[draw(len(zones), "zone", number)]
    email = f"accounts@{reference}.example"
    if trouble == "none":
        return [reference, currency, zone, email, "", "", "", "", ""]
    return [
        reference,
        currency,
        zone,
        email,
        f"tok_{trouble or 'ok'}.{number:05}",
        BRANDS[draw(len(BRANDS), "brand", number)],
        f"{draw(10_000, 'last4', number):04}",
        1 + draw(12, "month", number),
        2028 + draw(4, "year", number),
    ]


def plan_rows() -> Iterable[_Row]:
    """Yield a row for each price."""
    for plan in PLANS:
        for currency, amount in zip(CURRENCIES, plan.prices, strict=True):
            yield plan.code, plan.name, plan.unit, plan.count, currency, amount


def business() -> tuple[list[list[object]], list[list[object]]]:
    """Return the rows of customers and of subscriptions."""
    customers: list[list[object]] = []
    subscriptions: list[list[object]] = []
    resources = 0
    shareable = False
    for row in range(DUE + LATER):
        trouble = RARE_TROUBLES.get(row) or TROUBLES.get(row % 250) if row < DUE else None
        plan = PLANS[weighted(WEIGHTS, "plan", row)]
        if trouble is not None and plan.prices[0] == 0:
            plan = PLANS[1]  # nothing is charged for nothing
        if trouble is None and shareable and draw(8, "second", row) == 0:
            resources += 1
        else:
            customers.append(customer_row(len(customers) + 1, trouble))
            resources = 1
        shareable = trouble is None
        reference, _, zone, *_ = customers[-1]
        period = current_period(row, plan, ZoneInfo(str(zone)), due=row < DUE)
        quantity = 1 + draw(plan.most, "quantity", row)
        subscriptions.append(
            [
                reference,
                f"workspace-{resources}",
                plan.code,
                quantity,
                period.anchor.isoformat(),
                _text(period.start),
            ]
        )
    return customers, subscriptions


def _text(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def write(path: Path, header: Sequence[str], rows: Iterable[_Row]) -> None:
    """Write one file."""
    with path.open("w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def generate(directory: Path) -> None:
    """Write all files."""
    customers, subscriptions = business()
    write(
        directory / "plans.csv",
        ("plan_code", "name", "interval_unit", "interval_count", "currency", "amount_minor"),
        plan_rows(),
    )
    write(
        directory / "customers.csv",
        (
            "customer_ref",
            "currency",
            "time_zone",
            "email",
            "payment_token",
            "brand",
            "last4",
            "exp_month",
            "exp_year",
        ),
        customers,
    )
    write(
        directory / "subscriptions.csv",
        (
            "customer_ref",
            "resource_ref",
            "plan_code",
            "quantity",
            "anchor_at",
            "current_period_start",
        ),
        subscriptions,
    )


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
