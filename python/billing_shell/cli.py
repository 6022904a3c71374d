"""`billing`: the command line.

Exit codes: 0 done, or stopped as asked; 1 ran, and failed or found something wrong; 2 wrong usage
or setting; 3 a server cannot be reached or started; 4 the database refused, and its SQLSTATE is
named.
"""

import asyncio
import dataclasses
import importlib
import json
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from billing_shell import api_commands
from billing_shell.settings import Settings, SettingsError

if TYPE_CHECKING:
    from types import FrameType


class Exit(IntEnum):
    """What the exit code means."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4


class Sabotaged(StrEnum):
    """How `demo` breaks the engine; the names of `sabotage.Sabotage`."""

    RANDOM_KEY = "random-key"
    NO_EPOCH = "no-epoch"
    PERIOD_OUTSIDE_TX = "period-outside-tx"


class Queue(StrEnum):
    """How far `migrate` takes the job queue's schema."""

    ALL = "all"
    BEFORE_RESTART = "before-restart"


app = typer.Typer(
    name="billing",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Subscription billing inside PostgreSQL, and the processes around it.",
    epilog="Servers are found by BILLING_DATABASE_URL, BILLING_REDIS_URL, BILLING_KAFKA_BOOTSTRAP"
    " and BILLING_GATEWAY_URL. Exit codes: 0 done or stopped as asked, 1 failed or found something"
    " wrong, 2 wrong usage or setting, 3 a server cannot be reached or started, 4 the database"
    " refused.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Where embedded servers keep their data.",
        envvar="BILLING_DATA_DIR",
        file_okay=False,
        show_default="a place of this user's",
    ),
]

api_commands.register(app)

# Defined beside what they start, and imported only when called.
_ELSEWHERE = {
    "gateway": (
        "billing_shell.simulator.__main__",
        "Run the simulated payment gateway, a process with books of its own. It moves no money.",
    ),
}


