"""What commands find in the environment, and what they start where it names nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from billing_shell.command_errors import Exit, fail

if TYPE_CHECKING:
    from billing_shell.settings import Settings

DataDir = Annotated[
    Path | None,
    typer.Option(
        help="Where embedded servers keep their data.",
        envvar="BILLING_DATA_DIR",
        file_okay=False,
        show_default="a place of this user's",
    ),
]
"""The option of each command that may start servers."""


def read_settings(*, as_json: bool = False) -> "Settings":
    """Read the environment, or end the command by what is wrong in it."""
    from billing_shell.settings import Settings, SettingsError

    try:
        return Settings.from_environment()
    except SettingsError as error:
        fail(Exit.USAGE, str(error), code=error.code, as_json=as_json)


def needed(value: str | None, variable: str, *, as_json: bool = False) -> str:
    """Return the value, or end the command by the name of its variable."""
    if value is None:
        fail(
            Exit.USAGE,
            f"{variable} is not set",
            code="missing",
            hint="set it, or run billing up, which starts servers of its own",
            as_json=as_json,
        )
    return value


def data_directory(data_dir: Path | None, settings: "Settings") -> Path:
    """Where embedded servers keep their data: as asked for, or the place of this user."""
    from billing_shell.embedded import default_data_dir

    return (data_dir or settings.data_dir or default_data_dir()).expanduser().absolute()


@contextmanager
def database(settings: "Settings", data_dir: Path | None) -> Iterator[str]:
    """The database that the environment names, or the embedded one of the data directory."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    from billing_shell.embedded import EmbeddedServers

    directory = data_directory(data_dir, settings)
    with EmbeddedServers(directory, redis=False, kafka=False) as servers:
        yield servers.postgres_url
