"""Random histories through the engine and through a model that shares nothing with it.

BILLING_MODEL_EXAMPLES asks for more histories than a run of all tests has time for; they are then
chosen anew each time.
"""

import copy
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from tests.py.model import calls, collecting, renewing
from tests.py.model.books import Account
from tests.py.model.calendar import Unit
from tests.py.model.life import LIVE, OVER, Life
from tests.py.model.terms import Plan, Policy, RefusedError
from tests.py.support.lifecycle import Driver
from tests.py.support.servers import TestPostgres

EXAMPLES = os.environ.get("BILLING_MODEL_EXAMPLES")

PLANS = (
    Plan("BASIC", 3000, Unit.MONTH),
    Plan("PRO", 9000, Unit.MONTH),
    Plan("SEAT", 1000, Unit.MONTH),
    Plan("FREE", 0, Unit.MONTH),
    Plan("ANNUAL", 36000, Unit.YEAR),
    Plan("QUARTER", 8501, Unit.MONTH, 3),
    Plan("WEEKLY", 701, Unit.WEEK),
    Plan("THIRTY", 2999, Unit.DAY, 30),
    Plan("TWELVE", 35999, Unit.MONTH, 12),
)
DAY = timedelta(days=1)
FOUR_YEARS = 4 * 365 * DAY
HEATS = 4
# Of the first lot that goes everywhere within as few histories as a run of all tests has time for.
FIRST_SEED = 9
POLICIES = (
    Policy("fixed_1357", (DAY, 3 * DAY, 5 * DAY, 7 * DAY), from_first=True),
    Policy("exponential", (DAY, 2 * DAY, 4 * DAY, 8 * DAY), from_first=False),
    Policy("store_grace", (DAY, 3 * DAY, 5 * DAY), from_first=True, grace=7 * DAY, final="EXPIRED"),
    Policy("keeps_on", (20 * DAY, 20 * DAY, 20 * DAY), from_first=False, goes_on=True),
    Policy("graceful", (DAY,), from_first=True, grace=45 * DAY, goes_on=True),
)
ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Auckland",
)


@dataclass(frozen=True)
class Step:
    """What happens next.

    Attributes:
        later: how much later, or where in the current period.
        before: what workers do then: nothing, renew, or collect with this answer as well.
        roll: chooses among the calls that make sense by now.
        plan: of a change.
        quantity: of a change.
        timing: of a change.
        flag: granted first; at the end of the period; for credit.
        amount: seconds of an extension; credit in minor units.
        after: what workers do after the call.
    """

    later: timedelta | str
    before: str
    roll: int
    plan: Plan
    quantity: int
    timing: str
    flag: bool
    amount: int
    after: str


LATER = st.one_of(
    st.sampled_from(["halfway", "boundary", "soon", "before boundary", "after boundary"]),
    st.sampled_from(["halfway", "boundary"]),
    st.just(timedelta(0)),
    st.integers(1, 40 * 86400).map(lambda seconds: timedelta(seconds=seconds)),
    st.integers(1, 200).map(lambda days: timedelta(days=days)),
    st.integers(200, 500).map(lambda days: timedelta(days=days)),
)
PLAN = st.sampled_from(PLANS)
_WORK = st.sampled_from(["pay", "pay", "pay", "pay", "decline", "renew", "nothing"])
A_STEP = st.builds(
    Step,
    later=LATER,
    before=_WORK,
    roll=st.integers(0, 10**6),
    plan=PLAN,
    quantity=st.sampled_from([1, 1, 1, 2, 3]),
    timing=st.sampled_from(["IMMEDIATE", "IMMEDIATE", "AT_PERIOD_END", "NEXT_INVOICE"]),
    flag=st.booleans(),
    amount=st.integers(1, 30000),
    after=_WORK,
)
_STEPS = st.lists(A_STEP, min_size=10, max_size=20)
ALL_CALLS = (
    "change", "undo_change", "pause", "resume", "cancel_at_end", "cancel_now", "undo_cancel",
    "extend_trial", "renew_now",
)  # fmt: skip
FUNCTIONS = (
    "change_plan", "undo_change", "pause_subscription", "resume_subscription",
    "cancel_subscription", "undo_cancel", "extend_trial", "renew_now",
)  # fmt: skip


