"""What commands show: JSON on standard output, progress on standard error."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
"""The option of each command that has a result."""


def print_json(document: Any) -> None:  # noqa: ANN401  what JSON can say
    """Print one line of JSON on standard output."""
    typer.echo(json.dumps(document, default=str))


@contextmanager
def status_line(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """A line on standard error that says what is being done; an empty text takes it away."""
    if not shown:
        yield lambda _: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("") as status:

        def show(text: str) -> None:
            if text:
                status.update(text)
                status.start()
            else:
                status.stop()

        yield show


@contextmanager
def progress_bar(text: str, *, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, moved by (how many are done, of how many)."""
    if not shown:
        yield lambda _done, _of: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, of: progress.update(task, completed=done, total=of)
