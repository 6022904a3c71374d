"""Executing a whole file of SQL as the server takes it, with the line of whatever it refuses."""

from typing import Any

from psycopg import Connection, generators, pq
from psycopg.pq import DiagnosticField, ExecStatus

from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
from billing_shell.sql_files import SqlFile

BLOCKED_SQLSTATES = frozenset({"55P03", "40P01"})
"""lock_not_available (the time-out) and deadlock_detected."""


def run_file(connection: Connection[Any], file: SqlFile) -> None:
    """Executes the file within the transaction that is open.

    Raises:
        MigrationError: BLOCKED or SQL_FAILED, with file, line and SQLSTATE.
    """
    results = send_file(connection, file)
    if results and results[-1].status == ExecStatus.FATAL_ERROR:
        raise explain(file, len(results) - 1, results[-1])


def send_file(connection: Connection[Any], file: SqlFile) -> list[pq.abc.PGresult]:
    """Sends the file as it is, in one message, and collects one result per statement.

    The last result is an error where the server refused a statement; it never reads on after that.
    A cursor would do as much, but does not tell which of many statements failed.
    """
    connection.pgconn.send_query(file.text.encode())
    return connection.wait(generators.execute(connection.pgconn))


def explain(file: SqlFile, number: int, result: pq.abc.PGresult) -> MigrationError:
    """Turns the error of the statement with this number, from 0, into an exception."""
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
