"""How a command ends: its exit code, and a message instead of a traceback."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from billing_shell.errors import DatabaseError

# SQLSTATEs of a role, schema, table, type or function that is not there.
_NO_SUCH_THING = frozenset({"22023", "3F000", "42P01", "42704", "42883"})


class Exit(IntEnum):
    """What the exit code means."""

    DONE = 0
    """Done, or stopped as asked."""
    FAILED = 1
    """Ran, and failed or found something wrong."""
    USAGE = 2
    """Wrong usage or setting."""
    UNREACHABLE = 3
    """A server cannot be reached or started."""
    REFUSED = 4
    """The database refused, and its SQLSTATE is named."""


def fail(
    exit_code: Exit, message: str, *, code: str, hint: str = "", as_json: bool = False
) -> NoReturn:
    """End the command.

    Args:
        exit_code: what the shell sees.
        message: what went wrong, on standard error.
        code: the same for machines: a SQLSTATE, or a word.
        hint: what to do about it.
        as_json: say it on standard output too, as `{"error": {...}}`.
    """
    if as_json:
        typer.echo(json.dumps({"error": {"code": str(code), "message": message, "hint": hint}}))
    typer.echo(f"error: {message} [{code}]", err=True)
    if hint:
        typer.echo(f"hint: {hint}", err=True)
    raise typer.Exit(exit_code)


@contextmanager
def reported(*, as_json: bool = False) -> Iterator[None]:
    """End the command with a message and an exit code where something known goes wrong."""
    import psycopg

    from billing_shell.errors import DatabaseError, translate
    from billing_shell.import_problems import ImportRefusedError
    from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
    from billing_shell.server_process import ServerError
    from billing_shell.settings import SettingsError

    try:
        yield
    except SettingsError as error:
        fail(Exit.USAGE, str(error), code=error.code, as_json=as_json)
    except ServerError as error:
        fail(Exit.UNREACHABLE, str(error), code=error.code, as_json=as_json)
    except MigrationError as error:
        unreachable = error.code is MigrationErrorCode.DATABASE_UNREACHABLE
        fail(
            Exit.UNREACHABLE if unreachable else Exit.REFUSED,
            f"{error.where}: {error.message}" if error.where else error.message,
            code=error.sqlstate or error.code,
            hint=error.hint,
            as_json=as_json,
        )
    except ImportRefusedError as error:
        fail(Exit.FAILED, str(error), code="import_refused", as_json=as_json)
    except psycopg.Error as error:
        _tell(translate(error), as_json=as_json)
    except DatabaseError as error:
        _tell(error, as_json=as_json)
    except OSError as error:
        if error.filename is None:
            raise
        fail(
            Exit.FAILED,
            f"{error.filename}: {error.strerror}",
            code="file_unusable",
            as_json=as_json,
        )


def _tell(error: "DatabaseError", *, as_json: bool) -> NoReturn:
    from billing_shell.errors import RetryableError

    hint = error.hint
    unreachable = isinstance(error, RetryableError) and error.code.startswith("08")
    if unreachable:
        hint = hint or "is BILLING_DATABASE_URL right?"
    elif error.code in _NO_SUCH_THING:
        hint = "the database has no billing schema, or an older one: run billing migrate first"
    fail(
        Exit.UNREACHABLE if unreachable else Exit.REFUSED,
        error.message,
        code=error.code,
        hint=hint,
        as_json=as_json,
    )
