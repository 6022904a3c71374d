"""`billing migrate`: what it does, does again, refuses, and takes back."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from billing_shell.migrate import MigrateOptions, migrate, status
from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
from billing_shell.sql_files import SqlFile, SqlFiles
from billing_shell.sql_script import run_file
from tests.py.support.schema import DB, Sources, dump, dump_schema
from tests.py.support.servers import PostgresKind, TestPostgres, running_postgres

LOCK = "SELECT pg_advisory_lock(hashtextextended('billing.migrate', 0))"
WAITERS = """
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND NOT granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
PATIENCE = 300.0  # seconds; costs nothing where all goes well, and machines are busy
HEAD = "CREATE OR REPLACE FUNCTION billing.f() RETURNS integer"
# Of migrate's own, which pgmigrate knows nothing of.
ONLY_OURS = ("--exclude-schema=procrastinate", "--exclude-table=public.schema_checksum")


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path / "db")


@pytest.fixture
def empty_url(postgres: TestPostgres) -> Iterator[str]:
    with postgres.database() as name:
        yield postgres.database_url(name)


def refusal(url: str, options: MigrateOptions) -> MigrationError:
    with pytest.raises(MigrationError) as refused:
        migrate(url, options)
    return refused.value


def one(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def execute(url: str, statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements.encode())


def start_migrate(url: str) -> subprocess.Popen[str]:
    code = (
        "import sys; from billing_shell.migrate import migrate; r = migrate(sys.argv[1]);"
        "print(len(r.applied), len(r.queue_applied), r.waited)"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@contextlib.contextmanager
def two_processes(*urls: str) -> Iterator[tuple[subprocess.Popen[str], ...]]:
    with contextlib.ExitStack() as stack:
        processes = tuple(stack.enter_context(start_migrate(url)) for url in urls)
        for process in processes:
            stack.callback(process.kill)
        yield processes


# What it does.


def test_an_empty_database_gets_everything(empty_url: str) -> None:
    files = SqlFiles.load()
    before = status(empty_url)
    assert before.version == 0
    assert before.pending == files.migrations
    assert not before.is_current

    seen: list[tuple[int, int, str]] = []
    report = migrate(empty_url, MigrateOptions(progress=lambda *progress: seen.append(progress)))
    assert report.applied == files.migrations
    assert report.reapplied == len(files.callbacks)
    assert report.queue_applied
    assert report.warnings == ()
    total = len(files.migrations) + len(files.callbacks)
    assert [number for number, _, _ in seen] == list(range(1, total + 1))
    assert {count for _, count, _ in seen} == {total}
    assert status(empty_url).is_current
    assert one(empty_url, "SELECT max(installed_by) = session_user FROM schema_version")


def test_a_second_run_changes_nothing(postgres: TestPostgres, empty_url: str) -> None:
    migrate(empty_url)
    schema = dump_schema(postgres, empty_url)
    rows = dump(postgres, empty_url, "--data-only")
    report = migrate(empty_url)
    assert not report.changed
    assert not report.waited
    assert dump_schema(postgres, empty_url) == schema
    assert dump(postgres, empty_url, "--data-only") == rows


def test_two_processes_at_once_migrate_once(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as holder:
        holder.execute(LOCK)
        with two_processes(empty_url, empty_url) as processes:
            deadline = time.monotonic() + PATIENCE
            while holder.execute(WAITERS).fetchone() != (2,):
                assert time.monotonic() < deadline, "they never came to wait"
                assert all(process.poll() is None for process in processes)
            holder.execute("SELECT pg_advisory_unlock_all()")
            answers = [process.communicate(timeout=PATIENCE) for process in processes]
    assert [errors for _, errors in answers] == ["", ""]
    counts = sorted(tuple(output.split()) for output, _ in answers)
    files = SqlFiles.load()
    assert counts[0] == ("0", "0", "True")
    assert counts[1][0] == str(len(files.migrations))


def test_it_does_not_wait_for_another_run_for_ever(empty_url: str, sources: Sources) -> None:
    with psycopg.connect(empty_url, autocommit=True) as holder:
        holder.execute(LOCK)
        error = refusal(empty_url, replace(sources.options, wait_seconds=0.1))
    assert error.code is MigrationErrorCode.BLOCKED
    assert "another run" in error.hint


def test_a_new_migration_is_applied_to_a_database_in_use(empty_url: str, sources: Sources) -> None:
    migrate(empty_url, sources.options)
    execute(empty_url, "INSERT INTO billing.thing VALUES (1, 'kept')")
    sources.write("migrations/V0003__More.sql", "ALTER TABLE billing.thing ADD colour text;")
    assert [m.version for m in status(empty_url, sources.options).pending] == [3]
    report = migrate(empty_url, sources.options)
    assert [m.description for m in report.applied] == ["More"]
    assert report.version == 3
    assert one(empty_url, "SELECT name FROM billing.thing WHERE colour IS NULL") == "kept"


def test_functions_and_privileges_are_reapplied_though_nothing_is_pending(empty_url: str) -> None:
    migrate(empty_url)
    changed_by_hand = """
        SET ROLE billing_owner;
        CREATE OR REPLACE FUNCTION billing.to_rfc3339(p_at timestamptz) RETURNS text
        LANGUAGE sql STABLE PARALLEL SAFE SET search_path = '' AS 'SELECT NULL::text';
        REVOKE ALL ON SCHEMA procrastinate FROM billing_worker;
    """
    execute(empty_url, changed_by_hand)
    report = migrate(empty_url)
    assert not report.changed
    assert (
        one(empty_url, "SELECT billing.to_rfc3339('2027-01-31 10:30Z')") == "2027-01-31T10:30:00Z"
    )
    assert one(empty_url, "SELECT has_schema_privilege('billing_worker', 'procrastinate', 'USAGE')")


def test_bodies_may_name_functions_of_later_files(empty_url: str, sources: Sources) -> None:
    sources.write(
        "functions/things/a_first.sql",
        """\
        CREATE OR REPLACE FUNCTION billing.a_first() RETURNS bigint
        LANGUAGE sql SET search_path = ''
        AS $function$ SELECT billing.count_things(); $function$;
        """,
    )
    migrate(empty_url, sources.options)
    assert one(empty_url, "SELECT billing.a_first()") == 0


def test_settings_of_the_login_and_the_database_do_not_matter(
    postgres: TestPostgres, empty_url: str, sources: Sources
) -> None:
    migrate(empty_url, sources.options)
    schema = dump_schema(postgres, empty_url)
    with psycopg.connect(empty_url, autocommit=True) as connection:
        for setting in (
            "default_transaction_read_only = on",
            "default_transaction_isolation = 'serializable'",
            "check_function_bodies = off",
            "lock_timeout = '1ms'",
            "statement_timeout = '500ms'",
            "timezone = 'Asia/Tokyo'",
            "search_path = billing, public",
        ):
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET {}").format(
                    sql.Identifier(connection.info.dbname),
                    sql.SQL(setting),
                )
            )
    sources.write("migrations/V0002__Slow.sql", "SELECT pg_catalog.pg_sleep(0.6);")
    migrate(empty_url, sources.options)
    assert dump_schema(postgres, empty_url) == schema


# What it refuses.


def test_a_late_low_number_is_refused(
    postgres: TestPostgres, empty_url: str, sources: Sources
) -> None:
    sources.write("migrations/V0003__Third.sql", "CREATE TABLE billing.third (id integer);")
    migrate(empty_url, sources.options)
    schema = dump_schema(postgres, empty_url)
    sources.write("migrations/V0002__Late.sql", "CREATE TABLE billing.late (id integer);")
    error = refusal(empty_url, sources.options)
    assert error.code is MigrationErrorCode.MIGRATION_OUT_OF_ORDER
    assert error.where == "db/migrations/V0002__Late.sql:1"
    assert error.hint == "give it a number above 3"
    assert dump_schema(postgres, empty_url) == schema
    problem = status(empty_url, sources.options).problem
    assert problem is not None
    assert problem.code is error.code


@pytest.mark.parametrize("gone", ["V0002__Second.sql", "V0003__Third.sql"])
def test_a_database_with_a_migration_that_the_files_lack_is_refused(
    empty_url: str, sources: Sources, gone: str
) -> None:
    sources.write("migrations/V0002__Second.sql", "SELECT 2;")
    sources.write("migrations/V0003__Third.sql", "SELECT 3;")
    migrate(empty_url, sources.options)
    sources.remove(f"migrations/{gone}")
    error = refusal(empty_url, sources.options)
    assert error.code is MigrationErrorCode.DATABASE_IS_NEWER
    assert gone[4] in error.message


def test_a_migration_edited_after_it_was_applied_is_refused(
    empty_url: str, sources: Sources
) -> None:
    migrate(empty_url, sources.options)
    file = sources.directory / "migrations" / "V0001__Start.sql"
    file.write_text(file.read_text().replace("\n", "\r\n"))
    migrate(empty_url, sources.options)
    file.write_text(file.read_text() + "CREATE TABLE billing.never (id integer);\n")
    error = refusal(empty_url, sources.options)
    assert error.code is MigrationErrorCode.MIGRATION_CHANGED
    assert error.where == "db/migrations/V0001__Start.sql:1"


def test_a_migration_renamed_after_it_was_applied_is_refused(
    empty_url: str, sources: Sources
) -> None:
    migrate(empty_url, sources.options)
    (sources.directory / "migrations" / "V0001__Start.sql").rename(
        sources.directory / "migrations" / "V0001__Begin.sql"
    )
    error = refusal(empty_url, sources.options)
    assert error.code is MigrationErrorCode.MIGRATION_CHANGED
    assert "Start" in error.message


def test_a_function_left_without_a_file_is_refused_until_a_migration_drops_it(
    empty_url: str, sources: Sources
) -> None:
    migrate(empty_url, sources.options)
    execute(empty_url, "CREATE VIEW billing.extra AS SELECT 1 AS one")
    sources.write("functions/things/other.sql", "SELECT 1;")
    sources.remove("functions/things/count_things.sql")
    error = refusal(empty_url, sources.options)
    assert error.code is MigrationErrorCode.LEFTOVER_OBJECT
    drops = "DROP FUNCTION billing.count_things(); DROP VIEW billing.extra;"
    assert error.hint == f"put into a new migration: {drops}"
    execute(empty_url, "ALTER VIEW billing.extra OWNER TO billing_owner")
    sources.write("migrations/V0002__Fewer.sql", drops)
    assert migrate(empty_url, sources.options).version == 2


def test_a_stale_signature_rolls_back(empty_url: str, sources: Sources) -> None:
    sources.write(
        "functions/things/name_thing.sql",
        """\
        CREATE OR REPLACE FUNCTION billing.name_thing(p_id integer) RETURNS text
        LANGUAGE sql SET search_path = '' AS $$ SELECT 'x'; $$;
        COMMENT ON FUNCTION billing.name_thing IS 'Name.';
        """,
    )
    migrate(empty_url, sources.options)
    file = sources.directory / "functions" / "things" / "name_thing.sql"
    file.write_text(file.read_text().replace("p_id integer", "p_id bigint"))
    error = refusal(empty_url, sources.options)
    assert error.code is MigrationErrorCode.SQL_FAILED
    assert "not unique" in error.message
    assert error.where == "db/functions/things/name_thing.sql:3"
    assert one(empty_url, "SELECT count(*) FROM pg_proc WHERE proname = 'name_thing'") == 1


# What it takes back.


@pytest.mark.parametrize(
    ("text", "line", "sqlstate"),
    [
        ("SELECT 1;\n\nSELEKT 2;\n", 3, "42601"),
        ("SELECT 1;\n\n  SELECT *\n  FROM billing.nothing;\n", 4, "42P01"),
        ("-- one; two\nSELECT ';';\nINSERT INTO billing.thing\nVALUES (1, NULL);\n", 3, "23502"),
        ("DO $$ BEGIN\nRAISE EXCEPTION USING ERRCODE = 'SB901';\nEND $$;\n", 1, "SB901"),
        (f"{HEAD} LANGUAGE plpgsql AS $$\nBEGIN\n  RETURN 1 1;\nEND;\n$$;\n", 3, "42601"),
        (f"{HEAD} LANGUAGE sql AS $$\n  SELECT 1\n  + billing.no_such();\n$$;\n", 3, "42883"),
    ],
)
def test_a_failing_file_takes_everything_back_and_is_named_with_its_line(
    postgres: TestPostgres, empty_url: str, sources: Sources, text: str, line: int, sqlstate: str
) -> None:
    migrate(empty_url, sources.options)
    schema = dump_schema(postgres, empty_url)
    sources.write("migrations/V0002__Good.sql", "CREATE TABLE billing.good (id integer);")
    (sources.directory / "functions" / "things" / "z_broken.sql").write_text(text)
    error = refusal(empty_url, sources.options)
    assert error.code is MigrationErrorCode.SQL_FAILED
    assert error.where == f"db/functions/things/z_broken.sql:{line}"
    assert error.sqlstate == sqlstate
    assert str(error).startswith(f"{error.where}: {error.message}")
    assert dump_schema(postgres, empty_url) == schema
    assert one(empty_url, "SELECT max(version) FROM schema_version") == 1


def test_a_lock_held_by_somebody_else_stops_it_in_time(empty_url: str, sources: Sources) -> None:
    migrate(empty_url, sources.options)
    sources.write("migrations/V0002__More.sql", "\nALTER TABLE billing.thing ADD colour text;\n")
    with psycopg.connect(empty_url) as reader:
        reader.execute("SELECT FROM billing.thing")
        error = refusal(empty_url, replace(sources.options, lock_timeout_seconds=0.1))
    assert error.code is MigrationErrorCode.BLOCKED
    assert error.sqlstate == "55P03"
    assert error.where == "db/migrations/V0002__More.sql:2"
    assert migrate(empty_url, sources.options).version == 2


def test_an_unreachable_server_is_said_to_be_so(sources: Sources) -> None:
    error = refusal("postgresql://nobody@127.0.0.1:1/nothing", sources.options)
    assert error.code is MigrationErrorCode.DATABASE_UNREACHABLE


# Beside pgmigrate.


def pgmigrate(url: str, directory: Path, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", "pgmigrate", *arguments, "-d", str(directory), "-c", url],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_pgmigrate_makes_the_same_schema_of_the_same_files(
    postgres: TestPostgres, empty_url: str
) -> None:
    migrate(empty_url)
    with postgres.database() as name:
        other = postgres.database_url(name)
        with psycopg.connect(other, autocommit=True) as connection:
            run_file(connection, SqlFiles.load().roles)
        pgmigrate(other, DB, "migrate", "-t", "latest")
        ours = dump_schema(postgres, empty_url, *ONLY_OURS)
        assert dump_schema(postgres, other) == ours
        for table in ("currency", "time_zone", "error_code"):
            rows = ("--data-only", f"--table=billing.{table}")
            assert dump(postgres, other, *rows) == dump(postgres, empty_url, *rows)

        # Whichever came first, the other finds nothing to do.
        report = migrate(other)
        assert report.applied == ()
        assert status(other).is_current
        assert dump_schema(postgres, other, *ONLY_OURS) == ours
        pgmigrate(empty_url, DB, "migrate", "-t", "latest")
        assert status(empty_url).is_current


def test_a_database_from_pgmigrate_is_watched_for_edits_from_then_on(
    empty_url: str, sources: Sources
) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        run_file(connection, SqlFiles.load().roles)
    execute(empty_url, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    pgmigrate(
        empty_url, sources.directory, "migrate", "-t", "latest", "-s", "SET ROLE billing_owner"
    )
    migrate(empty_url, sources.options)
    sources.write("migrations/V0001__Start.sql", "CREATE SCHEMA billing;")
    assert refusal(empty_url, sources.options).code is MigrationErrorCode.MIGRATION_CHANGED


# Who may run it. Roles belong to the whole server, so these have one of their own.


@pytest.fixture
def own_postgres(data_dir: Path) -> Iterator[TestPostgres]:
    with running_postgres(data_dir) as server:
        if server.kind is PostgresKind.ADDRESS:
            pytest.skip("needs a server of its own, on which the roles do not exist yet")
        yield server


def login_url(server: TestPostgres, role: str, database: str) -> str:
    return server.database_url(database).replace("postgres@", f"{role}@", 1)


def test_the_owner_of_the_database_who_may_create_roles_can_migrate(
    own_postgres: TestPostgres,
) -> None:
    execute(own_postgres.url, "CREATE ROLE deployer LOGIN CREATEROLE")
    execute(own_postgres.url, "CREATE DATABASE shop OWNER deployer")
    url = login_url(own_postgres, "deployer", "shop")
    assert migrate(url).warnings == ()
    assert not migrate(url).changed
    assert status(url).is_current
    owners = """
        SELECT string_agg(DISTINCT pg_get_userbyid(relowner), ' ') FROM pg_class
        WHERE relnamespace IN ('billing'::regnamespace, 'procrastinate'::regnamespace)
    """
    assert one(url, owners) == "billing_owner"
    assert not one(url, "SELECT rolsuper FROM pg_roles WHERE rolname = 'deployer'")


def test_a_login_without_rights_is_told_what_to_ask_for(own_postgres: TestPostgres) -> None:
    execute(own_postgres.url, "CREATE ROLE deployer LOGIN")
    execute(own_postgres.url, "CREATE DATABASE shop OWNER deployer")
    url = login_url(own_postgres, "deployer", "shop")
    error = refusal(url, MigrateOptions())
    assert error.code is MigrationErrorCode.ROLES_MISSING
    assert "GRANT billing_owner TO deployer" in error.hint

    # What the hint says is enough, and the login need not own the database.
    with psycopg.connect(own_postgres.database_url("shop"), autocommit=True) as connection:
        run_file(connection, SqlFiles.load().roles)
        connection.execute("ALTER DATABASE shop OWNER TO postgres")
    error = refusal(url, MigrateOptions())
    assert error.code is MigrationErrorCode.ROLES_MISSING
    execute(own_postgres.url, "GRANT billing_owner TO deployer")
    assert migrate(url).warnings == ()


def test_two_databases_of_one_new_server_may_be_migrated_at_once(
    own_postgres: TestPostgres,
) -> None:
    urls = []
    for name in ("one", "two"):
        execute(own_postgres.url, f"CREATE DATABASE {name}")
        urls.append(own_postgres.database_url(name))
    with two_processes(*urls) as processes:
        answers = [process.communicate(timeout=PATIENCE) for process in processes]
    assert [errors for _, errors in answers] == ["", ""]
    assert all(status(url).is_current for url in urls)


def test_roles_that_another_session_creates_at_the_same_time_are_taken_as_they_are(
    own_postgres: TestPostgres,
) -> None:
    roles = SqlFiles.load().roles
    with (
        psycopg.connect(own_postgres.url) as first,
        psycopg.connect(own_postgres.url, autocommit=True) as watcher,
    ):
        first.execute("SELECT")  # opens the transaction, which run_file does not
        run_file(first, roles)
        code = (
            "import sys, psycopg; from billing_shell.sql_files import SqlFiles;"
            "from billing_shell.sql_script import run_file;"
            "c = psycopg.connect(sys.argv[1], autocommit=True);"
            "run_file(c, SqlFiles.load().roles); c.close()"
        )
        second = subprocess.Popen(
            [sys.executable, "-c", code, own_postgres.url], stderr=subprocess.PIPE, text=True
        )
        with second:
            blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            deadline = time.monotonic() + PATIENCE
            while watcher.execute(blocked).fetchone() != (1,):
                assert time.monotonic() < deadline, "the second never came to wait"
                assert second.poll() is None, second.communicate()[1]
            first.commit()
            assert second.wait(PATIENCE) == 0, second.communicate()[1]


def test_a_file_reports_every_result_up_to_its_error(empty_url: str) -> None:
    with psycopg.connect(empty_url, autocommit=True) as connection:
        with pytest.raises(MigrationError) as failed:
            run_file(connection, SqlFile("x.sql", "SELECT 1;\nSELECT 2; SELECT 1 / 0;\nSELECT 3;"))
        assert failed.value.where == "x.sql:2"
        assert connection.execute("SELECT 4").fetchone() == (4,)
