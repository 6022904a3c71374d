"""The kinds of calls that endpoints are: functions by what they return, views by row or by page."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, LiteralString, Protocol

from pydantic.alias_generators import to_camel
from starlette.responses import Response

from billing_shell import api_queries as queries
from billing_shell.api_fields import Answer
from billing_shell.api_requests import DEFAULT_PAGE, Arguments, Faults, cursor_at

REPLAYED_HEADER = "Idempotent-Replayed"

_LONGEST_CODE = 63

Row = tuple[Any, ...]


class NotThereError(Exception):
    """A view has no such row within the caller's scope; said as the engine would say it."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(sqlstate)
        self.sqlstate = sqlstate
        self.message = message


@dataclass(frozen=True, slots=True)
class Missing:
    """What is said where a row is not there, or another customer's: SQLSTATE and message."""

    sqlstate: str
    message: str

    def error(self, arguments: Arguments) -> NotThereError:
        """The same about these arguments."""
        said = {
            name: json.dumps(value[:_LONGEST_CODE], ensure_ascii=False)
            if isinstance(value, str)
            else value
            for name, value in arguments.items()
        }
        return NotThereError(self.sqlstate, self.message.format(**said))


class Shape(Protocol):
    """A kind of call."""

    @property
    def answer(self) -> type[Answer]:
        """What a success returns, or one row of it."""
        ...

    @property
    def sql(self) -> str:
        """The function or view, with its schema."""
        ...

    @property
    def query(self) -> Sequence[str]:
        """Names of the parameters in the query string."""
        ...

    def read_query(self, given: Mapping[str, str], faults: Faults) -> Arguments:
        """Those parameters as arguments."""
        ...

    def statement(self, types: Mapping[str, str]) -> LiteralString:
        """The call with these arguments, each with its SQL type."""
        ...

    def respond(self, rows: Sequence[Row], arguments: Arguments, status: int) -> Response:
        """The answer.

        Raises:
            NotThereError: a row that was asked for is not there.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Function:
    """A function.

    Attributes:
        function: with its schema.
        answer: as in `Shape`.
        texts: its arguments that stand in the query string.
    """

    function: str
    answer: type[Answer]
    texts: Sequence[str] = ()

    @property
    def sql(self) -> str:
        """As `Shape.sql`."""
        return self.function

    @property
    def query(self) -> Sequence[str]:
        """As `Shape.query`."""
        return [to_camel(name) for name in self.texts]

    def read_query(self, given: Mapping[str, str], faults: Faults) -> Arguments:
        """As `Shape.read_query`."""
        return {
            name: faults.text(f"/query/{to_camel(name)}", given[to_camel(name)])
            for name in self.texts
            if to_camel(name) in given
        }


class Call(_Function):
    """A function that returns at most one row; without a row the answer is 204."""

    def statement(self, types: Mapping[str, str]) -> LiteralString:
        """As `Shape.statement`."""
        return queries.call(self.function, _arguments(types), self.answer.columns())

    def respond(self, rows: Sequence[Row], arguments: Arguments, status: int) -> Response:
        """As `Shape.respond`."""
        del arguments
        ((body, version, replayed),) = rows
        response = (
            Response(status_code=HTTPStatus.NO_CONTENT)
            if body is None
            else _json(body, status, version)
        )
        return _marked(response, replayed=replayed)


class RowsCall(_Function):
    """A function that returns rows."""

    def statement(self, types: Mapping[str, str]) -> LiteralString:
        """As `Shape.statement`."""
        return queries.call_for_rows(self.function, _arguments(types), self.answer.columns())

    def respond(self, rows: Sequence[Row], arguments: Arguments, status: int) -> Response:
        """As `Shape.respond`."""
        del arguments
        response = _json(f'{{"data":[{",".join(body for body, _ in rows)}]}}', status)
        return _marked(response, replayed=any(replayed for _, replayed in rows))


class ValueCall(_Function):
    """A function that returns one value, under the name of the answer's one field."""

    def statement(self, types: Mapping[str, str]) -> LiteralString:
        """As `Shape.statement`."""
        ((_, name),) = self.answer.columns()
        return queries.call_for_value(self.function, _arguments(types), name)

    def respond(self, rows: Sequence[Row], arguments: Arguments, status: int) -> Response:
        """As `Shape.respond`."""
        del arguments
        return _json(rows[0][0], status)