@app.command()
def up(*, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Run everything on this machine until interrupted, and print the addresses.

    Applies the schema, makes the gateway account, and runs the simulated gateway, a worker and a
    relay. PostgreSQL, Redis and Kafka are started from wheels where the environment names no
    address; PostgreSQL's data stay in the data directory. Ctrl-C or SIGTERM ends it in good order.
    """
    from billing_shell.logs import configure_logs
    from billing_shell.supervisor import everything, watch

    settings = _settings()
    configure_logs(settings.log_format)
    with _reported(as_json=as_json), _ended_by_signals():
        directory = _data_dir(data_dir, settings)
        with _status(shown=not as_json) as show, everything(settings, directory, show) as running:
            addresses, children = running
            show("")
            if as_json:
                _print_json(dataclasses.asdict(addresses))
            else:
                _print_addresses(addresses.environment(), directory)
            watch(children)


@app.command()
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

    settings = _settings()
    with _reported(as_json=as_json), _database(settings, data_dir) as url:
        if status:
            found = migrations.status(url)
            _tell_status(found, as_json=as_json)
            raise typer.Exit(Exit.DONE if found.is_current else Exit.FAILED)
        with _bar("applying", shown=not as_json) as advance:
            report = migrations.migrate(
                url,
                migrations.MigrateOptions(
                    queue_phase=QueuePhase(queue.value),
                    progress=lambda number, of, _name: advance(number, of),
                ),
            )
    if as_json:
        _print_json(
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


@app.command()
def worker(
    *,
    name: Annotated[
        str, typer.Option(help="Name of this process, unique.", show_default="made up")
    ] = "",
    drain: Annotated[
        float, typer.Option(help="Seconds that charges in flight get at the end.", min=0)
    ] = 60.0,
) -> None:
    """Renew, collect, look up and keep house until stopped. Run as many as you like.

    Needs BILLING_DATABASE_URL, BILLING_REDIS_URL and BILLING_GATEWAY_URL, and collects through
    BILLING_GATEWAY_ACCOUNT. It starts no server of its own: a worker with a Redis of its own would
    not share the gateway's rate with the others. `billing up` runs one with everything it needs.

    On SIGTERM it claims nothing more, finishes what is in flight, records it, and exits; 0 means
    that nothing was left open.
    """
    from billing_shell.logs import configure_logs
    from billing_shell.worker import Worker, WorkerOptions

    settings = _settings()
    configure_logs(settings.log_format)
    options = WorkerOptions(
        database_url=_needed(settings.database_url, "BILLING_DATABASE_URL"),
        redis_url=_needed(settings.redis_url, "BILLING_REDIS_URL"),
        gateway_url=_needed(settings.gateway_url, "BILLING_GATEWAY_URL"),
        gateway_account=settings.gateway_account,
        name=name,
        drain_seconds=drain,
    )

    async def run() -> bool:
        process = Worker(options)
        _on_signals(process.stop)
        return await process.run()

    with _reported(as_json=False):
        if not asyncio.run(run()):
            raise typer.Exit(Exit.FAILED)


@app.command()
def relay(
    *,
    topic: Annotated[str, typer.Option(help="Kafka topic; made where it is missing.")] = (
        "billing-events"
    ),
    source: Annotated[
        str,
        typer.Option(help="URI that names this database in events; distinct per database."),
    ] = "/billing",
) -> None:
    """Publish events to Kafka until stopped. Run as many as you like.

    Needs BILLING_DATABASE_URL and BILLING_KAFKA_BOOTSTRAP. Each event is published at least once,
    and those of one subscription in order. On SIGTERM it finishes its batch and exits.
    """
    from billing_shell.database import RELAY_ROLE, session_conninfo
    from billing_shell.logs import configure_logs
    from billing_shell.relay import Relay

    settings = _settings()
    configure_logs(settings.log_format)
    conninfo = session_conninfo(
        _needed(settings.database_url, "BILLING_DATABASE_URL"),
        role=RELAY_ROLE,
        application_name="billing relay",
    )
    process = Relay(
        conninfo,
        _needed(settings.kafka_bootstrap, "BILLING_KAFKA_BOOTSTRAP"),
        topic=topic,
        source=source,
    )

    async def run() -> None:
        stop = asyncio.Event()
        _on_signals(stop.set)
        await process.run(stop)

    with _reported(as_json=False):
        asyncio.run(run())


@app.command(name="import")
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

    settings = _settings()
    with (
        _reported(as_json=as_json),
        _database(settings, data_dir) as url,
        _bar("importing", shown=not as_json) as advance,
    ):
        report = import_files(
            url,
            ImportFiles.in_directory(directory),
            gateway_account=settings.gateway_account,
            connections=connections,
            progress=advance,
        )
    if as_json:
        _print_json(dataclasses.asdict(report))
    else:
        typer.echo(
            f"{report.plans} plans, {report.prices} prices, {report.customers} customers,"
            f" {report.payment_methods} payment methods and {report.subscriptions} subscriptions"
            f" are in, after {report.seconds:.1f} s"
        )


@app.command()
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

    _settings()
    with _reported(as_json=as_json):
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


@app.command()
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

    settings = _settings()
    with _reported(as_json=as_json), _database(settings, data_dir) as url:
        found = examine(url, None if since is None else since.replace(tzinfo=UTC))
    if as_json:
        _print_json(found.document())
    else:
        for line in found.lines(most):
            typer.echo(line)
    if not found.healthy:
        raise typer.Exit(Exit.FAILED)


@app.command()
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

    settings = _settings()
    with _reported(as_json=as_json), _database(settings, data_dir) as url:
        try:
            found = compare(
                url,
                account or settings.gateway_account,
                gateway_report,
                since.replace(tzinfo=UTC),
                until.replace(tzinfo=UTC),
            )
        except ReportError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(Exit.USAGE) from error
    if as_json:
        _print_json({"differences": [dataclasses.asdict(difference) for difference in found]})
    else:
        for difference in found:
            typer.echo(difference.line())
        typer.echo(f"{len(found)} differences")
    if found:
        raise typer.Exit(Exit.FAILED)


@app.command()
def simulate(
    *,
    seed: Annotated[int, typer.Option(help="Makes customers, faults and deaths.")] = 1,
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

    settings = _settings()
    configure_logs(settings.log_format)
    logging.getLogger("billing_shell").setLevel(logging.ERROR)
    options = SimulationOptions(days=days, subscriptions=subscriptions, faults=faults)
    reports = []
    with (
        _reported(as_json=as_json),
        grounds(settings.database_url) as where,
        _bar("simulating", shown=not as_json) as advance,
    ):
        for report in simulate_seeds(where, options, range(seed, seed + runs), advance):
            reports.append(report)
            if as_json:
                _print_json(report.document())
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
        _print_json(sum_up(reports))
    elif not as_json:
        total = sum_up(reports)
        for what in ("faults", "counts"):
            typer.echo(f"{what}: {', '.join(f'{name} {n:,}' for name, n in total[what].items())}")
    if not all(report.sound for report in reports):
        raise typer.Exit(Exit.FAILED)


def main() -> None:
    """Run the command that the arguments name."""
    for name, (module, text) in _ELSEWHERE.items():
        called = sys.argv[1:2] == [name]
        command = importlib.import_module(module).main if called else _not_imported
        app.command(name=name, help=text)(command)
    app()


def _not_imported() -> NoReturn:
    raise AssertionError("a command was called that was not imported")


def _settings() -> Settings:
    try:
        return Settings.from_environment()
    except SettingsError as error:
        _fail(Exit.USAGE, str(error), code=error.code)


def _needed(value: str | None, variable: str) -> str:
    if value is None:
        _fail(
            Exit.USAGE,
            f"{variable} is not set",
            code="missing",
            hint="set it, or run billing up, which starts servers of its own",
        )
    return value


def _data_dir(data_dir: Path | None, settings: Settings) -> Path:
    from billing_shell.embedded import default_data_dir

    return (data_dir or settings.data_dir or default_data_dir()).expanduser().absolute()


@contextmanager
def _database(settings: Settings, data_dir: Path | None) -> Iterator[str]:
    """The database that the environment names, or the embedded one of the data directory."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    from billing_shell.embedded import EmbeddedServers

    directory = _data_dir(data_dir, settings)
    with EmbeddedServers(directory, redis=False, kafka=False) as servers:
        yield servers.postgres_url


@contextmanager
def _reported(*, as_json: bool) -> Iterator[None]:
    """Ends the program with a message and an exit code where something known goes wrong."""
    import psycopg

    from billing_shell.errors import DatabaseError, RetryableError, translate
    from billing_shell.import_problems import ImportRefusedError
    from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
    from billing_shell.server_process import ServerError

    try:
        yield
    except ServerError as error:
        _fail(Exit.UNREACHABLE, str(error), code=error.code, as_json=as_json)
    except MigrationError as error:
        unreachable = error.code is MigrationErrorCode.DATABASE_UNREACHABLE
        _fail(
            Exit.UNREACHABLE if unreachable else Exit.REFUSED,
            f"{error.where}: {error.message}" if error.where else error.message,
            code=error.sqlstate or error.code,
            hint=error.hint,
            as_json=as_json,
        )
    except ImportRefusedError as error:
        _fail(Exit.FAILED, str(error), code="import_refused", as_json=as_json)
    except (DatabaseError, psycopg.Error) as error:
        known = translate(error) if isinstance(error, psycopg.Error) else error
        unreachable = isinstance(known, RetryableError) and known.code.startswith("08")
        _fail(
            Exit.UNREACHABLE if unreachable else Exit.REFUSED,
            known.message,
            code=known.code,
            hint=known.hint or ("is BILLING_DATABASE_URL right?" if unreachable else ""),
            as_json=as_json,
        )


def _fail(
    exit_code: Exit, message: str, *, code: str, hint: str = "", as_json: bool = False
) -> NoReturn:
    if as_json:
        _print_json({"error": {"code": str(code), "message": message, "hint": hint}})
    typer.echo(f"error: {message} [{code}]", err=True)
    if hint:
        typer.echo(f"hint: {hint}", err=True)
    raise typer.Exit(exit_code)


def _print_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(document, default=str))


def _tell_status(found: Any, *, as_json: bool) -> None:  # noqa: ANN401 - imported when called
    problem = found.problem
    if as_json:
        _print_json(
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


def _print_addresses(environment: dict[str, str], directory: Path) -> None:
    for variable, value in environment.items():
        typer.echo(f"export {variable}='{value}'")
    typer.echo(f"data and logs are in {directory}; Ctrl-C ends it", err=True)


@contextmanager
def _status(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done; an empty text takes it away."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("") as status:

        def show(text: str) -> None:
            if text:
                status.update(text)
                status.start()
            else:
                status.stop()

        yield show


@contextmanager
def _bar(text: str, *, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, moved by (how many are done, of how many)."""
    if not shown:
        yield lambda _done, _of: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Turns the first SIGTERM or SIGINT into an end in good order; the next ones wait for it."""
    ours = (signal.SIGTERM, signal.SIGINT)

    def end(_number: int, _frame: "FrameType | None") -> NoReturn:
        for number in ours:
            signal.signal(number, signal.SIG_IGN)
        raise SystemExit(Exit.DONE)

    before = {number: signal.signal(number, end) for number in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    main()
