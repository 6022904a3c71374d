"""The PostgreSQL server that tests run on, and the databases that they get on it."""

import contextlib
import os
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from billing_shell.embedded import PostgresServer
from tests.py.support.containers import postgres_container

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")
_LONGEST_WAIT = 120.0


class PostgresKind(StrEnum):
    """Values of BILLING_TEST_POSTGRES: where the server under test comes from."""

    EMBEDDED = "embedded"
    """The wheel's PostgreSQL 18."""
    DEBIAN_15 = "debian15"
    """The package postgresql-15 of Debian 12, the oldest version that we support."""
    CONTAINER = "container"
    """An image, BILLING_TEST_POSTGRES_IMAGE, `postgres:18` unless it says otherwise."""
    ADDRESS = "address"
    """Not to be asked for: BILLING_TEST_DATABASE_URL names a server that runs already."""


@dataclass(frozen=True)
class TestPostgres:
    """A running server on which tests may create and drop databases and roles.

    Attributes:
        kind: where it comes from.
        url: its maintenance database, as a superuser.
        major_version: 15 to 18.
        binaries: directory of its programs (psql, pg_dump), where they are on this machine.
        socket_directory: directory of its unix socket, where there is one.
    """

    __test__ = False

    kind: PostgresKind
    url: str
    major_version: int
    binaries: Path | None = None
    socket_directory: Path | None = None

    def database_url(self, database: str) -> str:
        """Return the URL of one of its databases, as the superuser."""
        return urlsplit(self.url)._replace(path=f"/{database}").geturl()

    @contextlib.contextmanager
    def database(self, *, template: str | None = None) -> Iterator[str]:
        """Create a database, as a copy of `template` if one is given; drop it afterwards.

        Yields:
            its name.
        """
        name = f"billing_test_{uuid.uuid4().hex[:16]}"
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(template or "template1")
        )
        self._execute(create)
        try:
            yield name
        finally:
            self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        """Run a statement that PostgreSQL gives five seconds for sessions to go away.

        On a busy machine they may take longer, though nobody uses the database any more.
        """
        deadline = time.monotonic() + _LONGEST_WAIT
        with psycopg.connect(self.url, autocommit=True) as connection:
            while True:
                try:
                    connection.execute(statement)
                except psycopg.errors.ObjectInUse:
                    if time.monotonic() > deadline:
                        raise
                else:
                    return


@contextlib.contextmanager
def running_postgres(data_dir: Path) -> Iterator[TestPostgres]:
    """Run the server that the environment asks for; see `PostgresKind`.

    Args:
        data_dir: an empty directory for an embedded server.
    """
    url = os.environ.get("BILLING_TEST_DATABASE_URL")
    kind = PostgresKind.ADDRESS if url else _asked_for()
    with contextlib.ExitStack() as stack:
        server: PostgresServer | None = None
        if kind is PostgresKind.CONTAINER:
            url = stack.enter_context(postgres_container())
        elif kind is not PostgresKind.ADDRESS:
            server = stack.enter_context(_embedded(kind, data_dir))
            url = server.url
        assert url is not None
        with psycopg.connect(url) as connection:
            version = connection.info.server_version // 10_000
        yield TestPostgres(
            kind=kind,
            url=url,
            major_version=version,
            binaries=server.binaries if server else None,
            socket_directory=server.socket_directory if server else None,
        )


def _asked_for() -> PostgresKind:
    name = os.environ.get("BILLING_TEST_POSTGRES", PostgresKind.EMBEDDED)
    if name not in set(PostgresKind) - {PostgresKind.ADDRESS}:
        pytest.exit(
            f"BILLING_TEST_POSTGRES is {name!r}; it takes embedded, debian15 or container", 4
        )
    return PostgresKind(name)


def _embedded(kind: PostgresKind, data_dir: Path) -> PostgresServer:
    binaries = DEBIAN_15 if kind is PostgresKind.DEBIAN_15 else None
    if binaries is not None and not (binaries / "postgres").exists():
        pytest.exit(f"BILLING_TEST_POSTGRES=debian15 needs Debian's postgresql-15 in {binaries}", 4)
    return PostgresServer(
        data_dir / "postgres",
        binaries=binaries,
        durable=False,
        # Each test has a database of its own, and each database its autovacuum.
        settings={"autovacuum_naptime": "5min", "max_locks_per_transaction": "256"},
    )
