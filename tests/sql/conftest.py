"""Collects pgTAP files and isolation specs, each as one test on a database of its own.

A collector of our own in place of pytest-pgtap, which takes `test*.sql` only (here the file's name
is the function's, and its directory the sentence's), runs every file over one connection to one
database, and skips where a plan is empty.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import psycopg
import pytest

from billing_shell.sql_files import SqlFile
from tests.py.support.servers import TestPostgres
from tests.sql.harness import isolation
from tests.sql.harness.databases import prepare
from tests.sql.harness.tap import run_tap

HERE = Path(__file__).parent

# pgTAP is found by the session that tests, and by nothing else: functions under test pin their own.
SESSION = b"SET search_path = tap, public; SET client_min_messages = warning; SET timezone = 'UTC'"


@pytest.fixture(scope="session")
def sql_template(postgres: TestPostgres, template_database: str) -> Iterator[str]:
    """A migrated database with pgTAP and helpers, to copy; its name."""
    with postgres.database(template=template_database) as name:
        prepare(postgres.database_url(name))
        yield name


@pytest.fixture
def sql_database(postgres: TestPostgres, sql_template: str) -> Iterator[str]:
    """A copy of it of this file's own, as the superuser."""
    with postgres.database(template=sql_template) as name:
        yield postgres.database_url(name)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.File | None:
    directories = file_path.relative_to(HERE).parts[:-1]
    if file_path.suffix == ".sql" and directories and directories[0] not in {"support", "harness"}:
        return PgTapFile.from_parent(parent, path=file_path)
    if file_path.suffix == ".spec":
        return SpecFile.from_parent(parent, path=file_path)
    return None


class PgTapFile(pytest.File):
    """`tests/sql/<domain>/<function>.sql` or `tests/sql/<domain>/<function>/<sentence>.sql`."""

    def collect(self) -> Iterable[pytest.Item]:
        yield _function(self, "tap", _pgtap_test(self.path))


class SpecFile(pytest.File):
    """`tests/sql/isolation/<name>.spec`, compared with `expected/<name>.out`."""

    def collect(self) -> Iterable[pytest.Item]:
        yield _function(self, "sessions", _session_test(self.path))
        yield _function(self, "isolationtester", _isolationtester_test(self.path))


def _function(parent: pytest.File, name: str, test: Callable[..., None]) -> pytest.Item:
    """A function makes a test item that has fixtures and subtests."""
    return pytest.Function.from_parent(parent, name=name, callobj=test)


def _pgtap_test(path: Path) -> Callable[..., None]:
    def run(sql_database: str, subtests: pytest.Subtests) -> None:
        file = SqlFile(str(path.relative_to(HERE.parents[1])), path.read_text(encoding="utf-8"))
        with psycopg.connect(sql_database, autocommit=True) as connection:
            connection.execute(SESSION)
            outcome = run_tap(connection, file)
        for assertion in outcome.assertions:
            with subtests.test(msg=assertion.description):
                if assertion.skipped is not None:
                    pytest.skip(assertion.skipped)
                if not assertion.passed:
                    pytest.fail("\n".join(assertion.diagnostics), pytrace=False)
        if outcome.faults:
            pytest.fail("\n".join((file.name, *outcome.faults)), pytrace=False)

    return run


def _session_test(path: Path) -> Callable[..., None]:
    def run(sql_database: str) -> None:
        _compare(path, isolation.run(isolation.parse(path.read_text()), sql_database))

    return run


def _isolationtester_test(path: Path) -> Callable[..., None]:
    def run(sql_database: str) -> None:
        program = isolation.find_isolationtester()
        if program is None:
            pytest.skip("PostgreSQL's isolationtester is not installed; ours ran the same file")
        _compare(path, isolation.run_isolationtester(program, path, sql_database))

    return run


def _compare(spec: Path, actual: str) -> None:
    expected = spec.parent / "expected" / f"{spec.stem}.out"
    if not expected.is_file():
        pytest.fail(f"{expected} is missing; if this is right, it is:\n{actual}", pytrace=False)
    assert actual.splitlines() == expected.read_text().splitlines()
