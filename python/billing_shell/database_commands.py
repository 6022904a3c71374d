"""`billing migrate`, `import`, `doctor` and `reconcile`: what is done to one database, and ends."""

import dataclasses
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from billing_shell.command_errors import Exit, fail, reported
from billing_shell.command_output import AsJson, print_json, progress_bar
from billing_shell.command_settings import DataDir, database, read_settings

if TYPE_CHECKING:
    from billing_shell.migrate import SchemaStatus


class Queue(StrEnum):
    """How far `migrate` takes the job queue's schema."""

    ALL = "all"
    BEFORE_RESTART = "before-restart"


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    app.command()(migrate)
    app.command("import")(import_)
    app.command()(doctor)
    app.command()(reconcile)


def migrate(
    *,
    status: Annotated[
        bool,
        typer.Option("--status", help="Only say what is pending; exit code 1 if something is."),
    ] = False,
    queue: Annotated[
        Queue, typer.Option(help="How far to take the job queue's schema; see the upgrade notes.")
    ] = Queue.ALL,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Bring the database up to this program: roles, tables, functions, privileges, job queue.

    All of it or nothing. Safe to run again, and from several machines at once. Without
    BILLING_DATABASE_URL it works on the embedded PostgreSQL of the data directory.
    """
    from billing_shell import migrate as migrations
    from billing_shell.queue_schema import QueuePhase

    settings = read_settings(as_json=as_json)
    with reported(as_json=as_json), database(settings, data_dir) as url:
        if status:
            found = migrations.status(url)
            _tell_status(found, as_json=as_json)
            raise typer.Exit(Exit.DONE if found.is_current else Exit.FAILED)
        with progress_bar("applying", shown=not as_json) as advance:
            report = migrations.migrate(
                url,
                migrations.MigrateOptions(
                    queue_phase=QueuePhase(queue.value),
                    progress=lambda number, of, _name: advance(number, of),
                ),
            )
    if as_json:
        print_json(
            {
                "version": report.version,
                "applied": [m.file.name for m in report.applied],
                "reapplied": report.reapplied,
                "queueApplied": report.queue_applied,
                "queuePending": report.queue_pending,
                "waited": report.waited,
                "warnings": report.warnings,
                "seconds": report.seconds,
            }
        )
        return
    for applied in report.applied:
        typer.echo(f"applied {applied.file.name}")
    for warning in report.warnings:
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(
        f"schema version {report.version}; {len(report.applied)} migrations and"
        f" {len(report.queue_applied)} steps of the queue applied, {report.reapplied} files"
        f" re-applied, in {report.seconds:.1f} s"
    )


def import_(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Holds plans.csv, customers.csv and subscriptions.csv.",
            exists=True,
            file_okay=False,
        ),
    ],
    *,
    connections: Annotated[
        int, typer.Option(help="Groups of customers at a time.", min=1, max=64)
    ] = 2,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Bring in plans, customers and running subscriptions from CSV files.

    Checks all files before it sends anything. Nothing of the past is billed: each subscription goes
    on from the period that it is in. Run again after a failure, it goes on where it stopped. The
    payment tokens belong to BILLING_GATEWAY_ACCOUNT, which must exist.
    """
    from billing_shell.import_files import ImportFiles
    from billing_shell.importer import import_files

    settings = read_settings(as_json=as_json)
    with (
        reported(as_json=as_json),
        database(settings, data_dir) as url,
        progress_bar("importing", shown=not as_json) as advance,
    ):
        report = import_files(
            url,
            ImportFiles.in_directory(directory),
            gateway_account=settings.gateway_account,
            connections=connections,
            progress=advance,
        )
    if as_json:
        print_json(dataclasses.asdict(report))
    else:
        typer.echo(
            f"{report.plans} plans, {report.prices} prices, {report.customers} customers,"
            f" {report.payment_methods} payment methods and {report.subscriptions} subscriptions"
            f" are in, after {report.seconds:.1f} s"
        )


def doctor(
    *,
    since: Annotated[
        datetime | None,
        typer.Option(help="Only customers about whom something was written since, UTC."),
    ] = None,
    most: Annotated[int, typer.Option(help="Violations to show per check.", min=1)] = 20,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Check every promise over all rows, and say what is wrong; exit code 1 if something is."""
    from billing_shell.doctor import examine

    settings = read_settings(as_json=as_json)
    with reported(as_json=as_json), database(settings, data_dir) as url:
        found = examine(url, None if since is None else _in_utc(since))
    if as_json:
        print_json(found.document())
    else:
        for line in found.lines(most):
            typer.echo(line)
    if not found.healthy:
        raise typer.Exit(Exit.FAILED)


def reconcile(
    *,
    gateway_report: Annotated[
        Path,
        typer.Option(
            help="CSV: kind (charge or refund), gateway_id, reference, amount, currency.",
            exists=True,
            dir_okay=False,
        ),
    ],
    since: Annotated[datetime, typer.Option("--from", help="Start of what it covers, UTC.")],
    until: Annotated[datetime, typer.Option("--to", help="End of what it covers, exclusive, UTC.")],
    account: Annotated[str | None, typer.Option(help="Gateway account.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare what a gateway has settled with what the database knows, in both directions.

    Each difference becomes a case for billing_ops.resolve_case; exit code 1 if there is one.
    """
    from billing_shell.settlement_report import ReportError, compare

    settings = read_settings(as_json=as_json)
    with reported(as_json=as_json), database(settings, data_dir) as url:
        try:
            found = compare(
                url,
                account or settings.gateway_account,
                gateway_report,
                _in_utc(since),
                _in_utc(until),
            )
        except ReportError as error:
            fail(Exit.USAGE, str(error), code="report_unreadable", as_json=as_json)
    if as_json:
        print_json({"differences": [dataclasses.asdict(difference) for difference in found]})
    else:
        for difference in found:
            typer.echo(difference.line())
        typer.echo(f"{len(found)} differences")
    if found:
        raise typer.Exit(Exit.FAILED)


def _in_utc(instant: datetime) -> datetime:
    """What was meant: an offset counts where one was given."""
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def _tell_status(found: "SchemaStatus", *, as_json: bool) -> None:
    problem = found.problem
    if as_json:
        print_json(
            {
                "version": found.version,
                "current": found.is_current,
                "pending": [m.file.name for m in found.pending],
                "queuePending": found.queue_pending,
                "problem": None if problem is None else str(problem.code),
            }
        )
        return
    typer.echo(f"schema version {found.version}")
    for migration in found.pending:
        typer.echo(f"pending {migration.file.name}")
    for step in found.queue_pending:
        typer.echo(f"pending {step} of the queue")
    if problem is not None:
        typer.echo(f"migrate would refuse: {problem}", err=True)
    elif found.is_current:
        typer.echo("nothing is pending")
