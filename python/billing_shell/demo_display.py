"""What a demo run shows while it runs: one line per step, with a bar where it takes long.

On standard error, so that standard output is the report alone. Where that is no terminal, there is
a line per step and no bar.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Step:
    """One step under way."""

    def __init__(self, progress: Progress, title: str) -> None:
        """Show it.

        Args:
            progress: where.
            title: what is done.
        """
        self._progress = progress
        self._title = title
        self._task = progress.add_task(title, total=None)

    def show(self, done: int, total: int, note: str = "") -> None:
        """Move the bar.

        Args:
            done: how many.
            total: of how many.
            note: what else there is to say at the moment.
        """
        title = f"{self._title}: {note}" if note else self._title
        self._progress.update(self._task, completed=done, total=total, description=title)

    def say(self, note: str) -> None:
        """Say what there is to say at the moment, without a bar."""
        self._progress.update(self._task, description=f"{self._title}: {note}")


class Display:
    """Shows one step after another."""

    def __init__(self) -> None:
        """Nothing is shown yet."""
        self._console = Console(stderr=True, highlight=False)
        self._started = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Show a step for as long as the context lasts, then that it is done and how long it took.

        Args:
            title: what is done, in a few words.
        """
        began = time.monotonic()
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        ) as progress:
            yield Step(progress, title)
        now = time.monotonic()
        self._console.print(f"{now - self._started:6.1f} s  {title} ({now - began:.1f} s)")

    def note(self, text: str) -> None:
        """Say something between two steps."""
        # Not broken into lines: it may be a command to copy.
        line = f"{time.monotonic() - self._started:6.1f} s  {text}"
        self._console.print(line, soft_wrap=True, markup=False)
