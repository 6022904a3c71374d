"""What the import files ask for: each period that is due, with its price, by a calendar of its own.

Reads the files with `csv` and counts with `calendar` and `zoneinfo` alone: neither the importer nor
anything of the database has a part in it. Which zones there are and when their clocks change is the
one thing that both take from the same source, the zone database.
"""

import csv
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, islice
from pathlib import Path
from zoneinfo import ZoneInfo

_MONTHS = {"MONTH": 1, "YEAR": 12}
_DAYS = {"DAY": 1, "WEEK": 7}
_DEFAULT_RESOURCE = "default"


class FilesUnreadableError(Exception):
    """The files contradict each other, so that nothing can be expected by them."""


@dataclass(frozen=True, slots=True, order=True)
class BilledPeriod:
    """One period that is billed.

    Attributes:
        customer_ref: of the customer, as in the files.
        resource_ref: of what is sold, as in the files.
        starts_at: in UTC.
        ends_at: in UTC, the next one's start.
        amount: of its invoice, minor units of `currency`.
    """

    customer_ref: str
    resource_ref: str
    starts_at: datetime
    ends_at: datetime
    currency: str
    amount: int

    def __str__(self) -> str:
        """Write it for people."""
        return (
            f"{self.customer_ref}/{self.resource_ref} {self.starts_at:%Y-%m-%dT%H:%M:%SZ}"
            f" to {self.ends_at:%Y-%m-%dT%H:%M:%SZ} for {self.amount} {self.currency}"
        )


def read_files_book(
    directory: Path, *, now: datetime, subscriptions: int | None = None
) -> frozenset[BilledPeriod]:
    """Return the periods that begin after the imported one and not after `now`.

    Args:
        directory: holds plans.csv, customers.csv and subscriptions.csv.
        now: business time.
        subscriptions: how many lines of subscriptions.csv count, from the first; None = all.

    Raises:
        FilesUnreadableError: a current period is none of its anchor's.
        OSError: a file cannot be read.
        KeyError: a column, customer or price is missing.
    """
    prices = {(row["plan_code"], row["currency"]): row for row in _rows(directory / "plans.csv")}
    customers = {row["customer_ref"]: row for row in _rows(directory / "customers.csv")}
    found = set()
    for row in islice(_rows(directory / "subscriptions.csv"), subscriptions):
        customer = customers[row["customer_ref"]]
        price = prices[row["plan_code"], customer["currency"]]
        zone = ZoneInfo(customer["time_zone"])
        current = datetime.fromisoformat(row["current_period_start"]).astimezone(UTC)
        anchor = datetime.fromisoformat(row.get("anchor_at") or row["current_period_start"])
        boundaries = boundaries_of(
            anchor.astimezone(zone).replace(tzinfo=None),
            price["interval_unit"],
            int(price["interval_count"]),
            zone,
        )
        start = next(boundary for boundary in boundaries if boundary >= current)
        if start != current:
            raise FilesUnreadableError(
                f"{row['customer_ref']}: no period begins at {row['current_period_start']}"
            )
        start = next(boundaries)
        while start <= now:
            end = next(boundaries)
            found.add(
                BilledPeriod(
                    customer_ref=row["customer_ref"],
                    resource_ref=row.get("resource_ref") or _DEFAULT_RESOURCE,
                    starts_at=start,
                    ends_at=end,
                    currency=customer["currency"],
                    amount=int(price["amount_minor"]) * int(row.get("quantity") or 1),
                )
            )
            start = end
    return frozenset(found)


def boundaries_of(
    anchor: datetime, unit: str, interval_count: int, zone: ZoneInfo
) -> Iterator[datetime]:
    """Yield the boundaries in UTC, from the anchor on: it and k intervals, never one from another.

    Args:
        anchor: local, without a zone.
        unit: `DAY`, `WEEK`, `MONTH` or `YEAR`.
        interval_count: so many of them.
        zone: the subscription's.
    """
    for k in count():
        if unit in _MONTHS:
            yield _in_utc(_months_later(anchor, k * interval_count * _MONTHS[unit]), zone)
        else:
            yield _in_utc(anchor + timedelta(days=k * interval_count * _DAYS[unit]), zone)


def _months_later(anchor: datetime, months: int) -> datetime:
    """Return the same day of a later month, or that month's last."""
    years, month = divmod(anchor.month - 1 + months, 12)
    year, month = anchor.year + years, month + 1
    return anchor.replace(year=year, month=month, day=min(anchor.day, monthrange(year, month)[1]))


def _in_utc(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant; what a clock change skips lies after it, of two the standard time's.

    Read by the offsets before and after the change, either is the later one of both readings.
    """
    return max(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))


def _rows(file: Path) -> Iterator[dict[str, str]]:
    with file.open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)
