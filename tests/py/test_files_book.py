"""What the import files ask for: boundaries by hand, and files that are not plain."""

from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from billing_shell.books.files_book import (
    BilledPeriod,
    FilesUnreadableError,
    boundaries_of,
    read_files_book,
)

_PLANS = """plan_code,name,interval_unit,interval_count,currency,amount_minor
TEAM,"Team, by the month",MONTH,1,USD,1000
TEAM,"Team, by the month",MONTH,1,JPY,1500
WEEKLY,Weekly,WEEK,1,USD,300
"""
_CUSTOMERS = """customer_ref,currency,time_zone
acme,USD,America/New_York
sakura,JPY,Asia/Tokyo
"""


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def first(count: int, anchor: str, unit: str, every: int, zone: str) -> list[str]:
    boundaries = boundaries_of(datetime.fromisoformat(anchor), unit, every, ZoneInfo(zone))
    return [f"{each:%Y-%m-%d %H:%M}" for each in islice(boundaries, count)]


@pytest.mark.parametrize(
    ("anchor", "unit", "every", "zone", "expected"),
    [
        # The last day of each month, never that of the month before.
        (
            "2027-01-31 09:00",
            *("MONTH", 1, "UTC"),
            ["2027-01-31 09:00", "2027-02-28 09:00", "2027-03-31 09:00", "2027-04-30 09:00"],
        ),
        # Over the new year, and a leap day.
        (
            "2027-11-30 00:00",
            *("MONTH", 3, "UTC"),
            ["2027-11-30 00:00", "2028-02-29 00:00", "2028-05-30 00:00"],
        ),
        (
            "2028-02-29 12:00",
            *("YEAR", 1, "UTC"),
            ["2028-02-29 12:00", "2029-02-28 12:00", "2030-02-28 12:00", "2031-02-28 12:00"],
        ),
        # Nine in the morning in Berlin is 8:00 UTC in winter and 7:00 in summer.
        (
            "2027-03-21 09:00",
            *("WEEK", 1, "Europe/Berlin"),
            ["2027-03-21 08:00", "2027-03-28 07:00", "2027-04-04 07:00"],
        ),
        # 2:30 does not exist on 28 March: clocks go from 2:00 to 3:00, so 3:30 summer time.
        (
            "2027-03-27 02:30",
            *("DAY", 1, "Europe/Berlin"),
            ["2027-03-27 01:30", "2027-03-28 01:30"],
        ),
        # 2:30 comes twice on 31 October; the standard one is the second.
        (
            "2027-10-30 02:30",
            *("DAY", 1, "Europe/Berlin"),
            ["2027-10-30 00:30", "2027-10-31 01:30"],
        ),
    ],
)
def test_a_boundary_is_the_anchor_and_k_intervals_in_its_zone(
    anchor: str, unit: str, every: int, zone: str, expected: list[str]
) -> None:
    assert first(len(expected), anchor, unit, every, zone) == expected


def book(
    directory: Path, subscriptions: str, now: str, count: int | None = None
) -> frozenset[BilledPeriod]:
    (directory / "plans.csv").write_text(_PLANS)
    (directory / "customers.csv").write_text(_CUSTOMERS)
    (directory / "subscriptions.csv").write_text(subscriptions)
    return read_files_book(directory, now=instant(now), subscriptions=count)


def test_each_period_after_the_imported_one_is_expected_with_its_amount(tmp_path: Path) -> None:
    found = book(
        tmp_path,
        "customer_ref,resource_ref,plan_code,quantity,anchor_at,current_period_start\n"
        "acme,shop-1,TEAM,3,2026-12-31T20:00:00-05:00,2027-02-01T01:00:00Z\n"
        "sakura,,TEAM,,,2027-02-10T00:00:00+09:00\n",
        "2027-04-01T00:00:00Z",
    )
    # 31 December 20:00 in New York; 28 February 20:00 there is 1 March 1:00 UTC, and 31 March
    # 20:00 is midnight UTC, since clocks changed on 14 March.
    assert sorted(found) == [
        BilledPeriod(
            "acme",
            "shop-1",
            datetime(2027, 3, 1, 1, tzinfo=UTC),
            datetime(2027, 4, 1, 0, tzinfo=UTC),
            "USD",
            3000,
        ),
        BilledPeriod(
            "acme",
            "shop-1",
            datetime(2027, 4, 1, 0, tzinfo=UTC),
            datetime(2027, 5, 1, 0, tzinfo=UTC),
            "USD",
            3000,
        ),
        BilledPeriod(
            "sakura",
            "default",
            datetime(2027, 3, 9, 15, tzinfo=UTC),
            datetime(2027, 4, 9, 15, tzinfo=UTC),
            "JPY",
            1500,
        ),
    ]


def test_what_begins_now_is_due_and_what_begins_a_second_later_is_not(tmp_path: Path) -> None:
    lines = (
        "customer_ref,plan_code,current_period_start\nacme,WEEKLY,2027-02-22T09:00:00Z\n"
        "acme,WEEKLY,2027-02-22T09:00:01Z\n"
    )
    found = book(tmp_path, lines, "2027-03-01T09:00:00Z")
    assert [period.starts_at for period in found] == [datetime(2027, 3, 1, 9, tzinfo=UTC)]


def test_only_so_many_lines_count(tmp_path: Path) -> None:
    lines = (
        "customer_ref,plan_code,current_period_start\nacme,WEEKLY,2027-02-22T09:00:00Z\n"
        "sakura,TEAM,2027-02-01T00:00:00Z\n"
    )
    assert {p.customer_ref for p in book(tmp_path, lines, "2027-03-02T00:00:00Z", 1)} == {"acme"}


def test_a_current_period_that_is_none_of_its_anchors_is_refused(tmp_path: Path) -> None:
    lines = (
        "customer_ref,plan_code,anchor_at,current_period_start\n"
        "sakura,TEAM,2027-01-31T00:00:00+09:00,2027-02-28T00:00:01+09:00\n"
    )
    with pytest.raises(FilesUnreadableError, match="sakura"):
        book(tmp_path, lines, "2027-03-02T00:00:00Z")