def calls_that_make_sense(life: Life, flag: bool) -> list[str]:  # noqa: FBT001 - drawn
    """Return what may be called by now, the likelier the more often; at times anything at all."""
    usual = {
        "INCOMPLETE": ["wait", "checkout_again", "checkout_again"],
        "TRIALING": ["wait", "change", "extend_trial", "extend_trial", "cancel_at_end"],
        "ACTIVE": ["change"] * 4 + ["pause", "pause", "renew_now", "cancel_at_end", "grant"],
        "PAST_DUE": ["wait", "wait", "change", "grant"],
        "PAUSED": ["resume", "resume", "wait"],
    }[life.status]
    if life.change or life.pending:
        usual = [*usual, *["undo_change"] * 6]
    if life.pauses_at_end:
        usual = [*usual, "resume", "resume"]
    if life.cancels_at_end:
        usual = [*usual, "undo_cancel", "undo_cancel", "undo_cancel"]
    return usual * 8 + ["cancel_now"] + (list(ALL_CALLS) if flag else [])


ORDERS = st.builds(
    calls.Order,
    zone=st.sampled_from(ZONES),
    plan=PLAN,
    quantity=st.integers(1, 3),
    policy=st.sampled_from(POLICIES),
    trial_days=st.sampled_from([0, 0, 0, 1, 14, 30]),
    grants_first=st.booleans(),
    day=st.sampled_from([None, None, None, 1, 15, 29, 31]),
    periods=st.sampled_from([None, None, None, 1, 2, 5]),
    has_method=st.sampled_from([True, True, True, False]),
    minimum=st.sampled_from([0, 0, 50, 2500]),
).map(lambda order: order if order.plan.follows_the_calendar else replace(order, day=None))
STARTS = st.datetimes(datetime(2027, 1, 1), datetime(2028, 3, 1)).map(  # noqa: DTZ001 - below
    lambda at: at.replace(microsecond=0, tzinfo=UTC)
)


@contextmanager
def shop(postgres: TestPostgres, template_database: str) -> Iterator[psycopg.Connection]:
    """A database with all plans and policies."""
    with (
        postgres.database(template=template_database) as name,
        psycopg.connect(postgres.database_url(name), autocommit=True) as opened,
    ):
        opened.execute("SELECT billing_ops.mark_test_database()")
        for plan in PLANS:
            opened.execute(
                "SELECT billing_api.create_plan(%s, %s, %s::bigint, 'USD', %s, %s,"
                " p_as_of => '2020-01-01Z')",
                (plan.code, plan.code.title(), plan.amount, plan.unit, plan.count),
            )
        for policy in POLICIES[3:]:
            opened.execute(
                "INSERT INTO billing.dunning_policy (code, retry_after, counted_from, grace,"
                " past_due_renewal, created_at) VALUES (%s, %s, %s, %s, 'CONTINUE', '2020-01-01Z')",
                (
                    policy.code,
                    list(policy.spans),
                    "FIRST_FAILURE" if policy.from_first else "PREVIOUS_FAILURE",
                    policy.grace,
                ),
            )
        yield opened


@pytest.fixture(scope="module")
def connection(postgres: TestPostgres, template_database: str) -> Iterator[psycopg.Connection]:
    """Shared by all histories."""
    with shop(postgres, template_database) as opened:
        yield opened


