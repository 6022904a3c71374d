"""Embedded server: the life of one server of our own, whatever its kind."""

import abc
import contextlib
import os
import random
import re
import signal
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from billing_shell.server_process import (
    Account,
    ServerError,
    ServerErrorCode,
    ServerProcess,
    server_account,
)

HOST = "127.0.0.1"
# Below every system's range for the client side of connections: a client that reconnects to a
# server that is down could otherwise be given the server's own port, and talk to itself.
_PORTS = range(20_000, 32_000)
# After a crash PostgreSQL waits for its former self to let go of shared memory, then recovers.
_START_SECONDS = 120.0
_POLL_SECONDS = 0.02
_RETRY_SECONDS = 0.25
_LARGEST_LOG = 10 * 1024 * 1024
_ADDRESS_IN_USE = re.compile(r"address (already )?in use", re.IGNORECASE)


class EmbeddedServer(abc.ABC):
    """One server of our own: start it, stop it, crash it, start it again.

    The port is chosen at the first start and kept by this object, so that clients find a restarted
    server where it was. Not for use by several threads at once.

    Attributes:
        directory: where it lives: its data, its log `server.log`.
    """

    name: ClassVar[str]
    _orphan_signal: ClassVar[signal.Signals] = signal.SIGKILL
    _passes: ClassVar[re.Pattern[str] | None] = None

    def __init__(self, directory: Path, *, port: int | None = None) -> None:
        """Describe a server; nothing starts.

        Args:
            directory: created when it is missing. Run by root, it is given to an unprivileged
                account, which must be able to reach it.
            port: TCP port on 127.0.0.1; None chooses a free one.
        """
        self.directory = directory.absolute()
        self._account: Account | None = None
        self._chosen_port = port
        self._process: ServerProcess | None = None

    @property
    def running(self) -> bool:
        """Whether it runs now."""
        return self._process is not None and self._process.running

    def require_running(self) -> None:
        """Complain of an end that nobody asked for.

        Raises:
            ServerError: it was started, and has ended by itself; its last words are in the text.
        """
        process = self._process
        if process is not None and not process.running:
            raise ServerError(
                ServerErrorCode.ENDED,
                f"{self.name} has ended by itself, status {process.status} (log {process.log}):\n"
                f"{process.last_words()}",
            )

    @property
    def pid(self) -> int:
        """Process id of the server, which leads its process group.

        Raises:
            ServerError: it does not run.
        """
        if self._process is None or not self._process.running:
            raise ServerError(ServerErrorCode.NOT_RUNNING, f"{self.name} does not run")
        return self._process.pid

    @property
    def port(self) -> int:
        """Its TCP port on 127.0.0.1.

        Raises:
            ServerError: it was never started and no port was given.
        """
        if self._chosen_port is None:
            raise ServerError(ServerErrorCode.NOT_RUNNING, f"{self.name} was not started")
        return self._chosen_port

    def start(self) -> None:
        """Start it and wait until it answers; nothing when it runs already.

        A port that somebody else has taken in the meantime is given up for another, unless it was
        this server's before: then this waits until it is free.

        Raises:
            ServerError: it did not start; the text holds its last words.
        """
        if self.running:
            return
        self.kill()
        self._account = server_account(self.directory)
        self._prepare()
        deadline = time.monotonic() + _START_SECONDS
        while True:
            port = self._chosen_port or free_port()
            process = self._launch(port)
            try:
                ended = self._wait_until_ready(process, port, deadline)
            except BaseException:
                process.kill()
                raise
            if not ended:
                self._chosen_port = port
                self._process = process
                return
            process.kill()
            words = process.last_words()
            lost_port = _ADDRESS_IN_USE.search(words)
            passes = self._passes is not None and self._passes.search(words)
            if time.monotonic() > deadline or not (lost_port or passes):
                raise ServerError(
                    ServerErrorCode.START_FAILED,
                    f"{self.name} ended while starting (log {process.log}):\n{words}",
                )
            if passes or self._chosen_port is not None:
                time.sleep(_RETRY_SECONDS)

    def stop(self) -> None:
        """Stop it in good order; nothing when it does not run."""
        if self._process is not None:
            self._stop(self._process)
            self._process = None

    def kill(self) -> None:
        """Crash it: SIGKILL for its process group and all its children."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process group: SIGSTOP freezes it, SIGCONT thaws it.

        Raises:
            ServerError: it does not run.
        """
        os.killpg(self.pid, number)

    def restart(self) -> None:
        """Stop it if it runs, and start it on the same port."""
        self.stop()
        self.start()

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

    @abc.abstractmethod
    def _command(self, port: int) -> list[str | Path]:
        """Return program and arguments."""

    @abc.abstractmethod
    def _is_ready(self, process: ServerProcess, port: int) -> bool:
        """Tell whether this process, and nobody else on this port, answers."""

    @abc.abstractmethod
    def _stop(self, process: ServerProcess) -> None:
        """End the process in good order."""

    def _prepare(self) -> None:
        """Make its directory, and give it to the account that the server runs as."""
        make_directory(self.directory)
        if self._account is None:
            return
        self._account.own(self.directory, 0o700)
        if not self._account.can_reach(self.directory):
            raise closed(self.directory, self._account)

    def _launch(self, port: int) -> ServerProcess:
        log = self.directory / "server.log"
        with contextlib.suppress(FileNotFoundError):
            if log.lstat().st_size > _LARGEST_LOG:
                log.replace(log.with_suffix(".log.1"))
        return ServerProcess(
            self._command(port),
            log=log,
            account=self._account,
            orphan_signal=self._orphan_signal,
        )

    def _wait_until_ready(self, process: ServerProcess, port: int, deadline: float) -> bool:
        """Wait for an answer; tell whether the process ended instead."""
        while not self._is_ready(process, port):
            if process.wait(_POLL_SECONDS):
                return True
            if time.monotonic() > deadline:
                raise ServerError(
                    ServerErrorCode.START_TIMED_OUT,
                    f"{self.name} does not answer after {_START_SECONDS:.0f} s "
                    f"(log {process.log}):\n{process.last_words()}",
                )
        return False


def make_directory(directory: Path) -> None:
    """Create a directory with its parents; those that are new can be entered by everybody."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
        path.chmod(0o755)


def closed(directory: Path, account: Account) -> ServerError:
    """Say which directory on the way keeps the account out."""
    culprit = next(
        path for path in (*reversed(directory.parents), directory) if not account.can_reach(path)
    )
    return ServerError(
        ServerErrorCode.DIRECTORY_CLOSED,
        f"servers started by root run as {account.name}, and {culprit} keeps that account out of "
        f"{directory}; choose another data directory (BILLING_DATA_DIR), for example "
        "/var/lib/billing-shell, or start this as the user who owns it",
    )


def accepts(port: int) -> bool:
    """Tell whether somebody listens on a port of this machine."""
    try:
        socket.create_connection((HOST, port), timeout=1.0).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    """Choose a port of this machine on which nobody listens now.

    Raises:
        ServerError: there is none.
    """
    for port in random.sample(_PORTS, k=len(_PORTS)):
        with socket.socket() as probe, contextlib.suppress(OSError):
            # As the servers themselves do: a port with connections in TIME_WAIT is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return port
    raise ServerError(
        ServerErrorCode.START_FAILED,
        f"no port on {HOST} between {_PORTS.start} and {_PORTS.stop - 1} is free",
    )
