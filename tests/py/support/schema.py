"""Small trees of SQL files to migrate with, and schemas to compare."""

import shutil
import subprocess
from pathlib import Path

import pytest

from billing_shell.migrate import MigrateOptions
from tests.py.support.servers import TestPostgres

DB = Path(__file__).parents[3] / "db"

# What differs between dumps of one schema: psql's guard, and what pg_dump says of itself.
_NOT_SCHEMA = ("\\restrict", "\\unrestrict", "--")


class Sources:
    """A `db/` of a test's own, with one migration and one function, over the real roles.

    Attributes:
        directory: where it is.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("roles", "queue"):
            shutil.copytree(DB / name, directory / name)
        self.write(
            "migrations/V0001__Start.sql",
            """\
            CREATE SCHEMA billing;
            CREATE TABLE billing.thing (id integer PRIMARY KEY, name text NOT NULL);
            """,
        )
        self.write(
            "functions/things/count_things.sql",
            """\
            CREATE OR REPLACE FUNCTION billing.count_things() RETURNS bigint
            LANGUAGE sql STABLE SET search_path = ''
            AS $function$ SELECT count(*) FROM billing.thing; $function$;
            """,
        )
        self.write("migrations.yml", "callbacks:\n  afterAll:\n    - functions/things/\n")

    @property
    def options(self) -> MigrateOptions:
        """To migrate with it."""
        return MigrateOptions(directory=self.directory)

    def write(self, path: str, text: str) -> Path:
        """Write one file, with the first line's indentation taken off every line."""
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        indentation = len(text) - len(text.lstrip(" "))
        file.write_text("".join(line[indentation:] for line in text.splitlines(keepends=True)))
        return file

    def remove(self, path: str) -> None:
        """Remove one file."""
        (self.directory / path).unlink()


def dump(postgres: TestPostgres, url: str, *arguments: str) -> list[str]:
    """Return the lines of `pg_dump`, without what differs between two dumps of one schema."""
    program = str(postgres.binaries / "pg_dump") if postgres.binaries else shutil.which("pg_dump")
    if program is None:
        pytest.skip("no pg_dump on this machine to compare schemas with")
    ended = subprocess.run([program, url, *arguments], check=True, capture_output=True, text=True)
    return [line for line in ended.stdout.splitlines() if line and not line.startswith(_NOT_SCHEMA)]


def dump_schema(postgres: TestPostgres, url: str, *arguments: str) -> list[str]:
    """Return the schema of a database as SQL, privileges and all."""
    return dump(postgres, url, "--schema-only", *arguments)
