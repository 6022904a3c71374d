"""The processes of a demo run: gateway, workers and relay, and how they are killed.

Each leads a process group of its own and dies with this process, whatever it dies of. One that is
to be killed stands still at a named crash point and says so through a pipe: nobody waits for a
time.
"""

import errno
import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Self

import httpx

from billing_shell.announced_url import announced_url
from billing_shell.embedded_server import free_port
from billing_shell.server_process import ServerProcess

_START_SECONDS = 30.0
_STOP_SECONDS = 60.0
_LOOK_EVERY_MS = 200
_CONTROL_SECONDS = 30.0
# Everything is imported before its turn comes, which takes most of a start.
_IN_TURN = """
import sys
import typer
from billing_shell.simulator.__main__ import main
with open(sys.argv.pop(1)) as turn:
    turn.read()
typer.run(main)
"""


class DemoError(Exception):
    """The demo cannot go on: a process did not start, or ended by itself."""


class DemoProcess:
    """One process and its log.

    Attributes:
        name: for people.
    """

    def __init__(
        self,
        name: str,
        arguments: Sequence[str | Path],
        *,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start it.

        Args:
            name: for people.
            arguments: of the Python interpreter.
            log: file that its output is appended to.
            environment: its variables.
        """
        self.name = name
        self._process = ServerProcess(
            [sys.executable, *arguments], log=log, environment=environment
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self._process.log

    def last_words(self, lines: int = 20) -> str:
        """Return the last lines of its log."""
        return self._process.last_words(lines)

    def require_running(self) -> None:
        """Raise DemoError if it has ended."""
        if not self._process.running:
            raise DemoError(
                f"the {self.name} ended by itself with status {self._process.status};"
                f" its log {self.log} ends:\n{self.last_words()}"
            )

    def stop(self) -> None:
        """Ask it to end, and wait for it; raise DemoError if it does not, or not well."""
        self.require_running()
        self._process.stop((SIGTERM, _STOP_SECONDS))
        if self._process.status != 0:
            raise DemoError(
                f"the {self.name} was asked to end and did so with status {self._process.status};"
                f" its log {self.log} ends:\n{self.last_words()}"
            )

    def kill(self) -> None:
        """End its process group by SIGKILL; raise DemoError if it had ended before."""
        self.require_running()
        self._process.kill()
        if self._process.status != -SIGKILL:
            raise DemoError(f"the {self.name} was to be killed, and ended by itself")


class StandStill:
    """Where a process says that it stands still at its crash point: a named pipe.

    Attributes:
        point: name of the crash point, with `:n` for the n-th time.
    """

    def __init__(self, point: str, directory: Path, variable: str = "BILLING_CRASH_POINT") -> None:
        """Make the pipe.

        Args:
            point: name of the crash point, with `:n` for the n-th time.
            directory: for the pipe.
            variable: names the point to the process.
        """
        self.point = point
        self._variable = variable
        self._path = directory / f"{point.replace(':', '-')}.signal"
        self._path.unlink(missing_ok=True)
        os.mkfifo(self._path)
        # Open before anybody writes, so that nobody's writing waits.
        self._reader = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the process that is to stand still."""
        return {self._variable: self.point, "BILLING_CRASH_SIGNAL": str(self._path)}

    def wait(self, process: DemoProcess, seconds: float) -> int | None:
        """Wait until it stands still.

        Args:
            process: who; raises DemoError if it ends before.
            seconds: how long at most.

        Returns:
            the instant in microseconds since 1970, or None if it never came to that point.
        """
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if any(event & select.POLLIN for _, event in poll.poll(_LOOK_EVERY_MS)):
                return time.time_ns() // 1000
            process.require_running()
        return None

    def close(self) -> None:
        """Remove the pipe."""
        os.close(self._reader)
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Gateway(DemoProcess):
    """The simulated gateway and its control interface.

    Attributes:
        ledger: its books.
        url: its address.
    """

    def __init__(
        self, ledger: Path, log: Path, options: Sequence[str], *, turn: Path | None = None
    ) -> None:
        """Start it, and wait until it listens unless it waits itself.

        Args:
            ledger: its books, used by one gateway at a time.
            log: file for its output.
            options: of the command.
            turn: a named pipe. With it the process waits, ready to begin, for `take_turn`.

        Raises:
            ServerError: it does not listen.
        """
        self.ledger = ledger
        self._turn = turn
        program = ["-m", "billing_shell.simulator"] if turn is None else ["-c", _IN_TURN, turn]
        super().__init__("gateway", [*program, "--ledger", ledger, *options], log=log)
        if turn is None:
            self._listen()

    def take_turn(self) -> None:
        """Have one that waits begin.

        Raises:
            DemoError: it has ended before its turn.
            ServerError: it does not listen.
        """
        if self._turn is None:
            return
        # Without a reader the pipe cannot be opened: it is not that far, or will never be.
        while not _opened_for_writing(self._turn):
            self.require_running()
            time.sleep(_LOOK_EVERY_MS / 1000)
        self._turn.unlink()
        self._turn = None
        self._listen()

    def _listen(self) -> None:
        self.url = announced_url(self._process, _START_SECONDS)
        self._client = httpx.Client(base_url=self.url, timeout=_CONTROL_SECONDS, trust_env=False)

    def set_clock(self, now: str) -> None:
        """Freeze its business clock."""
        self._client.put("/_control/clock", json={"now": now}).raise_for_status()

    def set_faults(self, rate: float, kinds: Sequence[str]) -> None:
        """Set how often chance strikes, and with what."""
        document = {"rate": rate, "kinds": list(kinds)}
        self._client.put("/_control/faults", json=document).raise_for_status()

    def __exit__(self, *_: object) -> None:
        if self._turn is None:
            self._client.close()
        super().__exit__()


def _opened_for_writing(pipe: Path) -> bool:
    """Open a named pipe and close it, which its reader takes for a word; False without a reader."""
    try:
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return False
    return True


class Door(DemoProcess):
    """The HTTP door, on a free port.

    Attributes:
        url: its address; it listens there within a second or two.
    """

    def __init__(self, logs: Path, environment: Mapping[str, str]) -> None:
        """Start it."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        super().__init__(
            "door",
            ["-m", "billing_shell", "api", "--port", str(port)],
            log=logs / "door.log",
            environment=environment,
        )


class Fleet:
    """Starts workers, relays and a door with the same surroundings."""

    def __init__(self, environment: Mapping[str, str], logs: Path, launcher: Sequence[str]) -> None:
        """Nothing is started yet.

        Args:
            environment: variables of all of them.
            logs: directory of their logs.
            launcher: arguments of the Python interpreter that make it a worker.
        """
        self._environment = environment
        self._logs = logs
        self._launcher = launcher

    def worker(self, number: int, stand_still: StandStill | None = None) -> DemoProcess:
        """Start a worker, to stand still at a crash point if one is given."""
        return DemoProcess(
            f"worker {number}",
            [*self._launcher],
            log=self._logs / f"worker-{number}.log",
            environment=self._with(stand_still),
        )

    def relay(self, topic: str, stand_still: StandStill | None = None) -> DemoProcess:
        """Start a relay to a topic, to stand still at a crash point if one is given."""
        return DemoProcess(
            "relay",
            ["-m", "billing_shell", "relay", "--topic", topic],
            log=self._logs / "relay.log",
            environment=self._with(stand_still),
        )

    def door(self) -> Door:
        """Start the HTTP door."""
        return Door(self._logs, self._environment)

    def _with(self, stand_still: StandStill | None) -> dict[str, str]:
        return {**self._environment, **(stand_still.environment if stand_still else {})}
