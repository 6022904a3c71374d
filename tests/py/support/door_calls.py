"""Calls of every endpoint: what is sent over HTTP, and the same call in SQL, made independently."""

from collections.abc import Mapping
from typing import Any

import httpx
from psycopg import sql
from pydantic.alias_generators import to_camel, to_snake

from billing_shell.api_operations import Operation
from billing_shell.api_shapes import Item, Listing
from tests.py.support.door import ACCOUNT, Shop

IDS = ("customer_id", "subscription_id", "invoice_id", "payment_method_id", "attempt_id")
ON_OPEN_INVOICES = {"retryInvoice", "voidInvoice", "retry_invoice", "void_invoice"}
"""These ask for an invoice that is open before they look at anything else."""
SAMPLES: dict[str, Any] = {
    "plan_code": "PRO_PLUS",
    "currency": "USD",
    "gateway_account": ACCOUNT,
    "token": "tok_new",
    "idempotency_key": "key",
    "resource_ref": "default",
    "amount": 100,
    "reason": "sorry",
    "description": "setup",
    "trial_end": "2027-03-01T00:00:00Z",
    "current_period_start": "2027-01-15T00:00:00Z",
    "effective_from": "2030-01-01T00:00:00Z",
    "notice_days": 30,
    "external_ref": "new",
    "code": "NEW",
    "name": "New",
    "interval_unit": "MONTH",
}
"""Values that make sense for arguments of these names."""


def own(shop: Shop, name: str) -> dict[str, Any]:
    """Ids of the first customer's things for an endpoint or function of this name."""
    if name not in ON_OPEN_INVOICES:
        return dict(shop.mine)
    return {**shop.mine, "invoice_id": shop.mine["open_invoice_id"]}


def ids_of(operation: Operation) -> list[str]:
    """The ids that an endpoint is called with."""
    names = [*operation.path_parameters]
    names += operation.body.sql_types() if operation.body is not None else ()
    return [name for name in names if name in IDS]


def arguments_of(operation: Operation, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a call by their names in SQL: what is required, from samples, and ids."""
    values = {**SAMPLES, **given}
    names = [*operation.path_parameters]
    if operation.body is not None:
        for name, field in operation.body.model_fields.items():
            if field.is_required() or name in given:
                names.append(name)
    names += [to_snake(name) for name in operation.shape.query if to_snake(name) in given]
    if operation.takes_key:
        names.append("idempotency_key")
    return {name: values[name] for name in names}


def over_http(
    client: httpx.Client, operation: Operation, arguments: Mapping[str, Any]
) -> httpx.Response:
    """Makes the call over HTTP."""
    left = dict(arguments)
    path = operation.path
    for name in operation.path_parameters:
        path = path.replace(f"{{{to_camel(name)}}}", str(left.pop(name)))
    headers = {"Idempotency-Key": left.pop("idempotency_key")} if operation.takes_key else {}
    query = {
        name: left.pop(to_snake(name)) for name in operation.shape.query if to_snake(name) in left
    }
    body = {to_camel(name): value for name, value in left.items()}
    return client.request(
        operation.method,
        path,
        params=query,
        json=body if operation.body is not None else None,
        headers=headers,
    )


def in_sql(operation: Operation, arguments: Mapping[str, Any]) -> sql.Composed:
    """The same call as a statement."""
    schema, name = operation.shape.sql.split(".")
    shape = operation.shape
    if not isinstance(shape, Item | Listing):
        return sql.SQL("SELECT * FROM {}({})").format(
            sql.Identifier(schema, name),
            sql.SQL(", ").join(
                sql.SQL("{} => {}").format(sql.Identifier(f"p_{each}"), sql.Literal(value))
                for each, value in arguments.items()
            ),
        )
    conditions = [
        sql.SQL("{} = {}").format(sql.Identifier(each), sql.Literal(value))
        for each, value in arguments.items()
    ]
    query = sql.SQL("SELECT * FROM {} WHERE {}").format(
        sql.Identifier(schema, name),
        sql.SQL(" AND ").join(conditions) if conditions else sql.SQL("true"),
    )
    if isinstance(shape, Listing):
        upwards = shape.place in {"plan_code", "currency", "line_no"}
        query += sql.SQL(" ORDER BY {} {}").format(
            sql.Identifier(shape.place), sql.SQL("ASC" if upwards else "DESC")
        )
    return query
