"""`billing migrate`: the SQL files under `db/` into a database, all of them or none.

The same files and the same `schema_version` table as yandex-pgmigrate, with what that lacks: a
lock, a refusal of migrations that come late, and functions, views and privileges that are
re-applied on every run, in one transaction with the migrations.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from typing import Any

import psycopg
from psycopg import Connection, IsolationLevel
from psycopg.errors import Diagnostic

from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
from billing_shell.queue_schema import QueuePackage, QueuePhase, pending_steps, upgrade_queue
from billing_shell.sql_files import Migration, SqlFile, SqlFiles
from billing_shell.sql_script import BLOCKED_SQLSTATES, run_file

OLDEST_SERVER = 15
"""The oldest major version of PostgreSQL that the files work on."""

_INSUFFICIENT_PRIVILEGE = "42501"

# Also in db/migrations.yml, so that pgmigrate waits for us and we for it.
_LOCK = "SELECT pg_catalog.{}(pg_catalog.hashtextextended('billing.migrate', 0))"

_IS_REPLICA = "SELECT pg_catalog.pg_is_in_recovery()"

# Names must be written out, and times in a file mean UTC.
_OWNER_SESSION = """
SET LOCAL ROLE billing_owner;
SET LOCAL search_path = '';
SET LOCAL timezone = 'UTC';
SET LOCAL idle_in_transaction_session_timeout = 0;
"""

# Letter for letter what pgmigrate 1.0 creates.
_SCHEMA_VERSION = SqlFile(
    "schema_version",
    """
    CREATE SCHEMA IF NOT EXISTS public;
    CREATE TYPE public.schema_version_type AS ENUM ('auto', 'manual');
    CREATE TABLE public.schema_version (
        version bigint NOT NULL PRIMARY KEY,
        description text NOT NULL,
        type public.schema_version_type NOT NULL DEFAULT 'auto',
        installed_by text NOT NULL,
        installed_on timestamp without time zone DEFAULT now() NOT NULL
    );
    """,
)
# A table of its own, because pgmigrate refuses schema_version with one column more.
_SCHEMA_CHECKSUM = SqlFile(
    "schema_checksum",
    """
    CREATE TABLE public.schema_checksum (
        version bigint NOT NULL PRIMARY KEY,
        sha256 text NOT NULL
    );
    COMMENT ON TABLE public.schema_checksum IS
    'Fingerprint of each migration as it was applied, so that a later edit is noticed.';
    """,
)
_FIND_TABLES = """
SELECT
    pg_catalog.to_regclass('public.schema_version') IS NOT NULL,
    pg_catalog.to_regclass('public.schema_checksum') IS NOT NULL
"""
# Keeps out a pgmigrate that was started without our session settings; readers may read.
_KEEP_OUT = "LOCK TABLE public.schema_version IN EXCLUSIVE MODE"
_READ_VERSIONS = "SELECT version, description FROM public.schema_version ORDER BY version"
_READ_CHECKSUMS = "SELECT version, sha256 FROM public.schema_checksum"
_RECORD_VERSION = """
INSERT INTO public.schema_version (version, description, installed_by) VALUES (%s, %s, session_user)
"""
_RECORD_CHECKSUM = """
INSERT INTO public.schema_checksum (version, sha256) VALUES (%s, %s) ON CONFLICT DO NOTHING
"""
_OWN_OBJECTS = """
SELECT
    n.nspname || '.' || f.proname,
    CASE f.prokind WHEN 'p' THEN 'PROCEDURE' WHEN 'a' THEN 'AGGREGATE' ELSE 'FUNCTION' END,
    f.oid::regprocedure::text
FROM pg_catalog.pg_proc AS f
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = f.pronamespace
WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops')
UNION ALL
SELECT
    n.nspname || '.' || c.relname,
    CASE c.relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END,
    c.oid::regclass::text
FROM pg_catalog.pg_class AS c
INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname IN ('billing', 'billing_api', 'billing_worker', 'billing_ops')
  AND c.relkind IN ('v', 'm')
