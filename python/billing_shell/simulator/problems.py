"""Errors as RFC 9457 problem details, each with a code that callers may rely on."""

from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response


class Problem(Exception):  # noqa: N818  RFC 9457 calls it a problem
    """One refusal. `code` names it, `parameter` the parameter that it is about, if any."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        parameter: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.parameter = parameter
        self.headers = headers or {}

    def document(self) -> dict[str, Any]:
        """Return the body."""
        document: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": str(self),
        }
        if self.parameter is not None:
            document["param"] = self.parameter
        return document


class ProblemResponse(JSONResponse):
    """A problem on the wire."""

    media_type = "application/problem+json"


def problem_response(problem: Problem) -> Response:
    """Return the response that tells of a problem."""
    return ProblemResponse(problem.document(), problem.status, problem.headers)


async def on_problem(_: Request, error: Exception) -> Response:
    """Answer a Problem that a handler raised."""
    if not isinstance(error, Problem):
        raise error
    return problem_response(error)


async def on_http_exception(_: Request, error: Exception) -> Response:
    """Answer what the router itself refuses: no such path, no such method."""
    if not isinstance(error, HTTPException):
        raise error
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
    problem = Problem(error.status_code, code, str(error.detail), headers=dict(error.headers or {}))
    return problem_response(problem)
