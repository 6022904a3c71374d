"""A key that is bound to a customer: what is another's is as unknown as what is not there.

Every endpoint, and every function and view of `billing_api`, is asked once for a thing of another
customer and once for one that nobody has. The two answers must be the same, in text and in shape,
once the ids are taken out. Endpoints and functions that are added are asked as well.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import psycopg
import pytest
from psycopg import Connection, sql

from billing_shell.api_endpoints import ENDPOINTS
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation
from billing_shell.api_shapes import Item, Listing
from tests.py.support.door import NOBODY, RunningDoor, Shop
from tests.py.support.door_calls import IDS, SAMPLES, arguments_of, ids_of, over_http, own
from tests.py.support.servers import TestPostgres

BY_TYPE = {"text": "x", "bigint": 1, "integer": 1, "boolean": False}
# Refused before anybody looks: what is nobody's own.
NOBODYS_OWN = {"createCustomer", "createPlan", "addPrice", "migratePrice"}

FUNCTIONS = """
    SELECT
        p.proname, array_agg(a.name ORDER BY a.no),
        array_agg(format_type(a.type, NULL) ORDER BY a.no), p.pronargs - p.pronargdefaults
    FROM pg_proc AS p
    CROSS JOIN LATERAL unnest(p.proargnames, p.proargtypes::oid[])
        WITH ORDINALITY AS a (name, type, no)
    WHERE p.pronamespace = 'billing_api'::regnamespace AND a.no <= p.pronargs
    GROUP BY p.oid
    ORDER BY p.proname
"""


def ask(client: httpx.Client, operation: Operation, given: Mapping[str, Any]) -> httpx.Response:
    """Calls an endpoint with these ids, and samples for whatever else it requires."""
    return over_http(client, operation, arguments_of(operation, given))


def told(answer: httpx.Response, ids: Mapping[str, Any]) -> tuple[int, str | None, Any]:
    """What an answer says, without the ids that were asked for and the request's own."""
    text = answer.text
    for value in {str(each) for name, each in ids.items() if name in IDS}:
        text = re.sub(rf"\b{value}\b", "ID", text)
    content = json.loads(text) if text else None
    if isinstance(content, dict):
        content.pop("requestId", None)
    return answer.status_code, answer.headers.get("content-type"), content


@pytest.fixture(scope="module")
def bound(shared_door: RunningDoor, shared_shop: Shop) -> Iterator[httpx.Client]:
    with shared_door.client(customer=shared_shop.mine["customer_id"]) as client:
        yield client


CASES = [
    (each, name) for each in ENDPOINTS if each.scope is not Scope.OPERATE for name in ids_of(each)
]


@pytest.mark.parametrize(
    ("operation", "name"), CASES, ids=[f"{each.name}-{name}" for each, name in CASES]
)
def test_an_endpoint_does_not_know_what_is_anothers(
    bound: httpx.Client, shared_shop: Shop, operation: Operation, name: str
) -> None:
    before = _fingerprint(shared_shop.url)
    foreign_ids = own(shared_shop, operation.name) | {name: shared_shop.theirs[name]}
    missing_ids = own(shared_shop, operation.name) | {name: NOBODY}
    foreign = told(ask(bound, operation, foreign_ids), {name: foreign_ids[name]})
    missing = told(ask(bound, operation, missing_ids), {name: missing_ids[name]})
    assert foreign == missing
    if operation.name == "hasAccess":
        assert foreign == (200, "application/json", {"hasAccess": False})
    else:
        status, kind, content = foreign
        assert (status, kind) == (404, "application/problem+json")
        assert content["sqlstate"].startswith("SB2")
    assert _fingerprint(shared_shop.url) == before


@pytest.mark.parametrize(
    "operation",
    [each for each in ENDPOINTS if each.scope is Scope.READ and each.method == "GET"],
    ids=lambda each: each.name,
)
def test_an_endpoint_does_know_what_is_ones_own(
    bound: httpx.Client, shared_shop: Shop, operation: Operation
) -> None:
    """Or the test before would show nothing."""
    answer = ask(bound, operation, shared_shop.mine)
    assert answer.status_code == 200, answer.text
    assert f'"customerId":{shared_shop.theirs["customer_id"]},' not in answer.text


@pytest.mark.parametrize(
    "operation",
    [each for each in ENDPOINTS if not ids_of(each) and each.method != "GET"],
    ids=lambda each: each.name,
)
def test_what_is_nobodys_own_is_not_changed_with_a_bound_key(
    bound: httpx.Client, operation: Operation
) -> None:
    refused = ask(bound, operation, {})
    assert operation.name in NOBODYS_OWN
    assert (refused.status_code, refused.json()["sqlstate"]) == (409, "SB313")


