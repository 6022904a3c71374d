"""`billing up`, `worker` and `relay`: what runs until it is stopped."""

import dataclasses
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from billing_shell.command_errors import Exit, fail, reported
from billing_shell.command_output import AsJson, print_json, status_line
from billing_shell.command_settings import DataDir, data_directory, needed, read_settings

if TYPE_CHECKING:
    from types import FrameType

    from billing_shell.supervisor import Addresses


# As Kafka has it, and of RFC 3986 the characters.
_ENDING = (signal.SIGTERM, signal.SIGINT)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_URI_REFERENCE = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")


def register(app: typer.Typer) -> None:
    """Add them to the command line."""
    for command in (up, worker, relay):
        app.command()(command)


def up(*, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Run everything on this machine until interrupted, and print the addresses.

    Applies the schema, makes the gateway account, and runs the simulated gateway, a worker, a relay
    and the HTTP door. PostgreSQL, Redis and Kafka are started from wheels where the environment
    names no address; PostgreSQL's data stay in the data directory. There the door lets in a key
    that is printed here and revoked at the end; on a database of yours `billing keys create` makes
    one. Ctrl-C or SIGTERM ends it in good order. A process that ends is started again; where a
    server that was started here ends by itself, all ends with exit code 3.
    """
    from billing_shell.logs import configure_logs
    from billing_shell.server_process import ServerError
    from billing_shell.supervisor import everything

    settings = read_settings(as_json=as_json)
    configure_logs(settings.log_format)
    with reported(as_json=as_json), _ended_by_signals():
        directory = data_directory(data_dir, settings)
        with (
            status_line(shown=not as_json) as show,
            everything(settings, directory, show) as running,
        ):
            show("")
            if as_json:
                print_json(dataclasses.asdict(running.addresses))
            else:
                _print_addresses(running.addresses)
            try:
                running.watch()
            except ServerError:
                _end_undisturbed()
                raise


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
    BILLING_GATEWAY_ACCOUNT, by the adapter that this account has in the database: `stripe` needs
    the secret key in BILLING_STRIPE_API_KEY, `simulated` the one in BILLING_GATEWAY_API_KEY where
    its gateway asks for one. It starts no server of its own: a worker with a Redis of its own would
    not share the gateway's rate with the others. `billing up` runs one with everything it needs.

    On SIGTERM it claims nothing more, finishes what is in flight, records it, and exits; 0 means
    that nothing was left open.
    """
    import asyncio

    from billing_shell.logs import configure_logs
    from billing_shell.process_names import LONGEST_NAME, is_fit
    from billing_shell.worker import Worker, WorkerOptions

    if name and not is_fit(name):
        fail(
            Exit.USAGE,
            "--name cannot name a worker",
            code="bad_name",
            hint=f"1 to {LONGEST_NAME} visible ASCII characters; before many digits a letter,"
            " lest they pass for a card number",
        )
    settings = read_settings()
    configure_logs(settings.log_format)
    options = WorkerOptions(
        database_url=needed(settings.database_url, "BILLING_DATABASE_URL"),
        redis_url=needed(settings.redis_url, "BILLING_REDIS_URL"),
        gateway_url=needed(settings.gateway_url, "BILLING_GATEWAY_URL"),
        gateway_account=settings.gateway_account,
        api_keys=settings.api_keys,
        name=name,
        drain_seconds=drain,
    )

    async def run() -> bool:
        process = Worker(options)
        _on_signals(process.stop)
        return await process.run()

    with reported():
        if not asyncio.run(run()):
            raise typer.Exit(Exit.FAILED)


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
    import asyncio

    from billing_shell.database import RELAY_ROLE, session_conninfo
    from billing_shell.logs import configure_logs
    from billing_shell.relay import Relay

    if _TOPIC.fullmatch(topic) is None or topic in {".", ".."}:
        fail(
            Exit.USAGE,
            "--topic cannot name a topic",
            code="bad_topic",
            hint="1 to 249 letters, digits, ., _ and -",
        )
    if _URI_REFERENCE.fullmatch(source) is None:
        fail(
            Exit.USAGE,
            "--source is no URI reference",
            code="bad_source",
            hint="write a path as /billing/eu, or a URI",
        )
    settings = read_settings()
    configure_logs(settings.log_format)
    conninfo = session_conninfo(
        needed(settings.database_url, "BILLING_DATABASE_URL"),
        role=RELAY_ROLE,
        application_name="billing relay",
    )
    process = Relay(
        conninfo,
        needed(settings.kafka_bootstrap, "BILLING_KAFKA_BOOTSTRAP"),
        topic=topic,
        source=source,
    )

    async def run() -> None:
        stop = asyncio.Event()
        _on_signals(stop.set)
        await process.run(stop)

    with reported():
        asyncio.run(run())


def _print_addresses(addresses: "Addresses") -> None:
    variables = {**addresses.environment(), "DOOR": addresses.door_url}
    if addresses.key is not None:
        variables["KEY"] = addresses.key
    for variable, value in variables.items():
        typer.echo(f"export {variable}='{value}'")
    if addresses.key is None:
        typer.echo("billing keys create NAME --scope read makes a key for the door", err=True)
    typer.echo(f"data and logs are in {addresses.data_dir}; Ctrl-C ends it", err=True)


def _on_signals(stop: Callable[[], None]) -> None:
    import asyncio

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


def _end_undisturbed() -> None:
    """Has signals wait that would break off an end that has begun."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Turns the first SIGTERM or SIGINT into an end in good order; the next ones wait for it."""

    def end(_number: int, _frame: "FrameType | None") -> NoReturn:
        _end_undisturbed()
        raise SystemExit(Exit.DONE)

    before = {number: signal.signal(number, end) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
