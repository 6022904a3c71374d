"""The table of endpoints against the database: names, types, defaults and words are the same."""

import json
import re
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import Connection
from pydantic.alias_generators import to_snake
from pydantic_core import PydanticUndefined

from billing_shell import api_answers, api_invoice_answers
from billing_shell.api import ApiOptions, create_app
from billing_shell.api_endpoints import ENDPOINTS
from billing_shell.api_fields import Answer
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation
from billing_shell.api_shapes import Item, Listing
from billing_shell.metrics import HELP

CALLS = [each for each in ENDPOINTS if not isinstance(each.shape, Item | Listing)]
VIEWS = [
    each
    for each in (*vars(api_answers).values(), *vars(api_invoice_answers).values())
    if isinstance(each, type) and issubclass(each, Answer) and each is not Answer
]
TYPES = {"bigint", "integer", "text", "boolean", "timestamptz"}

ARGUMENTS = """
    SELECT a.name, format_type(a.type, NULL), a.no > p.pronargs - p.pronargdefaults
    FROM pg_proc AS p
    CROSS JOIN LATERAL unnest(p.proargnames, p.proargtypes::oid[])
        WITH ORDINALITY AS a (name, type, no)
    WHERE p.oid = %s::regproc AND a.no <= p.pronargs
"""
DEFAULTS = "SELECT pg_get_function_arguments(%s::regproc)"


@pytest.fixture(scope="module")
def database(postgres: object, template_database: str) -> Iterator[Connection]:
    with postgres.database(template=template_database) as name:  # type: ignore[attr-defined]
        url = postgres.database_url(name)  # type: ignore[attr-defined]
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection


def arguments(database: Connection, function: str) -> dict[str, tuple[str, bool]]:
    """Type of each argument without `p_`, and whether it has a default."""
    return {
        name.removeprefix("p_"): (kind.replace("timestamp with time zone", "timestamptz"), optional)
        for name, kind, optional in database.execute(ARGUMENTS, (function,))
    }


def offered(operation: Operation) -> set[str]:
    """Arguments that a caller can give."""
    names = set(operation.path_parameters) | {to_snake(name) for name in operation.shape.query}
    names |= set(operation.body.sql_types()) if operation.body is not None else set()
    names |= {"idempotency_key"} if operation.takes_key else set()
    return names | ({"expected_version"} if operation.takes_version else set())


def test_every_function_of_the_api_has_an_endpoint(database: Connection) -> None:
    functions = {
        row[0]
        for row in database.execute(
            "SELECT 'billing_api.' || proname FROM pg_proc"
            " WHERE pronamespace = 'billing_api'::regnamespace"
        )
    }
    assert functions <= {each.shape.sql for each in ENDPOINTS}


def test_every_view_of_the_api_is_handed_out(database: Connection) -> None:
    views = {
        row[0]
        for row in database.execute(
            "SELECT 'billing_api.' || relname FROM pg_class"
            " WHERE relnamespace = 'billing_api'::regnamespace AND relkind = 'v'"
        )
    }
    assert views <= {each.shape.sql for each in ENDPOINTS}


