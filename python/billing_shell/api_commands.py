"""`billing api` and `billing keys`: run the HTTP door, and say who may come in."""

import logging
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, LiteralString

import typer

from billing_shell.api_keys import Scope, hash_of, new_key
from billing_shell.command_errors import Exit, fail, reported
from billing_shell.command_output import AsJson, print_json
from billing_shell.command_settings import needed, read_settings

OPERATOR_ROLE = "billing_operator"

_SPAN = re.compile(r"(?P<number>[0-9]{1,5})(?P<unit>[smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

_CREATE: LiteralString = """
    SELECT k.* FROM billing_ops.create_api_key(
        p_name => %(name)s, p_key_hash => %(key_hash)s, p_scopes => %(scopes)s,
        p_customer_id => %(customer_id)s::bigint, p_expires_at => %(expires_at)s::timestamptz
    ) AS k
"""
_ROTATE: LiteralString = """
    SELECT k.* FROM billing_ops.rotate_api_key(
        p_api_key_id => %(api_key_id)s::bigint, p_key_hash => %(key_hash)s, p_overlap => %(overlap)s
    ) AS k
"""
_REVOKE: LiteralString = """
    SELECT k.* FROM billing_ops.revoke_api_key(p_api_key_id => %(api_key_id)s::bigint) AS k
"""
_REVOKE_LEFTOVERS: LiteralString = """
    SELECT r.*
    FROM billing_ops.api_key AS k
    CROSS JOIN LATERAL billing_ops.revoke_api_key(p_api_key_id => k.api_key_id) AS r
    WHERE k.status IN ('ACTIVE', 'ROTATED') AND k.name ~ ('^' || %(name)s || '-[0-9a-f]{8}$')
"""
_LIST: LiteralString = "SELECT k.* FROM billing_ops.api_key AS k ORDER BY k.name, k.api_key_id"


KeyId = Annotated[
    int, typer.Argument(metavar="ID", help="Id of the key, from `billing keys list`.")
]

_log = logging.getLogger(__name__)

keys = typer.Typer(
    no_args_is_help=True,
    help="Keys of those who call over HTTP. A key is shown once, when it is made;"
    " the database has its hash only.",
)


def register(app: typer.Typer) -> None:
    """Adds both commands to the command line."""
    app.command("api")(api)
    app.add_typer(keys, name="keys")


def create_key(database_url: str, name: str, scopes: list[Scope], customer_id: int | None) -> str:
    """Makes a key and lets it in.

    Args:
        database_url: as `BILLING_DATABASE_URL`; the login is a member of billing_operator.
        name: who calls with it.
        scopes: what it permits.
        customer_id: whose things it reaches; None = everybody's.

    Returns:
        The key, which nobody can find out later.

    Raises:
        DatabaseError: refused.
    """
    return _create(database_url, name, scopes, customer_id)[0]


@contextmanager
def temporary_key(database_url: str, name: str, scopes: list[Scope]) -> Iterator[str]:
    """Lets a key in for as long as the context lasts; arguments and errors as of `create_key`.

    Its name is completed by chance: one that outlived its process is in nobody's way, and is found
    by `revoke_leftovers`. So is one whose database has ended before it; that is no further error.
    """
    from billing_shell.errors import RetryableError

    full_name = f"{name}-{secrets.token_hex(4)}"
    key, key_id = _create(database_url, full_name, scopes, None)
    try:
        yield key
    finally:
        try:
            _as_operator(database_url, _REVOKE, {"api_key_id": key_id})
        except RetryableError as error:
            _log.warning("key %s is not revoked: %s", full_name, error.message)


def revoke_leftovers(database_url: str, name: str) -> None:
    """Refuses the keys that `temporary_key` made by this name for processes that were killed.

    Not where another process may live that has one. Arguments and errors as of `create_key`.
    """
    for revoked in _as_operator(database_url, _REVOKE_LEFTOVERS, {"name": name}):
        _log.info("key %s of a process that was killed is revoked", revoked["name"])


def _create(
    database_url: str, name: str, scopes: list[Scope], customer_id: int | None
) -> tuple[str, int]:
    key = new_key()
    (made,) = _as_operator(
        database_url,
        _CREATE,
        {
            "name": name,
            "key_hash": hash_of(key),
            "scopes": [scope.value for scope in scopes],
            "customer_id": customer_id,
            "expires_at": None,
        },
    )
    return key, made["api_key_id"]


def api(
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on.", envvar="BILLING_API_HOST")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on.", envvar="BILLING_API_PORT", min=0, max=65535)
    ] = 8000,
    connections: Annotated[
        int, typer.Option(help="To the database, at most.", min=1, max=1000)
    ] = 10,
) -> None:
    """Run the HTTP door until interrupted; any number may run side by side.

    TLS is for the load balancer in front of it: keys must not cross a network in the clear.
    """
    from billing_shell.api import ApiOptions, create_app
    from billing_shell.api_server import server
    from billing_shell.logs import configure_logs

    settings = read_settings()
    configure_logs(settings.log_format)
    app = create_app(
        ApiOptions(
            database_url=needed(settings.database_url, "BILLING_DATABASE_URL"),
            redis_url=settings.redis_url,
            kafka_bootstrap=settings.kafka_bootstrap,
            gateway_account=settings.gateway_account,
            webhook_secrets=settings.secrets_of,
            connections=connections,
        )
    )
    running = server(app, host=host, port=port)
    running.run()
    if not running.started:
        raise typer.Exit(Exit.UNREACHABLE)


