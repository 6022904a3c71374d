"""Each fault, planted alone into three books that agree, is found, and nothing else is."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from billing_shell import demo
from billing_shell.books.database_book import (
    Attempt,
    DatabaseBook,
    Event,
    Invoice,
    Renewals,
    UnpaidInvoice,
)
from billing_shell.books.files_book import BilledPeriod
from billing_shell.books.gateway_book import Arrival, Charge, GatewayBook
from billing_shell.books.topic_book import Appearance, TopicBook
from billing_shell.reconciliation import Course, Kill, reconcile
from billing_shell.report import Report
from billing_shell.report_text import render

SECOND = 1_000_000
Value = Any  # of whichever field is changed
FAILED_AT = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Books:
    """Everything that is compared."""

    database: DatabaseBook
    gateway: GatewayBook
    topic: TopicBook
    course: Course
    asked: frozenset[BilledPeriod]

    def report(self) -> Report:
        return reconcile(self.database, self.gateway, self.topic, self.course, self.asked)

    def in_database(self, **changes: Value) -> "Books":
        return replace(self, database=replace(self.database, **changes))

    def in_renewals(self, **changes: Value) -> "Books":
        return self.in_database(renewals=replace(self.database.renewals, **changes))

    def in_gateway(self, **changes: Value) -> "Books":
        return replace(self, gateway=replace(self.gateway, **changes))

    def on_topic(self, *appearances: Appearance) -> "Books":
        return replace(self, topic=replace(self.topic, appearances=appearances))

    def in_course(self, **changes: Value) -> "Books":
        return replace(self, course=replace(self.course, **changes))

    def with_invoice(self, number: int, **changes: Value) -> "Books":
        invoices = list(self.database.invoices)
        invoices[number - 1] = replace(invoices[number - 1], **changes)
        return self.in_database(invoices=tuple(invoices))

    def with_attempt(self, number: int, **changes: Value) -> "Books":
        attempts = list(self.database.attempts)
        attempts[number - 1] = replace(attempts[number - 1], **changes)
        return self.in_database(attempts=tuple(attempts))

    def with_charge(self, number: int, **changes: Value) -> "Books":
        charges = list(self.gateway.charges)
        charges[number - 1] = replace(charges[number - 1], **changes)
        return self.in_gateway(charges=tuple(charges))

    def with_unpaid(self, **changes: Value) -> "Books":
        return self.in_database(unpaid=(replace(UNPAID, **changes),))

    def with_more(self, *arrivals: Arrival) -> "Books":
        return self.in_gateway(arrivals=(*self.gateway.arrivals, *arrivals))


def reference(invoice: int, attempt: int = 1) -> str:
    return f"shop-inv-{invoice}-try-{attempt}"


def an_invoice(number: int, currency: str, total: int, *, is_paid: bool = True) -> Invoice:
    return Invoice(
        invoice_id=number,
        subscription_id=number,
        kind="RENEWAL",
        status="PAID" if is_paid else "OPEN",
        currency=currency,
        total=total,
        credit_applied=0,
        amount_paid=total if is_paid else 0,
        carried=0,
        amount_due=0 if is_paid else total,
    )


def an_attempt(number: int, currency: str, amount: int, *, is_paid: bool = True) -> Attempt:
    return Attempt(
        attempt_id=number,
        invoice_id=number,
        reference=reference(number),
        status="SUCCEEDED" if is_paid else "DECLINED",
        amount=amount,
        currency=currency,
        gateway_payment_id=f"pay-{number}",
        is_for_gateway=True,
    )


def a_charge(number: int, currency: str, amount: int, *, is_paid: bool = True) -> Charge:
    return Charge(
        payment_id=f"pay-{number}",
        reference=reference(number),
        idempotency_key=reference(number),
        amount=amount,
        currency=currency,
        status="succeeded" if is_paid else "declined",
        code=None if is_paid else "insufficient_funds",
        description=f"Invoice {number}",
    )


def an_event(aggregate: str, sequence: int) -> Event:
    return Event(
        event_id=f"{aggregate}-{sequence}",
        event_type="InvoicePaid",
        aggregate_type="subscription",
        aggregate_id=aggregate,
        sequence=sequence,
        payload="{}",
        is_published=True,
    )


def an_appearance(aggregate: str, sequence: int) -> Appearance:
    return Appearance(
        event_id=f"{aggregate}-{sequence}",
        event_type="InvoicePaid",
        subject=f"subscription/{aggregate}",
        key=aggregate,
        sequence=sequence,
        payload="{}",
    )


def a_period(number: int, currency: str, amount: int) -> BilledPeriod:
    start = datetime(2027, 2, 27, number, tzinfo=UTC)
    return BilledPeriod(f"customer-{number}", "default", start, start + 28 * DAY, currency, amount)


def charged(*instants: float, operation: str = "charge") -> list[Arrival]:
    return [
        Arrival(round(at * SECOND), operation, f"{operation}-{n}", refused=False)
        for n, at in enumerate(instants)
    ]


# Three paid invoices, one declined.
OWED = ((1, "USD", 1000), (2, "USD", 700), (3, "JPY", 1500), (4, "USD", 500))
UNPAID = UnpaidInvoice(
    subscription_id=4,
    invoice_id=4,
    subscription_status="PAST_DUE",
    policy="standard",
    failure_count=1,
    last_failed_at=FAILED_AT,
    next_attempt_at=FAILED_AT + DAY + HOUR,
    is_in_doubt=False,
)
EVENTS = (("1", 1), ("1", 2), ("2", 1))
PERIODS = tuple(a_period(*owed) for owed in OWED)
HEALTHY = Books(
    database=DatabaseBook(
        now=FAILED_AT,
        exponents={"USD": 2, "JPY": 0},
        renewals=Renewals(
            due=4,
            opened=4,
            invoices=4,
            missing=(),
            unasked=(),
            misplaced=(),
            billed_twice=(),
            unbilled=(),
            broken=(),
            not_advanced=(),
            parked=(),
        ),
        billed=tuple(
            (p.customer_ref, p.resource_ref, p.starts_at, p.ends_at, p.currency, p.amount)
            for p in PERIODS
        ),
        invoices=tuple(an_invoice(*owed, is_paid=owed[0] != 4) for owed in OWED),
        attempts=tuple(an_attempt(*owed, is_paid=owed[0] != 4) for owed in OWED),
        events=tuple(an_event(*event) for event in EVENTS),
        unpaid=(UNPAID,),
        cases={},
        statuses={"ACTIVE": 3, "PAST_DUE": 1},
        unsettled=0,
        declines=1,
        recovered=0,
        left_due=0,
        left_renewable=0,
        violations=(),
        stale_reports=1,
        stale_believed=(),
    ),
    gateway=GatewayBook(
        charges=tuple(a_charge(*owed, is_paid=owed[0] != 4) for owed in OWED),
        refunded={},
        arrivals=tuple(charged(0.0, 0.1, 0.2, 0.3)),
        timeouts_after_charge=1,
        replays=1,
        refusals=1,
        over_limit=0,
        look_ups=0,
        faults=2,
    ),
    topic=TopicBook(
        appearances=tuple(an_appearance(*event) for event in (EVENTS[0], *EVENTS)), partitions=1
    ),
    course=Course(
        limit=200,
        due=4,
        kills=(Kill(process="relay", point="relay_acknowledged", at_us=0),),
        collected_us=20 * SECOND,
        first_unpaid=(UNPAID,),
        zombie_reports=1,
    ),
    asked=frozenset(PERIODS),
)
APPEARANCES = HEALTHY.topic.appearances
AGAIN = replace(a_charge(1, "USD", 1000), payment_id="pay-9")
SLOWLY = tuple(charged(*(number / 100 for number in range(1200))))
MONEY = {"invoice_money_differs", "currency_differs"}

FAULTS: Mapping[str, tuple[set[str], Callable[[Books], Books]]] = {
    "a period is missing": ({"period_missing"}, lambda b: b.in_renewals(missing=(1,))),
    "a period was not due": ({"period_not_due"}, lambda b: b.in_renewals(unasked=(1,))),
    "a period ends elsewhere": ({"period_misplaced"}, lambda b: b.in_renewals(misplaced=(1,))),
    "a period has no invoice": ({"period_unbilled"}, lambda b: b.in_renewals(unbilled=(1,))),
    "a period has two": ({"period_billed_twice"}, lambda b: b.in_renewals(billed_twice=(1,))),
    "a timeline has a gap": ({"chain_broken"}, lambda b: b.in_renewals(broken=(1,))),
    "a subscription stayed behind": (
        {"not_advanced"},
        lambda b: b.in_renewals(not_advanced=(1,)),
    ),
    "a renewal was set aside": ({"parked"}, lambda b: b.in_renewals(parked=(1,))),
    "more were due by the clock": ({"due_differs"}, lambda b: b.in_course(due=5)),
    "an invoice is missing": ({"invoices_differ"}, lambda b: b.in_renewals(invoices=3)),
    "one is left to renew": ({"renewals_left"}, lambda b: b.in_database(left_renewable=1)),
    "the files ask for another": (
        {"period_not_as_asked"},
        lambda b: replace(b, asked=b.asked | {a_period(5, "USD", 1)}),
    ),
    "the files ask for none": (
        {"period_not_as_asked"},
        lambda b: replace(b, asked=b.asked - {PERIODS[0]}),
    ),
    "the files ask for one unit more": (
        {"period_not_as_asked"},
        lambda b: replace(b, asked=b.asked - {PERIODS[0]} | {replace(PERIODS[0], amount=1001)}),
    ),
    "the files ask for a second later": (
        {"period_not_as_asked"},
        lambda b: replace(
            b,
            asked=b.asked - {PERIODS[0]}
            | {replace(PERIODS[0], ends_at=PERIODS[0].ends_at + timedelta(seconds=1))},
        ),
    ),
    "a key is charged again": (
        {"double_charge", "key_charged_twice", "payment_differs", *MONEY},
        lambda b: b.in_gateway(charges=(*b.gateway.charges, AGAIN)),
    ),
    "a key is charged again under another reference": (
        {"double_charge", "key_charged_twice", "unknown_reference", "currency_differs"},
        lambda b: b.in_gateway(charges=(*b.gateway.charges, replace(AGAIN, reference="elsewhere"))),
    ),
    "a made-up key is charged for the same invoice": (
        {"double_charge", "unknown_reference", "currency_differs"},
        lambda b: b.in_gateway(
            charges=(
                *b.gateway.charges,
                replace(AGAIN, reference="made-up", idempotency_key="made-up"),
            )
        ),
    ),
    "a second try is charged too": (
        {"double_charge", *MONEY},
        lambda b: b.in_gateway(
            charges=(
                *b.gateway.charges,
                replace(AGAIN, reference=reference(1, 2), idempotency_key=reference(1, 2)),
            )
        ).in_database(
            attempts=(
                *b.database.attempts,
                replace(
                    b.database.attempts[0],
                    attempt_id=9,
                    reference=reference(1, 2),
                    gateway_payment_id="pay-9",
                ),
            )
        ),
    ),
    "a decline for nobody": (
        {"unknown_reference"},
        lambda b: b.with_charge(4, reference="nobody", idempotency_key="nobody"),
    ),
    "a capture without money": (
        {"capture_without_charge", *MONEY},
        lambda b: b.with_charge(1, status="declined"),
    ),
    "money without a capture": (
        {"charge_without_capture"},
        lambda b: b.with_attempt(1, status="UNKNOWN"),
    ),
    "another payment": ({"payment_differs"}, lambda b: b.with_attempt(1, gateway_payment_id="x")),
    "another amount of the attempt": ({"payment_differs"}, lambda b: b.with_attempt(1, amount=999)),
    "money on another invoice": (
        {"invoice_money_differs"},
        lambda b: b.with_invoice(1, total=999, amount_paid=999).with_invoice(
            2, total=701, amount_paid=701
        ),
    ),
    "a paid invoice that owes": (
        {"paid_invoice_owes"},
        lambda b: b.with_invoice(1, total=1001, amount_due=1),
    ),
    "parts that do not add up": ({"paid_invoice_owes"}, lambda b: b.with_invoice(1, total=1001)),
    "money went back unseen": (
        {"currency_differs"},
        lambda b: b.in_gateway(refunded={"JPY": 1}),
    ),
    "an invoice is left": ({"invoices_left"}, lambda b: b.in_database(left_due=1)),
    "an outcome is unknown": ({"attempts_left"}, lambda b: b.in_database(unsettled=1)),
    "an event is missing": ({"event_missing"}, lambda b: b.on_topic(*APPEARANCES[:-1])),
    "an event is unknown": (
        {"event_unknown"},
        lambda b: b.on_topic(*APPEARANCES, an_appearance("3", 1)),
    ),
    "a repetition differs": (
        {"event_differs"},
        lambda b: b.on_topic(*APPEARANCES, replace(APPEARANCES[0], payload='{"amount":1}')),
    ),
    "an event has another key": (
        {"event_differs"},
        lambda b: b.on_topic(*APPEARANCES[:-1], replace(APPEARANCES[-1], key="1")),
    ),
    "a later event comes first": (
        {"event_out_of_order"},
        lambda b: b.on_topic(APPEARANCES[2], APPEARANCES[2], APPEARANCES[0], APPEARANCES[3]),
    ),
    "an event is not marked": (
        {"event_unmarked"},
        lambda b: b.in_database(
            events=(replace(b.database.events[0], is_published=False), *b.database.events[1:])
        ),
    ),
    "201 charges within a second": (
        {"limit_exceeded"},
        lambda b: b.in_gateway(arrivals=tuple(charged(*(n / 201 for n in range(201))))),
    ),
    "201 look-ups within a second": (
        {"look_up_limit_exceeded"},
        lambda b: b.with_more(*charged(*(n / 201 for n in range(201)), operation="look_up")),
    ),
    "100 charges a second for twelve": (
        {"too_slow"},
        lambda b: b.in_gateway(arrivals=SLOWLY),
    ),
    "a declined one is active": (
        {"not_past_due"},
        lambda b: b.with_unpaid(subscription_status="ACTIVE"),
    ),
    "a declined one was active at first": (
        {"not_past_due"},
        lambda b: b.in_course(first_unpaid=(replace(UNPAID, subscription_status="ACTIVE"),)),
    ),
    "a rung a second early": (
        {"off_the_ladder"},
        lambda b: b.with_unpaid(next_attempt_at=FAILED_AT + DAY - timedelta(seconds=1)),
    ),
    "a rung a second late": (
        {"off_the_ladder"},
        lambda b: b.with_unpaid(next_attempt_at=FAILED_AT + DAY + 2 * HOUR + timedelta(seconds=1)),
    ),
    "no retry": ({"off_the_ladder"}, lambda b: b.with_unpaid(next_attempt_at=None)),
    "the first rung after the second failure": (
        {"off_the_ladder"},
        lambda b: b.with_unpaid(failure_count=2),
    ),
    "a retry after the last failure": (
        {"off_the_ladder"},
        lambda b: b.with_unpaid(failure_count=4, next_attempt_at=FAILED_AT + 5 * DAY),
    ),
    "one more is past due": (
        {"past_due_differs"},
        lambda b: b.in_database(statuses={"PAST_DUE": 2}),
    ),
    "an old report was believed": (
        {"stale_report_believed"},
        lambda b: b.in_database(stale_believed=(1,)),
    ),
    "a dead worker was believed": (
        {"zombie_believed"},
        lambda b: b.in_course(zombie_reports=2, zombie_believed=1),
    ),
    "the engine's own check": ({"integrity"}, lambda b: b.in_database(violations=("x",))),
    "a step without an end": ({"unfinished"}, lambda b: b.in_course(unfinished=("x",))),
}


def codes(report: Report) -> set[str]:
    return {finding.code for finding in report.findings}


def test_books_that_agree_are_said_to_agree() -> None:
    report = HEALTHY.report()

    assert report.agrees, report.findings
    assert [(m.currency, m.database, m.gateway) for m in report.money] == [
        ("JPY", 1500, 1500),
        ("USD", 1700, 1700),
    ]
    assert report.renewals["as_asked"] == 4
    assert report.events == {
        "outbox": 3,
        "messages": 4,
        "distinct": 3,
        "duplicates": 1,
        "topic_partitions": 1,
    }


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_nothing_else(fault: str) -> None:
    expected, plant = FAULTS[fault]
    report = plant(HEALTHY).report()

    assert codes(report) == expected
    assert report.not_exercised == ()
    assert not report.agrees


def test_money_that_moved_for_nothing_comes_first() -> None:
    worse = FAULTS["a second try is charged too"][1](HEALTHY.in_renewals(missing=(1,)))

    assert worse.report().findings[0].code == "double_charge"
    assert worse.report().findings[0].examples == (
        "invoice 1: 2 charges, 20.00 USD moved for 10.00 USD",
    )


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("timeouts_after_a_charge", lambda b: b.in_gateway(timeouts_after_charge=0)),
        ("replayed_keys", lambda b: b.in_gateway(replays=0)),
        (
            "declines",
            lambda b: b.in_gateway(charges=b.gateway.charges[:3]).in_database(
                invoices=b.database.invoices[:3], attempts=b.database.attempts[:3]
            ),
        ),
        ("rate_limit_refusals", lambda b: b.in_gateway(refusals=0)),
        ("kills", lambda b: b.in_course(kills=())),
        ("duplicate_events", lambda b: b.on_topic(*APPEARANCES[1:])),
        ("stale_reports_refused", lambda b: b.in_course(zombie_reports=0)),
    ],
)
def test_what_did_not_happen_was_not_shown(name: str, without: Callable[[Books], Books]) -> None:
    report = without(HEALTHY).report()

    assert (report.findings, report.not_exercised) == ((), (name,))
    assert not report.agrees


def test_the_limit_itself_and_a_busy_machine_are_no_findings() -> None:
    full = HEALTHY.in_gateway(arrivals=tuple(charged(*(n / 200 for n in range(400)))))
    starved = HEALTHY.in_gateway(arrivals=SLOWLY).in_course(starved=0.11)

    assert codes(full.report()) == set()
    assert full.report().throttle["most_charges_in_a_second"] == 200
    assert codes(starved.report()) == set()
    assert starved.report().throttle["rate_judged"] is False


@pytest.mark.parametrize(
    ("failures", "waits"),
    [
        (1, DAY),
        (1, DAY + 2 * HOUR),
        (2, 3 * DAY),
        (2, 3 * DAY + 2 * HOUR),
        (3, 5 * DAY),
        (3, 5 * DAY + 2 * HOUR),
    ],
)
def test_both_ends_of_each_rung_are_on_the_ladder(failures: int, waits: timedelta) -> None:
    books = HEALTHY.with_unpaid(failure_count=failures, next_attempt_at=FAILED_AT + waits)

    assert books.report().agrees


@pytest.mark.parametrize(
    ("books", "code"),
    [
        (HEALTHY, demo.AGREES),
        (HEALTHY.in_database(left_due=1), demo.DISAGREES),
        (HEALTHY.in_gateway(replays=0), demo.DISAGREES),
    ],
    ids=["agrees", "finding", "not exercised"],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_the_exit_code_is_the_verdict(
    books: Books,
    code: int,
    as_json: bool,  # noqa: FBT001 - a parameter of the test
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = books.report()
    monkeypatch.setattr(demo, "_run", lambda *_: report)

    assert demo.run_demo(demo.DemoOptions(as_json=as_json)) == code
    told = capsys.readouterr().out
    assert json.loads(told)["agrees"] is (code == 0) if as_json else render(report) in told
