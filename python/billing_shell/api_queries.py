"""Statements of the HTTP door: those in its own right, and the forms of those of its endpoints.

Nothing that a caller sends ever becomes part of a statement: names come from the table of
endpoints, values are parameters. Answers leave the database as JSON and are passed on as they are.
"""

from collections.abc import Sequence
from typing import LiteralString

Columns = Sequence[tuple[str, str]]
"""(column, name in JSON) of an answer."""

# Who calls, and with it the role and the settings of this transaction. Without a row nothing is
# set, the role stays billing_http, and the call that follows is permitted nothing.
_OPEN: LiteralString = """
    SELECT
        c.key_name, c.is_allowed,
        pg_catalog.set_config('billing.actor', c.actor, true),
        pg_catalog.set_config('billing.customer_scope', c.customer_scope, true),
        {read_only}
        pg_catalog.set_config('role', c.role_name, true)
    FROM billing_worker.authenticate_api_key(
        p_key_hash => %(key_hash)s, p_scope => %(scope)s, p_request_id => %(request_id)s
    ) AS c
"""
OPEN_WRITING: LiteralString = _OPEN.replace("{read_only}", "")
OPEN_READING: LiteralString = _OPEN.replace(
    "{read_only}", "pg_catalog.set_config('transaction_read_only', 'on', true),"
)
IS_BOUND: LiteralString = """
    SELECT pg_catalog.current_setting('billing.customer_scope') <> ''
"""

ERROR_CODES: LiteralString = """
    SELECT c.sqlstate, c.name, c.http_status, c.meaning FROM billing.error_code AS c
"""
GATEWAY_ADAPTERS: LiteralString = """
    SELECT a.code, a.adapter FROM billing_worker.gateway_accounts() AS a
"""
RECEIVE_WEBHOOK: LiteralString = """
    SELECT billing_worker.receive_webhook(
        p_gateway_account => %(account)s, p_event_id => %(event_id)s,
        p_event_type => %(event_type)s, p_payload => %(payload)s
    )
"""
METRICS: LiteralString = "SELECT m.name, m.labels, m.value FROM billing_worker.metrics() AS m"
SCHEMA_VERSION: LiteralString = "SELECT billing_worker.schema_version()"

# A caller who is bound to a customer lists customers: a range of one, which the index serves.
_CUSTOMERS_IN_SCOPE = """
    r.customer_id BETWEEN
        coalesce(nullif(pg_catalog.current_setting('billing.customer_scope'), '')::bigint, 0) AND
        coalesce(nullif(pg_catalog.current_setting('billing.customer_scope'), '')::bigint, {most})
""".replace("{most}", str(2**63 - 1))
TEXT_COLUMNS = frozenset({"currency", "external_ref", "gateway_account", "plan_code"})
"""Those that things are found by and that are no numbers."""
_UPWARDS = TEXT_COLUMNS | {"line_no"}


def argument(name: str, sql_type: str) -> str:
    """`p_plan_code => %(plan_code)s::text`."""
    return f"p_{name} => %({name})s::{sql_type}"


def call(function: str, arguments: Sequence[str], columns: Columns) -> LiteralString:
    """A function that returns at most one row of a view.

    One row comes back in any case: the answer as JSON or NULL, its version or NULL, and whether it
    came from store. The function has run to its end by then.

    Args:
        function: with its schema.
        arguments: as `argument` makes them.
        columns: of the answer.
    """
    return _constant(f"""
        SELECT
            pg_catalog.row_to_json(a)::text, {_version(columns)},
            pg_catalog.current_setting('billing.replayed', true) = 'true'
        FROM (SELECT) AS one
        LEFT JOIN LATERAL (
            SELECT {_listed(columns)} FROM {function}({", ".join(arguments)}) AS r
        ) AS a ON true
    """)


def call_for_rows(function: str, arguments: Sequence[str], columns: Columns) -> LiteralString:
    """A function that returns rows: each comes back as JSON, with whether it came from store."""
    return _constant(f"""
        SELECT
            pg_catalog.row_to_json(a)::text,
            pg_catalog.current_setting('billing.replayed', true) = 'true'
        FROM (SELECT {_listed(columns)} FROM {function}({", ".join(arguments)}) AS r) AS a
    """)


