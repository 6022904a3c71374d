"""The harness itself: what it must not let pass, and what its isolation tester understands."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from billing_shell.sql_files import SqlFile
from tests.sql.conftest import SESSION
from tests.sql.harness import isolation
from tests.sql.harness.tap import read_tap, run_tap


@pytest.fixture
def connection(sql_database: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(sql_database, autocommit=True) as opened:
        opened.execute(SESSION)
        yield opened


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["ok 1 - fine"], "the file has no plan"),
        (["1..2", "ok 1 - fine"], "2 assertions were planned and 1 made"),
        (["1..1", "ok 1 - fine", "ok 2 - more"], "1 assertions were planned and 2 made"),
        (["1..0"], "the file asserts nothing"),
        ([], "the file asserts nothing"),
        (["1..1", "ok 1 - fine", "Bail out! no"], "Bail out! no"),
    ],
)
def test_a_file_is_at_fault(lines: list[str], fault: str) -> None:
    assert fault in read_tap(lines).faults


def test_lines_are_told_apart() -> None:
    outcome = read_tap(
        [
            "1..5",
            "ok 1 - a sentence with a \\# in it",
            "not ok 2 - a wrong one",
            '# Failed test 2: "a wrong one"',
            "#         have: 1",
            "ok 3 - # SKIP not here",
            "not ok 4 - later # TODO some day",
            "ok 5",
        ]
    )
    assert outcome.faults == ()
    assert [a.description for a in outcome.assertions] == [
        "a sentence with a # in it",
        "a wrong one",
        "",
        "later",
        "",
    ]
    assert [a.passed for a in outcome.assertions] == [True, False, True, True, True]
    assert [a.skipped for a in outcome.assertions] == [None, None, "not here", None, None]
    assert outcome.assertions[1].diagnostics == [
        '# Failed test 2: "a wrong one"',
        "#         have: 1",
    ]


def test_an_error_in_a_file_is_a_fault_with_its_line(connection: Connection[Any]) -> None:
    text = "BEGIN;\nSELECT plan(2);\nSELECT pass('one');\nSELECT pass(no_such());\nROLLBACK;"
    outcome = run_tap(connection, SqlFile("x.sql", text))
    assert [a.description for a in outcome.assertions] == ["one"]
    assert outcome.faults[0].startswith("x.sql:4: function no_such() does not exist")
    assert "the file leaves a transaction open" in outcome.faults


def test_rows_of_other_calls_are_not_taken_for_tap(connection: Connection[Any]) -> None:
    text = """
        BEGIN;
        SELECT plan(1);
        SELECT 'ok 7 - not an assertion' AS a, 1 AS b;
        SELECT 42;
        SELECT is(1, 1, 'an assertion');
        ROLLBACK;
    """
    outcome = run_tap(connection, SqlFile("x.sql", text))
    assert outcome.faults == ()
    assert [a.description for a in outcome.assertions] == ["an assertion"]


def test_a_statement_of_a_role_comes_back_from_it(connection: Connection[Any]) -> None:
    text = """
        BEGIN;
        SELECT plan(3);
        SELECT throws_ok(
            $$SELECT billing_test.run_as('billing_readonly', 'DELETE FROM billing.currency')$$,
            '42501', NULL, 'a reader deletes nothing'
        );
        SELECT lives_ok(
            $$SELECT billing_test.run_as('billing_owner', 'DELETE FROM billing.test_clock')$$,
            'the owner may'
        );
        SELECT is(current_user, session_user, 'and the test is itself again');
        SELECT * FROM finish();
        ROLLBACK;
    """
    outcome = run_tap(connection, SqlFile("x.sql", text))
    assert outcome.faults == ()
    assert [a.passed for a in outcome.assertions] == [True, True, True]


def test_without_permutations_every_interleaving_is_run() -> None:
    spec = isolation.parse(
        """
        session a step a1 { SELECT 1; } step a2 { SELECT 2; }
        session "b c" step "b ""1" { SELECT 3; }
        """
    )
    orders = [[call.step.name for call in calls] for calls in spec.permutations]
    assert orders == [["a1", "a2", 'b "1'], ["a1", 'b "1', "a2"], ['b "1', "a1", "a2"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("setup { SELECT 1; }", "a spec needs a session with a step"),
        ("session a step x { SELECT 1; } step x { SELECT 2; }", "two steps have the same name"),
        ("session a step x { SELECT 1; } permutation y", "undefined step 'y'"),
        ("session a step x { SELECT 1; } permutation x(y)", "undefined steps"),
        ("session a step x { SELECT 1; } ; ", "line 1 starts with nothing known"),
        ("session a step x SELECT", "a block of SQL was expected"),
        ("session a step x { SELECT 1; } session step y { SELECT 2; }", "a name was expected"),
        ("session a step x { SELECT 1; } permutation x(x notices 2)", "notices"),
    ],
)
def test_a_spec_that_isolationtester_would_refuse_is_refused(text: str, message: str) -> None:
    with pytest.raises(isolation.SpecError, match=message):
        isolation.parse(text)


def test_steps_that_wait_for_each_other_are_a_fault_of_the_spec(sql_database: str) -> None:
    spec = isolation.parse(
        """
        session a
        step a1 { BEGIN; SELECT pg_advisory_xact_lock(1); }
        session b
        step b1 { SELECT pg_advisory_xact_lock(1); }
        permutation a1 b1
        """
    )
    with pytest.raises(isolation.SpecError, match="did not end"):
        isolation.run(spec, sql_database, longest_step_seconds=0.2)