@keys.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Who calls with it; stands in the logs.")],
    *,
    scope: Annotated[list[Scope], typer.Option(help="What it permits; several times for several.")],
    customer: Annotated[
        int | None, typer.Option(metavar="ID", help="Bind it to this customer's things.")
    ] = None,
    expires_in: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Refuse it from then on: 90d, 12h.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and show it, this once."""
    key = new_key()
    span = None if expires_in is None else _span(expires_in)
    made = _call(
        _CREATE,
        {
            "name": name,
            "key_hash": hash_of(key),
            "scopes": [each.value for each in scope],
            "customer_id": customer,
            "expires_at": None if span is None else datetime.now(UTC) + span,
        },
        as_json=as_json,
    )
    _show_new(key, made[0], as_json=as_json)


@keys.command("rotate")
def rotate(
    key_id: KeyId,
    *,
    overlap: Annotated[
        str, typer.Option(metavar="SPAN", help="How long the old one is still taken: 24h, 0s.")
    ] = "24h",
    as_json: AsJson = False,
) -> None:
    """Replace a key by a new one with the same name and rights, and show it, this once."""
    key = new_key()
    parameters = {"api_key_id": key_id, "key_hash": hash_of(key), "overlap": _span(overlap)}
    _show_new(key, _call(_ROTATE, parameters, as_json=as_json)[0], as_json=as_json)


@keys.command("revoke")
def revoke(key_id: KeyId, *, as_json: AsJson = False) -> None:
    """Refuse a key from the next request on."""
    _show(_call(_REVOKE, {"api_key_id": key_id}, as_json=as_json), as_json=as_json)


@keys.command("list")
def list_keys(*, as_json: AsJson = False) -> None:
    """Show all keys, without what one could be recognised by."""
    _show(_call(_LIST, {}, as_json=as_json), as_json=as_json)


def _call(
    query: LiteralString, parameters: dict[str, Any], *, as_json: bool
) -> list[dict[str, Any]]:
    with reported(as_json=as_json):
        url = needed(
            read_settings(as_json=as_json).database_url, "BILLING_DATABASE_URL", as_json=as_json
        )
        return _as_operator(url, query, parameters)


def _as_operator(
    database_url: str, query: LiteralString, parameters: dict[str, Any]
) -> list[dict[str, Any]]:
    """One call as an operator.

    Raises:
        DatabaseError: refused.
    """
    import psycopg
    from psycopg.rows import dict_row

    from billing_shell.database import session_conninfo
    from billing_shell.errors import translate

    conninfo = session_conninfo(database_url, role=OPERATOR_ROLE, application_name="billing keys")
    try:
        with psycopg.connect(conninfo, autocommit=True, row_factory=dict_row) as connection:
            return connection.execute(query, parameters).fetchall()
    except psycopg.Error as error:
        raise translate(error) from error


def _span(text: str) -> timedelta:
    found = _SPAN.fullmatch(text)
    if found is None:
        fail(
            Exit.USAGE,
            f"{text!r} is no span of time",
            code="bad_span",
            hint="write 30m, 24h or 90d",
        )
    return timedelta(**{_UNITS[found["unit"]]: int(found["number"])})


def _show_new(key: str, made: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json({"key": key, **made})
        return
    _show([made], as_json=False)
    sys.stderr.write("The key follows. It is not stored anywhere and cannot be shown again.\n")
    typer.echo(key)


def _show(found: list[dict[str, Any]], *, as_json: bool) -> None:
    """Rows for people go to standard error where a key goes to standard output."""
    if as_json:
        print_json(found)
        return
    columns = ("api_key_id", "name", "status", "scopes", "customer_id", "created_at", "expires_at")
    lines = [tuple(_cell(row[column]) for column in columns) for row in found]
    widths = [max(map(len, column)) for column in zip(columns, *lines, strict=True)]
    for line in (columns, *lines):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stderr.write(text.rstrip() + "\n")


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return ",".join(value) if isinstance(value, list) else str(value)
