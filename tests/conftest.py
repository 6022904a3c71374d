"""Fixtures for all tests: servers once per session, a fresh database per test.

BILLING_TEST_POSTGRES chooses the PostgreSQL: `embedded` (default), `debian15` or `container`;
BILLING_TEST_DATABASE_URL names one that runs already, as a superuser.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from billing_shell.embedded import KafkaBroker, RedisServer, temporary_data_dir
from billing_shell.migrate import migrate
from tests.py.support.case_outcomes import CaseOutcomes
from tests.py.support.containers import require_engine
from tests.py.support.servers import TestPostgres, running_postgres


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the second round, on another PostgreSQL, needs."""
    parser.addoption(
        "--only-postgres",
        action="store_true",
        help="only tests that say something else on another PostgreSQL",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hold what is skipped against the cases; where all reports come together."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(CaseOutcomes())


# Minutes each. Two sessions end at about the same time only if neither begins one of these late.
_LONGEST = {
    "test_demo.py",
    "test_first_of_month.py",
    "test_kill_points.py",
    "test_lifecycle_races.py",
    "test_refunds.py",
    "test_simulate.py",
    "test_worker.py",
}

# Long stories and whole processes: what they say hangs on no version of PostgreSQL, and the
# functions that they call are tested one by one on each.
_TOLD_ONCE = {
    "test_api_schema.py",
    "test_chaos.py",
    "test_cli.py",
    "test_crash_bench.py",
    "test_demo.py",
    "test_first_of_month.py",
    "test_importer.py",
    "test_kata.py",
    "test_kill_points.py",
    "test_lifecycle_model.py",
    "test_mutations.py",
    "test_outages.py",
    "test_sabotage.py",
    "test_settlements.py",
    "test_simulate.py",
    "test_stripe.py",
    "test_worker.py",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the longest first; leave out what `--only-postgres` leaves out."""
    items.sort(key=lambda item: item.path.name not in _LONGEST)
    if not config.getoption("--only-postgres"):
        return
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        needed = "postgres" in getattr(item, "fixturenames", ())
        again = needed and item.path.name not in _TOLD_ONCE
        (kept if again else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests marked `container` where no Docker engine answers."""
    if item.get_closest_marker("container"):
        require_engine()


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A new directory for servers of this test's own.

    Not tmp_path: the account that root's servers run as cannot reach anything below it.
    """
    with temporary_data_dir() as directory:
        yield directory


@pytest.fixture(scope="session")
def session_data_dir() -> Iterator[Path]:
    """A new directory for this session's servers."""
    with temporary_data_dir() as directory:
        yield directory


@pytest.fixture(scope="session")
def postgres(session_data_dir: Path) -> Iterator[TestPostgres]:
    """The PostgreSQL server of this session."""
    with running_postgres(session_data_dir) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(session_data_dir: Path) -> Iterator[RedisServer]:
    """The server of the Redis protocol of this session, shared: use keys of your own."""
    with RedisServer(session_data_dir / "redis") as server:
        yield server


@pytest.fixture(scope="session")
def kafka_broker(session_data_dir: Path) -> Iterator[KafkaBroker]:
    """The broker of the Kafka protocol of this session, shared: use topics of your own."""
    with KafkaBroker(session_data_dir / "kafka") as broker:
        yield broker


@pytest.fixture(scope="session")
def template_database(postgres: TestPostgres) -> Iterator[str]:
    """A migrated database to copy; its name. Never connect to it."""
    with postgres.database() as name:
        migrate(postgres.database_url(name))
        yield name


@pytest.fixture
def database_url(postgres: TestPostgres, template_database: str) -> Iterator[str]:
    """A migrated database of this test's own, as the superuser."""
    with postgres.database(template=template_database) as name:
        yield postgres.database_url(name)


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection to `database_url`, in autocommit mode."""
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened
