"""A state machine over the SQL API: several customers on one clock, through engine and model.

Workers take up whatever is due, of whomever it is, in one batch: what one customer does must not
show in what becomes of another. BILLING_MODEL_EXAMPLES asks for more than a run of all tests has
time for; the runs are then chosen anew each time.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import ClassVar

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.py.model import calls, collecting, renewing
from tests.py.model.life import OVER
from tests.py.support.lifecycle import Driver
from tests.py.support.servers import TestPostgres
from tests.py.test_lifecycle_model import (
    A_STEP,
    EXAMPLES,
    LATER,
    ORDERS,
    STARTS,
    History,
    Step,
    shop,
)

_MOST = 3
_RULES = ("sign_up", "wait", "renew", "collect", "sweep", "call")


@pytest.fixture(scope="module")
def connection(postgres: TestPostgres, template_database: str) -> Iterator[psycopg.Connection]:
    """Shared by all runs, which end what they began."""
    with shop(postgres, template_database) as opened:
        yield opened


class Market(RuleBasedStateMachine):
    """Up to three customers with a subscription each.

    Attributes:
        database: of all of them.
        taken: how often each rule was.
    """

    database: ClassVar[psycopg.Connection]
    taken: ClassVar[Counter[str]] = Counter()
    numbers: ClassVar[Iterator[int]] = itertools.count()
    at: datetime

    def __init__(self) -> None:
        super().__init__()
        self.everybody: list[History] = []

    @property
    def live(self) -> list[History]:
        return [history for history in self.everybody if history.life.status not in OVER]

    @initialize(start=STARTS)
    def open(self, start: datetime) -> None:
        self.at = start

    @precondition(lambda self: len(self.live) < _MOST)
    @rule(order=ORDERS)
    def sign_up(self, order: calls.Order) -> None:
        self.taken["sign_up"] += 1
        name = f"customer-{next(self.numbers)}"
        driver = Driver(
            self.database,
            name,
            order.zone,
            self.at,
            has_method=order.has_method,
            minimum=order.minimum,
        )
        self.everybody.append(History(driver, order, self.at))

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, _MOST - 1), later=LATER)
    def wait(self, which: int, later: timedelta | str) -> None:
        self.taken["wait"] += 1
        self.at = self._one(which).later(later)
        for history in self.everybody:
            history.at = self.at
        note(f"it is {self.at:%Y-%m-%d %H:%M:%S}")

    @precondition(lambda self: self.live)
    @rule()
    def renew(self) -> None:
        self.taken["renew"] += 1
        self.live[0].driver.renew(self.at)
        for history in self.live:
            renewing.renew_due(history.life, self.at)

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, _MOST - 1), succeeds=st.sampled_from([True, True, False]))
    def collect(self, which: int, *, succeeds: bool) -> None:
        self.taken["collect"] += 1
        history = self._one(which)
        # Who collects for one account also sees to those who have no payment method at all.
        for each in self.live:
            if each is history or not each.life.has_method:
                each.driver.collect(self.at, succeeds=succeeds)
                collecting.collect(each.life, self.at, succeeds=succeeds)

    @precondition(lambda self: self.live)
    @rule()
    def sweep(self) -> None:
        self.taken["sweep"] += 1
        self.live[0].driver.sweep(self.at)
        for history in self.live:
            collecting.end_dunning(history.life, self.at)
            calls.expire_checkout(history.life, self.at)

    @precondition(lambda self: self.live)
    @rule(which=st.integers(0, _MOST - 1), step=A_STEP)
    def call(self, which: int, step: Step) -> None:
        self.taken["call"] += 1
        self._one(which).act(step)

    @invariant()
    def everybody_is_as_the_model_says(self) -> None:
        for history in self.everybody:
            history.compare()

    def teardown(self) -> None:
        for history in self.everybody:
            history.driver.close(self.at)
        assert [history.driver.violations() for history in self.everybody] == [
            [] for _ in self.everybody
        ]

    def _one(self, which: int) -> History:
        return self.live[which % len(self.live)]


def test_what_several_customers_do_agrees_with_the_model(connection: psycopg.Connection) -> None:
    Market.database = connection
    Market.taken.clear()
    run_state_machine_as_test(
        Market,
        settings=settings(
            max_examples=int(EXAMPLES or 25),
            stateful_step_count=20,
            derandomize=EXAMPLES is None,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )
    assert set(Market.taken) == set(_RULES), "these runs say nothing about what they never did"
