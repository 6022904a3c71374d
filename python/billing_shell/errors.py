"""Errors of the database as exceptions to catch. `translate` is the one place that reads SQLSTATEs.

Texts of the engine's own errors (class SB) hold no values of callers and may be shown and logged.
Other texts of the server are kept without their DETAIL, which may quote rows.
"""

import re

import psycopg

_NOT_SENT = "08000"
"""SQLSTATE of what never reached the server, or lost it: connection exception."""

# Nothing was decided; the same call may be made again. Whole classes by their first two characters.
_RETRYABLE = re.compile(
    r"""40001   # serialization failure
      | 40P01   # deadlock
      | 55P03   # lock not available
      | 57014   # cancelled, mostly by a time-out
      | 57P0[1-5]  # the server shuts down, crashed, or is not up yet
      | 53...   # disk, memory or connections exhausted
      | 08...   # connection
      | SB4..   # the engine says so
    """,
    re.VERBOSE,
)


class DatabaseError(Exception):
    """The database refused a call, or could not be reached. It changed nothing, or nobody knows.

    Attributes:
        code: SQLSTATE, five characters.
        message: the server's primary message.
        detail: DETAIL of an error of class SB; empty for all others.
        hint: what to do about it, or empty.
    """

    def __init__(self, code: str, message: str, detail: str = "", hint: str = "") -> None:
        super().__init__(f"{message} [SQLSTATE {code}]")
        self.code = code
        self.message = message
        self.detail = detail
        self.hint = hint


class BillingError(DatabaseError):
    """The engine's own refusal, SQLSTATE class SB. `billing.error_code` lists them all.

    SB1xx bad argument, SB2xx not found, SB3xx state conflict, SB9xx broken invariant.
    """


class RetryableError(DatabaseError):
    """Lock, time-out, exhausted resource, lost connection, or SB4xx: the same call may succeed.

    After a lost connection the call may have been committed; every call that a worker makes can be
    made again.
    """


def translate(error: psycopg.Error) -> DatabaseError:
    """Return what to raise in place of an error of the driver."""
    diagnosis = error.diag
    code = error.sqlstate
    message = diagnosis.message_primary or str(error).strip() or type(error).__name__
    hint = diagnosis.message_hint or ""
    if code is None:
        # Never from the server: not connected, no answer in time, no free connection in the pool.
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return RetryableError(_NOT_SENT, message)
        return DatabaseError("XX000", message)
    if _RETRYABLE.fullmatch(code):
        return RetryableError(code, message, _own(code, diagnosis.message_detail), hint)
    if code.startswith("SB"):
        return BillingError(code, message, _own(code, diagnosis.message_detail), hint)
    return DatabaseError(code, message, hint=hint)


def _own(code: str, detail: str | None) -> str:
    return detail or "" if code.startswith("SB") else ""