ORDER BY 3
"""


@dataclass(frozen=True, kw_only=True)
class MigrateOptions:
    """How to apply.

    Attributes:
        lock_timeout_seconds: how long one statement may wait for a lock of somebody else's, and
            make everybody behind it wait as well.
        wait_seconds: how long to wait for another run to end.
        queue_phase: how far to take the job queue's schema.
        directory: what to apply in place of the `db/` that belongs to this package.
        queue_package: where the job queue's SQL comes from.
        progress: called before each file with its number from 1, how many there are, and its name.
    """

    lock_timeout_seconds: float = 5.0
    wait_seconds: float = 600.0
    queue_phase: QueuePhase = QueuePhase.ALL
    directory: Traversable | None = None
    queue_package: QueuePackage = field(default_factory=QueuePackage)
    progress: Callable[[int, int, str], None] | None = None


@dataclass(frozen=True, kw_only=True)
class MigrationReport:
    """What a run did.

    Attributes:
        applied: migrations applied by this run, in order; empty where none was pending.
        version: number of the newest migration in the database; 0 where there are none.
        reapplied: how many files of reference data, views, functions and privileges.
        queue_applied: steps of the job queue's schema applied by this run.
        queue_pending: steps left for a run with QueuePhase.ALL.
        waited: whether another run had to end first.
        warnings: what the server warned of.
        seconds: how long it took.
    """

    applied: tuple[Migration, ...]
    version: int
    reapplied: int
    queue_applied: tuple[str, ...]
    queue_pending: tuple[str, ...]
    waited: bool
    warnings: tuple[str, ...]
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether tables may differ from before; re-applied files do not count."""
        return bool(self.applied or self.queue_applied)


@dataclass(frozen=True, kw_only=True)
class SchemaStatus:
    """Where a database stands, compared with the files.

    Attributes:
        version: number of the newest migration applied; 0 where there is none.
        pending: what `migrate` would apply.
        queue_pending: steps of the job queue's schema that it would apply.
        problem: why it would refuse, or None.
    """

    version: int
    pending: tuple[Migration, ...]
    queue_pending: tuple[str, ...]
    problem: MigrationError | None

    @property
    def is_current(self) -> bool:
        """Whether this program and this database belong together."""
        return not (self.pending or self.queue_pending or self.problem)


def migrate(database_url: str, options: MigrateOptions | None = None) -> MigrationReport:
    """Brings a database up to these files: roles, migrations, callbacks, job queue.

    Safe to run again and at the same time from several machines: the second waits, then finds
    nothing to do. Migrations and everything re-applied after them are one transaction.

    Args:
        database_url: what libpq takes. The login is a superuser, or has CREATEROLE and owns the
            database, or is a member of billing_owner where the roles are there already.
        options: how.

    Raises:
        MigrationError: with `code`, `hint`, and `where` the SQL stands.
    """
    options = options or MigrateOptions()
    started = time.monotonic()
    files = SqlFiles.load(options.directory)
    with _translated_errors(), _connected(database_url) as connection:
        run = _Run(connection, files, options)
        run.set_up_roles()
        applied = run.apply()
        queue_applied = upgrade_queue(
            connection, files.queue, options.queue_package, options.queue_phase, run.as_owner
        )
        return MigrationReport(
            applied=applied,
            version=max((migration.version for migration in files.migrations), default=0),
            reapplied=len(files.callbacks),
            queue_applied=queue_applied,
            queue_pending=pending_steps(connection, options.queue_package),
            waited=run.waited,
            warnings=tuple(run.warnings),
            seconds=time.monotonic() - started,
        )


def status(database_url: str, options: MigrateOptions | None = None) -> SchemaStatus:
    """Compares a database with these files; waits for nobody and changes nothing.

    Args:
        database_url: as for `migrate`.
        options: `directory` and `queue_package` count.

    Raises:
        MigrationError: DATABASE_UNREACHABLE, DATABASE_UNSUITABLE or FILES_UNSOUND.
    """
    options = options or MigrateOptions()
    files = SqlFiles.load(options.directory)
    with _translated_errors(), _connected(database_url) as connection, connection.transaction():
        history = _read_history(connection)
        pending: tuple[Migration, ...] = ()
        queue_pending: tuple[str, ...] = ()
        problem: MigrationError | None = None
        try:
            pending = _pending(files, history)
            queue_pending = pending_steps(connection, options.queue_package)
        except MigrationError as refused:
            problem = refused
        return SchemaStatus(
            version=max(history, default=0),
            pending=pending,
            queue_pending=queue_pending,
            problem=problem,
        )


