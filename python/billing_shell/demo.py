"""`billing demo`: the main job once, with everything that can go wrong, and a report about it.

Servers, gateway, import, renewal, collecting through the throttle, a worker and a relay killed on
the way, declines retried on the ladder, events on the topic; then three books are read and
reconciled. `docs/demo.md` tells it step by step.
"""

import json
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

from billing_shell.books.database_book import read_database_book
from billing_shell.books.files_book import read_files_book
from billing_shell.books.gateway_book import read_gateway_book
from billing_shell.books.topic_book import TopicUnreadableError, read_topic_book
from billing_shell.demo_display import Display
from billing_shell.demo_processes import DemoError
from billing_shell.demo_run import DemoRun, Surroundings
from billing_shell.embedded import EmbeddedServers, temporary_data_dir
from billing_shell.import_files import ImportFiles, ImportRows, read_files
from billing_shell.reachable import require_servers
from billing_shell.reconciliation import Course, reconcile
from billing_shell.report import Report
from billing_shell.report_text import render
from billing_shell.sabotage import Sabotage, SabotageError
from billing_shell.settings import Settings

AGREES = 0
DISAGREES = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """How one demo is run.

    Attributes:
        subscriptions: how many of the examples to take, from the first; None = all.
        seed: of the gateway's latency and faults, and of the keys that they are drawn for.
        data_dir: where servers keep their data and everybody their logs; must not hold an earlier
            run. None = a temporary directory.
        workers: how many worker processes; the first one is killed.
        sabotage: how to break the engine, to see whether the report sees it; None = not at all.
        keep: keep a temporary directory afterwards.
        as_json: print the report as JSON instead of text.
    """

    subscriptions: int | None = None
    seed: int = 1
    data_dir: Path | None = None
    workers: int = 1
    sabotage: Sabotage | None = None
    keep: bool = False
    as_json: bool = False

    def __post_init__(self) -> None:
        """Refuse figures that make no sense; raises ValueError."""
        if self.subscriptions is not None and self.subscriptions < 1:
            raise ValueError("subscriptions must be at least 1")
        if self.workers < 1:
            raise ValueError("workers must be at least 1")


def run_demo(options: DemoOptions) -> int:
    """Run it; print the report on standard output, and what happens meanwhile on standard error.

    Returns:
        0 if the books agree and everything was exercised; 1 if not, or if it could not go on.

    Raises:
        SettingsError: an address in the environment makes no sense.
        ServerError: a server did not start, or one that the environment names does not answer.
        MigrationError: the schema was not applied.
        psycopg.Error: the database cannot be reached, or refused something.
    """
    display = Display()
    try:
        report = _run(options, Settings.from_environment(), display)
    except (DemoError, SabotageError, TopicUnreadableError) as error:
        sys.stderr.write(f"The demo could not go on: {error}\n")
        return DISAGREES
    document = json.dumps(report.document()) if options.as_json else "\n" + render(report)
    sys.stdout.write(f"{document}\n")
    return AGREES if report.agrees else DISAGREES


def _run(options: DemoOptions, settings: Settings, display: Display) -> Report:
    rows = _example_rows(options.subscriptions)
    with ExitStack() as stack:
        directory = stack.enter_context(_directory(options, display))
        with display.step("servers"):
            require_servers(settings)
            servers = stack.enter_context(
                EmbeddedServers(
                    directory,
                    postgres=settings.database_url is None,
                    redis=settings.redis_url is None,
                    kafka=settings.kafka_bootstrap is None,
                )
            )
        surroundings = Surroundings(
            database_url=settings.database_url or servers.postgres_url,
            redis_url=settings.redis_url or servers.redis_url,
            kafka_bootstrap=settings.kafka_bootstrap or servers.kafka_bootstrap,
            topic=f"billing-demo-{secrets.token_hex(4)}",
            directory=directory,
            seed=options.seed,
            workers=options.workers,
            sabotage=options.sabotage,
        )
        with DemoRun(surroundings, display) as run:
            course = run.tell(rows)
        with display.step("reading three books"):
            return _reconciled(surroundings, course, options.subscriptions)


def _reconciled(surroundings: Surroundings, course: Course, subscriptions: int | None) -> Report:
    database = read_database_book(surroundings.database_url)
    gateway = read_gateway_book(surroundings.ledger)
    topic = read_topic_book(surroundings.kafka_bootstrap, surroundings.topic)
    asked = read_files_book(examples_directory(), now=database.now, subscriptions=subscriptions)
    return reconcile(database, gateway, topic, course, asked)


@contextmanager
def _directory(options: DemoOptions, display: Display) -> Iterator[Path]:
    """The data directory: the one that was asked for, or a temporary one."""
    if options.data_dir is not None:
        directory = options.data_dir.expanduser().absolute()
        if Surroundings.ledger_in(directory).exists():
            raise DemoError(f"{directory} holds an earlier run; name another directory")
        yield directory
    elif options.keep:
        directory = Path(tempfile.mkdtemp(prefix="billing-demo-"))
        directory.chmod(0o711)  # for the account that root's servers run as
        yield directory
        display.note(f"kept {directory}: data, the gateway's ledger, logs")
    else:
        with temporary_data_dir() as directory:
            yield directory


def _example_rows(subscriptions: int | None) -> ImportRows:
    rows = read_files(ImportFiles.in_directory(examples_directory()))
    return rows if subscriptions is None else rows.first(subscriptions)


def examples_directory() -> Path:
    """Return where the example files are: in the installed package, or in the checkout.

    Raises:
        DemoError: in neither.
    """
    installed = Path(str(package_files("billing_shell"))) / "examples"
    checkout = Path(__file__).resolve().parents[2] / "examples"
    for directory in (installed, checkout):
        if (directory / "subscriptions.csv").is_file():
            return directory
    raise DemoError(f"no subscriptions.csv in {installed} or {checkout}")
