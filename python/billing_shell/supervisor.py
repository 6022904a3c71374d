"""`billing up`: servers, gateway, worker, relay and HTTP door on one machine, until told to stop.

What the environment names an address for is used there; the rest is started here and dies with this
process, whatever it dies of. A process of ours that ends is started again. A server that ends ends
everything: Redis and Kafka would be empty when they came back, of reserved slots and of events that
count as published.
"""

import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from signal import SIGTERM
from typing import NoReturn
from urllib.parse import urlsplit

import psycopg
import structlog

from billing_shell.announced_url import announced_url
from billing_shell.api_commands import revoke_leftovers, temporary_key
from billing_shell.api_keys import Scope
from billing_shell.embedded import EmbeddedServers, ServerError, ServerErrorCode
from billing_shell.embedded_server import accepts, free_port
from billing_shell.errors import BillingError, translate
from billing_shell.migrate import migrate
from billing_shell.reachable import require_servers
from billing_shell.server_process import ServerProcess
from billing_shell.settings import Settings

_CREATE_ACCOUNT = """
    SELECT code
    FROM billing_ops.create_gateway_account(p_code => %(code)s, p_adapter => 'simulated')
"""
_ALREADY_EXISTS = "SB309"

_KEY_NAME = "billing-up"

_GATEWAY_SECONDS = 30.0
_RELAY_SECONDS = 20.0
_DOOR_SECONDS = 30.0
# Longer than the worker itself gives what is in flight.
_WORKER_SECONDS = 75.0
_POLL_SECONDS = 0.1
_FIRST_RESTART = 1.0
_LAST_RESTART = 30.0
# Who ran for so long was not failing to start.
_STEADY_SECONDS = 60.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where everything is.

    Attributes:
        database_url: as `BILLING_DATABASE_URL`.
        redis_url: as `BILLING_REDIS_URL`.
        kafka_bootstrap: as `BILLING_KAFKA_BOOTSTRAP`.
        gateway_url: as `BILLING_GATEWAY_URL`.
        gateway_account: as `BILLING_GATEWAY_ACCOUNT`.
        door_url: the HTTP door.
        key: that the door lets in, with every scope, until the end; None where the database is not
            our own: there an operator makes the keys.
        data_dir: where embedded servers keep their data, and everybody their logs.
    """

    database_url: str
    redis_url: str
    kafka_bootstrap: str
    gateway_url: str
    gateway_account: str
    door_url: str
    key: str | None
    data_dir: Path

    def environment(self) -> dict[str, str]:
        """Return the variables that lead another process there."""
        return {
            "BILLING_DATABASE_URL": self.database_url,
            "BILLING_REDIS_URL": self.redis_url,
            "BILLING_KAFKA_BOOTSTRAP": self.kafka_bootstrap,
            "BILLING_GATEWAY_URL": self.gateway_url,
            "BILLING_GATEWAY_ACCOUNT": self.gateway_account,
        }


@dataclass(frozen=True, slots=True)
class Running:
    """All that runs.

    Attributes:
        addresses: where.
        servers: those that were started here.
        children: the processes.
    """

    addresses: Addresses
    servers: EmbeddedServers
    children: list["Child"]

    def watch(self) -> NoReturn:
        """Keep the children running; ends by an exception of the caller's, such as a signal's.

        Raises:
            ServerError: a server that was started here has ended by itself.
        """
        while True:
            self.servers.require_running()
            for child in self.children:
                child.watch()
            time.sleep(_POLL_SECONDS)


class Child:
    """A process of ours that is started again when it ends by itself.

    Attributes:
        arguments: of the Python interpreter, for the next start.
        process: the present one.
    """

    def __init__(
        self, name: str, arguments: list[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        """Start it.

        Args:
            name: for the log.
            arguments: of the Python interpreter.
            log: file for its output.
            environment: its variables.
        """
        self._name = name
        self.arguments = arguments
        self._log = log
        self._environment = {"BILLING_LOG_FORMAT": "json", **environment}
        self._delay = _FIRST_RESTART
        self._restart_at = 0.0
        self._start()

    def watch(self) -> None:
        """Start it again if it has ended, later and later where it keeps ending."""
        if self.process.running:
            return
        now = time.monotonic()
        if self._restart_at == 0.0:
            if now - self._started_at > _STEADY_SECONDS:
                self._delay = _FIRST_RESTART
            self._restart_at = now + self._delay
            _log.error(
                "child_ended",
                child=self._name,
                status=self.process.status,
                restart_in_seconds=self._delay,
                log=str(self._log),
            )
            self._delay = min(2 * self._delay, _LAST_RESTART)
        elif now >= self._restart_at:
            self.process.kill()
            self._start()

    def stop(self, seconds: float) -> None:
        """Ask it to end, and end it after so many seconds."""
        self.process.stop((SIGTERM, seconds))

    def _start(self) -> None:
        self.process = ServerProcess(
            [sys.executable, *self.arguments], log=self._log, environment=self._environment
        )
        self._started_at = time.monotonic()
        self._restart_at = 0.0


@contextmanager
def everything(
    settings: Settings, data_dir: Path, progress: Callable[[str], None]
) -> Iterator[Running]:
    """Run all of it for as long as the context lasts.

    Args:
        settings: addresses of what is there already.
        data_dir: for what is not.
        progress: told what is being done.

    Raises:
        ServerError: a server did not start, or one that the environment names does not answer.
        MigrationError: the schema was not applied.
        DatabaseError: the gateway account could not be made.
    """
    progress("starting servers")
    require_servers(settings)
    with EmbeddedServers(
        data_dir,
        postgres=settings.database_url is None,
        redis=settings.redis_url is None,
        kafka=settings.kafka_bootstrap is None,
    ) as servers:
        database_url = settings.database_url or servers.postgres_url
        progress("applying the schema")
        migrate(database_url)
        ensure_gateway_account(database_url, settings.gateway_account)
        logs = data_dir / "logs"
        logs.mkdir(exist_ok=True)
        progress("starting gateway, worker, relay and door")
        port = free_port()
        door_url = f"http://127.0.0.1:{port}"
        known = settings.secrets_of(settings.gateway_account)
        secret = known[0] if known else secrets.token_urlsafe(24)
        with ExitStack() as stack:
            gateway_url, gateway = stack.enter_context(
                _gateway(settings, data_dir, logs, f"{door_url}/webhooks/payments", secret)
            )
            # Made only where nobody else's things are behind the door, and no other `up` runs: the
            # data directory is ours.
            key = None
            if settings.database_url is None:
                scopes = [Scope.READ, Scope.WRITE, Scope.OPERATE]
                revoke_leftovers(database_url, _KEY_NAME)
                key = stack.enter_context(temporary_key(database_url, _KEY_NAME, scopes))
            addresses = Addresses(
                database_url=database_url,
                redis_url=settings.redis_url or servers.redis_url,
                kafka_bootstrap=settings.kafka_bootstrap or servers.kafka_bootstrap,
                gateway_url=gateway_url,
                gateway_account=settings.gateway_account,
                door_url=door_url,
                key=key,
                data_dir=data_dir,
            )
            # Stopped in the opposite order: the relay publishes what the worker did at last.
            relay = stack.enter_context(_child("relay", _RELAY_SECONDS, logs, addresses))
            worker = stack.enter_context(_child("worker", _WORKER_SECONDS, logs, addresses))
            door = stack.enter_context(_door(port, secret, known, logs, addresses))
            yield Running(addresses, servers, [*gateway, relay, worker, door])
            progress("stopping; charges in flight are settled first")


def ensure_gateway_account(database_url: str, code: str) -> None:
    """Make the gateway account of this name, for the simulated gateway, unless it is there.

    Raises:
        DatabaseError: the login may not, or the database is not to be reached.
    """
    try:
        with psycopg.connect(database_url, application_name="billing up") as connection:
            connection.execute("SET ROLE billing_operator")
            connection.execute(_CREATE_ACCOUNT, {"code": code})
    except psycopg.Error as error:
        translated = translate(error)
        if not (isinstance(translated, BillingError) and translated.code == _ALREADY_EXISTS):
            raise translated from error


@contextmanager
def _child(name: str, seconds: float, logs: Path, addresses: Addresses) -> Iterator[Child]:
    child = Child(
        name, ["-m", "billing_shell", name], logs / f"{name}.log", addresses.environment()
    )
    try:
        yield child
    finally:
        child.stop(seconds)


@contextmanager
def _door(
    port: int, secret: str, known: tuple[str, ...], logs: Path, addresses: Addresses
) -> Iterator[Child]:
    """Run the HTTP door; it listens once the context is entered."""
    environment = addresses.environment()
    if not known:
        environment["BILLING_WEBHOOK_SECRETS"] = secret
    command = ["-m", "billing_shell", "api", "--port", str(port)]
    child = Child("door", command, logs / "door.log", environment)
    try:
        deadline = time.monotonic() + _DOOR_SECONDS
        while not accepts(port):
            if not child.process.running or time.monotonic() > deadline:
                raise ServerError(
                    ServerErrorCode.START_FAILED,
                    f"the door does not answer: {child.process.last_words(3)}",
                )
            time.sleep(_POLL_SECONDS)
        yield child
    finally:
        child.stop(_DOOR_SECONDS)


@contextmanager
def _gateway(
    settings: Settings, data_dir: Path, logs: Path, webhook_url: str, secret: str
) -> Iterator[tuple[str, list[Child]]]:
    """Run the simulated gateway, unless there is another one; its address, and the process."""
    if settings.gateway_url is not None:
        yield settings.gateway_url, []
        return
    command = ["-m", "billing_shell.simulator", "--ledger", str(data_dir / "gateway.sqlite")]
    command += ["--webhook-url", webhook_url]
    environment = {"BILLING_SIMULATOR_WEBHOOK_SECRET": secret}
    if settings.gateway_api_key is not None:
        environment["BILLING_SIMULATOR_API_KEY"] = settings.gateway_api_key
    child = Child("gateway", command, logs / "gateway.log", environment)
    try:
        url = announced_url(child.process, _GATEWAY_SECONDS)
        # Where the worker looks for it, also after a restart.
        child.arguments = [*command, "--port", str(urlsplit(url).port)]
        yield url, [child]
    finally:
        child.stop(_GATEWAY_SECONDS)
