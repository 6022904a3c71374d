"""One endpoint: what it takes from a request, and the one SQL call that it is.

An endpoint is a row of the table in `api_endpoints`; its shape says what kind of call it is. The
door decides nothing: what a caller leaves out is left out of the call.
"""

import functools
import json
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import LiteralString

from pydantic import ValidationError
from pydantic.alias_generators import to_camel, to_snake
from starlette.requests import Request
from starlette.responses import Response

from billing_shell.api_fields import Body
from billing_shell.api_keys import Scope
from billing_shell.api_problem import Catalogue, of_status
from billing_shell.api_queries import TEXT_COLUMNS
from billing_shell.api_requests import Arguments, Faults
from billing_shell.api_shapes import Row, Shape

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Tag(StrEnum):
    """Groups of endpoints."""

    CUSTOMERS = "customers"
    PAYMENT_METHODS = "payment methods"
    PLANS = "plans"
    SUBSCRIPTIONS = "subscriptions"
    INVOICES = "invoices"
    WEBHOOKS = "webhooks"
    OPERATION = "operation"


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One endpoint.

    Attributes:
        method: of HTTP.
        path: with its parameters in braces, in camelCase.
        name: operation id, unique.
        summary: one line for the reader.
        tag: the group it stands in.
        shape: the call.
        body: what the request carries, or None.
        scope: what the key must permit.
        status: of a success.
        takes_key: whether the header `Idempotency-Key` is part of the call.
        needs_key: whether it must be there.
        takes_version: whether `If-Match` is part of the call.
        location: where what was made can be read, with names of the answer in braces; or empty.
    """

    method: str
    path: str
    name: str
    summary: str
    tag: Tag
    shape: Shape
    body: type[Body] | None = None
    scope: Scope = Scope.READ
    status: int = HTTPStatus.OK
    takes_key: bool = False
    needs_key: bool = False
    takes_version: bool = False
    location: str = ""

    @property
    def reads_only(self) -> bool:
        """Whether the database is to refuse whatever the call might write."""
        return self.method == "GET"

    @functools.cached_property
    def path_parameters(self) -> dict[str, str]:
        """What stands in the path: name in SQL, and SQL type."""
        names = [to_snake(name) for name in _PLACEHOLDER.findall(self.path)]
        return {name: "text" if name in TEXT_COLUMNS else "bigint" for name in names}

    @functools.cached_property
    def _in_path(self) -> list[tuple[str, str, bool]]:
        """The same: name in SQL, name in the path, whether it is a text."""
        return [
            (name, to_camel(name), kind == "text") for name, kind in self.path_parameters.items()
        ]

    @functools.cached_property
    def types(self) -> dict[str, str]:
        """SQL type of every argument that the call can have."""
        return (
            self.path_parameters
            | {to_snake(name): "text" for name in self.shape.query}
            | {"limit": "bigint", "after": "text"}
            | (self.body.sql_types() if self.body is not None else {})
            | {"idempotency_key": "text", "expected_version": "bigint"}
        )

    def arguments(self, request: Request, raw_body: bytes, catalogue: Catalogue) -> Arguments:
        """What the request says.

        Raises:
            ProblemError: 400, 415 or 422.
        """
        faults = Faults()
        arguments: Arguments = {}
        for name, written, is_text in self._in_path:
            read = faults.text if is_text else faults.number
            arguments[name] = read(f"/path/{written}", request.path_params[written])
        query = faults.once(request.query_params.multi_items(), self.shape.query)
        arguments |= self.shape.read_query(query, faults)
        if self.takes_key:
            key = faults.header("Idempotency-Key", request.headers.getlist("idempotency-key"))
            if self.needs_key or key is not None:
                # A missing one is refused by the function, which requires it.
                arguments["idempotency_key"] = key
        if self.takes_version:
            tag = faults.header("If-Match", request.headers.getlist("if-match"))
            version = None if tag is None else faults.version(tag)
            if version is not None:
                arguments["expected_version"] = version
        if self.body is not None:
            arguments |= _read_body(self.body, request, raw_body, faults)
        if faults.found:
            raise catalogue.invalid("the request is malformed", tuple(faults.found))
        return arguments

    def statement(self, arguments: Arguments) -> LiteralString:
        """The call with these arguments."""
        return self._statement(tuple(arguments))

    def respond(self, rows: list[Row], arguments: Arguments) -> Response:
        """The answer to the call that was made.

        Raises:
            NotThereError: a row that was asked for is not there.
        """
        response = self.shape.respond(rows, arguments, self.status)
        if self.location and response.status_code == self.status:
            response.headers["Location"] = self.location.format(**json.loads(bytes(response.body)))
        return response

    @functools.cached_property
    def _statements(self) -> dict[tuple[str, ...], LiteralString]:
        return {}

    def _statement(self, given: tuple[str, ...]) -> LiteralString:
        statement = self._statements.get(given)
        if statement is None:
            types = {name: self.types[name] for name in given}
            statement = self._statements[given] = self.shape.statement(types)
        return statement


def _read_body(body: type[Body], request: Request, raw_body: bytes, faults: Faults) -> Arguments:
    if raw_body and not _is_json(request.headers.get("content-type", "")):
        raise of_status(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    try:
        given = body.model_validate_json(raw_body or b"{}").given()
    except ValidationError as error:
        errors = error.errors(include_url=False, include_context=False, include_input=False)
        if errors[0]["type"] == "json_invalid":
            raise of_status(HTTPStatus.BAD_REQUEST) from None
        for fault in errors:
            faults.add("/".join(("/body", *map(_escaped, fault["loc"]))), fault["msg"])
        return {}
    for name in _given_twice(raw_body):
        faults.add(f"/body/{_escaped(name)}", "is given twice")
    return given


def _given_twice(raw_body: bytes) -> list[str]:
    """Names that a body has more than once, of which readers take one or the other (RFC 8259, 4).

    Args:
        raw_body: one flat object, or empty.
    """
    pairs = json.loads(raw_body, object_pairs_hook=list) if raw_body else []
    counted = Counter(name for name, _ in pairs)
    return [name for name, times in counted.items() if times > 1]


def _escaped(part: int | str) -> str:
    """One step of a JSON Pointer (RFC 6901)."""
    return str(part).replace("~", "~0").replace("/", "~1")


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"