class History:
    """One history, lived twice.

    Attributes:
        reached: how often each call was done or refused, and each status was seen.
    """

    reached: ClassVar[Counter[str]] = Counter()

    def __init__(self, driver: Driver, order: calls.Order, at: datetime) -> None:
        self.driver = driver
        self.order = order
        self.at = at
        self.keys = itertools.count()
        self.granted = 0
        self.credit = Account()
        self.life: Life = calls.sign_up(order, self.credit, at)
        driver.subscription = driver.call("create_subscription", at, **self._sign_up())
        self.compare()

    def take(self, step: Step) -> None:
        """Take a step both ways, and compare after each part of it."""
        self.at = self.later(step.later)
        self._work(step.before)
        if self.life.status in OVER:
            return
        note(f"{self.at:%Y-%m-%d %H:%M:%S} {step.before}, {step.after}")
        self.act(step)
        self._work(step.after)

    def act(self, step: Step) -> None:
        """Make the call that a step chooses both ways, and compare."""
        options = calls_that_make_sense(self.life, step.flag)
        what = options[step.roll % len(options)]
        note(
            f"{self.at:%Y-%m-%d %H:%M:%S} {what}:"
            f" {step.plan.code} x {step.quantity} {step.timing} {step.flag} {step.amount}"
        )
        getattr(self, f"_{what}")(step)
        self.compare()

    def compare(self) -> None:
        """Compare what both have come to."""
        self.reached[f"status {self.life.status}"] += 1
        if self.at - self.life.created >= FOUR_YEARS:
            self.reached["four years later"] += 1
        instants = [self.at, self.at + DAY]
        if self.life.spans and self.life.current.end is not None:
            end = self.life.end
            instants += [end - timedelta(seconds=1), end, end + 10 * DAY]
        if self.life.access_until is not None:
            until = self.life.access_until
            instants += [until - timedelta(seconds=1), until]
        engine, model = self.driver.snapshot(instants), picture(self.life, instants)
        assert {key: (engine[key], model[key]) for key in model if engine[key] != model[key]} == {}

    def settle_up(self) -> None:
        """Cancel for credit: what is kept is what was used, to a unit for each line."""
        life = self.life
        if life.status in OVER:
            return
        waived = sum(
            invoice.owed + invoice.credit for invoice in life.open_invoices if invoice.drives
        ) + sum(max(line.amount, 0) for line in life.waiting)
        self._both(
            lambda: calls.cancel(life, self.at, at_end=False, gives_credit=True),
            "cancel_subscription",
            unused_time="CREDIT",
        )
        self.compare()
        kept = sum(invoice.paid for invoice in life.invoices) + self.granted - life.credit.balance
        slack = sum(len(invoice.lines) for invoice in life.invoices) + 2
        assert kept <= life.used() + slack, "more was kept than was used"
        assert kept >= life.used() - waived - slack, "less was kept than was used"

    def later(self, later: timedelta | str) -> datetime:
        """Return the instant that a step means, seen from now."""
        if isinstance(later, timedelta):
            return self.at + later
        if not self.life.spans or self.life.current.end is None:
            return self.at
        end = self.life.end
        wanted = {
            "boundary": end,
            "before boundary": end - timedelta(seconds=1),
            "after boundary": end + timedelta(seconds=1),
            "halfway": self.at + timedelta(seconds=(end - self.at).total_seconds() // 2),
            "soon": self.at + timedelta(seconds=(end - self.at).total_seconds() // 7),
        }[later]
        return max(self.at, wanted)

    def _sign_up(self) -> dict[str, object]:
        order = self.order
        return {
            "customer_id": self.driver.customer,
            "plan_code": order.plan.code,
            "idempotency_key": f"sign up {next(self.keys)}",
            "quantity": order.quantity,
            "trial_days": order.trial_days,
            "payment_behavior": "GRANT_FIRST" if order.grants_first else "PAY_FIRST",
            "anchor_day": order.day,
            "auto_renew": order.periods is None,
            "term_periods": order.periods,
            "dunning_policy": order.policy.code,
        }

    def _both(self, predict: Callable[[], None], function: str, **arguments: object) -> None:
        before = copy.deepcopy(self.life)
        refusal = None
        try:
            predict()
        except RefusedError as refused:
            refusal = refused.code
            self.life = before
            self.credit = before.credit
        self.reached[f"{function} {refusal or 'done'}"] += 1
        if refusal is None:
            self.driver.call(function, self.at, **arguments)
            return
        with pytest.raises(psycopg.Error) as raised:
            self.driver.call(function, self.at, **arguments)
        assert raised.value.sqlstate == refusal

    def _work(self, kind: str) -> None:
        if kind == "nothing" or self.life.status in OVER:
            return
        life, at = self.life, self.at
        self.driver.renew(at)
        renewing.renew_due(life, at)
        if kind != "renew":
            self.driver.collect(at, succeeds=kind == "pay")
            collecting.collect(life, at, succeeds=kind == "pay")
        self.driver.sweep(at)
        collecting.end_dunning(life, at)
        calls.expire_checkout(life, at)
        self.compare()

    def _wait(self, step: Step) -> None:
        pass

    def _change(self, step: Step) -> None:
        self._both(
            lambda: calls.change_plan(
                self.life, step.plan, step.quantity, step.timing, self.at, grants_first=step.flag
            ),
            "change_plan",
            plan_code=step.plan.code,
            quantity=step.quantity,
            timing=step.timing,
            payment_behavior="GRANT_FIRST" if step.flag else "PAY_FIRST",
        )

    def _undo_change(self, _: Step) -> None:
        self._both(lambda: calls.undo_change(self.life, self.at), "undo_change")

    def _pause(self, step: Step) -> None:
        self._both(
            lambda: calls.pause(self.life, self.at, at_end=step.flag),
            "pause_subscription",
            at_period_end=step.flag,
        )

    def _resume(self, _: Step) -> None:
        self._both(lambda: calls.resume(self.life, self.at), "resume_subscription")

    def _cancel_at_end(self, _: Step) -> None:
        self._both(
            lambda: calls.cancel(self.life, self.at, at_end=True, gives_credit=False),
            "cancel_subscription",
            at_period_end=True,
        )

    def _cancel_now(self, step: Step) -> None:
        self._both(
            lambda: calls.cancel(self.life, self.at, at_end=False, gives_credit=step.flag),
            "cancel_subscription",
            unused_time="CREDIT" if step.flag else "NONE",
        )

    def _undo_cancel(self, _: Step) -> None:
        self._both(lambda: calls.undo_cancel(self.life, self.at), "undo_cancel")

    def _extend_trial(self, step: Step) -> None:
        end = self.at
        if self.life.spans and self.life.current.end is not None:
            end = self.life.end
        end += timedelta(seconds=(step.amount - 1000) * 100)
        self._both(
            lambda: calls.extend_trial(self.life, end, self.at), "extend_trial", trial_end=end
        )

    def _renew_now(self, _: Step) -> None:
        self._both(lambda: calls.renew_now(self.life, self.at), "renew_now")

    def _grant(self, step: Step) -> None:
        self.credit.give(step.amount)
        self.granted += step.amount
        self.driver.grant_credit(step.amount, f"grant {next(self.keys)}", self.at)

    def _checkout_again(self, _: Step) -> None:
        if self.order.day is None:
            for invoice in self.life.open_invoices if self.order.has_method else ():
                invoice.due = min(invoice.due or self.at, self.at)
            again = self.driver.call("create_subscription", self.at, **self._sign_up())
            assert again == self.driver.subscription


def picture(life: Life, instants: list[datetime]) -> dict[str, Any]:
    """Return what can be seen of a life, as the driver shows it."""
    pending = life.change.plan.code if life.change else None
    if pending is None and life.pending is not None:
        pending = life.pending[0].code
    return {
        "status": life.status,
        "plan": life.plan.code,
        "quantity": life.quantity,
        "pending": pending,
        "cancels": life.cancels_at_end,
        "pauses": life.pauses_at_end,
        "ended": _epoch(life.ended),
        "reason": life.reason,
        "term_end": _epoch(life.term_end),
        "periods": [[span.kind, _epoch(span.start), _epoch(span.end)] for span in life.spans],
        "invoices": [
            [
                *(invoice.kind, invoice.status, invoice.total),
                *(invoice.credit, invoice.paid, invoice.carried),
                *(_epoch(invoice.start), _epoch(invoice.end), _epoch(invoice.due)),
                [[line.kind, line.amount] for line in invoice.lines],
            ]
            for invoice in life.invoices
        ],
        "waiting": [line.amount for line in life.waiting],
        "credit": life.credit.balance,
        "access": [life.has_access(at) for at in instants],
    }


def _epoch(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp())


def live_twice(
    connection: psycopg.Connection,
    name: str,
    order: calls.Order,
    start: datetime,
    steps: list[Step],
) -> None:
    """Live a history through the engine and through the model."""
    driver = Driver(
        connection, name, order.zone, start, has_method=order.has_method, minimum=order.minimum
    )
    history = History(driver, order, start)
    try:
        for step in steps:
            if history.life.status in OVER:
                break
            history.take(step)
        history.settle_up()
    finally:
        # Nothing of this history is to be due in the next one.
        driver.close(history.at)
    assert driver.violations() == []


@pytest.fixture
def _from_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Draw from nothing but the seed.

    Hypothesis mixes in constants from all modules of ours that happen to be loaded, so that the
    histories would hang on which other tests this process has run.
    """
    monkeypatch.setattr(providers, "_get_local_constants", Constants)
    providers.CONSTANTS_CACHE.cache.clear()
    yield
    providers.CONSTANTS_CACHE.cache.clear()


@pytest.mark.usefixtures("_from_the_seed_alone")
def test_engine_and_model_agree(connection: psycopg.Connection) -> None:
    numbers = itertools.count()

    @settings(
        max_examples=int(EXAMPLES or 40),
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
    @given(order=ORDERS, start=STARTS, steps=_STEPS)
    def histories(order: calls.Order, start: datetime, steps: list[Step]) -> None:
        live_twice(connection, f"history-{next(numbers)}", order, start, steps)

    seen = History.reached
    seen.clear()
    wanted = {f"{function} done" for function in FUNCTIONS}
    wanted |= {f"status {status}" for status in LIVE | OVER} | {"four years later"}
    for heat in range(HEATS):
        # The same histories each time, unless more are asked for; the next lot only where these
        # have not been everywhere.
        if EXAMPLES is None:
            seed(FIRST_SEED + heat)(histories)
        histories()
        if wanted <= set(seen):
            break
    print("\n".join(f"{count:6} {what}" for what, count in sorted(seen.items())))  # noqa: T201
    assert wanted - set(seen) == set(), "these histories say nothing about what they never reached"