@dataclass(frozen=True)
class _Applied:
    description: str
    sha256: str | None


class _Run:
    """One run over one connection in autocommit."""

    def __init__(
        self, connection: Connection[Any], files: SqlFiles, options: MigrateOptions
    ) -> None:
        self.waited = False
        self.warnings: list[str] = []
        self._connection = connection
        self._files = files
        self._options = options
        connection.add_notice_handler(self._take_notice)

    def set_up_roles(self) -> None:
        """As the login itself, committed at once: other databases of the server share them."""
        try:
            with self._alone():
                run_file(self._connection, self._files.roles)
        except MigrationError as error:
            if error.sqlstate != _INSUFFICIENT_PRIVILEGE:
                raise
            raise self._roles_missing(error.message) from error

    def apply(self) -> tuple[Migration, ...]:
        """Migrations, then everything that is re-applied, in one transaction."""
        with self.as_owner():
            self._ensure_tables()
            self._connection.execute(_KEEP_OUT)
            pending = _pending(self._files, _read_history(self._connection))
            total = len(pending) + len(self._files.callbacks)
            for number, migration in enumerate(pending, start=1):
                self._progress(number, total, migration.file)
                run_file(self._connection, migration.file)
                self._connection.execute(
                    _RECORD_VERSION, (migration.version, migration.description)
                )
            self._record_checksums()
            # A body may name a function of a later file: all are created first, then checked.
            self._connection.execute("SET LOCAL check_function_bodies = off")
            for number, file in enumerate(self._files.callbacks, start=len(pending) + 1):
                self._progress(number, total, file)
                run_file(self._connection, file)
            self._connection.execute("SET LOCAL check_function_bodies = on")
            for file in self._files.functions:
                run_file(self._connection, file)
            self._refuse_leftovers()
        return pending

    @contextmanager
    def as_owner(self) -> Iterator[None]:
        """A transaction as billing_owner, while no other run is at work."""
        with self._alone():
            try:
                self._connection.execute(_OWNER_SESSION)
            except psycopg.errors.InsufficientPrivilege as error:
                raise self._roles_missing(str(error)) from error
            yield

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A transaction that holds the lock of all runs on this database."""
        with self._connection.transaction():
            # A limit on the login's statements is meant for neither waiting nor migrating.
            self._connection.execute("SET LOCAL statement_timeout = 0")
            row = self._connection.execute(
                _LOCK.format("pg_try_advisory_xact_lock").encode()
            ).fetchone()
            if not (row and row[0]):
                self.waited = True
                self._wait_for_other_run()
            self._limit_waiting(self._options.lock_timeout_seconds)
            yield

    def _wait_for_other_run(self) -> None:
        self._limit_waiting(self._options.wait_seconds)
        try:
            self._connection.execute(_LOCK.format("pg_advisory_xact_lock").encode())
        except psycopg.errors.LockNotAvailable as error:
            raise MigrationError(
                MigrationErrorCode.BLOCKED,
                f"waited {self._options.wait_seconds:g} s for another run to end",
                sqlstate=error.sqlstate or "",
                hint="another run is at work, or hangs: look for it in pg_stat_activity",
            ) from error

    def _limit_waiting(self, seconds: float) -> None:
        self._connection.execute(
            "SELECT pg_catalog.set_config('lock_timeout', %s, true)", (f"{seconds * 1000:.0f}ms",)
        )

    def _ensure_tables(self) -> None:
        found = self._connection.execute(_FIND_TABLES).fetchone() or (False, False)
        for file, is_there in zip((_SCHEMA_VERSION, _SCHEMA_CHECKSUM), found, strict=True):
            if not is_there:
                run_file(self._connection, file)

    def _record_checksums(self) -> None:
        """Those of this run, and those of a database that pgmigrate has filled."""
        for migration in self._files.migrations:
            self._connection.execute(_RECORD_CHECKSUM, (migration.version, migration.file.sha256))

    def _refuse_leftovers(self) -> None:
        leftovers = [
            f"DROP {kind} {signature};"
            for name, kind, signature in self._connection.execute(_OWN_OBJECTS)
            if name not in self._files.creates
        ]
        if leftovers:
            raise MigrationError(
                MigrationErrorCode.LEFTOVER_OBJECT,
                f"{len(leftovers)} functions or views have no file any more",
                hint="put into a new migration: " + " ".join(leftovers),
            )

    def _progress(self, number: int, total: int, file: SqlFile) -> None:
        if self._options.progress:
            self._options.progress(number, total, file.name)

    def _take_notice(self, notice: Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings.append(notice.message_primary or "")

    def _roles_missing(self, message: str) -> MigrationError:
        return MigrationError(
            MigrationErrorCode.ROLES_MISSING,
            message.partition("\n")[0],
            sqlstate=_INSUFFICIENT_PRIVILEGE,
            hint=(
                f"let an administrator run {self._files.roles.name} in this database once,"
                f" and GRANT billing_owner TO {self._connection.info.user}"
            ),
        )


def _read_history(connection: Connection[Any]) -> dict[int, _Applied]:
    has_versions, has_checksums = connection.execute(_FIND_TABLES).fetchone() or (False, False)
    if not has_versions:
        return {}
    checksums = dict(connection.execute(_READ_CHECKSUMS)) if has_checksums else {}
    return {
        version: _Applied(description, checksums.get(version))
        for version, description in connection.execute(_READ_VERSIONS)
    }


def _pending(files: SqlFiles, history: dict[int, _Applied]) -> tuple[Migration, ...]:
    """The migrations to apply, once the history has been found to be that of these files."""
    known = {migration.version: migration for migration in files.migrations}
    highest = max(history, default=0)
    for version, applied in history.items():
        migration = known.get(version)
        if migration is None:
            raise MigrationError(
                MigrationErrorCode.DATABASE_IS_NEWER,
                f"the database has migration {version} ({applied.description}),"
                " for which there is no file",
                hint="install the release that migrated the database, or a later one",
            )
        if applied.description != migration.description:
            raise _changed(migration, f"it was applied as {applied.description!r}")
        if applied.sha256 not in {None, migration.file.sha256}:
            raise _changed(migration, "it was edited after it had been applied")
    pending = tuple(known[version] for version in sorted(known) if version not in history)
    if pending and pending[0].version < highest:
        raise MigrationError(
            MigrationErrorCode.MIGRATION_OUT_OF_ORDER,
            f"the database is at {highest} and never had {pending[0].version}",
            where=f"{pending[0].file.name}:1",
            hint=f"give it a number above {highest}",
        )
    return pending


def _changed(migration: Migration, message: str) -> MigrationError:
    return MigrationError(
        MigrationErrorCode.MIGRATION_CHANGED,
        message,
        where=f"{migration.file.name}:1",
        hint="bring the file back as it was, and write what is to change into a new migration",
    )


@contextmanager
def _connected(database_url: str) -> Iterator[Connection[Any]]:
    try:
        connection = psycopg.connect(
            database_url,
            autocommit=True,
            prepare_threshold=None,
            fallback_application_name="billing migrate",
        )
    except psycopg.Error as error:
        raise MigrationError(
            MigrationErrorCode.DATABASE_UNREACHABLE,
            str(error).strip(),
            hint="look at BILLING_DATABASE_URL",
        ) from error
    with connection:
        connection.isolation_level = IsolationLevel.READ_COMMITTED
        connection.read_only = False
        major = connection.info.server_version // 10000
        if major < OLDEST_SERVER:
            raise MigrationError(
                MigrationErrorCode.DATABASE_UNSUITABLE,
                f"the server is PostgreSQL {major}",
                hint=f"PostgreSQL {OLDEST_SERVER} or later is needed",
            )
        if connection.execute(_IS_REPLICA).fetchone() == (True,):
            raise MigrationError(
                MigrationErrorCode.DATABASE_UNSUITABLE,
                "the server is a read-only replica",
                hint="give the address of the primary",
            )
        yield connection


@contextmanager
def _translated_errors() -> Iterator[None]:
    """For the statements that stand in Python; those in files come translated, with their line."""
    try:
        yield
    except psycopg.Error as error:
        if error.sqlstate is None or error.sqlstate.startswith(("08", "57P")):
            code = MigrationErrorCode.DATABASE_UNREACHABLE
        elif error.sqlstate in BLOCKED_SQLSTATES:
            code = MigrationErrorCode.BLOCKED
        else:
            code = MigrationErrorCode.SQL_FAILED
        raise MigrationError(code, str(error).strip(), sqlstate=error.sqlstate or "") from error
