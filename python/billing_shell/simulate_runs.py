"""Many simulations, one seed after the other, each in a new database made for it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from billing_shell.embedded import temporary_data_dir
from billing_shell.migrate import migrate
from billing_shell.postgres_server import PostgresServer
from billing_shell.simulate import SimulationOptions, SimulationReport, simulate

_TEMPLATE = "billing_simulate"
# Every database is new, small and soon gone: nothing is worth a plan per value, or a vacuum.
_SETTINGS = {
    "synchronous_commit": "off",
    "autovacuum": "off",
    "plan_cache_mode": "force_generic_plan",
}


class Grounds:
    """A server on which databases are made, used up and dropped."""

    def __init__(self, url: str, bootstrap: str | None = None) -> None:
        """Nothing is made yet.

        Args:
            url: any database of the server, as a superuser.
            bootstrap: brokers; None has each simulation start one of its own.
        """
        self.bootstrap = bootstrap
        self._url = url

    @contextmanager
    def database(self, name: str, template: str | None = None) -> Iterator[str]:
        """Make a database, drop it afterwards; yields its URL."""
        make = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(template or "template1")
        )
        self._execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )
        self._execute(make)
        try:
            yield urlsplit(self._url)._replace(path=f"/{name}").geturl()
        finally:
            self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def grounds(url: str | None, bootstrap: str | None) -> Iterator[Grounds]:
    """Take the servers that are named, or start our own for as long as this lasts."""
    if url is not None:
        yield Grounds(url, bootstrap)
        return
    with (
        temporary_data_dir() as directory,
        PostgresServer(directory / "postgres", durable=False, settings=_SETTINGS) as server,
    ):
        yield Grounds(server.url, bootstrap)


def simulate_seeds(
    where: Grounds,
    options: SimulationOptions,
    seeds: Sequence[int],
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> Iterator[SimulationReport]:
    """Run one simulation per seed, each in a copy of one migrated database.

    Args:
        where: the server.
        options: of all of them; their seed is replaced.
        seeds: in order.
        progress: told of (days done, days in all) of the run in hand.
    """
    with where.database(_TEMPLATE) as template:
        migrate(template)
        for seed in seeds:
            with (
                where.database(f"{_TEMPLATE}_{seed}", _TEMPLATE) as database_url,
                temporary_data_dir() as directory,
            ):
                yield simulate(
                    database_url,
                    Path(directory),
                    replace(options, seed=seed),
                    progress,
                    bootstrap=where.bootstrap,
                )


def sum_up(reports: Sequence[SimulationReport]) -> dict[str, Any]:
    """Add up what many runs showed."""
    faults: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for report in reports:
        faults.update(report.faults)
        counts.update(report.counts)
    return {
        "seeds": len(reports),
        "sound": sum(report.sound for report in reports),
        "findings": sum(len(report.findings) for report in reports),
        "violations": sum(len(report.violations) for report in reports),
        "faults": dict(sorted(faults.items())),
        "counts": dict(sorted(counts.items())),
        "seconds": round(sum(report.seconds for report in reports), 1),
    }
