"""The database as a worker sees it: one role, short waits, errors translated."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import psycopg
import pytest

from billing_shell.database import RELAY_ROLE, Database, session_conninfo
from billing_shell.errors import BillingError, DatabaseError, RetryableError
from tests.py.support.outage import outage
from tests.py.support.servers import TestPostgres
from tests.py.support.world import World


@dataclass(frozen=True)
class Session:
    """What a session says of itself."""

    role: str
    login: str
    zone: str
    path: str
    name: str
    statements: str
    locks: str


SESSION = """
    SELECT
        current_user::text AS role, session_user::text AS login,
        current_setting('timezone') AS zone, current_setting('search_path') AS path,
        current_setting('application_name') AS name,
        current_setting('statement_timeout') AS statements, current_setting('lock_timeout') AS locks
"""


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url, application_name="a worker") as opened:
        yield opened


@pytest.fixture
def login(postgres: TestPostgres, database_url: str) -> Iterator[str]:
    """A login that is a member of billing_worker and of nothing else; its URL."""
    with psycopg.connect(postgres.url, autocommit=True) as server:
        server.execute("CREATE ROLE test_worker LOGIN PASSWORD 'secret' IN ROLE billing_worker")
        yield database_url.replace("postgres@", "test_worker:secret@")
        server.execute("DROP ROLE test_worker")


async def test_a_session_has_its_role_from_the_first_statement_on(database: Database) -> None:
    (session,) = await database.rows(SESSION, {}, Session)
    assert session == Session(
        "billing_worker", session.login, "UTC", "pg_catalog", "a worker", "1min", "5s"
    )
    assert session.login != "billing_worker"


async def test_it_can_do_what_a_worker_may_and_no_more(database: Database) -> None:
    assert await database.value("SELECT billing_worker.renew_due(p_limit => 1)", {}) == 0
    for forbidden in (
        "SELECT count(*) FROM billing.customer",
        "SELECT billing_ops.pause_renewing()",
        "SELECT * FROM billing_worker.lease_outbox('relay', 1)",
        "SET ROLE billing_owner",
    ):
        if forbidden.startswith("SET"):
            # A superuser may; a worker's own login may not, see the next test.
            continue
        with pytest.raises(DatabaseError) as caught:
            await database.value(forbidden, {})
        assert caught.value.code == "42501"


async def test_a_login_of_a_workers_own_suffices(login: str) -> None:
    async with Database(login, application_name="a worker") as database:
        assert await database.value("SELECT billing_worker.renew_due(p_limit => 1)", {}) == 0
        with pytest.raises(DatabaseError) as caught:
            await database.value("SET ROLE billing_owner", {})
        assert caught.value.code == "42501"


async def test_a_login_without_the_role_is_refused_at_once(login: str) -> None:
    conninfo = session_conninfo(login, role=RELAY_ROLE, application_name="a relay")
    with pytest.raises(psycopg.OperationalError, match="permission denied to set role"):
        psycopg.connect(conninfo)


def test_what_the_url_says_about_time_outs_stays(database_url: str) -> None:
    url = f"{database_url}?options=-c%20lock_timeout%3D7s&keepalives_idle=3"
    conninfo = session_conninfo(url, role="billing_worker", application_name="x" * 99)
    with psycopg.connect(conninfo) as connection:
        assert connection.info.get_parameters()["keepalives_idle"] == "3"
        ((locks, role, name),) = connection.execute(
            "SELECT current_setting('lock_timeout'), current_user,"
            " length(current_setting('application_name'))"
        ).fetchall()
    assert (locks, role, name) == ("7s", "billing_worker", 63)


async def test_a_database_that_was_not_migrated_is_told_so(postgres: TestPostgres) -> None:
    with postgres.database() as name:
        database = Database(postgres.database_url(name), application_name="a worker")
        with pytest.raises(DatabaseError) as caught:
            await database.open()
    assert "billing migrate" in caught.value.hint


async def test_an_address_where_nobody_is_is_said_at_once() -> None:
    database = Database("postgresql://nobody@127.0.0.1:9/billing", application_name="a worker")
    with pytest.raises(RetryableError) as caught:
        await database.open()
    assert caught.value.code == "08000"


async def test_the_engines_refusals_come_as_they_are(database: Database) -> None:
    with pytest.raises(BillingError) as caught:
        await database.value("SELECT billing_worker.renew_due(p_limit => 0)", {})
    assert caught.value.code == "SB101"


async def test_after_an_outage_calls_go_through_again(database_url: str) -> None:
    World(database_url).close()
    async with Database(database_url, application_name="a worker") as database:
        call = "SELECT billing_worker.renew_due(p_limit => 1)"
        await database.value(call, {})
        with outage(database_url):
            # Twice: once the connection is lost, once there is none to be had.
            for _ in range(2):
                with pytest.raises(RetryableError):
                    await database.value(call, {})
        assert await database.value(call, {}) == 0
