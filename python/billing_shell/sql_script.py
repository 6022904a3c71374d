"""Executing a whole file of SQL as the server takes it, with the line of whatever it refuses."""

from typing import Any

from psycopg import Connection, generators, pq
from psycopg.pq import DiagnosticField, ExecStatus

from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
from billing_shell.sql_files import SqlFile

BLOCKED_SQLSTATES = frozenset({"55P03", "40P01"})
"""lock_not_available (the time-out) and deadlock_detected."""


def run_file(connection: Connection[Any], file: SqlFile) -> None:
    """Sends the file as it is, in one message, within the transaction that is open.

    A cursor would do as much, but does not tell which of many statements failed.

    Raises:
        MigrationError: BLOCKED or SQL_FAILED, with file, line and SQLSTATE.
    """
    connection.pgconn.send_query(file.text.encode())
    results = connection.wait(generators.execute(connection.pgconn))
    for number, result in enumerate(results):
        if result.status == ExecStatus.FATAL_ERROR:
            raise _explained(file, number, result)


def _explained(file: SqlFile, number: int, result: pq.abc.PGresult) -> MigrationError:
    sqlstate = _field(result, DiagnosticField.SQLSTATE)
    message = _field(result, DiagnosticField.MESSAGE_PRIMARY)
    detail = _field(result, DiagnosticField.MESSAGE_DETAIL)
    blocked = sqlstate in BLOCKED_SQLSTATES
    return MigrationError(
        MigrationErrorCode.BLOCKED if blocked else MigrationErrorCode.SQL_FAILED,
        f"{message} ({detail})" if detail else message,
        where=f"{file.name}:{_line(file, number, result)}",
        sqlstate=sqlstate,
        hint=(
            "another session holds a lock on it: look for long transactions in pg_stat_activity,"
            " then run this again; nothing was changed"
            if blocked
            else _field(result, DiagnosticField.MESSAGE_HINT)
        ),
    )


def _line(file: SqlFile, number: int, result: pq.abc.PGresult) -> int:
    """Line of the very word where the server names it, else of the statement that failed."""
    position = _field(result, DiagnosticField.STATEMENT_POSITION)
    if position:
        return file.line_at(int(position) - 1)
    starts = [offset for offset, _ in file.statements()]
    return file.line_at(starts[number]) if number < len(starts) else 1


def _field(result: pq.abc.PGresult, field: DiagnosticField) -> str:
    return (result.error_field(field) or b"").decode("utf-8", "replace")
