"""The bench has teeth: a bug in any of these functions does not get past it.

Each bug is put into a copy of the database, and a short simulation with many faults runs on it. It
is caught by the integrity check, by the gateway's ledger, by the events, or by a constraint that
refuses to store what it does; `docs/reliability.md` says which caught which.
"""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import psycopg
import pytest

from billing_shell.embedded import temporary_data_dir
from billing_shell.errors import DatabaseError
from billing_shell.simulate import SimulationOptions, simulate
from billing_shell.simulate_engine import NeverQuietError
from tests.py.support.business import Business
from tests.py.support.mutations import MUTATIONS
from tests.py.support.servers import TestPostgres

pytestmark = pytest.mark.long

OPTIONS = SimulationOptions(seed=4, days=36, subscriptions=24, faults=0.3)

_SETTLE = """
    SELECT billing_worker.settle_attempts(ARRAY[ROW(
        a.customer_id, a.attempt_id, %s, %s, NULL, NULL, NULL, 'some_code', NULL, NULL, %s
    )::billing.charge_result])
    FROM billing.payment_attempt AS a
"""


def caught_by_simulation(database_url: str) -> set[str]:
    """Return what caught it: checks by name, `books`, or the SQLSTATE that ended the run."""
    with temporary_data_dir() as directory:
        try:
            report = simulate(database_url, directory, OPTIONS)
        except DatabaseError as error:
            return {error.code}
        except NeverQuietError:
            return {"never quiet"}
    caught = {violation.check_name for violation in report.violations}
    return caught | ({"books"} if report.findings else set())


def caught_by_a_race(database_url: str) -> set[str]:
    """Renew everything in four sessions at once, and return what caught it."""
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(psycopg.connect(database_url, autocommit=True)) for _ in range(5)
        ]
        business = Business(sessions[0])
        for number in range(40):
            business.sign_up(f"customer {number}")
        business.collect()
        business.set_clock("2027-02-28T10:00:00Z")
        barrier = Barrier(4)

        def renew(session: psycopg.Connection) -> int:
            barrier.wait(30)
            (taken_up,) = session.execute("SELECT billing_worker.renew_due(1000)").fetchall()[0]
            return int(taken_up)

        with ThreadPoolExecutor(4) as pool:
            outcomes = [pool.submit(renew, session) for session in sessions[1:]]
        failed = {type(o.exception()).__name__ for o in outcomes if o.exception() is not None}
        parked = business.value(
            "SELECT count(*) FROM billing.subscription WHERE parked_at IS NOT NULL"
        )
        checks = {str(violation["check_name"]) for violation in business.violations()}
        twice = not failed and sum(outcome.result() for outcome in outcomes) > 40
        return (
            failed
            | checks
            | ({"parked"} if parked else set())
            | ({"taken up twice"} if twice else set())
        )


def caught_by_a_late_word(database_url: str) -> set[str]:
    """Have a worker speak up after another has asked anew, and return what caught it."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        business = Business(connection)
        business.sign_up("customer", token="tok_unknown")
        business.collect()
        business.set_clock("2027-01-31T10:01:00Z")
        business.value("SELECT billing_worker.attempts_to_look_up('simulated', 10)")
        business.value(_SETTLE, 2, "NOT_FOUND", "LOOKUP")
        business.value(_SETTLE, 1, "DECLINED", "SEND")
        return {str(violation["check_name"]) for violation in business.violations()}


OTHERWISE = {
    "a claim takes no lock": caught_by_a_race,
    "an old claim is believed": caught_by_a_late_word,
}


@pytest.mark.parametrize("bug", MUTATIONS)
def test_a_bug_is_caught(postgres: TestPostgres, template_database: str, bug: str) -> None:
    with postgres.database(template=template_database) as name:
        url = postgres.database_url(name)
        with psycopg.connect(url, autocommit=True) as connection:
            MUTATIONS[bug].apply(connection)
        caught = OTHERWISE.get(bug, caught_by_simulation)(url)
        print(f"MUTATION {bug}: {', '.join(sorted(caught))}")  # noqa: T201 - for the table
        assert caught, f"{bug}, and nothing has noticed"


def test_without_a_bug_nothing_is_caught(postgres: TestPostgres, template_database: str) -> None:
    for catch in (caught_by_simulation, *OTHERWISE.values()):
        with postgres.database(template=template_database) as name:
            assert catch(postgres.database_url(name)) == set()
