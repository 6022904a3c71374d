"""HTTP and SQL give the same answer to the same call: every endpoint, done and refused.

Two copies of one database, whose clocks stand still at the same instant: what changes something is
called over HTTP in one and in SQL in the other, each time for a new customer in both, so that even
the ids of what is made are the same. Where the two drift apart in one test, later ones fail too.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import Connection, sql
from psycopg.rows import dict_row
from pydantic.alias_generators import to_camel

from billing_shell.api_endpoints import ENDPOINTS
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation
from billing_shell.api_shapes import Call, DocumentCall, Item, Listing, RowsCall
from tests.py.support.door import (
    NOBODY,
    RunningDoor,
    Shop,
    add_checkout,
    add_customer,
    running_door,
)
from tests.py.support.door_calls import IDS, arguments_of, in_sql, over_http
from tests.py.support.servers import TestPostgres

# What must have happened before a call can succeed; ids that it returns are those to call with.
BEFORE = {
    "undoCancel": "SELECT billing_api.cancel_subscription(%(subscription_id)s, true)",
    "eraseCustomer": "SELECT c.customer_id FROM billing_api.create_customer('gone', 'USD') AS c",
    "undoChange": (
        "SELECT billing_api.change_plan(%(subscription_id)s, 'PRO_PLUS',"
        " p_timing => 'AT_PERIOD_END')"
    ),
    "resumeSubscription": "SELECT billing_api.pause_subscription(%(subscription_id)s)",
    "extendTrial": (
        "SELECT s.subscription_id"
        " FROM billing_api.create_plan('T', 'T', 100, 'USD', 'MONTH', p_trial_days => 14) AS p"
        " CROSS JOIN LATERAL billing_api.create_subscription("
        "    %(customer_id)s, p.plan_code, 't', p_resource_ref => 'trial') AS s"
    ),
    "liftSuspension": "SELECT billing_api.suspend_resource(%(customer_id)s, 'default')",
    "migratePrice": "SELECT billing_api.add_price('PRO_MONTHLY', 5900, 'USD', '2027-06-01Z')",
    "voidInvoice": (
        "SELECT i.invoice_id FROM billing_api.create_manual_invoice("
        "    %(customer_id)s, 100, 'USD', 'setup', p_idempotency_key => 'm') AS i"
    ),
    "listCreditBalances": "SELECT billing_api.grant_credit(%(customer_id)s, 5, 'USD', 'r', 'k')",
    "listRefunds": (
        "SELECT billing_api.refund_invoice(%(invoice_id)s, 100, p_idempotency_key => 'k')"
    ),
    "removePaymentMethod": (
        "SELECT billing_api.add_payment_method("
        "    %(customer_id)s, 'sim', 'tok_2', p_make_default => false)"
    ),
}
GIVEN: dict[str, dict[str, Any]] = {
    "listCustomers": {"external_ref": "mine"},
    "migratePrice": {"plan_code": "PRO_MONTHLY"},
    "getPlan": {"plan_code": "PRO_MONTHLY"},
    "listPrices": {"plan_code": "PRO_MONTHLY"},
    "createSubscription": {"resource_ref": "third", "quantity": 3},
    "importSubscription": {"resource_ref": "third"},
}


@dataclasses.dataclass
class Pair:
    """A door before one copy, and the superuser's sessions in both."""

    door: RunningDoor
    one: Connection[dict[str, Any]]
    other: Connection[dict[str, Any]]

    def new_customer(self, operation: Operation) -> dict[str, Any]:
        """The same in both copies, with what must have been done before; ids to call with."""
        made = [self._new_customer(each, operation) for each in (self.one, self.other)]
        assert made[0] == made[1]
        return made[0]

    def _new_customer(
        self, connection: Connection[dict[str, Any]], operation: Operation
    ) -> dict[str, Any]:
        with psycopg.connect(connection.info.dsn, autocommit=True) as plain_rows:
            things = add_customer(plain_rows, f"for {operation.name}")
            add_checkout(plain_rows, things)
        statement = BEFORE.get(operation.name)
        row = None
        if statement is not None:
            row = connection.execute(statement.encode(), things).fetchone()
        ids = {"invoice_id": things["open_invoice_id"]} if operation.name == "retryInvoice" else {}
        return things | ids | {name: each for name, each in (row or {}).items() if name in IDS}

    def call(self, operation: Operation, statement: sql.Composed) -> list[dict[str, Any]]:
        """Makes a call in SQL in the other copy, in the role that HTTP has for it."""
        role = b"billing_operator" if operation.scope is Scope.OPERATE else b"billing_app"
        self.other.execute(b"SET ROLE " + role)
        try:
            return self.other.execute(statement).fetchall()
        finally:
            self.other.execute("RESET ROLE")


