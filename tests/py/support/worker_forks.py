"""Workers that start at once: forked from a process that has everything loaded, and killed soon.

`python -m tests.py.support.worker_forks` takes orders from its standard input, a JSON object a
line, and answers each with the id of the worker's process: to start one, or to send it a signal.
What it answers about SIGKILL is said when the worker is gone. It kills the others at its end.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from billing_shell import crashpoints
from billing_shell.throttle import Throttle
from tests.py.support.worker_process import ROOT, work

# As wide as it may be: a busy machine misses few slots, and who misses his comes by no crash point.
_JITTER = 0.25


class WorkerForks:
    """The process that they are forked from."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.communicate()

    def start(
        self,
        options: dict[str, Any],
        *,
        log: Path,
        crash_point: str = "",
        crash_signal: Path | None = None,
    ) -> "ForkedWorker":
        """Start a worker, armed with a crash point if one is named.

        Args:
            options: fields of `WorkerOptions`; `cadence` as a dictionary.
            log: file for its log lines, JSON.
            crash_point: a key of CRASH_POINTS, with `:n` for the n-th time.
            crash_signal: file that tells when it stands still.
        """
        pid = self.order(
            options=options,
            log=str(log),
            environment={
                "BILLING_CRASH_POINT": crash_point,
                "BILLING_CRASH_SIGNAL": str(crash_signal or ""),
            },
        )
        return ForkedWorker(self, pid)

    def order(self, **order: object) -> int:
        """Give an order, and return the process id that it is answered with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


class ForkedWorker:
    """One worker; may be told to stop, and killed."""

    def __init__(self, forks: WorkerForks, pid: int) -> None:
        """It runs."""
        self._forks = forks
        self._pid = pid

    def stop(self) -> None:
        """Ask it to end."""
        self._forks.order(pid=self._pid, signal=signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut would, and wait until it is gone."""
        self._forks.order(pid=self._pid, signal=signal.SIGKILL)


def _be_worker(order: dict[str, Any]) -> int:
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for ours, standard in ((null, 0), (log, 1), (log, 2)):
        os.dup2(ours, standard)
    os.environ.update(order["environment"])
    importlib.reload(crashpoints)
    Throttle.__init__.__defaults__ = (_JITTER,)
    return work(order["options"])


def _start(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = _be_worker(order)
        finally:
            # Nothing of the process that it was forked from may run in it.
            os._exit(code)
    return pid


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _main() -> None:
    living = set()
    for line in sys.stdin:
        order = json.loads(line)
        pid = order.get("pid") or _start(order)
        living.add(pid)
        if order.get("signal") == signal.SIGKILL:
            _kill(pid)
            living.discard(pid)
        elif "signal" in order:
            os.kill(pid, order["signal"])
        print(pid, flush=True)  # noqa: T201
    for pid in living:
        _kill(pid)


if __name__ == "__main__":
    _main()
