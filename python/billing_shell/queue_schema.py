"""The job queue's own schema: installed and upgraded from the files of the installed package.

Procrastinate ships `schema.sql` (everything, for an empty database) and `migrations/` (one step
per file) but keeps no record of what it has applied; `procrastinate.applied_migration` is ours.
Nothing of it is copied into this project.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Any

from procrastinate.schema import SchemaManager
from psycopg import Connection

from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
from billing_shell.sql_files import SqlFile
from billing_shell.sql_script import run_file

# Not by to_regclass, which needs USAGE on a schema that may be somebody else's.
_FIND_TABLES = """
SELECT
    coalesce(pg_catalog.bool_or(c.relname = 'procrastinate_jobs'), false),
    coalesce(pg_catalog.bool_or(c.relname = 'applied_migration'), false)
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'procrastinate'
"""
_RECORD = "INSERT INTO procrastinate.applied_migration (name) VALUES (%s)"
_APPLIED = "SELECT name FROM procrastinate.applied_migration"
_USE_SCHEMA = "SET LOCAL search_path = procrastinate"


class QueuePhase(StrEnum):
    """How far to take the queue's schema."""

    ALL = "all"
    """To the end. Workers of an older release of the queue must have stopped."""
    BEFORE_RESTART = "before-restart"
    """Up to the first step that workers still running the older release would not survive."""


class QueuePackage:
    """The SQL that the installed procrastinate brings along.

    Attributes:
        migrations: its steps by name, in their order.
    """

    def __init__(self, directory: Path | None = None) -> None:
        """Reads the names of the steps, from `directory` or from the installed package."""
        self._directory = directory or Path(SchemaManager.get_migrations_path())
        self.migrations = tuple(sorted(file.name for file in self._directory.glob("*.sql")))

    def schema(self) -> SqlFile:
        """Everything at once, for a database that has none of it."""
        return SqlFile("procrastinate/sql/schema.sql", SchemaManager.get_schema())

    def migration(self, name: str) -> SqlFile:
        """One step."""
        text = (self._directory / name).read_text(encoding="utf-8")
        return SqlFile(f"procrastinate/sql/migrations/{name}", text)


def pending_steps(connection: Connection[Any], package: QueuePackage) -> tuple[str, ...]:
    """Names of the steps that this database lacks, in their order; all of them where it has none.

    Raises:
        MigrationError: QUEUE_UNKNOWN, or DATABASE_IS_NEWER than the installed package.
    """
    has_jobs, has_record = connection.execute(_FIND_TABLES).fetchone() or (False, False)
    if not has_record:
        if has_jobs:
            raise MigrationError(
                MigrationErrorCode.QUEUE_UNKNOWN,
                "schema procrastinate was installed by somebody else",
                hint="docs/operations/migrations.md tells how to take over a queue",
            )
        return package.migrations
    applied = {name for (name,) in connection.execute(_APPLIED)}
    unknown = sorted(applied.difference(package.migrations))
    if unknown:
        raise MigrationError(
            MigrationErrorCode.DATABASE_IS_NEWER,
            f"the queue has {unknown[-1]}, which the installed procrastinate lacks",
            hint="install the release that migrated the database, or a later one",
        )
    return tuple(name for name in package.migrations if name not in applied)


def upgrade_queue(
    connection: Connection[Any],
    files: dict[str, SqlFile],
    package: QueuePackage,
    phase: QueuePhase,
    transaction: Callable[[], AbstractContextManager[None]],
) -> tuple[str, ...]:
    """Installs the queue's schema, or applies the steps it lacks, each in a transaction of its own.

    One transaction a step, because a value that a step adds to an enum cannot be used before it
    has been committed. A run that stops in between is taken up by the next one.

    Args:
        connection: in autocommit.
        files: ours around it: `version_table` and `privileges`.
        package: where the steps come from.
        phase: how far to go.
        transaction: opens one, as the owner of the schema and alone.

    Returns:
        Names of the steps that this call applied; empty where nothing was pending.
    """
    applied: list[str] = []
    with transaction():
        pending = pending_steps(connection, package)
        if pending == package.migrations:
            _install(connection, files["version_table"], package)
            applied += pending
    while len(applied) < len(package.migrations):
        with transaction():
            pending = pending_steps(connection, package)
            if not pending or (phase is QueuePhase.BEFORE_RESTART and is_post(pending[0])):
                break
            connection.execute(_USE_SCHEMA)
            run_file(connection, package.migration(pending[0]))
            connection.execute(_RECORD, (pending[0],))
            applied.append(pending[0])
    with transaction():
        run_file(connection, files["privileges"])
    return tuple(applied)


def is_post(step: str) -> bool:
    """Whether workers of the release before it must have stopped when this step is applied."""
    return "_post_" in step


def _install(connection: Connection[Any], version_table: SqlFile, package: QueuePackage) -> None:
    connection.execute("CREATE SCHEMA IF NOT EXISTS procrastinate")
    connection.execute(_USE_SCHEMA)
    run_file(connection, package.schema())
    run_file(connection, version_table)
    for name in package.migrations:
        connection.execute(_RECORD, (name,))
