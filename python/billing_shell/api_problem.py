"""Refusals as RFC 9457 problem details: what the caller did wrong, never how we are made.

A refusal of the engine keeps its SQLSTATE, message, detail and hint; title and status are those of
the catalogue `billing.error_code`. Whatever else the server or the program says stays in the log.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from billing_shell.errors import BillingError, DatabaseError, RetryableError

MEDIA_TYPE = "application/problem+json"

INVALID_ARGUMENT = "SB101"
TRY_AGAIN = "SB401"

_INSUFFICIENT_PRIVILEGE = "42501"
_DATA_EXCEPTION = "22"
_RETRY_SECONDS = "1"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row of the catalogue."""

    sqlstate: str
    name: str
    http_status: int
    meaning: str


class ProblemError(Exception):
    """The request is refused, with what the caller is told.

    Attributes:
        status: HTTP status.
        name: what kind of problem, in snake case; stands in `type`.
        title: the same for people, the same every time.
        detail: what is wrong with this very request.
        sqlstate: of the engine's refusal, or None.
        hint: what to do about it, or empty.
        context: the refusal's DETAIL, a version or an id for example, or empty.
        errors: what is wrong where in the request: `{"pointer": …, "detail": …}`.
        headers: to send along.
    """

    def __init__(  # noqa: PLR0913 - the members of a problem
        self,
        status: int,
        name: str,
        title: str,
        detail: str = "",
        *,
        sqlstate: str | None = None,
        hint: str = "",
        context: str = "",
        errors: tuple[Mapping[str, str], ...] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {name}")
        self.status = status
        self.name = name
        self.title = title
        self.detail = detail
        self.sqlstate = sqlstate
        self.hint = hint
        self.context = context
        self.errors = errors
        self.headers = dict(headers or {})

    def response(self, request_id: str) -> Response:
        """The answer that says so."""
        members: dict[str, Any] = {
            "type": f"urn:billing:problem:{self.name}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "sqlstate": self.sqlstate,
            "hint": self.hint,
            "context": self.context,
            "errors": list(self.errors),
            "requestId": request_id,
        }
        body = {name: value for name, value in members.items() if value or name == "status"}
        return Response(
            json.dumps(body, ensure_ascii=False, separators=(",", ":")),
            status_code=self.status,
            media_type=MEDIA_TYPE,
            headers=self.headers,
        )


def of_status(status: int, headers: Mapping[str, str] | None = None) -> ProblemError:
    """A problem of HTTP itself: no such path, no such method."""
    phrase = HTTPStatus(status).phrase
    name = phrase.lower().replace(" ", "_").replace("-", "_")
    return ProblemError(status, name, phrase, headers=headers)


def unauthorized(detail: str) -> ProblemError:
    """No key, or none that is let in. Nobody learns which keys there are."""
    return ProblemError(
        HTTPStatus.UNAUTHORIZED,
        "unauthorized",
        "A valid API key is needed.",
        detail,
        hint="Send it as Authorization: Bearer <key>.",
        headers={"WWW-Authenticate": 'Bearer realm="billing"'},
    )


def forbidden(scope: str) -> ProblemError:
    """The key is good, and not for this."""
    return ProblemError(
        HTTPStatus.FORBIDDEN,
        "forbidden",
        "The API key does not permit this.",
        f"the scope {scope} is needed",
        headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'},
    )


def internal_error() -> ProblemError:
    """Our fault; the log knows more under the request's id."""
    return ProblemError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal_error",
        "The request failed, and it was not the caller's fault.",
        hint="Tell the operator the request's id.",
    )


@dataclass(slots=True)
class Catalogue:
    """The error catalogue of the database, as it was when it was last read."""

    codes: dict[str, ErrorCode] = field(default_factory=dict)

    def problem(self, sqlstate: str, detail: str, **members: Any) -> ProblemError:  # noqa: ANN401
        """A refusal of the engine, in the words of the catalogue."""
        code = self.codes.get(sqlstate)
        if code is None:
            status = _status_of_class(sqlstate)
            code = ErrorCode(sqlstate, "billing_error", status, HTTPStatus(status).phrase)
        status = code.http_status
        headers: dict[str, str] = {}
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers["Retry-After"] = _RETRY_SECONDS
        return ProblemError(
            status, code.name, code.meaning, detail, sqlstate=sqlstate, headers=headers, **members
        )

    def invalid(self, detail: str, errors: tuple[Mapping[str, str], ...] = ()) -> ProblemError:
        """What SQL would refuse as a bad argument, were it called with this."""
        return self.problem(INVALID_ARGUMENT, detail, errors=errors)

    def of_database(self, error: DatabaseError, scope: str) -> ProblemError:
        """What the caller is told of an error of the database; only the engine's own words."""
        if isinstance(error, BillingError) or error.code.startswith("SB"):
            return self.problem(error.code, error.message, hint=error.hint, context=error.detail)
        if isinstance(error, RetryableError):
            problem = self.problem(TRY_AGAIN, "the database was busy or not to be reached")
            problem.sqlstate = error.code
            return problem
        if error.code.startswith(_DATA_EXCEPTION):
            return self.problem(INVALID_ARGUMENT, "a value is out of range or malformed")
        if error.code == _INSUFFICIENT_PRIVILEGE:
            return forbidden(scope)
        return internal_error()


def _status_of_class(sqlstate: str) -> int:
    return {"SB1": 422, "SB2": 404, "SB3": 409, "SB4": 503}.get(sqlstate[:3], 500)