def test_names_and_paths_are_unique() -> None:
    assert len({each.name for each in ENDPOINTS}) == len(ENDPOINTS)
    assert len({(each.method, each.path) for each in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize("operation", CALLS, ids=lambda each: each.name)
def test_an_endpoint_offers_every_argument_but_business_time(
    database: Connection, operation: Operation
) -> None:
    known = arguments(database, operation.shape.sql)
    assert offered(operation) == set(known) - {"as_of"}


@pytest.mark.parametrize("operation", CALLS, ids=lambda each: each.name)
def test_an_endpoint_casts_to_the_type_that_the_function_takes(
    database: Connection, operation: Operation
) -> None:
    known = arguments(database, operation.shape.sql)
    types = {name: operation.types[name] for name in offered(operation)}
    assert types == {name: known[name][0] for name in types}
    assert set(types.values()) <= TYPES


@pytest.mark.parametrize("operation", CALLS, ids=lambda each: each.name)
def test_what_a_function_requires_is_required_and_nothing_else(
    database: Connection, operation: Operation
) -> None:
    known = arguments(database, operation.shape.sql)
    required = {name for name, (_, optional) in known.items() if not optional}
    body = operation.body.model_fields if operation.body is not None else {}
    for name in offered(operation) - set(operation.path_parameters) - {"idempotency_key"}:
        is_required = name in body and body[name].is_required()
        assert is_required == (name in required), name
    if "idempotency_key" in required:
        assert operation.needs_key


@pytest.mark.parametrize("operation", CALLS, ids=lambda each: each.name)
def test_the_default_that_is_documented_is_that_of_the_function(
    database: Connection, operation: Operation
) -> None:
    row = database.execute(DEFAULTS, (operation.shape.sql,)).fetchone()
    assert row is not None
    body = operation.body.model_fields if operation.body is not None else {}
    for name, field in body.items():
        found = re.search(rf"\bp_{name} [a-z ]+? DEFAULT ('[^']*'|[^:,]+)", row[0])
        if found is None:
            assert field.default is PydanticUndefined, name
            continue
        said = {"NULL": None, "true": True, "false": False}.get(found[1], found[1].strip("'"))
        assert str(field.default) == str(said), name


@pytest.mark.parametrize("answer", VIEWS, ids=lambda each: each.__name__)
def test_an_answer_has_the_columns_of_its_view_in_the_views_words(
    database: Connection, answer: type[Answer]
) -> None:
    view = f"billing_api.{re.sub('(?<!^)(?=[A-Z])', '_', answer.__name__).lower()}"
    found = database.execute(
        "SELECT a.attname, col_description(a.attrelid, a.attnum) FROM pg_attribute AS a"
        " WHERE a.attrelid = %s::regclass AND a.attnum > 0 ORDER BY a.attnum",
        (view,),
    ).fetchall()
    assert found == [(name, field.description) for name, field in answer.model_fields.items()]


@pytest.mark.parametrize("operation", ENDPOINTS, ids=lambda each: each.name)
def test_whoever_has_the_scope_may_call_it(database: Connection, operation: Operation) -> None:
    role = "billing_operator" if operation.scope is Scope.OPERATE else "billing_app"
    check = "function" if operation in CALLS else "table"
    query = (
        f"SELECT has_{check}_privilege(%s, %s::reg{'proc' if operation in CALLS else 'class'}, %s)"
    )
    privilege = "EXECUTE" if operation in CALLS else "SELECT"
    row = database.execute(query.encode(), (role, operation.shape.sql, privilege)).fetchone()
    assert row == (True,)


def test_every_figure_of_the_database_is_explained(database: Connection) -> None:
    names = {row[0] for row in database.execute("SELECT name FROM billing_worker.metrics()")}
    assert names <= set(HELP)
    assert len(names) > 12


def test_the_specification_names_every_endpoint_with_examples() -> None:
    app = create_app(ApiOptions(database_url="postgresql://nobody@nowhere/none")).app
    document = app.openapi()
    assert document["openapi"].startswith("3.1")
    found = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert {(each.method, each.path) for each in ENDPOINTS} <= found
    assert {("POST", "/webhooks/payments"), ("POST", "/webhooks/{gatewayAccount}")} <= found
    for operation in ENDPOINTS:
        described = document["paths"][operation.path][operation.method.lower()]
        assert described["summary"], operation.name
        assert described["tags"], operation.name
        if operation.body is not None:
            examples = described["requestBody"]["content"]["application/json"]["examples"]
            for example in examples.values():
                operation.body.model_validate_json(json.dumps(example["value"]))
    for name, schema in document["components"]["schemas"].items():
        if name not in {"WaitingLine", "PreviewedInvoice"}:
            assert schema["examples"], name
