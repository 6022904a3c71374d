"""The negative control: each sabotage breaks today's engine, or says that it cannot."""

import psycopg
import pytest

from billing_shell.sabotage import Sabotage, SabotageError, break_database

_BODY = "SELECT prosrc FROM pg_proc WHERE oid = %s::regproc"


@pytest.mark.parametrize(
    ("sabotage", "function"),
    [
        (Sabotage.NO_EPOCH, "billing.judge_results"),
        (Sabotage.PERIOD_OUTSIDE_TX, "billing.renew_claimed"),
    ],
)
def test_the_text_to_replace_is_there_once_and_only_once(
    database_url: str, sabotage: Sabotage, function: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        before = connection.execute(_BODY, (function,)).fetchone()
        break_database(database_url, sabotage)
        after = connection.execute(_BODY, (function,)).fetchone()

    assert before != after
    with pytest.raises((SabotageError, psycopg.errors.DuplicateTable)):
        break_database(database_url, sabotage)


def test_random_keys_leave_the_database_alone(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        before = connection.execute("SELECT md5(string_agg(prosrc, '')) FROM pg_proc").fetchone()
        break_database(database_url, Sabotage.RANDOM_KEY)
        assert (
            connection.execute("SELECT md5(string_agg(prosrc, '')) FROM pg_proc").fetchone()
            == before
        )
