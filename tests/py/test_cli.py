"""The command line: what it says, what it returns, and what it leaves behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from billing_shell.command_errors import Exit
from billing_shell.embedded import RedisServer
from billing_shell.embedded_server import free_port
from billing_shell.sabotage import Sabotage
from billing_shell.trial_commands import Sabotaged
from tests.py.support.processes import Watched, descendants
from tests.py.support.servers import TestPostgres
from tests.py.support.world import World, until

SECONDS = 600
# Those who were there before the new one.
_ONE_MORE_CUSTOMER = """
    WITH made AS (
        SELECT * FROM billing_api.create_customer(format('customer-%%s', %(no)s::int), 'USD')
    )
    SELECT c.external_ref FROM made CROSS JOIN billing.customer AS c
"""
_LET_IN = "SELECT count(*) FROM billing_ops.api_key WHERE status IN ('ACTIVE', 'ROTATED')"
_ROTATE = """
    SELECT FROM billing_ops.api_key AS k
    CROSS JOIN billing_ops.rotate_api_key(k.api_key_id, sha256('another'), interval '1 day')
"""
_POSTMASTER = "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::integer"
COMMANDS = (
    *("up", "migrate", "worker", "relay", "gateway", "demo", "import"),
    *("api", "keys", "doctor", "reconcile", "simulate"),
)


def environment(**variables: str) -> dict[str, str]:
    """This process' own, with no variable of ours but those that are given."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("BILLING_")}
    return {**others, **variables}


def billing(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "billing_shell", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env=environment(**variables),
    )


def start(*arguments: str, log: Path, **variables: str) -> "subprocess.Popen[bytes]":
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "billing_shell", *arguments],
            stdout=output,
            stderr=output,
            env=environment(**variables),
        )


def test_help_names_every_command_and_the_exit_codes() -> None:
    ended = billing("--help", COLUMNS="200")
    assert ended.returncode == Exit.DONE
    for command in COMMANDS:
        assert command in ended.stdout
    assert "Exit codes" in ended.stdout


def test_help_imports_no_server_and_no_client() -> None:
    heavy = (
        *("procrastinate", "uvicorn", "starlette", "confluent_kafka", "httpx", "redis"),
        *("asyncio", "psycopg", "structlog"),
    )
    program = (
        "import sys; sys.argv = ['billing', '--help']\n"
        "from billing_shell.cli import main\n"
        "try: main()\n"
        f"finally: sys.stderr.write(repr(sorted(set({heavy!r}) & set(sys.modules))))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert ended.stderr == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help_of_its_own(command: str) -> None:
    ended = billing(command, "--help")
    assert ended.returncode == Exit.DONE
    assert "Usage:" in ended.stdout


@pytest.mark.parametrize(
    ("command", "variables", "missing"),
    [
        ("worker", {}, "BILLING_DATABASE_URL"),
        ("worker", {"BILLING_DATABASE_URL": "postgresql://x@127.0.0.1/x"}, "BILLING_REDIS_URL"),
        (
            "relay",
            {"BILLING_DATABASE_URL": "postgresql://x@127.0.0.1/x"},
            "BILLING_KAFKA_BOOTSTRAP",
        ),
    ],
)
def test_an_address_that_is_missing_is_named(
    command: str, variables: dict[str, str], missing: str
) -> None:
    ended = billing(command, **variables)
    assert ended.returncode == Exit.USAGE
    assert missing in ended.stderr
    assert "hint:" in ended.stderr


def test_a_setting_that_makes_no_sense_is_named_without_its_value() -> None:
    ended = billing("worker", BILLING_DATABASE_URL="mysql://root:hunter2@db/x")
    assert ended.returncode == Exit.USAGE
    assert "BILLING_DATABASE_URL" in ended.stderr
    assert "hunter2" not in ended.stderr + ended.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("worker", "--name", "ip-10-1-123-61-26315-194024"), "bad_name"),
        (("worker", "--name", "w" * 201), "bad_name"),
        (("worker", "--name", "two words"), "bad_name"),
        (("relay", "--topic", ""), "bad_topic"),
        (("relay", "--topic", "billing events"), "bad_topic"),
        (("relay", "--topic", ".."), "bad_topic"),
        (("relay", "--source", ""), "bad_source"),
        (("relay", "--source", "/billing eu"), "bad_source"),
        (("relay", "--source", "/billing%"), "bad_source"),
        (("simulate", "--seed", "-1"), "--seed"),
        (("simulate", "--seed", "9" * 30), "--seed"),
        (("keys", "create", os.fsdecode(b"caf\xe9"), "--scope", "read"), "bad_argument"),
    ],
)
def test_an_argument_that_makes_no_sense_is_named(arguments: tuple[str, ...], code: str) -> None:
    url = f"postgresql://postgres@127.0.0.1:{free_port()}/billing?connect_timeout=1"
    ended = billing(
        *arguments,
        BILLING_DATABASE_URL=url,
        BILLING_REDIS_URL=f"redis://127.0.0.1:{free_port()}",
        BILLING_GATEWAY_URL="http://127.0.0.1:9",
        BILLING_KAFKA_BOOTSTRAP=f"127.0.0.1:{free_port()}",
    )
    assert ended.returncode == Exit.USAGE, ended.stderr
    assert code in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_database_that_cannot_be_reached_is_told_apart_from_one_that_refuses() -> None:
    url = f"postgresql://postgres:hunter2@127.0.0.1:{free_port()}/billing"
    ended = billing("migrate", "--json", BILLING_DATABASE_URL=url)
    assert ended.returncode == Exit.UNREACHABLE
    assert json.loads(ended.stdout)["error"]["code"]
    assert "hunter2" not in ended.stderr + ended.stdout


