"""Calendar arithmetic: months that clamp, zones with daylight saving, boundaries of an anchor."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo


class Unit(StrEnum):
    """Of what an interval is made."""

    DAY = "DAY"
    WEEK = "WEEK"
    MONTH = "MONTH"
    YEAR = "YEAR"


@dataclass(frozen=True)
class Length:
    """A calendar interval, as so many months and so many days."""

    months: int
    days: int

    @classmethod
    def of(cls, unit: Unit, count: int) -> "Length":
        """Return `count` units."""
        return {
            Unit.DAY: cls(0, count),
            Unit.WEEK: cls(0, 7 * count),
            Unit.MONTH: cls(count, 0),
            Unit.YEAR: cls(12 * count, 0),
        }[unit]


def local(instant: datetime, zone: str) -> datetime:
    """Return what the clocks of a zone show, without a zone."""
    return instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def instant(shown: datetime, zone: str) -> datetime:
    """Return when clocks of a zone show this.

    What a clock skips is read as if it had not been set forward, and so comes later by the clock;
    what it shows twice is the second time, which is standard time.
    """
    first, second = (shown.replace(tzinfo=ZoneInfo(zone), fold=fold) for fold in (0, 1))
    is_skipped = local(first.astimezone(UTC), zone) != shown
    return (first if is_skipped else second).astimezone(UTC)


def add_months(shown: datetime, months: int) -> datetime:
    """Return the same day of another month, or its last day where it has none such."""
    year, month = divmod(shown.year * 12 + shown.month - 1 + months, 12)
    day = min(shown.day, monthrange(year, month + 1)[1])
    return shown.replace(year=year, month=month + 1, day=day)


def boundary(anchor: datetime, zone: str, length: Length, number: int) -> datetime:
    """Return boundary `number` of a local anchor, counted from the anchor at once."""
    moved = add_months(anchor, length.months * number) + timedelta(days=length.days * number)
    return instant(moved, zone)


def days_later(start: datetime, zone: str, days: int) -> datetime:
    """Return the same local time, days later."""
    return instant(local(start, zone) + timedelta(days=days), zone)


@dataclass(frozen=True)
class First:
    """A first billed period.

    Attributes:
        anchor: local time that boundaries are counted from.
        number: of the boundary that ends it.
        start: its start.
        end: its end.
        full_start: start of the full period that `end` ends; before `start` in a stub.
    """

    anchor: datetime
    number: int
    start: datetime
    end: datetime
    full_start: datetime


def first_period(start: datetime, zone: str, length: Length, day: int | None) -> First:
    """Return the period that begins at an instant: full, or up to the next such day of a month."""
    if day is None:
        anchor = local(start, zone)
        return First(anchor, 1, start, boundary(anchor, zone, length, 1), start)
    anchor = _last_such_day(local(start, zone), day)
    number = next(k for k in range(4) if boundary(anchor, zone, length, k) > start)
    return First(
        anchor,
        number,
        start,
        boundary(anchor, zone, length, number),
        boundary(anchor, zone, length, number - 1),
    )


def _last_such_day(shown: datetime, day: int) -> datetime:
    midnight = shown.replace(hour=0, minute=0, second=0)
    for back in range(4):
        month = add_months(midnight.replace(day=1), -back)
        if day <= monthrange(month.year, month.month)[1] and month.replace(day=day) <= shown:
            return month.replace(day=day)
    raise AssertionError("every day of the month comes in two months in a row or every other")


def seconds(start: datetime, end: datetime) -> int:
    """Return the whole seconds between two instants."""
    return int((end - start).total_seconds())
