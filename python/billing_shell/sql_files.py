"""The SQL files under `db/`: where and which they are, in which order, and that they are sound.

The layout is yandex-pgmigrate's: `migrations/V0001__Name.sql`, and `migrations.yml` that names the
directories to re-apply after them. The rules checked here are those that keep the files applicable
by both programs.
"""

import hashlib
import importlib.resources
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Self

import yaml

from billing_shell.migrate_errors import MigrationError, MigrationErrorCode

_MIGRATION_NAME = re.compile(r"V(?P<version>[0-9]+)__(?P<description>.+)\.sql")
_CREATES = re.compile(
    r"""^\s* CREATE \s+ (?:OR \s+ REPLACE \s+)?
        (?:FUNCTION | PROCEDURE | AGGREGATE | (?:MATERIALIZED \s+)? VIEW) \s+
        (?:IF \s+ NOT \s+ EXISTS \s+)?
        (?P<name> [a-z_][a-z0-9_]* \. [a-z_][a-z0-9_]*)""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_TOKEN = re.compile(
    r"""(?P<blank> \s+ | --[^\n]* | /\*.*?\*/)
      | (?P<end> ;)
      | \b[eE]'(?:[^'\\]|\\.|'')*'
      | '[^']*'
      | "[^"]*"
      | (?P<tag> \$(?:[A-Za-z_][A-Za-z0-9_]*)?\$) .*? (?P=tag)
      | [A-Za-z_][A-Za-z0-9_$]*
      | .""",
    re.VERBOSE | re.DOTALL,
)
_OWN_TRANSACTION = frozenset(
    {"BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE"}
)


@dataclass(frozen=True)
class SqlFile:
    """One file of SQL, executed whole.

    Attributes:
        name: where it is, for people: `db/functions/renewal/renew_due.sql`.
        text: what is in it.
    """

    name: str
    text: str = field(repr=False)

    @property
    def sha256(self) -> str:
        """Fingerprint of the content, blind to the line ending that a checkout chose."""
        return hashlib.sha256(self.text.replace("\r\n", "\n").encode()).hexdigest()

    @property
    def creates(self) -> frozenset[str]:
        """Functions, procedures and views that it creates, as `schema.name`."""
        return frozenset(found["name"].lower() for found in _CREATES.finditer(self.text))

    def line_at(self, offset: int) -> int:
        """Number of the line, from 1, that the character at `offset` stands in."""
        return self.text.count("\n", 0, offset) + 1

    def statements(self) -> Iterator[tuple[int, str]]:
        """Offset and first word of each statement.

        Serves messages and checks only: the file is executed whole, and the server splits it.
        """
        first: tuple[int, str] | None = None
        for token in _TOKEN.finditer(self.text):
            if token["end"]:
                if first:
                    yield first
                first = None
            elif first is None and not token["blank"]:
                first = token.start(), token[0].upper()
        if first:
            yield first

    def check(self) -> None:
        """Raises MigrationError FILES_UNSOUND where the file would not work with both programs."""
        if not self.text.isascii():
            offset = next(i for i, letter in enumerate(self.text) if not letter.isascii())
            raise self._unsound(offset, "not ASCII, which pgmigrate refuses")
        offset = self.text.find("# ")
        if offset >= 0:
            raise self._unsound(offset, "a hash and a space, which pgmigrate takes for a comment")
        for offset, word in self.statements():
            if word in _OWN_TRANSACTION:
                raise self._unsound(offset, f"{word} would break the one transaction")
            if word in {"COPY", "\\"}:
                raise self._unsound(offset, "COPY and psql's own commands need a psql")

    def _unsound(self, offset: int, message: str) -> MigrationError:
        return MigrationError(
            MigrationErrorCode.FILES_UNSOUND,
            message,
            where=f"{self.name}:{self.line_at(offset)}",
            hint="docs/operations/migrations.md tells what a file may hold",
        )


@dataclass(frozen=True)
class Migration:
    """One numbered step that is applied once and never edited afterwards.

    Attributes:
        version: the number in the file's name.
        description: the rest of the name, with spaces for underscores, as pgmigrate stores it.
        file: the SQL.
    """

    version: int
    description: str
    file: SqlFile


@dataclass(frozen=True)
class SqlFiles:
    """Everything under `db/`.

    Attributes:
        roles: applied first, by the login itself.
        migrations: in ascending order of version.
        callbacks: re-applied after the migrations on every run, in this order.
        queue: what surrounds the job queue's own schema, by file name without `.sql`.
    """

    roles: SqlFile
    migrations: tuple[Migration, ...]
    callbacks: tuple[SqlFile, ...]
    queue: dict[str, SqlFile]

    @classmethod
    def load(cls, directory: Traversable | None = None) -> Self:
        """Reads and checks the files.

        Args:
            directory: what to read in place of the `db/` that belongs to this package.

        Raises:
            MigrationError: FILES_UNSOUND, with file and line.
        """
        base = directory or find_directory()
        loaded = cls(
            roles=_read(base / "roles" / "roles.sql", "db/roles"),
            migrations=_migrations(base / "migrations"),
            # A file may be named above its directory, because others of it need it: it counts once.
            callbacks=tuple({file.name: file for file in _callbacks(base)}.values()),
            queue={
                file.name.removesuffix(".sql"): _read(file, "db/queue")
                for file in _entries(base / "queue", "db/queue")
            },
        )
        for file in loaded.all_files:
            file.check()
        return loaded

    @property
    def all_files(self) -> tuple[SqlFile, ...]:
        """Every file once."""
        migrations = (migration.file for migration in self.migrations)
        return (self.roles, *migrations, *self.callbacks, *self.queue.values())

    @property
    def functions(self) -> tuple[SqlFile, ...]:
        """The callbacks that create functions."""
        return tuple(file for file in self.callbacks if file.name.startswith("db/functions/"))

    @cached_property
    def creates(self) -> frozenset[str]:
        """Functions, procedures and views that any file creates, as `schema.name`."""
        return frozenset().union(*(file.creates for file in self.all_files))


def find_directory() -> Traversable:
    """The `db/` of an installed package, or else of the checkout that it runs from.

    Raises:
        MigrationError: FILES_UNSOUND where there is neither.
    """
    installed = importlib.resources.files("billing_shell") / "db"
    checkout = Path(__file__).resolve().parents[2] / "db"
    for directory in (installed, checkout):
        if (directory / "migrations.yml").is_file():
            return directory
    raise MigrationError(
        MigrationErrorCode.FILES_UNSOUND,
        f"no migrations.yml in {installed} or {checkout}",
        hint="install the package again, or run from a whole checkout",
    )


def _migrations(directory: Traversable) -> tuple[Migration, ...]:
    found: dict[int, Migration] = {}
    for entry in _entries(directory, "db/migrations"):
        match = _MIGRATION_NAME.fullmatch(entry.name)
        if match is None:
            raise MigrationError(
                MigrationErrorCode.FILES_UNSOUND,
                "not named like V0001__What_it_does.sql",
                where=f"db/migrations/{entry.name}:1",
            )
        version = int(match["version"])
        description = match["description"].replace("_", " ")
        file = _read(entry, "db/migrations")
        if version in found:
            raise MigrationError(
                MigrationErrorCode.FILES_UNSOUND,
                f"{found[version].file.name} has the same number",
                where=f"{file.name}:1",
            )
        if "NONTRANSACTIONAL" in description:
            raise MigrationError(
                MigrationErrorCode.FILES_UNSOUND,
                "a migration outside the one transaction",
                where=f"{file.name}:1",
                hint="build an index CONCURRENTLY by hand first, then name it with IF NOT EXISTS",
            )
        found[version] = Migration(version, description, file)
    return tuple(found[version] for version in sorted(found))


def _callbacks(base: Traversable) -> Iterator[SqlFile]:
    for path in _callback_paths(base / "migrations.yml"):
        target = base / path
        if target.is_dir():
            for entry in _entries(target, f"db/{path}".rstrip("/")):
                yield _read(entry, f"db/{path}".rstrip("/"))
        elif target.is_file():
            yield _read(target, f"db/{path}".rpartition("/")[0])
        else:
            raise MigrationError(
                MigrationErrorCode.FILES_UNSOUND,
                f"afterAll names {path}, which is not there",
                where="db/migrations.yml:1",
            )


def _callback_paths(file: Traversable) -> list[str]:
    settings: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
    match settings:
        case {"callbacks": {"afterAll": [*paths], **others}} if not others and all(
            isinstance(path, str) for path in paths
        ):
            return paths
        case _:
            raise MigrationError(
                MigrationErrorCode.FILES_UNSOUND,
                "callbacks must be a list under afterAll, and nothing else",
                where="db/migrations.yml:1",
            )


def _entries(directory: Traversable, shown: str) -> list[Traversable]:
    """A directory's SQL files by name, as pgmigrate takes them: it neither filters nor descends."""
    entries = sorted(directory.iterdir(), key=lambda entry: entry.name)
    for entry in entries:
        if not entry.is_file() or not entry.name.endswith(".sql"):
            raise MigrationError(
                MigrationErrorCode.FILES_UNSOUND,
                "pgmigrate would try to execute this, it takes all that a directory holds",
                where=f"{shown}/{entry.name}:1",
            )
    return entries


def _read(file: Traversable, shown: str) -> SqlFile:
    name = f"{shown}/{file.name}"
    try:
        return SqlFile(name, file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise MigrationError(
            MigrationErrorCode.FILES_UNSOUND, f"not text: {error}", where=f"{name}:1"
        ) from error
