"""How long processes waited for a processor: whether a machine was too busy to judge a rate on.

By the kernel's own account of each process' main thread, `/proc/<pid>/schedstat`. Linux only; where
it is not to be had, nobody is taken for starved.
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path


def _waited(pid: int) -> float | None:
    """Seconds for which the main thread was ready and no processor was free, since its start."""
    try:
        _, waited_ns, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    except (OSError, ValueError):
        return None
    return int(waited_ns) / 1e9


class Starvation:
    """Watches some processes from its making on."""

    def __init__(self, pids: Iterable[int]) -> None:
        """Note how long each has waited so far.

        Args:
            pids: which processes.
        """
        self._since = time.monotonic()
        self._before: Mapping[int, float | None] = {pid: _waited(pid) for pid in pids}

    def share(self) -> float:
        """Return the share of the time since, from 0 to 1, that the worst of them waited."""
        elapsed = time.monotonic() - self._since
        waits = [
            after - before
            for pid, before in self._before.items()
            if before is not None and (after := _waited(pid)) is not None
        ]
        return max(waits, default=0.0) / elapsed if elapsed > 0 else 0.0