class DocumentCall(_Function):
    """A function that returns JSON, whose parts are rows of views."""

    def statement(self, types: Mapping[str, str]) -> LiteralString:
        """As `Shape.statement`."""
        return queries.call_for_document(self.function, _arguments(types))

    def respond(self, rows: Sequence[Row], arguments: Arguments, status: int) -> Response:
        """As `Shape.respond`."""
        del arguments
        document = _in_camel_case(json.loads(rows[0][0]))
        return _json(json.dumps(document, ensure_ascii=False, separators=(",", ":")), status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row of a view, by the parameters of the path."""

    view: str
    answer: type[Answer]
    missing: Missing

    @property
    def sql(self) -> str:
        """As `Shape.sql`."""
        return self.view

    @property
    def query(self) -> Sequence[str]:
        """As `Shape.query`."""
        return ()

    def read_query(self, given: Mapping[str, str], faults: Faults) -> Arguments:
        """As `Shape.read_query`."""
        del given, faults
        return {}

    def statement(self, types: Mapping[str, str]) -> LiteralString:
        """As `Shape.statement`."""
        return queries.item(self.view, list(types), self.answer.columns())

    def respond(self, rows: Sequence[Row], arguments: Arguments, status: int) -> Response:
        """As `Shape.respond`."""
        if not rows:
            raise self.missing.error(arguments)
        ((body, version),) = rows
        return _json(body, status, version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of a view: of all of it, or of what belongs to a row of another.

    Attributes:
        view: what is listed.
        answer: one row.
        place: the column that gives the order: ids from high to low, so that what is new comes
            first, anything else from low to high.
        parent: view and key of what it belongs to, or None.
        missing: said where that is not there.
        filters: texts that may be asked for.
    """

    view: str
    answer: type[Answer]
    place: str
    parent: tuple[str, str] | None = None
    missing: Missing | None = None
    filters: Sequence[str] = ()

    @property
    def sql(self) -> str:
        """As `Shape.sql`."""
        return self.view

    @property
    def query(self) -> Sequence[str]:
        """As `Shape.query`."""
        return ["limit", "cursor", *(to_camel(name) for name in self.filters)]

    def read_query(self, given: Mapping[str, str], faults: Faults) -> Arguments:
        """As `Shape.read_query`. One row more than wanted tells whether there is another page."""
        size = faults.page_size("/query/limit", given["limit"]) if "limit" in given else None
        arguments: Arguments = {"limit": (size or DEFAULT_PAGE) + 1}
        if "cursor" in given:
            kind = str if self.place in queries.TEXT_COLUMNS else int
            arguments["after"] = faults.place("/query/cursor", given["cursor"], kind)
        for name in self.filters:
            if to_camel(name) in given:
                pointer = f"/query/{to_camel(name)}"
                arguments[name] = faults.text(pointer, given[to_camel(name)])
        return arguments

    def statement(self, types: Mapping[str, str]) -> LiteralString:
        """As `Shape.statement`."""
        columns = self.answer.columns()
        if self.parent is not None:
            continued = "after" in types
            return queries.page_of(self.parent, self.view, self.place, columns, continued=continued)
        filters = [name for name in types if name in self.filters]
        return queries.page(self.view, self.place, columns, filters, continued="after" in types)

    def respond(self, rows: Sequence[Row], arguments: Arguments, status: int) -> Response:
        """As `Shape.respond`."""
        if self.missing is not None and not rows:
            raise self.missing.error(arguments)
        found = [(body, place) for body, place in rows if body is not None]
        size = int(str(arguments["limit"])) - 1
        cursor = json.dumps(cursor_at(found[size - 1][1]) if len(found) > size else None)
        data = ",".join(body for body, _ in found[:size])
        return _json(f'{{"data":[{data}],"nextCursor":{cursor}}}', status)


def _arguments(types: Mapping[str, str]) -> list[str]:
    return [queries.argument(name, sql_type) for name, sql_type in types.items()]


def _json(body: str, status: int, version: int | None = None) -> Response:
    response = Response(body, status_code=status, media_type="application/json")
    if version is not None:
        response.headers["ETag"] = f'"{version}"'
    return response


def _marked(response: Response, *, replayed: bool) -> Response:
    if replayed:
        response.headers[REPLAYED_HEADER] = "true"
    return response


def _in_camel_case(value: object) -> object:
    if isinstance(value, dict):
        return {to_camel(name): _in_camel_case(member) for name, member in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_in_camel_case(member) for member in value]
    return value