@pytest.fixture(scope="module")
def pair(postgres: TestPostgres, shop_template: tuple[str, Shop]) -> Iterator[Pair]:
    template, _ = shop_template
    with contextlib.ExitStack() as stack:
        urls = [
            postgres.database_url(stack.enter_context(postgres.database(template=template)))
            for _ in range(2)
        ]
        sessions = [
            stack.enter_context(psycopg.connect(url, autocommit=True, row_factory=dict_row))
            for url in urls
        ]
        for session in sessions:
            session.execute("SET timezone = 'UTC'")
        yield Pair(stack.enter_context(running_door(urls[0])), *sessions)


def plain(value: object) -> object:
    """What a value of the driver is in JSON, and its names over HTTP."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, dict):
        return {to_camel(name): plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member) for member in value]
    return value


def scopes(operation: Operation) -> tuple[Scope, ...]:
    return tuple(Scope) if operation.scope is Scope.OPERATE else (Scope.READ, Scope.WRITE)


def expected(operation: Operation, rows: list[dict[str, Any]]) -> object:
    """What the rows of SQL are over HTTP."""
    found = [plain(row) for row in rows]
    match operation.shape:
        case Listing():
            return {"data": found, "nextCursor": None}
        case RowsCall():
            return {"data": found}
        case DocumentCall():
            (document,) = rows[0].values()
            return plain(document)
        case _:
            return found[0]


@pytest.mark.parametrize("operation", ENDPOINTS, ids=lambda each: each.name)
def test_what_is_done_is_answered_alike(pair: Pair, operation: Operation) -> None:
    ids = pair.new_customer(operation)
    arguments = arguments_of(operation, ids | GIVEN.get(operation.name, {}))
    with pair.door.client(*scopes(operation)) as client:
        answer = over_http(client, operation, arguments)
    rows = pair.call(operation, in_sql(operation, arguments))
    assert answer.status_code == operation.status, answer.text
    assert answer.json() == expected(operation, rows)
    version = rows[0].get("version") if rows else None
    if version is not None and isinstance(operation.shape, Item | Call):
        assert answer.headers["ETag"] == f'"{version}"'


# Where a view has no row there is no error in SQL; the functions on the same thing raise it.
RAISED_BY = {
    "subscription_id": "SELECT billing_api.undo_cancel(%s)",
    "customer_id": "SELECT billing_api.add_payment_method(%s, 'sim', 'tok_2')",
    "plan_code": "SELECT billing_api.add_price(%s, 1, 'USD', '2030-01-01Z')",
    "invoice_id": "SELECT billing_api.void_invoice(%s)",
}
REFUSABLE = [each for each in ENDPOINTS if each.path_parameters or each.body is not None]


@pytest.mark.parametrize("operation", REFUSABLE, ids=lambda each: each.name)
def test_what_is_refused_is_refused_alike(pair: Pair, operation: Operation) -> None:
    wrong: dict[str, Any] = {"plan_code": 'NO "PLAN"', "currency": "XXX"}
    wrong |= dict.fromkeys(IDS, NOBODY)
    arguments = arguments_of(operation, wrong)
    with pair.door.client(*scopes(operation)) as client:
        answer = over_http(client, operation, arguments)
    statement = in_sql(operation, arguments)
    if isinstance(operation.shape, Item | Listing):
        (name, value), *_ = arguments.items()
        assert pair.call(operation, statement) == []
        statement = sql.SQL(RAISED_BY[name].replace("%s", "{}")).format(sql.Literal(value))
    if operation.name == "hasAccess":
        assert answer.json() == expected(operation, pair.call(operation, statement))
        return
    with pytest.raises(psycopg.Error) as raised:
        pair.call(operation, statement)
    diagnosis = raised.value.diag
    problem = answer.json()
    assert problem["sqlstate"] == raised.value.sqlstate
    assert problem["detail"] == diagnosis.message_primary
    assert problem.get("context") == diagnosis.message_detail
    assert problem.get("hint") == diagnosis.message_hint
    row = pair.other.execute(
        "SELECT meaning, http_status FROM billing.error_code WHERE sqlstate = %s",
        (problem["sqlstate"],),
    ).fetchone()
    assert row == {"meaning": problem["title"], "http_status": answer.status_code}
