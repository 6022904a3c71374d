"""What a subscription may be in, what may happen to it, and what can be seen of that afterwards."""

import csv
import itertools
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from tests.py.support.lifecycle import Driver

DATA = Path(__file__).parents[1] / "data" / "lifecycle.csv"
SEPARATOR = "; "

_FEBRUARY = datetime(2027, 2, 15, tzinfo=UTC)
_MARCH = datetime(2027, 3, 1, tzinfo=UTC)
_TRIAL = datetime(2027, 3, 18, tzinfo=UTC)
_APRIL = datetime(2027, 4, 1, tzinfo=UTC)
_BEFORE = datetime(2027, 4, 10, tzinfo=UTC)
NOW = datetime(2027, 4, 16, tzinfo=UTC)
_MAY = datetime(2027, 5, 1, tzinfo=UTC)
_JUNE = datetime(2027, 6, 1, tzinfo=UTC)

_SEEN = """
    SELECT
        s.status,
        (SELECT coalesce(array_agg(format('%%s %%s %%s', i.invoice_id, i.kind, i.status)
                                   ORDER BY i.invoice_id), '{}')
         FROM billing.invoice AS i WHERE i.subscription_id = s.subscription_id),
        (SELECT coalesce(array_agg(i.total ORDER BY i.invoice_id), '{}')
         FROM billing.invoice AS i WHERE i.subscription_id = s.subscription_id),
        coalesce((SELECT b.balance FROM billing.credit_balance AS b
                  WHERE b.customer_id = s.customer_id), 0),
        (SELECT coalesce(array_agg(
                    format('%%s %%s to %%s', p.kind, to_char(p.period_start, 'FMDD Mon'),
                           coalesce(to_char(nullif(p.period_end, 'infinity'), 'FMDD Mon'), '...'))
                    ORDER BY p.period_start), '{}')
         FROM billing.subscription_period AS p WHERE p.subscription_id = s.subscription_id),
        (SELECT coalesce(array_agg(e.event_type ORDER BY e.event_seq), '{}')
         FROM billing.subscription_event AS e WHERE e.subscription_id = s.subscription_id),
        concat_ws(
            ', ', s.plan_code, 'then ' || s.pending_plan_code,
            CASE WHEN s.cancel_at_period_end THEN 'to cancel' END,
            CASE WHEN s.pause_at_period_end THEN 'to pause' END
        )
    FROM billing_api.subscription AS s
    WHERE s.subscription_id = %(subscription)s
"""


@dataclass(frozen=True)
class Row:
    """What becomes of a situation by an operation.

    Attributes:
        situation: name in `SITUATIONS`.
        operation: name in `OPERATIONS`.
        result: "done", or the SQLSTATE that refuses it.
        status: of the subscription afterwards.
        terms: plan, what is pending, flags, where they changed.
        invoices: those that were issued or closed, with their totals in minor units.
        credit: by how much it changed, in minor units.
        periods: rows of the timeline that are new or changed.
        events: what the log says, in order.
    """

    situation: str
    operation: str
    result: str
    status: str
    terms: str
    invoices: str
    credit: str
    periods: str
    events: str


@dataclass(frozen=True)
class Seen:
    """What can be seen of a subscription."""

    status: str
    invoices: list[str]
    totals: list[int]
    credit: int
    periods: list[str]
    events: list[str]
    terms: str


def see(driver: Driver) -> Seen:
    """Look at the subscription of a driver."""
    row = driver.connection.execute(
        _SEEN.encode(), {"subscription": driver.subscription}
    ).fetchone()
    assert row is not None
    return Seen(*row)


def difference(before: Seen, after: Seen) -> tuple[str, str, str, str, str, str]:
    """Return the last six columns of a row."""
    changed = [
        f"{text.split(maxsplit=1)[1]} {total}"
        for text, total in zip(after.invoices, after.totals, strict=True)
        if text not in before.invoices
    ]
    credit = after.credit - before.credit
    return (
        after.status,
        after.terms if after.terms != before.terms else "",
        SEPARATOR.join(changed),
        f"{credit:+}" if credit else "",
        SEPARATOR.join(period for period in after.periods if period not in before.periods),
        SEPARATOR.join(after.events[len(before.events) :]),
    )


