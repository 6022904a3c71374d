"""A migrated database of a bench's own, dropped at its end."""

import contextlib
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from billing_shell.embedded import EmbeddedServers, temporary_data_dir
from billing_shell.migrate import migrate


@contextlib.contextmanager
def bench_database(url: str | None, name: str) -> Iterator[str]:
    """Make a database and migrate it; its address.

    Args:
        url: any database of a server, as a superuser; None = a server from the wheel.
        name: of the database, which is dropped first if there is one.
    """
    with contextlib.ExitStack() as stack:
        if url is None:
            directory = stack.enter_context(temporary_data_dir())
            servers = EmbeddedServers(directory, redis=False, kafka=False)
            url = stack.enter_context(servers).postgres_url
        identifier = sql.Identifier(name)
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(identifier))
            server.execute(sql.SQL("CREATE DATABASE {}").format(identifier))
            try:
                own = urlsplit(url)._replace(path=f"/{name}").geturl()
                migrate(own)
                yield own
            finally:
                server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(identifier))
