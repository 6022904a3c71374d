"""Processes seen from outside: who is whose child, and waiting for somebody else's to end."""

import contextlib
import os
import select
import time
from collections.abc import Iterable
from pathlib import Path

import pytest


class Watched:
    """Processes that somebody else started, held by handles that a reused id cannot fool."""

    def __init__(self, pids: Iterable[int]) -> None:
        if not hasattr(os, "pidfd_open"):
            pytest.skip("watching other processes needs Linux")
        self._handles: dict[int, int] = {}
        for pid in pids:
            # Whose end came between finding and watching it has ended.
            with contextlib.suppress(ProcessLookupError):
                self._handles[pid] = os.pidfd_open(pid)

    def survivors(self, seconds: float) -> set[int]:
        """Wait for all to end, for at most `seconds`; return those that still run."""
        waiting = dict(self._handles)
        poll = select.poll()
        for handle in waiting.values():
            poll.register(handle, select.POLLIN)
        deadline = time.monotonic() + seconds
        while waiting and (left := deadline - time.monotonic()) > 0:
            ended = {handle for handle, _ in poll.poll(left * 1000)}
            for handle in ended:
                poll.unregister(handle)
            waiting = {pid: handle for pid, handle in waiting.items() if handle not in ended}
        return set(waiting)

    def close(self) -> None:
        """Let go of the handles."""
        for handle in self._handles.values():
            os.close(handle)


def descendants(pid: int) -> set[int]:
    """Return the children of a process, and theirs."""
    if not Path("/proc/self/stat").exists():
        pytest.skip("finding other processes needs Linux")
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            _, _, rest = entry.read_text(errors="replace").rpartition(")")
            parents[int(entry.parent.name)] = int(rest.split()[1])
    found: set[int] = set()
    newest = {pid}
    while newest:
        newest = {child for child, parent in parents.items() if parent in newest}
        found |= newest
    return found


def user_of(pid: int) -> int:
    """Return the user id that a process runs as."""
    return Path(f"/proc/{pid}").stat().st_uid