def call_for_value(function: str, arguments: Sequence[str], name: str) -> LiteralString:
    """A function that returns one value; it comes back as JSON under this name."""
    return _constant(f"""
        SELECT pg_catalog.jsonb_build_object('{name}', {function}({", ".join(arguments)}))::text
    """)


def call_for_document(function: str, arguments: Sequence[str]) -> LiteralString:
    """A function that returns JSON."""
    return _constant(f"SELECT {function}({', '.join(arguments)})::text")


def item(view: str, keys: Sequence[str], columns: Columns) -> LiteralString:
    """One row of a view by its key, as JSON, with its version or NULL."""
    found = " AND ".join(_equal("r", key) for key in keys)
    return _constant(f"""
        SELECT pg_catalog.row_to_json(a)::text, {_version(columns)}
        FROM (SELECT {_listed(columns)} FROM {view} AS r WHERE {found}) AS a
    """)


def page(
    view: str, place: str, columns: Columns, filters: Sequence[str], *, continued: bool
) -> LiteralString:
    """A page of a view: rows as JSON, each with its place.

    Args:
        view: what is listed.
        place: the column that gives the order: an id from high to low, anything else upwards.
        columns: of the answer, the place among them.
        filters: columns to filter by.
        continued: whether there was a page before, at whose last place this one goes on.
    """
    conditions = [_equal("r", column) for column in filters]
    if place == "customer_id":
        conditions.append(_CUSTOMERS_IN_SCOPE)
    return _constant(_page(view, place, columns, conditions, continued=continued))


def page_of(
    parent: tuple[str, str], view: str, place: str, columns: Columns, *, continued: bool
) -> LiteralString:
    """A page of what belongs to one row of another view: no row where that one is unknown.

    Args:
        parent: its view and the column of its key, in which both agree.
        view: as in `page`.
        place: as in `page`.
        columns: as in `page`.
        continued: as in `page`.
    """
    parent_view, key = parent
    # Every index of what belongs to a customer is led by the customer.
    shared = {key, "customer_id"} if key not in TEXT_COLUMNS else {key}
    agree = [f"r.{column} = parent.{column}" for column in sorted(shared)]
    listed = _page(view, place, columns, agree, continued=continued)
    return _constant(f"""
        SELECT listed.body, listed.place
        FROM (SELECT p.* FROM {parent_view} AS p WHERE {_equal("p", key)}) AS parent
        LEFT JOIN LATERAL ({listed}) AS listed ON true
        ORDER BY listed.place {_direction(place)}
    """)


def _page(
    view: str, place: str, columns: Columns, conditions: Sequence[str], *, continued: bool
) -> str:
    where = list(conditions)
    if continued:
        beyond = ">" if place in _UPWARDS else "<"
        where.append(f"r.{place} {beyond} {_parameter('after', place)}")
    return f"""
        SELECT pg_catalog.row_to_json(a)::text AS body, a."{dict(columns)[place]}" AS place
        FROM (
            SELECT {_listed(columns)} FROM {view} AS r
            {"WHERE " + " AND ".join(where) if where else ""}
            ORDER BY r.{place} {_direction(place)}
            LIMIT %(limit)s::bigint
        ) AS a
    """


def _direction(place: str) -> str:
    return "ASC" if place in _UPWARDS else "DESC"


def _parameter(name: str, column: str) -> str:
    return f"%({name})s::{'text' if column in TEXT_COLUMNS else 'bigint'}"


def _equal(alias: str, column: str) -> str:
    return f"{alias}.{column} = {_parameter(column, column)}"


def _listed(columns: Columns) -> str:
    return ", ".join(f'r.{column} AS "{name}"' for column, name in columns)


def _version(columns: Columns) -> str:
    return "a.version" if ("version", "version") in columns else "NULL"


def _constant(statement: str) -> LiteralString:
    """Made of constants of this program only."""
    return statement