def test_migrate_says_what_is_pending_applies_it_and_finds_nothing_more(
    postgres: TestPostgres,
) -> None:
    with postgres.database() as name:
        url = postgres.database_url(name)
        before = billing("migrate", "--status", "--json", BILLING_DATABASE_URL=url)
        assert before.returncode == Exit.FAILED
        pending = json.loads(before.stdout)["pending"]
        applied = billing("migrate", "--json", BILLING_DATABASE_URL=url)
        assert applied.returncode == Exit.DONE, applied.stderr
        assert json.loads(applied.stdout)["applied"] == pending
        after = billing("migrate", "--status", "--json", BILLING_DATABASE_URL=url)
        assert after.returncode == Exit.DONE
        assert json.loads(after.stdout)["current"] is True


def test_a_worker_on_a_database_without_schema_says_what_to_do(
    postgres: TestPostgres, redis_server: RedisServer
) -> None:
    with postgres.database() as name:
        ended = billing(
            "worker",
            BILLING_DATABASE_URL=postgres.database_url(name),
            BILLING_REDIS_URL=redis_server.url,
            BILLING_GATEWAY_URL="http://127.0.0.1:9",
        )
    assert ended.returncode == Exit.REFUSED
    assert "billing migrate" in ended.stderr


async def test_a_worker_told_to_end_does_so_with_nothing_left(
    database_url: str, redis_server: RedisServer, tmp_path: Path
) -> None:
    World(database_url).close()
    log = tmp_path / "worker.log"
    process = start(
        "worker",
        log=log,
        BILLING_DATABASE_URL=database_url,
        BILLING_REDIS_URL=redis_server.url,
        BILLING_GATEWAY_URL="http://127.0.0.1:9",
    )
    try:
        await until(lambda: "worker_started" in log.read_text(), "the start")
        process.send_signal(signal.SIGTERM)
        await until(lambda: process.poll() is not None, "the end")
    finally:
        process.kill()
    assert process.returncode == Exit.DONE
    assert "worker_stopped" in log.read_text()


def test_an_import_of_nothing_is_refused(database_url: str, tmp_path: Path) -> None:
    ended = billing("import", str(tmp_path), "--json", BILLING_DATABASE_URL=database_url)
    assert ended.returncode == Exit.FAILED
    assert json.loads(ended.stdout)["error"]["code"] == "import_refused"


def test_sabotage_has_the_names_that_it_has_elsewhere() -> None:
    assert {each.value for each in Sabotaged} == {each.value for each in Sabotage}