def test_a_list_of_customers_is_a_list_of_one(bound: httpx.Client, shared_shop: Shop) -> None:
    for query in ("", "?externalRef=mine", "?externalRef=theirs"):
        listed = bound.get(f"/customers{query}").json()["data"]
        expected = [] if query.endswith("theirs") else [shared_shop.mine["customer_id"]]
        assert [each["customerId"] for each in listed] == expected


def test_a_bound_key_sees_no_figures_and_runs_nothing(
    shared_door: RunningDoor, shared_shop: Shop
) -> None:
    mine = shared_shop.mine["customer_id"]
    with shared_door.client(Scope.READ, Scope.WRITE, customer=mine) as client:
        assert client.get("/metrics").status_code == 403
        assert (
            client.get(f"/invoices/{shared_shop.mine['invoice_id']}/explanation").status_code == 403
        )


@pytest.fixture(scope="module")
def scoped(
    postgres: TestPostgres, shop_template: tuple[str, Shop]
) -> Iterator[tuple[Connection, Shop]]:
    """A session of an internal system that is bound to a customer."""
    template, shop = shop_template
    with (
        postgres.database(template=template) as name,
        psycopg.connect(postgres.database_url(name), autocommit=True) as connection,
    ):
        connection.execute("SET ROLE billing_app")
        connection.execute(
            "SELECT set_config('billing.customer_scope', %s, false)",
            (str(shop.mine["customer_id"]),),
        )
        yield connection, shop


def functions(postgres: TestPostgres, template_database: str) -> list[tuple[Any, ...]]:
    with (
        postgres.database(template=template_database) as name,
        psycopg.connect(postgres.database_url(name)) as connection,
    ):
        return connection.execute(FUNCTIONS).fetchall()


def outcome(connection: Connection, function: str, arguments: Mapping[str, Any]) -> object:
    """SQLSTATE and texts of the refusal, or the rows. Whatever was done is taken back."""
    call = sql.SQL("SELECT * FROM {}({})").format(
        sql.Identifier("billing_api", function),
        sql.SQL(", ").join(
            sql.SQL("{} => {}").format(sql.Identifier(f"p_{name}"), sql.Literal(value))
            for name, value in arguments.items()
        ),
    )
    try:
        with connection.transaction(force_rollback=True):
            return connection.execute(call).fetchall()
    except psycopg.Error as error:
        diagnosis = error.diag
        return (
            error.sqlstate,
            diagnosis.message_primary,
            diagnosis.message_detail,
            diagnosis.message_hint,
        )


def test_a_function_does_not_know_what_is_anothers(
    postgres: TestPostgres,
    template_database: str,
    scoped: tuple[Connection, Shop],
    subtests: pytest.Subtests,
) -> None:
    connection, shop = scoped
    asked = 0
    for function, names, types, required in functions(postgres, template_database):
        arguments = {name.removeprefix("p_"): kind for name, kind in zip(names, types, strict=True)}
        needed = {
            name: SAMPLES.get(name, shop.mine.get(name, BY_TYPE.get(kind)))
            for name, kind in list(arguments.items())[:required]
        }
        for name in [each for each in arguments if each in IDS]:
            with subtests.test(msg=f"{function}, {name}"):
                mine = own(shop, function)
                ours = needed | {key: mine[key] for key in needed if key in IDS}
                foreign = outcome(connection, function, ours | {name: shop.theirs[name]})
                missing = outcome(connection, function, ours | {name: NOBODY})
                assert masked(foreign, shop.theirs[name]) == masked(missing, NOBODY)
                if function == "has_access":
                    assert foreign == [(False,)]
                else:
                    assert isinstance(foreign, tuple)
                    assert str(foreign[0]).startswith("SB2"), foreign
                asked += 1
    assert asked >= 25


def masked(found: object, asked_for: int) -> str:
    return re.sub(rf"\b{asked_for}\b", "ID", repr(found))


def test_a_view_shows_nothing_of_anothers(scoped: tuple[Connection, Shop]) -> None:
    connection, shop = scoped
    views = {each.shape.sql for each in ENDPOINTS if isinstance(each.shape, Item | Listing)}
    for view in sorted(views - {"billing_api.plan", "billing_api.price"}):
        schema, name = view.split(".")
        query = sql.SQL("SELECT DISTINCT customer_id FROM {}").format(sql.Identifier(schema, name))
        found = {row[0] for row in connection.execute(query)}
        assert found <= {shop.mine["customer_id"]}, view


def _fingerprint(url: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute("SELECT billing_test.fingerprint()").fetchone()
