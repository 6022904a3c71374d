"""Embedded servers: PostgreSQL, Valkey (Redis protocol) and Tansu (Kafka protocol) of our own.

For trying the product, for development and for tests, without Docker and without root (root works
too). They listen on 127.0.0.1 only, where every local user may connect: nothing for production,
where the environment names real servers (see `billing_shell.settings`).
"""

import atexit
import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import ClassVar, NoReturn, Self, TypeVar

import redis as redis_client
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from redis.backoff import NoBackoff
from redis.retry import Retry

from billing_shell.embedded_server import HOST, EmbeddedServer, accepts, make_directory
from billing_shell.postgres_server import PostgresServer
from billing_shell.server_binaries import TANSU, VALKEY, locate
from billing_shell.server_process import (
    ServerError,
    ServerErrorCode,
    ServerProcess,
    server_account,
)

__all__ = [
    "EmbeddedServers",
    "KafkaBroker",
    "PostgresServer",
    "RedisServer",
    "ServerError",
    "ServerErrorCode",
    "default_data_dir",
    "temporary_data_dir",
]

DATABASE = "billing"

_PROBE_SECONDS = 2.0

_Server = TypeVar("_Server", bound=EmbeddedServer)


class RedisServer(EmbeddedServer):
    """A server of the Redis protocol. It keeps nothing: a restart finds it empty."""

    name: ClassVar[str] = "Valkey"

    @property
    def url(self) -> str:
        """Its URL, database 0."""
        return f"redis://{HOST}:{self.port}/0"

    def _command(self, port: int) -> list[str | Path]:
        options = {
            "bind": HOST,
            "port": str(port),
            "dir": str(self.directory),
            "save": "",
            "appendonly": "no",
            "daemonize": "no",
        }
        command: list[str | Path] = [locate(VALKEY, self._account)]
        for name, value in options.items():
            command += [f"--{name}", value]
        return command

    def _is_ready(self, process: ServerProcess, port: int) -> bool:
        client = redis_client.Redis(
            host=HOST,
            port=port,
            socket_timeout=_PROBE_SECONDS,
            socket_connect_timeout=_PROBE_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        with contextlib.closing(client):
            try:
                return bool(client.info("server")["process_id"] == process.pid)
            except redis_client.RedisError:
                return False

    def _stop(self, process: ServerProcess) -> None:
        process.stop((signal.SIGTERM, 10.0))


class KafkaBroker(EmbeddedServer):
    """A broker of the Kafka protocol, in memory: a restart loses topics and messages.

    Transactions are not honoured (a consumer sees aborted messages). Clients create topics, or
    have them created by writing.
    """

    name: ClassVar[str] = "Tansu"

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        super().__init__(directory, port=port)
        self._cluster_id = f"billing-{uuid.uuid4()}"

    @property
    def bootstrap(self) -> str:
        """Its address as `host:port`."""
        return f"{HOST}:{self.port}"

    def _command(self, port: int) -> list[str | Path]:
        return [
            locate(TANSU, self._account),
            "broker",
            "--cluster-id",
            self._cluster_id,
            "--listener-url",
            f"tcp://{HOST}:{port}",
            "--advertised-listener-url",
            f"tcp://{HOST}:{port}",
            "--storage-engine",
            "memory://billing/",
        ]

    def _is_ready(self, process: ServerProcess, port: int) -> bool:  # noqa: ARG002 - by its name
        if not accepts(port):
            return False
        client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
        try:
            return bool(client.list_topics(timeout=_PROBE_SECONDS).cluster_id == self._cluster_id)
        except KafkaException:
            return False

    def _stop(self, process: ServerProcess) -> None:
        # Nothing to put in order; it takes no other signal reliably.
        process.kill()


class EmbeddedServers:
    """All servers that the product needs, in one data directory, for as long as this process lives.

    PostgreSQL's data survive in the directory; Redis' and Kafka's do not. One process at a time
    may use a directory; several directories, side by side, do not know of each other.

    As a context manager, at the end of the process, and on SIGTERM where the program has no
    handler of its own, they are stopped in good order. If the process is killed they die too:
    PostgreSQL recovers at the next start.
    """

    def __init__(
        self, data_dir: Path, *, postgres: bool = True, redis: bool = True, kafka: bool = True
    ) -> None:
        """Describe the servers; nothing starts.

        Args:
            data_dir: created when it is missing; see `default_data_dir`, `temporary_data_dir`. It
                may be used by nothing else: run by root, others are given leave to pass through it.
            postgres: start PostgreSQL.
            redis: start a server of the Redis protocol.
            kafka: start a broker of the Kafka protocol.
        """
        self.data_dir = data_dir.absolute()
        self._postgres = PostgresServer(self.data_dir / "postgres") if postgres else None
        self._redis = RedisServer(self.data_dir / "redis") if redis else None
        self._kafka = KafkaBroker(self.data_dir / "kafka") if kafka else None
        self._running = contextlib.ExitStack()

    @property
    def postgres(self) -> PostgresServer:
        """The PostgreSQL server.

        Raises:
            ServerError: not asked for.
        """
        return _asked_for(self._postgres, "PostgreSQL")

    @property
    def redis(self) -> RedisServer:
        """The server of the Redis protocol.

        Raises:
            ServerError: not asked for.
        """
        return _asked_for(self._redis, "Redis")

    @property
    def kafka(self) -> KafkaBroker:
        """The broker of the Kafka protocol.

        Raises:
            ServerError: not asked for.
        """
        return _asked_for(self._kafka, "Kafka")

    @property
    def postgres_url(self) -> str:
        """URL of the database `billing`, as the superuser."""
        return self.postgres.database_url(DATABASE)

    @property
    def redis_url(self) -> str:
        """URL of the Redis database."""
        return self.redis.url

    @property
    def kafka_bootstrap(self) -> str:
        """Address of the broker as `host:port`."""
        return self.kafka.bootstrap

    def start(self) -> None:
        """Start them all, and create the database `billing` if it is not there.

        Raises:
            ServerError: one did not start; the others have been stopped again.
        """
        with contextlib.ExitStack() as stack:
            stack.enter_context(_held(self.data_dir))
            stack.enter_context(_stopped_on_sigterm())
            for server in self._all():
                stack.enter_context(server)
            if self._postgres is not None:
                self._postgres.ensure_database(DATABASE)
            atexit.register(self.stop)
            stack.callback(atexit.unregister, self.stop)
            self._running = stack.pop_all()

    def require_running(self) -> None:
        """Complain of the first one that has ended by itself.

        Raises:
            ServerError: which, and its last words.
        """
        for server in self._all():
            server.require_running()

    def stop(self) -> None:
        """Stop them all; nothing when they do not run."""
        self._running.pop_all().close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _all(self) -> Iterator[EmbeddedServer]:
        for server in (self._postgres, self._redis, self._kafka):
            if server is not None:
                yield server


def default_data_dir() -> Path:
    """Return where embedded servers keep their data when nobody says otherwise.

    Root's servers run unprivileged and need a place outside home directories.
    """
    if os.geteuid() == 0:
        return Path("/var/lib/billing-shell")
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "billing-shell"


@contextlib.contextmanager
def temporary_data_dir() -> Iterator[Path]:
    """Hand out a new data directory, and remove it with all that is in it."""
    directory = Path(tempfile.mkdtemp(prefix="billing-"))
    directory.chmod(0o711)  # for the account that root's servers run as
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def _asked_for(server: _Server | None, name: str) -> _Server:
    if server is None:
        raise ServerError(ServerErrorCode.NOT_RUNNING, f"no embedded {name} was asked for")
    return server


@contextlib.contextmanager
def _held(data_dir: Path) -> Iterator[None]:
    """Keep a data directory to this process; the kernel lets go of it whatever we die of."""
    make_directory(data_dir)
    account = server_account(data_dir)
    if account is not None and not account.can_reach(data_dir):
        data_dir.chmod(data_dir.stat().st_mode | 0o011)
    with (data_dir / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise ServerError(
                ServerErrorCode.DIRECTORY_IN_USE,
                f"process {lock.read().strip()} runs its servers in {data_dir}; stop it, or choose "
                "another data directory (BILLING_DATA_DIR)",
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield


@contextlib.contextmanager
def _stopped_on_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an orderly exit, where the program leaves it to the system."""
    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if ours:
        signal.signal(signal.SIGTERM, _exit)
    try:
        yield
    finally:
        if ours and signal.getsignal(signal.SIGTERM) is _exit:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