@contextlib.contextmanager
def signed_up_at(door: str, earlier_key: str, key: str) -> Iterator[Callable[[], str]]:
    """A customer who signs up over HTTP; tells the subscription's present status."""
    with httpx.Client(base_url=door, timeout=SECONDS, trust_env=False) as client:
        revoked = {"Authorization": f"Bearer {earlier_key}"}
        assert client.get("/plans", headers=revoked).status_code == 401
        client.headers["Authorization"] = f"Bearer {key}"

        def post(path: str, **document: object) -> dict[str, Any]:
            answer = client.post(path, json=document, headers={"Idempotency-Key": "the first"})
            assert answer.is_success, answer.text
            found: dict[str, Any] = answer.json()
            return found

        post("/plans", code="PRO", name="Pro", amount=4900, currency="USD", intervalUnit="MONTH")
        customer = post("/customers", externalRef="acme", currency="USD")["customerId"]
        post(f"/customers/{customer}/payment-methods", gatewayAccount="simulated", token="tok_ok")
        made = post("/subscriptions", customerId=customer, planCode="PRO")
        yield lambda: str(client.get(f"/subscriptions/{made['subscriptionId']}").json()["status"])


def was_told(database_url: str) -> bool:
    """Whether the gateway has reported something."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        return connection.execute("SELECT FROM billing.webhook_event").rowcount > 0


def addresses_in(log: Path) -> dict[str, Any]:
    """What `up` has printed, among the lines of its log; empty before it has."""
    for line in log.read_text().splitlines(keepends=True):
        if line.startswith('{"database_url"') and line.endswith("\n"):
            found: dict[str, Any] = json.loads(line)
            return found
    return {}


def end_up(process: subprocess.Popen[bytes], round_no: int, database_url: str) -> int:
    """End everything in a way of each round; the exit code that is due."""
    match round_no:
        case 1:
            process.kill()
            return -signal.SIGKILL
        case 2:
            process.send_signal(signal.SIGTERM)
            return Exit.DONE
    with psycopg.connect(database_url) as connection:
        ((postmaster,),) = connection.execute(_POSTMASTER).fetchall()
    os.kill(postmaster, signal.SIGKILL)
    return Exit.UNREACHABLE


async def run_up(directory: Path, log: Path, round_no: int, keys: list[str]) -> None:
    """Start everything, use it, and end it; `keys` gets the one that the door lets in.

    Another end each time: it is killed, told to end, and its PostgreSQL is killed.
    """
    process = start("up", "--json", "--data-dir", str(directory), log=log)
    try:
        await until(lambda: bool(addresses_in(log)) or process.poll() is not None, "up")
        addresses = addresses_in(log)
        with psycopg.connect(addresses["database_url"]) as connection:
            accounts = connection.execute("SELECT code FROM billing.gateway_account").fetchall()
            let_in = connection.execute(_LET_IN).fetchall()
            if round_no == 1:
                connection.execute(_ROTATE)
            customers = connection.execute(_ONE_MORE_CUSTOMER, {"no": round_no}).fetchall()
        assert accounts == [("simulated",)]
        assert {(f"customer-{earlier}",) for earlier in range(1, round_no)} <= set(customers)
        assert let_in == [(1,)]
        keys.append(addresses["key"])
        if round_no == 2:
            with signed_up_at(addresses["door_url"], *keys) as status:
                await until(lambda: status() == "ACTIVE", "the first payment")
            await until(partial(was_told, addresses["database_url"]), "the gateway's webhook")
        watched = Watched(descendants(process.pid))
        expected = end_up(process, round_no, addresses["database_url"])
        await until(lambda: process.poll() is not None, "the end")
        assert process.returncode == expected
        assert watched.survivors(SECONDS) == set()
        watched.close()
    finally:
        process.kill()


async def test_up_runs_everything_and_leaves_nothing_behind_but_its_data(
    data_dir: Path, tmp_path: Path
) -> None:
    keys: list[str] = []
    for round_no in (1, 2, 3):
        await run_up(data_dir / "up", tmp_path / f"up-{round_no}.log", round_no, keys)
    assert "PostgreSQL has ended by itself, status -9" in (tmp_path / "up-3.log").read_text()
