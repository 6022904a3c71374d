"""pgTAP, loaded into schema `tap` of a test database; never of a production database.

Taken from the server where it has the extension, else as plain SQL out of an npm package, which is
fetched once and kept in the user's cache. Nothing of it is part of this project.
"""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from psycopg import Connection

from billing_shell.sql_files import SqlFile
from billing_shell.sql_script import run_file

PACKAGE = "@electric-sql/pglite-pgtap@0.0.15"
SHA512 = "WWyw8E/V69RbkEpWBAsZX/Jd9GnTLu7p4mNy54fAsjcmJ5NX3xYm4S8YOKGEcOEAQnaGb+gixPQq/2SO3rT3DQ=="
"""Of the package's archive, as its registry publishes it."""
VERSION = "1.3.5"

_FETCH_SECONDS = 120


class PgTapMissingError(RuntimeError):
    """pgTAP is neither installed on the server nor to be had from npm."""


def load(connection: Connection[Any]) -> None:
    """Makes pgTAP's functions available in schema `tap`.

    Raises:
        PgTapMissingError: with what to do about it.
    """
    connection.execute("CREATE SCHEMA tap")
    available = connection.execute(
        "SELECT FROM pg_catalog.pg_available_extensions WHERE name = 'pgtap'"
    ).fetchone()
    if available is not None:
        connection.execute("CREATE EXTENSION pgtap SCHEMA tap")
        return
    with connection.transaction():
        connection.execute("SET LOCAL search_path = tap")
        connection.execute("SET LOCAL client_min_messages = warning")
        run_file(connection, SqlFile(f"pgtap {VERSION}", _sql()))


def _sql() -> str:
    cached = _cache_directory() / f"pgtap-{VERSION}.sql"
    if not cached.is_file():
        cached.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cached.parent) as directory:
            fetched = _unpack(_fetch(Path(directory)), Path(directory))
            fetched.replace(cached)
    return cached.read_text(encoding="utf-8")


def _cache_directory() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "billing-shell"


def _fetch(directory: Path) -> Path:
    npm = shutil.which("npm", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if npm is None:
        raise PgTapMissingError(
            "pgTAP is needed: install the development dependencies, which bring an npm,"
            " or the server's own package, for example postgresql-15-pgtap"
        )
    command = [npm, "pack", "--silent", "--pack-destination", str(directory), PACKAGE]
    run = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False
    )
    archives = list(directory.glob("*.tgz"))
    if run.returncode != 0 or len(archives) != 1:
        raise PgTapMissingError(f"{' '.join(command)} failed:\n{run.stdout}{run.stderr}")
    digest = base64.b64encode(hashlib.sha512(archives[0].read_bytes()).digest()).decode()
    if digest != SHA512:
        raise PgTapMissingError(f"{PACKAGE} is not the archive that was reviewed: {digest}")
    return archives[0]


def _unpack(archive: Path, directory: Path) -> Path:
    """The one SQL file, out of an archive within the archive."""
    inner = directory / "pgtap.tar.gz"
    _extract(archive, "package/dist/pgtap.tar.gz", inner)
    script = directory / "pgtap.sql"
    _extract(inner, f"share/postgresql/extension/pgtap--{VERSION}.sql", script)
    return script


def _extract(archive: Path, member: str, target: Path) -> None:
    with tarfile.open(archive) as opened:
        content = opened.extractfile(member)
        if content is None:
            raise PgTapMissingError(f"no file {member} in {archive.name}")
        target.write_bytes(content.read())
