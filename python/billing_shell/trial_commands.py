"""`billing demo` and `simulate`: what is run on purpose, to see whether the books agree."""

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from billing_shell.command_errors import Exit, reported
from billing_shell.command_output import AsJson, print_json, progress_bar
from billing_shell.command_settings import read_settings

# It stands in names in the database, which are short.
_HIGHEST_SEED = 10**9


class Sabotaged(StrEnum):
    """How `demo` breaks the engine; the names of `sabotage.Sabotage`."""

    RANDOM_KEY = "random-key"
    NO_EPOCH = "no-epoch"
    PERIOD_OUTSIDE_TX = "period-outside-tx"


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.command()(demo)
    app.command()(simulate)


def demo(
    *,
    subscriptions: Annotated[
        int | None,
        typer.Option(
            help="How many of the example subscriptions to take.", min=1, show_default="all"
        ),
    ] = None,
    workers: Annotated[int, typer.Option(help="Worker processes; the first is killed.", min=1)] = 1,
    seed: Annotated[int, typer.Option(help="Makes the gateway's latency and faults.")] = 1,
    sabotage: Annotated[
        Sabotaged | None,
        typer.Option(help="Break the engine on purpose, to see whether the report sees it."),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the temporary directory with books and logs.")
    ] = False,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Where servers keep their data; must not hold an earlier run.",
            file_okay=False,
            show_default="a temporary directory",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Do the main job once, on servers of its own, and reconcile three books about it.

    Imports example subscriptions, renews and collects what is due through the throttle, retries
    declines, publishes the events; the gateway times out, declines and throttles meanwhile, worker
    and relay are killed. Then the database, the gateway's ledger and the topic are read by code
    that the three do not share. Exit code 0 only if they agree and each fault did occur.
    """
    from billing_shell import demo as demonstration
    from billing_shell.sabotage import Sabotage

    read_settings(as_json=as_json)
    with reported(as_json=as_json):
        code = demonstration.run_demo(
            demonstration.DemoOptions(
                subscriptions=subscriptions,
                seed=seed,
                data_dir=None if data_dir is None else data_dir.expanduser().absolute(),
                workers=workers,
                sabotage=None if sabotage is None else Sabotage(sabotage.value),
                keep=keep,
                as_json=as_json,
            )
        )
    raise typer.Exit(code)


def simulate(
    *,
    seed: Annotated[
        int, typer.Option(help="Makes customers, faults and deaths.", min=0, max=_HIGHEST_SEED)
    ] = 1,
    days: Annotated[int, typer.Option(help="How long customers act.", min=1)] = 120,
    subscriptions: Annotated[int, typer.Option(help="How many customers.", min=1)] = 200,
    faults: Annotated[
        float, typer.Option(help="Share of calls and batches that a fault strikes.", min=0, max=1)
    ] = 0.06,
    runs: Annotated[int, typer.Option(help="So many seeds, one after the other.", min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    """Simulate months of business on a frozen clock, and see whether all books agree at the end.

    The same seed comes to the same end state, which the digest stands for. Databases are made and
    dropped on the server that BILLING_DATABASE_URL names, or on one of its own. Exit code 1 if a
    check, the gateway's ledger or the events disagree.
    """
    from billing_shell.logs import configure_logs
    from billing_shell.simulate import SimulationOptions
    from billing_shell.simulate_runs import grounds, simulate_seeds, sum_up

    settings = read_settings(as_json=as_json)
    configure_logs(settings.log_format)
    logging.getLogger("billing_shell").setLevel(logging.ERROR)
    options = SimulationOptions(days=days, subscriptions=subscriptions, faults=faults)
    reports = []
    with (
        reported(as_json=as_json),
        grounds(settings.database_url, settings.kafka_bootstrap) as where,
        progress_bar("simulating", shown=not as_json) as advance,
    ):
        for report in simulate_seeds(where, options, range(seed, seed + runs), advance):
            reports.append(report)
            if as_json:
                print_json(report.document())
                continue
            verdict = "all books agree" if report.sound else "BOOKS DISAGREE"
            typer.echo(
                f"seed {report.seed}: {verdict}, digest {report.digest}, {report.seconds:.1f} s"
            )
            for line in report.findings:
                typer.echo(f"  {line}")
            for violation in report.violations:
                typer.echo(f"  {violation.check_name}: {violation.object}: {violation.detail}")
    if as_json and runs > 1:
        print_json(sum_up(reports))
    elif not as_json:
        total = sum_up(reports)
        for what in ("faults", "counts"):
            typer.echo(f"{what}: {', '.join(f'{name} {n:,}' for name, n in total[what].items())}")
    if not all(report.sound for report in reports):
        raise typer.Exit(Exit.FAILED)
