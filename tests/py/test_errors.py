"""Errors of the database, as real servers raise them."""

import socket
import threading
from collections.abc import Callable

import psycopg
import pytest

from billing_shell.errors import BillingError, DatabaseError, RetryableError, translate
from tests.py.support.world import World

Provoke = Callable[[str], None]


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def raised(provoke: Callable[[], None]) -> DatabaseError:
    with pytest.raises(psycopg.Error) as caught:
        provoke()
    return translate(caught.value)


def test_the_engines_own_refusal_says_what_where_and_what_to_do(database_url: str) -> None:
    World(database_url).close()
    error = raised(
        lambda: execute(
            database_url,
            "SELECT billing_api.create_plan('BASIC', 'Twice', 1, 'USD', 'MONTH')",
        )
    )
    assert type(error) is BillingError
    assert error.code == "SB309"
    assert error.message
    assert error.detail.isdecimal()
    assert "SB309" in str(error)


def test_an_error_of_the_server_keeps_its_rows_to_itself(database_url: str) -> None:
    error = raised(
        lambda: execute(
            database_url,
            "CREATE TABLE t (token text PRIMARY KEY)",
            "INSERT INTO t VALUES ('tok_secret'), ('tok_secret')",
        )
    )
    assert type(error) is DatabaseError
    assert error.code == "23505"
    assert "tok_secret" not in f"{error} {error.message} {error.detail} {error.hint}"


def lock_timeout(url: str) -> None:
    with psycopg.connect(url) as holder:
        holder.execute("LOCK TABLE billing.plan")
        execute(url, "SET lock_timeout = '10ms'", "TABLE billing.plan")


def statement_timeout(url: str) -> None:
    execute(url, "SET statement_timeout = '10ms'", "SELECT pg_sleep(60)")


def terminated(url: str) -> None:
    with psycopg.connect(url) as connection:
        execute(url, f"SELECT pg_terminate_backend({connection.info.backend_pid})")
        connection.execute("SELECT 1")


def serialization(url: str) -> None:
    execute(url, "CREATE TABLE t (n integer)", "INSERT INTO t VALUES (1)")
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("TABLE t")
        execute(url, "UPDATE t SET n = 2")
        connection.execute("UPDATE t SET n = 3")


def deadlock(url: str) -> None:
    execute(url, "CREATE TABLE t (n integer)", "INSERT INTO t VALUES (1), (2)")
    with psycopg.connect(url) as one, psycopg.connect(url) as other:
        errors: list[psycopg.Error] = []

        def lock(connection: psycopg.Connection, n: int) -> None:
            try:
                connection.execute("UPDATE t SET n = n WHERE n = %s", (n,))
            except psycopg.Error as error:
                errors.append(error)

        lock(one, 1)
        lock(other, 2)
        crossing = threading.Thread(target=lock, args=(one, 2))
        crossing.start()
        lock(other, 1)
        crossing.join()
        raise errors[0]


def nobody_there(_url: str) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        # Taken, so that nobody else listens there meanwhile.
        psycopg.connect(f"postgresql://nobody@127.0.0.1:{port}/billing")


def closed_connection(url: str) -> None:
    connection = psycopg.connect(url)
    connection.close()
    connection.execute("SELECT 1")


@pytest.mark.parametrize(
    ("provoke", "code"),
    [
        (lock_timeout, "55P03"),
        (statement_timeout, "57014"),
        (terminated, "57P01"),
        (serialization, "40001"),
        (deadlock, "40P01"),
        (nobody_there, "08000"),
        (closed_connection, "08000"),
    ],
)
def test_what_may_go_better_next_time_is_told_apart(
    database_url: str, provoke: Provoke, code: str
) -> None:
    error = raised(lambda: provoke(database_url))
    assert type(error) is RetryableError
    assert error.code == code


def test_an_engine_that_says_try_again_is_tried_again(database_url: str) -> None:
    error = raised(
        lambda: execute(
            database_url,
            "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'SB401', DETAIL = 'why'; END $$",
        )
    )
    assert type(error) is RetryableError
    assert (error.code, error.detail) == ("SB401", "why")
