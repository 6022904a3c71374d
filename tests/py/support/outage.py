"""A database that is away for a while: nobody may connect, and who was connected is cut off."""

import contextlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
from psycopg import sql


@contextlib.contextmanager
def outage(database_url: str) -> Iterator[None]:
    """Takes the database away from everybody for as long as the context lasts."""
    parts = urlsplit(database_url)
    name = parts.path.removeprefix("/")
    allow = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(parts._replace(path="/postgres").geturl(), autocommit=True) as server:
        server.execute(allow.format(sql.Identifier(name), sql.SQL("false")))
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
        )
        try:
            yield
        finally:
            server.execute(allow.format(sql.Identifier(name), sql.SQL("true")))
