"""The job queue's schema, from the installed package: installed, upgraded, refused, and used."""

import asyncio
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import procrastinate
import psycopg
import pytest
from procrastinate.schema import SchemaManager

from billing_shell.migrate import MigrateOptions, migrate, status
from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
from billing_shell.queue_schema import QueuePackage, QueuePhase, is_post
from tests.py.support.schema import Sources, dump_schema
from tests.py.support.servers import TestPostgres

QUEUE_ONLY = ("--schema=procrastinate",)
LAST_STEPS = QueuePackage().migrations[-2:]
"""A pre and a post step."""


@pytest.fixture
def url(postgres: TestPostgres) -> Iterator[str]:
    with postgres.database() as name:
        yield postgres.database_url(name)


@pytest.fixture
def options(tmp_path: Path) -> MigrateOptions:
    """Without the engine's own files, which have nothing to do with the queue."""
    return Sources(tmp_path / "db").options


@pytest.fixture
def package_directory(tmp_path: Path) -> Path:
    """A copy of the installed package's steps, to add to."""
    copy = tmp_path / "steps"
    shutil.copytree(SchemaManager.get_migrations_path(), copy)
    return copy


def install_older(url: str, options: MigrateOptions) -> None:
    """As a release of the queue two steps ago would have: every earlier step, one by one."""
    migrate(url, options)
    package = QueuePackage()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET ROLE billing_owner")
        record = connection.execute(
            "SELECT name FROM procrastinate.applied_migration ORDER BY name"
        ).fetchall()
        assert [name for (name,) in record] == list(package.migrations)
        with connection.transaction():
            connection.execute("CREATE SCHEMA set_aside")
            connection.execute("ALTER TABLE procrastinate.applied_migration SET SCHEMA set_aside")
            connection.execute("DROP SCHEMA procrastinate CASCADE")
            connection.execute("CREATE SCHEMA procrastinate")
            connection.execute("ALTER TABLE set_aside.applied_migration SET SCHEMA procrastinate")
            connection.execute("DROP SCHEMA set_aside")
        connection.execute("SET search_path = procrastinate")
        for name in package.migrations[:-2]:
            connection.execute(package.migration(name).text.encode())
        connection.execute(
            "DELETE FROM procrastinate.applied_migration WHERE name = ANY (%s)", (list(LAST_STEPS),)
        )


def comparable(lines: list[str]) -> list[str]:
    """Steps append columns where the whole schema has them in its own order."""
    return sorted(line.strip().rstrip(",") for line in lines)


def test_it_is_installed_once_and_belongs_to_the_owner(url: str, options: MigrateOptions) -> None:
    assert migrate(url, options).queue_applied == QueuePackage().migrations
    assert migrate(url, options).queue_applied == ()
    with psycopg.connect(url) as connection:
        owners = connection.execute(
            "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'procrastinate'"
        ).fetchall()
        assert owners == [("billing_owner",)]
        elsewhere = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'procrastinate%'"
            " AND relnamespace <> 'procrastinate'::regnamespace"
        ).fetchone()
        assert elsewhere == (0,)


def test_an_upgrade_of_the_package_applies_the_steps_that_are_missing(
    postgres: TestPostgres, url: str, options: MigrateOptions
) -> None:
    install_older(url, options)
    assert status(url, options).queue_pending == LAST_STEPS
    report = migrate(url, options)
    assert report.queue_applied == LAST_STEPS
    assert report.changed
    assert status(url, options).is_current
    with postgres.database() as name:
        fresh = postgres.database_url(name)
        migrate(fresh, options)
        assert comparable(dump_schema(postgres, url, *QUEUE_ONLY)) == comparable(
            dump_schema(postgres, fresh, *QUEUE_ONLY)
        )


def test_old_workers_survive_the_steps_before_a_restart(url: str, options: MigrateOptions) -> None:
    before, after = LAST_STEPS
    assert [is_post(before), is_post(after)] == [False, True]
    install_older(url, options)
    report = migrate(url, replace(options, queue_phase=QueuePhase.BEFORE_RESTART))
    assert report.queue_applied == (before,)
    assert report.queue_pending == (after,)
    assert migrate(url, options).queue_applied == (after,)


def test_a_failing_step_is_taken_back_and_the_next_run_goes_on_from_there(
    url: str, options: MigrateOptions, package_directory: Path
) -> None:
    good = package_directory / "99.00.00_01_pre_good.sql"
    good.write_text("ALTER TABLE procrastinate_jobs ADD colour text;\n")
    bad = package_directory / "99.00.00_02_pre_bad.sql"
    bad.write_text("ALTER TABLE procrastinate_jobs ADD taste text;\nSELECT 1 / 0;\n")
    migrate(url, options)
    newer = replace(options, queue_package=QueuePackage(package_directory))
    with pytest.raises(MigrationError) as failed:
        migrate(url, newer)
    assert failed.value.code is MigrationErrorCode.SQL_FAILED
    assert failed.value.where == f"procrastinate/sql/migrations/{bad.name}:2"
    assert status(url, newer).queue_pending == (bad.name,)
    bad.write_text("ALTER TABLE procrastinate_jobs ADD taste text;\n")
    assert migrate(url, newer).queue_applied == (bad.name,)


def test_a_package_older_than_the_database_is_refused(
    url: str, options: MigrateOptions, package_directory: Path
) -> None:
    (package_directory / "99.00.00_01_pre_later.sql").write_text("SELECT 1;\n")
    migrate(url, options)
    migrate(url, replace(options, queue_package=QueuePackage(package_directory)))
    with pytest.raises(MigrationError, match="pre_later") as refused:
        migrate(url, options)
    assert refused.value.code is MigrationErrorCode.DATABASE_IS_NEWER


def test_a_queue_installed_by_somebody_else_is_left_alone(
    url: str, options: MigrateOptions
) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA procrastinate")
        connection.execute("SET search_path = procrastinate")
        connection.execute(SchemaManager.get_schema())
    with pytest.raises(MigrationError) as refused:
        migrate(url, options)
    assert refused.value.code is MigrationErrorCode.QUEUE_UNKNOWN


async def test_the_worker_role_drives_the_queue_and_the_reader_only_looks(
    url: str, options: MigrateOptions
) -> None:
    migrate(url, options)
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(
            conninfo=url,
            min_size=1,
            kwargs={"options": "-c search_path=procrastinate -c role=billing_worker"},
        )
    )
    done: list[int] = []

    @app.task(name="add")
    async def add(first: int, second: int) -> None:
        await asyncio.sleep(0)
        done.append(first + second)

    async with app.open_async():
        await add.defer_async(first=2, second=3)
        await app.run_worker_async(wait=False, install_signal_handlers=False, delete_jobs="always")
    assert done == [5]

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET ROLE billing_readonly")
        left = connection.execute("SELECT count(*) FROM procrastinate.procrastinate_jobs")
        assert left.fetchone() == (0,)
        for statement in (
            "DELETE FROM procrastinate.procrastinate_jobs",
            "SELECT procrastinate.procrastinate_prune_stalled_workers_v1(1)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
        connection.execute("RESET ROLE; SET ROLE billing_worker")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("DELETE FROM procrastinate.applied_migration")
