"""What a migrated database needs before SQL tests can run in it."""

from pathlib import Path

import psycopg

from billing_shell.sql_files import SqlFile, SqlFiles
from billing_shell.sql_script import run_file
from tests.sql.harness import pgtap

SUPPORT = Path(__file__).parents[1] / "support"

_SQL_FILE_TABLE = SqlFile(
    "sql_file",
    """
    CREATE SCHEMA billing_test;
    COMMENT ON SCHEMA billing_test IS 'Helpers of the SQL tests; no production database has it.';
    CREATE TABLE billing_test.sql_file (
        path text PRIMARY KEY,
        content text NOT NULL,
        creates text[] NOT NULL
    );
    COMMENT ON TABLE billing_test.sql_file IS
    'The files under db/ with the functions and views that each creates, for tests that compare.';
    """,
)


def prepare(database_url: str) -> None:
    """Adds pgTAP, the files under `db/` as rows, and the helpers of `tests/sql/support/`.

    Args:
        database_url: a migrated database, as a superuser.

    Raises:
        PgTapMissingError: pgTAP is not to be had.
        MigrationError: SQL_FAILED, where a helper is wrong, with its file and line.
    """
    with psycopg.connect(database_url, autocommit=True) as connection:
        pgtap.load(connection)
        run_file(connection, _SQL_FILE_TABLE)
        for file in SqlFiles.load().all_files:
            connection.execute(
                "INSERT INTO billing_test.sql_file VALUES (%s, %s, %s)",
                (file.name, file.text, sorted(file.creates)),
            )
        for path in sorted(SUPPORT.glob("*.sql")):
            with connection.transaction():
                run_file(connection, SqlFile(f"tests/sql/support/{path.name}", path.read_text()))