def _sign_up(driver: Driver, at: datetime, **terms: object) -> None:
    arguments: dict[str, object] = {
        "customer_id": driver.customer,
        "plan_code": "BASIC",
        "idempotency_key": "sign up",
        "dunning_policy": "fixed_1357",
        **terms,
    }
    driver.subscription = driver.call("create_subscription", at, **arguments)


def _paid(driver: Driver, at: datetime = _APRIL, **terms: object) -> None:
    _sign_up(driver, at, **terms)
    driver.collect(at, succeeds=True)


def _renewed(driver: Driver) -> None:
    _paid(driver, _MARCH)
    driver.renew(_APRIL)


def _past_due(driver: Driver) -> None:
    _renewed(driver)
    driver.collect(_APRIL, succeeds=False)


def _trial_billed(driver: Driver) -> None:
    _sign_up(driver, _TRIAL, trial_days=14)
    driver.renew(_APRIL)


def _change_waits(driver: Driver) -> None:
    _paid(driver)
    driver.call("change_plan", NOW, plan_code="PRO")


def _change_chosen(driver: Driver) -> None:
    _paid(driver)
    driver.call("change_plan", _BEFORE, plan_code="PRO", timing="AT_PERIOD_END")


def _to_cancel(driver: Driver) -> None:
    _paid(driver)
    driver.call("cancel_subscription", _BEFORE, at_period_end=True)


def _to_pause(driver: Driver) -> None:
    _paid(driver)
    driver.call("pause_subscription", _BEFORE, at_period_end=True)


def _ahead(driver: Driver) -> None:
    _paid(driver)
    driver.call("renew_now", _BEFORE)
    driver.collect(_BEFORE, succeeds=True)


def _paused(driver: Driver) -> None:
    _paid(driver)
    driver.call("pause_subscription", _BEFORE)


def _cancelled(driver: Driver) -> None:
    _paid(driver)
    driver.call("cancel_subscription", _BEFORE)


def _expired(driver: Driver) -> None:
    _paid(driver, _MARCH, auto_renew=False)
    driver.renew(_APRIL)


SITUATIONS: Mapping[str, Callable[[Driver], None]] = {
    "INCOMPLETE": lambda driver: _sign_up(driver, NOW),
    "TRIALING": lambda driver: _sign_up(driver, _APRIL, trial_days=30),
    "TRIALING, first period owed": _trial_billed,
    "ACTIVE": _paid,
    "ACTIVE, invoice open": _renewed,
    "ACTIVE, change waits for payment": _change_waits,
    "ACTIVE, change chosen for the boundary": _change_chosen,
    "ACTIVE, to cancel": _to_cancel,
    "ACTIVE, to pause": _to_pause,
    "ACTIVE, renewed ahead": _ahead,
    "ACTIVE, last period of its term": lambda driver: _paid(driver, auto_renew=False),
    "PAST_DUE": _past_due,
    "PAUSED": _paused,
    "CANCELED": _cancelled,
    "EXPIRED": _expired,
}
"""BASIC, 3000 a month, each as it is on 16 April 2027, half way through a period."""


def _call(function: str, **arguments: object) -> Callable[[Driver], None]:
    def operation(driver: Driver) -> None:
        driver.call(function, NOW, **arguments)

    return operation


def _sign_up_again(driver: Driver, **terms: object) -> None:
    first = driver.subscription
    try:
        _sign_up(driver, NOW, idempotency_key="again", **terms)
    finally:
        driver.subscription = first


_NEWEST = """(
    SELECT max(i.invoice_id) FROM billing.invoice AS i WHERE i.subscription_id = %(subscription)s
)"""


