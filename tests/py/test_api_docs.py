"""Every command of docs/http.md is run: over HTTP on one database, in SQL on another."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import Connection, sql

from billing_shell.embedded_server import free_port
from tests.py.support.door import SECRET, helped
from tests.py.support.servers import TestPostgres

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
PARTS = re.compile(r"^```(\w+)(?: (\w+))?\n(.*?)^```$|^<!-- (paid) -->$", re.MULTILINE | re.DOTALL)
NOW = "2027-01-31T10:30:00Z"
ROLES = {"": "billing_app", "refused": "billing_app", "operator": "billing_operator", "owner": ""}
COLLECT = "SELECT billing_test.collect(p_gateway_account => 'simulated')"

# curl says after each answer what its status was; in a pipe or a file too, by another channel. The
# door's log must not share it: it would come between.
PRELUDE = """
set -euo pipefail
curl() { command curl -sS -w '%{stderr}\\nSTATUS %{http_code} %{url}\\n' "$@"; }
billing() { [ "$1" != api ] || exec billing "$@" 2>door.log; command billing "$@"; }
collect() { "$PYTHON" -c "import os, psycopg
url, statement = os.environ['BILLING_DATABASE_URL'], os.environ['COLLECT']
psycopg.connect(url, autocommit=True).execute(statement)"; }
trap 'kill $(jobs -p) && wait' EXIT
"""


@pytest.fixture
def databases(postgres: TestPostgres, template_database: str) -> Iterator[tuple[str, str]]:
    """Two databases that are alike, with a gateway account and nothing else."""
    with postgres.database(template=template_database) as first:
        with helped(postgres.database_url(first)) as connection:
            connection.execute("SELECT billing_test.clock(%s)", (NOW,))
            connection.execute(
                "SELECT billing_ops.create_gateway_account('simulated', 'simulated')"
            )
        with postgres.database(template=first) as second:
            yield postgres.database_url(first), postgres.database_url(second)


def parts(*kinds: str) -> list[tuple[str, str, str]]:
    """(language, what is said of it, text) in order; a payment is ("paid", "", "")."""
    found = [
        (each[1] or each[4], each[2] or "", each[3] or "")
        for each in PARTS.finditer(PAGE.read_text(encoding="utf-8"))
    ]
    return [each for each in found if each[0] in {*kinds, "paid"}]


def over_http(url: str, directory: Path) -> list[tuple[str, int]]:
    """Runs the shell's part as one script; what was said of each block, and each status in it."""
    script = [PRELUDE]
    for language, said, text in parts("sh"):
        script.append("collect" if language == "paid" else f"echo BLOCK {said} >&2\n{text}")
    port = free_port()
    run = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=directory,
        env={
            **{
                name: value for name, value in os.environ.items() if not name.startswith("BILLING_")
            },
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHON": sys.executable,
            "COLLECT": COLLECT,
            "DOOR": f"http://127.0.0.1:{port}",
            "BILLING_DATABASE_URL": url,
            "BILLING_API_PORT": str(port),
            "BILLING_WEBHOOK_SECRETS": SECRET,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    found: list[tuple[str, int]] = []
    said = ""
    for line in run.stderr.splitlines():
        if line.startswith("BLOCK"):
            said = line.removeprefix("BLOCK").strip()
        elif line.startswith("STATUS"):
            found.append((said, int(line.split()[1])))
    return found


def in_sql(url: str) -> None:
    """Runs the SQL part, each block in the role that the page says."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        for language, said, text in parts("sql"):
            if language == "paid":
                connection.execute(COLLECT)
                continue
            if said == "owner":
                with connection.transaction(force_rollback=True):
                    connection.execute(text.encode())
                continue
            connection.execute(f"SET ROLE {ROLES[said]}".encode())
            if said == "refused":
                with pytest.raises(psycopg.Error):
                    connection.execute(text.encode())
            else:
                connection.execute(text.encode())
            connection.execute("RESET ROLE")


def shown(connection: Connection) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all views of the API."""
    views = connection.execute(
        "SELECT relname FROM pg_class"
        " WHERE relnamespace = 'billing_api'::regnamespace AND relkind = 'v'"
    ).fetchall()
    return {
        name: connection.execute(
            sql.SQL("SELECT * FROM {} AS v ORDER BY v::text").format(
                sql.Identifier("billing_api", name)
            )
        ).fetchall()
        for (name,) in views
    }


def test_both_columns_of_the_page_do_the_same(databases: tuple[str, str], tmp_path: Path) -> None:
    for program in ("bash", "curl", "openssl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    first, second = databases
    statuses = over_http(first, tmp_path)
    assert len(statuses) > 40
    # While the door starts, nobody answers yet.
    waited = [status for _, status in statuses if status in {0, 503}]
    answered = [each for each in statuses if each[1] not in {0, 503}]
    assert statuses[: len(waited)] == [("", status) for status in waited]
    for said, status in answered:
        assert (400 <= status < 500) == (said == "refused"), (said, status)
        assert status < 500
    in_sql(second)
    with psycopg.connect(first) as one, psycopg.connect(second) as other:
        made = shown(one)
        assert made == shown(other)
    assert {name for name, rows in made.items() if not rows} == set()


def test_every_example_over_http_has_its_like_in_sql() -> None:
    """Except what has none: keys, webhooks, and looking whether the door is alive."""
    text = PAGE.read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    without = {"Keys", "Webhooks", "Watching it"}
    for section in sections:
        title = section.partition("\n")[0]
        if "```sh" in section and title not in without:
            assert "```sql" in section, title
