"""Every rule in `tests/sql/meta/` bites: it must find what is broken on purpose."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from billing_shell.sql_files import SqlFile
from tests.py.support.servers import TestPostgres
from tests.sql.conftest import SESSION
from tests.sql.harness.tap import Outcome, run_tap

META = Path(__file__).parent / "meta"

CONTRACT = """
-- Locks:      nothing
-- Writes:     nothing
-- Raises:     nothing
-- Idempotent: yes
"""


def plpgsql(
    name: str, *, parameters: str = "", returns: str = "void", head: str = "", body: str = "NULL;"
) -> str:
    """A function that breaks one rule; what it breaks besides does not matter."""
    return f"""
        CREATE FUNCTION {name}({parameters}) RETURNS {returns} LANGUAGE plpgsql {head}
        AS $f${CONTRACT}BEGIN {body} END;$f$;
    """


BREAKS = {
    "business_time_is_a_parameter": {
        "no function reads a clock without a reason in this list": plpgsql(
            "billing.broken", body="PERFORM now();"
        ),
        "the list has nobody on it who reads no clock": """
            CREATE OR REPLACE FUNCTION billing.now() RETURNS timestamptz
            LANGUAGE sql STABLE AS $f$ SELECT '2027-01-01Z'::timestamptz $f$;
        """,
        "p_as_of is the business clock unless the caller says otherwise": plpgsql(
            "billing_api.broken", parameters="p_as_of timestamptz"
        ),
    },
    "errors_are_catalogued": {
        "every error is of class SB": """
            INSERT INTO billing_test.sql_file
            VALUES ('db/functions/x/y.sql', 'RAISE EXCEPTION USING ERRCODE = ''P0001'';', '{}');
        """,
        "every error that a file raises stands in the catalogue": """
            INSERT INTO billing_test.sql_file
            VALUES ('db/functions/x/y.sql', 'RAISE EXCEPTION USING ERRCODE = ''SB999'';', '{}');
        """,
        "every error in the catalogue is raised somewhere": """
            INSERT INTO billing.error_code VALUES ('SB999', 'never_raised', 500, 'Never.');
        """,
        "nothing raises without an ERRCODE": """
            INSERT INTO billing_test.sql_file
            VALUES ('db/migrations/V1.sql', 'RAISE EXCEPTION ''no'';', '{}');
        """,
    },
    "functions_and_files_match": {
        "every function and view of the database has a file": plpgsql("billing.broken"),
        "every function and view of a file is in the database": """
            INSERT INTO billing_test.sql_file
            VALUES ('db/functions/x/y.sql', '', '{billing.missing}');
        """,
        "every file below db/functions creates one function, and is called like it": """
            INSERT INTO billing_test.sql_file VALUES ('db/functions/x/y.sql', '', '{billing.now}');
        """,
        "every file in db/views creates one view": """
            INSERT INTO billing_test.sql_file VALUES ('db/views/y.sql', '', '{}');
        """,
        "nothing is created by two files": """
            INSERT INTO billing_test.sql_file
            VALUES ('db/functions/x/now.sql', '', '{billing.now}');
        """,
        "every file comments on what it creates, without an argument list,"
        " which finds a leftover overload": """
            INSERT INTO billing_test.sql_file
            VALUES ('db/functions/x/y.sql', 'COMMENT ON FUNCTION billing.y() IS', '{billing.y}');
        """,
    },
    "functions_are_sound": {
        "there are functions to look at": """
            DROP SCHEMA billing, billing_api, billing_worker, billing_ops CASCADE;
        """,
        "no function is overloaded": plpgsql("billing.now", parameters="p_x integer"),
        "every function is written in SQL or PL/pgSQL, which every managed service has": """
            CREATE FUNCTION billing.broken() RETURNS float8 LANGUAGE internal AS 'drandom';
        """,
        "every function that is not bound at creation pins an empty search_path": plpgsql(
            "billing.broken", head="SET search_path = billing"
        ),
        "every function has a comment": plpgsql("billing.broken"),
        "PUBLIC may execute nothing": "GRANT EXECUTE ON FUNCTION billing.now TO public;",
        "every function belongs to billing_owner": plpgsql("billing.broken"),
        "SECURITY DEFINER stands on entry points only": plpgsql(
            "billing.broken", head="SECURITY DEFINER"
        ),
        "every entry point is SECURITY DEFINER, because its caller may touch no table": plpgsql(
            "billing_api.broken"
        ),
        "every PL/pgSQL body begins with its contract: Locks, Writes, Raises, Idempotent": """
            CREATE FUNCTION billing.broken() RETURNS void LANGUAGE plpgsql AS $f$
            -- Locks:      nothing
            -- Writes:
            -- Raises:     nothing
            -- Idempotent: yes
            BEGIN NULL; END;$f$;
        """,
        "every SQLSTATE that a body raises stands in its contract": plpgsql(
            "billing.broken", body="RAISE EXCEPTION USING ERRCODE = 'SB901';"
        ),
        "no PL/pgSQL function RETURNS TABLE, whose columns would be variables in the body": plpgsql(
            "billing.broken", returns="TABLE (id integer)"
        ),
        "every parameter is called p_ and something": plpgsql(
            "billing.broken", parameters="p_good integer, INOUT bad integer", returns="integer"
        ),
        "every dynamic statement is a literal, or a format() that quotes what it takes in": plpgsql(
            "billing.broken",
            parameters="p_x text",
            body="EXECUTE 'DROP TABLE ' || p_x; EXECUTE p_x;",
        ),
    },
    "keys_and_constraints": {
        "every table has a primary key": "CREATE TABLE billing.broken (id integer);",
        "every foreign key whose parent can go has an index": """
            CREATE TABLE billing.broken (
                id integer CONSTRAINT broken_pkey PRIMARY KEY,
                code text CONSTRAINT broken_has_a_code REFERENCES billing.error_code
            );
        """,
        "every constraint is named after what it enforces, in lower case,"
        " and a primary key after its table": """
            CREATE TABLE billing.broken (id integer PRIMARY KEY, x integer CHECK (x > 0));
        """,
        "no two constraints have the same name": """
            CREATE TABLE billing.one (x integer CONSTRAINT is_positive CHECK (x > 0));
            CREATE TABLE billing.two (x integer CONSTRAINT is_positive CHECK (x > 0));
        """,
        "no constraint is deferrable or only half believed": """
            CREATE TABLE billing.broken (x integer CONSTRAINT x_is_unique UNIQUE DEFERRABLE);
        """,
        "every table survives a crash": "CREATE UNLOGGED TABLE billing.broken (id integer);",
        "no column has a type that loses money, time or text": """
            CREATE TABLE billing.broken (starts_at timestamp);
        """,
    },
    "plpgsql_check_finds_nothing": {
        "plpgsql_check finds nothing": plpgsql("billing.broken", body="PERFORM billing.no_such();"),
        "every trigger function guards a table": plpgsql("billing.broken", returns="trigger"),
    },
    "privileges_are_narrow": {
        "every schema belongs to billing_owner": "ALTER SCHEMA billing OWNER TO current_user;",
        "every table, view and sequence belongs to billing_owner": """
            ALTER TABLE billing.currency OWNER TO current_user;
        """,
        "every type belongs to billing_owner": "CREATE TYPE billing.broken AS (x integer);",
        "nobody but the owner may change a table, not even through a view": """
            GRANT UPDATE ON billing.currency TO billing_operator;
        """,
        "nobody but the owner may draw from a sequence": """
            GRANT USAGE ON ALL SEQUENCES IN SCHEMA billing TO billing_app;
        """,
        "nobody but the owner may create anything, and PUBLIC sees no schema": """
            GRANT USAGE ON SCHEMA billing_api TO public;
        """,
        "no role of the engine logs in or has a power of its own": "ALTER ROLE billing_app LOGIN;",
    },
    "schema_is_documented": {
        "the engine has its four schemas": "ALTER SCHEMA billing_ops RENAME TO ops;",
        "every schema has a comment": "COMMENT ON SCHEMA billing IS NULL;",
        "every table and view has a comment": "COMMENT ON TABLE billing.currency IS NULL;",
        "every column of a table has a comment": "COMMENT ON COLUMN billing.currency.code IS NULL;",
        "every type has a comment": "CREATE TYPE billing.broken AS (x integer);",
    },
}


@pytest.fixture(scope="module")
def connection(postgres: TestPostgres, sql_template: str) -> Iterator[Connection[Any]]:
    with (
        postgres.database(template=sql_template) as name,
        psycopg.connect(postgres.database_url(name), autocommit=True) as opened,
    ):
        opened.execute(SESSION)
        opened.execute("SET client_min_messages = error")
        yield opened


def run(connection: Connection[Any], rule: str, broken: str = "") -> Outcome:
    """Runs a file of rules in one transaction with what was broken, which the file takes back."""
    if broken:
        connection.execute(f"BEGIN; {broken}".encode())
    return run_tap(connection, SqlFile(rule, (META / f"{rule}.sql").read_text()))


def test_every_rule_is_here(connection: Connection[Any]) -> None:
    rules = {path.stem for path in META.glob("*.sql")}
    assert rules == set(BREAKS)
    for rule in sorted(rules):
        found = [a.description for a in run(connection, rule).assertions if a.skipped is None]
        assert set(found) <= set(BREAKS[rule])


@pytest.mark.parametrize(
    ("rule", "sentence"), [(rule, sentence) for rule in BREAKS for sentence in BREAKS[rule]]
)
def test_what_breaks_a_rule_is_found(connection: Connection[Any], rule: str, sentence: str) -> None:
    outcome = run(connection, rule, BREAKS[rule][sentence])
    assert outcome.faults == ()
    if any(assertion.skipped for assertion in outcome.assertions) and "plpgsql_check" in sentence:
        pytest.skip("this server has no plpgsql_check; BILLING_TEST_POSTGRES=debian15 has")
    (assertion,) = (a for a in outcome.assertions if a.description == sentence)
    assert not assertion.passed