def _retry(driver: Driver) -> None:
    """Have the newest invoice collected by hand; the charge succeeds."""
    driver.value(f"SELECT billing_api.retry_invoice({_NEWEST}, p_as_of => %(at)s)", at=NOW)
    driver.collect(NOW, succeeds=True)


def _forgive(driver: Driver) -> None:
    driver.value(f"SELECT billing_api.void_invoice({_NEWEST}, p_as_of => %(at)s)", at=NOW)


def _choose_method(driver: Driver) -> None:
    driver.value(
        "SELECT billing_api.set_subscription_payment_method(%(subscription)s, ("
        " SELECT m.payment_method_id FROM billing.payment_method AS m"
        " WHERE m.customer_id = %(customer)s), p_as_of => %(at)s)",
        at=NOW,
    )


def _last_retry(driver: Driver) -> None:
    for day in (1, 2, 4, 6, 8, 17):
        driver.collect(NOW.replace(day=day) if day < NOW.day else NOW, succeeds=False)


OPERATIONS: Mapping[str, Callable[[Driver], None]] = {
    "change_plan to PRO": _call("change_plan", plan_code="PRO"),
    "change_plan to PRO, GRANT_FIRST": _call(
        "change_plan", plan_code="PRO", payment_behavior="GRANT_FIRST"
    ),
    "change_plan to LITE": _call("change_plan", plan_code="LITE"),
    "change_plan to PRO, NEXT_INVOICE": _call(
        "change_plan", plan_code="PRO", timing="NEXT_INVOICE"
    ),
    "change_plan to PRO, AT_PERIOD_END": _call(
        "change_plan", plan_code="PRO", timing="AT_PERIOD_END"
    ),
    "change_plan to ANNUAL": _call("change_plan", plan_code="ANNUAL"),
    "undo_change": _call("undo_change"),
    "pause_subscription": _call("pause_subscription"),
    "pause_subscription at period end": _call("pause_subscription", at_period_end=True),
    "resume_subscription": _call("resume_subscription"),
    "cancel_subscription": _call("cancel_subscription"),
    "cancel_subscription for credit": _call("cancel_subscription", unused_time="CREDIT"),
    "cancel_subscription at period end": _call("cancel_subscription", at_period_end=True),
    "undo_cancel": _call("undo_cancel"),
    "extend_trial to 1 June": _call("extend_trial", trial_end=_JUNE),
    "renew_now": _call("renew_now"),
    "create_subscription, same terms": _sign_up_again,
    "create_subscription, other terms": lambda driver: _sign_up_again(driver, quantity=2),
    "retry_invoice of the newest, which succeeds": _retry,
    "void_invoice of the newest": _forgive,
    "set_subscription_payment_method": _choose_method,
    "a payment is made": lambda driver: driver.collect(NOW, succeeds=True),
    "a payment is declined": lambda driver: driver.attempt(NOW, succeeds=False),
    "every retry is declined": _last_retry,
    "the boundary of 1 May": lambda driver: driver.renew(_MAY),
}

_numbers = itertools.count()


def happen(connection: psycopg.Connection, situation: str, operation: str) -> Row:
    """Bring a situation about, let the operation happen, and say what became of it."""
    driver = Driver(connection, f"table-{next(_numbers)}", "UTC", _FEBRUARY)
    SITUATIONS[situation](driver)
    before = see(driver)
    result = "done"
    try:
        OPERATIONS[operation](driver)
    except psycopg.Error as error:
        result = str(error.sqlstate)
    after = see(driver)
    if result == "done" and after == before:
        result = "nothing"
    row = Row(situation, operation, result, *difference(before, after))
    driver.close(_JUNE)
    return row


def read() -> list[Row]:
    """Return the table that the tests and the document have in common."""
    with DATA.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == [field.name for field in fields(Row)]
    return [Row(*row) for row in rows]


def write(rows: list[Row]) -> None:
    """Replace the table; what changed is then to be judged in the diff."""
    with DATA.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows(astuple(row) for row in rows)
