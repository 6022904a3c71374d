"""The HTTP door on a free port, beside the test, and a small shop whose things it hands out."""

import contextlib
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psycopg
import uvicorn
from psycopg import sql

from billing_shell.api import ApiOptions, create_app
from billing_shell.api_commands import create_key
from billing_shell.api_keys import Scope
from billing_shell.api_server import server
from billing_shell.sql_files import SqlFile
from billing_shell.sql_script import run_file

SECRET = "a secret between the gateway and us"
ACCOUNT = "sim"
NOW = datetime(2027, 1, 31, 10, 30, tzinfo=UTC)
"""Where the clock of a shop stands."""
NOBODY = 9_999_936
"""An id that nothing has."""

_HELPERS = Path(__file__).parents[2] / "sql" / "support"
_NEEDED = (
    "clock",
    "fingerprint",
    "gateway",
    "plan",
    "customer",
    "subscription",
    "collect",
    "paid_subscription",
)
PATIENCE = 120.0
"""Seconds; cost nothing where all goes well, and machines are busy."""


@dataclass(frozen=True)
class RunningDoor:
    """A door that listens.

    Attributes:
        url: its address.
        database_url: what it stands on, as the superuser.
    """

    url: str
    database_url: str
    keys: dict[tuple[tuple[Scope, ...], int | None], str] = field(default_factory=dict)

    def key(self, *scopes: Scope, customer: int | None = None) -> str:
        """A key with these scopes, read and write unless said otherwise."""
        wanted = scopes or (Scope.READ, Scope.WRITE)
        if (wanted, customer) not in self.keys:
            name = f"test-{uuid.uuid4().hex[:12]}"
            made = create_key(self.database_url, name, list(wanted), customer)
            self.keys[wanted, customer] = made
        return self.keys[wanted, customer]

    def client(self, *scopes: Scope, customer: int | None = None) -> httpx.Client:
        """A client that calls with such a key; close it."""
        return httpx.Client(
            base_url=self.url,
            headers=bearer(self.key(*scopes, customer=customer)),
            timeout=PATIENCE,
        )


def bearer(key: str) -> dict[str, str]:
    """The header that presents a key."""
    return {"Authorization": f"Bearer {key}"}


@contextlib.contextmanager
def running_door(
    database_url: str,
    **options: Any,  # noqa: ANN401 - those of ApiOptions
) -> Iterator[RunningDoor]:
    """Runs a door in a thread of its own.

    Args:
        database_url: what it stands on.
        options: of `ApiOptions`, where they are to be others than here.
    """
    settings: dict[str, Any] = {
        "database_url": database_url,
        "gateway_account": ACCOUNT,
        "webhook_secrets": lambda account: (SECRET,) if account == ACCOUNT else (),
        "connections": 4,
    }
    app = create_app(ApiOptions(**(settings | options)))
    listener = socket.create_server(("127.0.0.1", 0))
    running = server(app, host="127.0.0.1", port=0)
    started = threading.Event()
    thread = threading.Thread(target=_serve, args=(running, listener, started), daemon=True)
    thread.start()
    assert started.wait(PATIENCE), "the door did not start"
    try:
        yield RunningDoor(f"http://127.0.0.1:{listener.getsockname()[1]}", database_url)
    finally:
        running.should_exit = True
        thread.join(PATIENCE)
        listener.close()
        assert not thread.is_alive(), "the door did not stop"


def _serve(running: uvicorn.Server, listener: socket.socket, started: threading.Event) -> None:
    startup = running.startup

    async def start(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        started.set()

    running.startup = start  # type: ignore[method-assign]
    running.run([listener])


@dataclass(frozen=True)
class Shop:
    """Ids of what is there: two customers, each with a method, a paid subscription, a checkout.

    Attributes:
        url: its database, as the superuser.
        mine: ids of the first customer's things, by the names that SQL has for them.
        theirs: the same of the second.
    """

    url: str
    mine: Mapping[str, Any]
    theirs: Mapping[str, Any]


@contextlib.contextmanager
def helped(url: str) -> Iterator[psycopg.Connection]:
    """A connection to a migrated database that gets helpers of the SQL tests."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS billing_test")
        for name in _NEEDED:
            path = _HELPERS / f"{name}.sql"
            run_file(connection, SqlFile(path.name, path.read_text(encoding="utf-8")))
        yield connection


def open_shop(url: str) -> Shop:
    """Fills a migrated database, whose clock stands still from then on."""
    with helped(url) as connection:
        connection.execute("SELECT billing_test.clock(%s)", (NOW,))
        for code in ("PRO_MONTHLY", "PRO_PLUS"):
            amount = 4900 if code == "PRO_MONTHLY" else 9900
            connection.execute(
                "SELECT billing_api.create_plan(%s, 'Pro', %s, 'USD', 'MONTH')", (code, amount)
            )
        mine, theirs = (add_customer(connection, name) for name in ("mine", "theirs"))
        for things in (mine, theirs):
            add_checkout(connection, things)
    return Shop(url, mine, theirs)


def add_customer(connection: psycopg.Connection, name: str) -> dict[str, Any]:
    """A customer with a method and a paid subscription; the ids of it all."""
    customer = _value(connection, "SELECT billing_test.customer(%s)", name)
    subscription = _value(
        connection, "SELECT billing_test.paid_subscription(%s, 'PRO_MONTHLY')", customer
    )
    found: dict[str, Any] = {
        "customer_id": customer,
        "subscription_id": subscription,
        "plan_code": "PRO_MONTHLY",
    }
    for view, column in (
        ("payment_method", "payment_method_id"),
        ("invoice", "invoice_id"),
        ("payment_attempt", "attempt_id"),
    ):
        query = sql.SQL("SELECT {} FROM {} WHERE customer_id = %s").format(
            sql.Identifier(column), sql.Identifier("billing_api", view)
        )
        row = connection.execute(query, (customer,)).fetchone()
        assert row is not None
        found[column] = row[0]
    return found


def add_checkout(connection: psycopg.Connection, things: dict[str, Any]) -> None:
    """Begins a checkout on another resource, whose invoice is open."""
    checkout = _value(
        connection,
        "SELECT billing_test.subscription(%s, 'PRO_MONTHLY', 'second', 'PAY_FIRST')",
        things["customer_id"],
    )
    things["open_invoice_id"] = _value(
        connection,
        "SELECT invoice_id FROM billing_api.invoice WHERE subscription_id = %s",
        checkout,
    )


def _value(connection: psycopg.Connection, query: str, *parameters: object) -> Any:  # noqa: ANN401
    row = connection.execute(query.encode(), parameters).fetchone()
    assert row is not None
    return row[0]


def value(url: str, query: str, *parameters: object) -> Any:  # noqa: ANN401
    """The one value that a query finds, as the superuser."""
    with psycopg.connect(url, autocommit=True) as connection:
        return _value(connection, query, *parameters)
