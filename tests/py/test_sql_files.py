"""The SQL files: that those of the project are sound, and that unsound ones are told apart."""

import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from billing_shell import migrate
from billing_shell.migrate_errors import MigrationError, MigrationErrorCode
from billing_shell.sql_files import SqlFile, SqlFiles, find_directory
from tests.py.support.schema import DB, Sources


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path / "db")


def test_the_projects_own_files_are_sound_for_both_programs() -> None:
    files = SqlFiles.load()
    versions = [migration.version for migration in files.migrations]
    assert versions == list(range(1, len(versions) + 1))


def test_every_directory_of_functions_views_and_privileges_is_applied() -> None:
    listed = yaml.safe_load((DB / "migrations.yml").read_text())["callbacks"]["afterAll"]
    # Relative to db/, as they are listed.
    directories = {
        f"{path.parent.relative_to(DB)}/"
        for kind in ("reference", "views", "functions", "privileges")
        for path in (DB / kind).rglob("*.sql")
    }
    assert directories == {path for path in listed if path.endswith("/")}


def test_pgmigrate_takes_the_same_lock_and_role_as_migrate() -> None:
    session = yaml.safe_load((DB / "migrations.yml").read_text())["session"]
    assert "hashtextextended('billing.migrate', 0)" in inspect.getsource(migrate)
    key = "pg_catalog.hashtextextended('billing.migrate', 0)"
    assert session[:2] == [
        f"SELECT pg_catalog.pg_advisory_xact_lock({key})",
        "SET ROLE billing_owner",
    ]


def test_statements_are_found_past_quotes_comments_and_bodies() -> None:
    file = SqlFile(
        "x.sql",
        "-- one; two\n"
        "SELECT ';''; ' AS \";\", E'\\';', $$ ; $$, $a$ $$ ; $$ $a$;;\n"
        "/* three; */ INSERT\n"
        "  INTO t VALUES (1);\n"
        "UPDATE t",
    )
    assert [(file.line_at(offset), word) for offset, word in file.statements()] == [
        (2, "SELECT"),
        (3, "INSERT"),
        (5, "UPDATE"),
    ]


def test_what_a_file_creates_is_read_from_it() -> None:
    file = SqlFile(
        "x.sql",
        "CREATE OR REPLACE FUNCTION billing.one(\n);\n"
        "create view billing_api.two AS SELECT 1;\n"
        "CREATE PROCEDURE billing_ops.three() AS $$ CREATE TABLE billing.four; $$;\n"
        "CREATE TABLE billing.five ();\n",
    )
    assert file.creates == {"billing.one", "billing_api.two", "billing_ops.three"}


def test_a_fingerprint_does_not_depend_on_the_line_endings_of_a_checkout() -> None:
    assert SqlFile("x", "a\nb\n").sha256 == SqlFile("x", "a\r\nb\r\n").sha256
    assert SqlFile("x", "a\nb\n").sha256 != SqlFile("x", "a\n b\n").sha256


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("SELECT 1;\nSELECT '\u00e9';\n", 2),
        ("SELECT 1;\n\nSELECT 3 # 4;\n", 3),
        ("SELECT 1;\nCOMMIT;\n", 2),
        ("BEGIN;\nSELECT 1;\n", 1),
        ("\\echo hello\n", 1),
        ("SELECT 1;\nCOPY t FROM stdin;\n", 2),
        ("CREATE FUNCTION f() RETURNS int BEGIN ATOMIC\nSELECT 1;\nEND;\n", 3),
    ],
)
def test_a_file_that_one_of_the_programs_would_trip_over_is_refused(
    sources: Sources, text: str, line: int
) -> None:
    sources.write("functions/things/odd.sql", text)
    with pytest.raises(MigrationError) as refused:
        SqlFiles.load(sources.directory)
    assert refused.value.code is MigrationErrorCode.FILES_UNSOUND
    assert refused.value.where == f"db/functions/things/odd.sql:{line}"


@pytest.mark.parametrize(
    ("path", "text", "where"),
    [
        ("migrations/V1__Again.sql", "", "db/migrations/V1__Again.sql:1"),
        ("migrations/0002_Other.sql", "", "db/migrations/0002_Other.sql:1"),
        ("migrations/V0002__NONTRANSACTIONAL_x.sql", "", "db/migrations/V0002__NONTRANSACTIONAL"),
        ("functions/things/README.md", "", "db/functions/things/README.md:1"),
        ("functions/things/deeper/f.sql", "", "db/functions/things/deeper:1"),
        ("migrations.yml", "callbacks: {afterAll: [nowhere/]}", "db/migrations.yml:1"),
        ("migrations.yml", "callbacks: {beforeAll: [functions/things/]}", "db/migrations.yml:1"),
        ("migrations.yml", "session: []", "db/migrations.yml:1"),
    ],
)
def test_a_tree_that_the_two_programs_would_read_differently_is_refused(
    sources: Sources, path: str, text: str, where: str
) -> None:
    sources.write(path, text)
    with pytest.raises(MigrationError) as refused:
        SqlFiles.load(sources.directory)
    assert refused.value.code is MigrationErrorCode.FILES_UNSOUND
    assert refused.value.where.startswith(where)


def test_a_file_that_is_no_text_is_refused(sources: Sources) -> None:
    (sources.directory / "functions/things/f.sql").write_bytes(b"SELECT '\xff';")
    with pytest.raises(MigrationError, match=r"f\.sql:1: not text"):
        SqlFiles.load(sources.directory)


def test_a_file_named_above_its_directory_is_applied_once_and_first(sources: Sources) -> None:
    sources.write("functions/things/a.sql", "SELECT 1;")
    sources.write(
        "migrations.yml",
        "callbacks: {afterAll: [functions/things/count_things.sql, functions/things/]}",
    )
    assert [file.name for file in SqlFiles.load(sources.directory).callbacks] == [
        "db/functions/things/count_things.sql",
        "db/functions/things/a.sql",
    ]


def test_an_installed_package_finds_its_files_without_a_checkout(tmp_path: Path) -> None:
    """Laid out as the wheel is; that the wheel holds them stands in pyproject.toml."""
    package = tmp_path / "billing_shell"
    # Others may be writing what Python compiles.
    shutil.copytree(
        Path(str(find_directory())).parent / "python" / "billing_shell",
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    shutil.copytree(DB, package / "db")
    code = (
        "from billing_shell.sql_files import SqlFiles, find_directory;"
        "print(find_directory(), len(SqlFiles.load().all_files))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
    )
    assert found.stdout.split() == [str(package / "db"), str(len(SqlFiles.load().all_files))]
