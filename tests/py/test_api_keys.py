"""Keys of callers: made, presented, rotated, revoked, and bound to one customer."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
import typer
from psycopg import sql
from psycopg.conninfo import make_conninfo
from typer.testing import CliRunner

from billing_shell.api_commands import create_key, register
from billing_shell.api_keys import PREFIX, Scope, hash_of, new_key
from tests.py.support.door import PATIENCE, RunningDoor, Shop, bearer, running_door, value

APP = typer.Typer()
register(APP)


class Line:
    """The command line on one database."""

    def __init__(self, url: str) -> None:
        self._runner = CliRunner()
        self._environment = {"BILLING_DATABASE_URL": url}

    def run(self, *arguments: str, code: int = 0) -> Any:  # noqa: ANN401
        result = self._runner.invoke(APP, ["keys", *arguments], env=self._environment)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout) if "--json" in arguments else result

    def create(self, name: str, *options: str) -> dict[str, Any]:
        made: dict[str, Any] = self.run("create", name, *options, "--json")
        return made


@pytest.fixture
def line(shop: Shop) -> Line:
    return Line(shop.url)


@pytest.fixture
def anybody(door: RunningDoor) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=door.url, timeout=PATIENCE) as client:
        yield client


def status(client: httpx.Client, key: str, path: str = "/plans") -> int:
    return client.get(path, headers=bearer(key)).status_code


def test_a_key_is_random_recognisable_and_stored_as_its_hash_only(shop: Shop, line: Line) -> None:
    made = line.create("shop", "--scope", "read")
    key = made["key"]
    assert key.startswith(PREFIX)
    assert len(key) == len(PREFIX) + 43
    assert key != new_key()
    stored = value(shop.url, "SELECT to_jsonb(k)::text FROM billing.api_key AS k")
    assert key not in stored
    assert hash_of(key).hex() in stored
    listed = line.run("list", "--json")
    assert listed[0]["status"] == "ACTIVE"
    assert "key_hash" not in listed[0]
    assert key not in json.dumps(listed)


def test_for_people_only_the_key_goes_to_standard_output(line: Line) -> None:
    result = line.run("create", "shop", "--scope", "read", "--scope", "write")
    assert result.stdout.strip().startswith(PREFIX)
    assert "\n" not in result.stdout.strip()
    assert "cannot be shown again" in result.stderr
    assert result.stdout.strip() not in result.stderr


@pytest.mark.parametrize(
    "authorization",
    [
        None, "", "Bearer", "Basic YTpi", "bk_x", "Bearer bk_unknown", "Bearer a b",
        "Bearer " + "x" * 300, "Bearer bk_\u00fc", "Bearer ' OR true --",
    ],
)  # fmt: skip
def test_who_has_no_key_is_let_in_nowhere(
    shared_door: RunningDoor, shared_shop: Shop, authorization: str | None
) -> None:
    headers = [] if authorization is None else [(b"authorization", authorization.encode("latin-1"))]
    for method, path in (
        ("GET", f"/subscriptions/{shared_shop.mine['subscription_id']}"),
        ("POST", "/subscriptions"),
        ("GET", "/metrics"),
    ):
        refused = httpx.request(method, shared_door.url + path, headers=headers, timeout=PATIENCE)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
        assert refused.json()["type"] == "urn:billing:problem:unauthorized"


def test_of_two_keys_none_is_taken(shared_door: RunningDoor) -> None:
    for path in ("/plans", "/metrics"):
        with shared_door.client() as good:
            known = good.headers["Authorization"]
            assert good.get(path).status_code == 200
        twice = [("Authorization", known), ("Authorization", "Bearer bk_unknown")]
        for headers in (twice, twice[::-1]):
            refused = httpx.get(shared_door.url + path, headers=headers, timeout=PATIENCE)
            assert refused.status_code == 401


def test_who_is_not_let_in_is_not_told_what_is_wrong_with_the_request(
    anybody: httpx.Client,
) -> None:
    refused = anybody.post("/subscriptions", json={"x": 1}, headers=bearer("bk_unknown"))
    assert refused.status_code == 401
    assert "errors" not in refused.json()


@pytest.mark.parametrize(
    ("scopes", "reads", "writes", "runs"),
    [
        ((Scope.READ,), 200, 403, 403),
        ((Scope.WRITE,), 403, 201, 403),
        ((Scope.READ, Scope.WRITE), 200, 201, 403),
        ((Scope.OPERATE,), 403, 403, 200),
        ((Scope.READ, Scope.WRITE, Scope.OPERATE), 200, 201, 200),
    ],
)
def test_a_scope_permits_what_it_says(
    door: RunningDoor,
    shop: Shop,
    scopes: tuple[Scope, ...],
    reads: int,
    writes: int,
    runs: int,
) -> None:
    with door.client(*scopes) as client:
        assert client.get("/plans").status_code == reads
        made = client.post("/customers", json={"externalRef": "x", "currency": "USD"})
        assert made.status_code == writes
        timeline = client.get(f"/subscriptions/{shop.mine['subscription_id']}/timeline")
        assert timeline.status_code == runs
        if made.status_code == 403:
            assert "write" in made.json()["detail"]
            assert 'scope="write"' in made.headers["WWW-Authenticate"]


def test_an_operators_key_may_do_what_an_operator_may(door: RunningDoor, shop: Shop) -> None:
    body = {
        "customerId": shop.mine["customer_id"],
        "planCode": "PRO_MONTHLY",
        "resourceRef": "given",
        "paymentBehavior": "GRANT_FIRST",
    }
    with door.client() as client, door.client(*Scope) as operator:
        refused = client.post("/subscriptions", json=body, headers={"Idempotency-Key": "k"})
        assert (refused.status_code, refused.json()["sqlstate"]) == (409, "SB313")
        given = operator.post("/subscriptions", json=body, headers={"Idempotency-Key": "k"})
        assert (given.status_code, given.json()["status"]) == (201, "ACTIVE")


def test_a_revoked_key_is_refused_from_the_next_request_on(
    anybody: httpx.Client, line: Line
) -> None:
    made = line.create("shop", "--scope", "read")
    for _ in range(10):  # prepared statements included
        assert status(anybody, made["key"]) == 200
    line.run("revoke", str(made["api_key_id"]))
    assert status(anybody, made["key"]) == 401
    assert line.run("list", "--json")[0]["status"] == "REVOKED"
    line.run("revoke", str(made["api_key_id"]))
    assert line.create("shop", "--scope", "read")["api_key_id"] != made["api_key_id"]


def test_a_rotated_key_is_taken_until_callers_have_changed_over(
    anybody: httpx.Client, line: Line, shop: Shop
) -> None:
    old = line.create("shop", "--scope", "read", "--customer", str(shop.mine["customer_id"]))
    new = line.run("rotate", str(old["api_key_id"]), "--overlap", "1h", "--json")
    assert (new["name"], new["scopes"], new["customer_id"]) == (
        old["name"], old["scopes"], old["customer_id"],
    )  # fmt: skip
    assert [status(anybody, each["key"]) for each in (old, new)] == [200, 200]
    assert {each["status"] for each in line.run("list", "--json")} == {"ROTATED", "ACTIVE"}

    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute(
            "UPDATE billing.api_key SET expires_at = clock_timestamp() WHERE api_key_id = %s",
            (old["api_key_id"],),
        )
    assert [status(anybody, each["key"]) for each in (old, new)] == [401, 200]
    at_once = line.run("rotate", str(new["api_key_id"]), "--overlap", "0s", "--json")
    assert [status(anybody, each["key"]) for each in (new, at_once)] == [401, 200]


def test_a_key_ends_when_it_was_said_to(anybody: httpx.Client, line: Line, shop: Shop) -> None:
    made = line.create("guest", "--scope", "read", "--expires-in", "2h")
    assert status(anybody, made["key"]) == 200
    left = value(
        shop.url, "SELECT extract(epoch FROM expires_at - clock_timestamp()) FROM billing.api_key"
    )
    assert 7000 < left <= 7200
    # By the wall clock: that of the shop stands still in 2027.
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute("UPDATE billing.api_key SET expires_at = clock_timestamp()")
    assert status(anybody, made["key"]) == 401


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("create", "bad name", "--scope", "read"), 4),
        (("create", "4111111111111111", "--scope", "read"), 4),
        (("create", "shop", "--scope", "everything"), 2),
        (("create", "shop"), 2),
        (("create", "shop", "--scope", "operate", "--customer", "64"), 4),
        (("create", "shop", "--scope", "read", "--customer", "9999936"), 4),
        (("create", "shop", "--scope", "read", "--expires-in", "soon"), 2),
        (("create", "shop", "--scope", "read", "--expires-in", "0s"), 4),
        (("rotate", "9999936"), 4),
        (("rotate", "64", "--overlap", "91d"), 4),
        (("rotate", "9" * 30), 4),
        (("revoke", "9" * 30), 4),
        (("revoke", "9999936"), 4),
        (("revoke", "x"), 2),
    ],
)
def test_nonsense_on_the_command_line_changes_nothing(
    line: Line, shop: Shop, arguments: tuple[str, ...], code: int
) -> None:
    line.create("taken", "--scope", "read")
    before = value(shop.url, "SELECT billing_test.fingerprint()")
    result = line.run(*arguments, code=code)
    assert "Traceback" not in result.output
    assert "billing migrate" not in result.output
    assert PREFIX not in result.stdout
    assert value(shop.url, "SELECT billing_test.fingerprint()") == before


def test_a_name_is_taken_once(line: Line) -> None:
    line.create("shop", "--scope", "read")
    refused = line.run("create", "shop", "--scope", "write", code=4)
    assert "SB309" in refused.stderr
    assert "Rotate or revoke" in refused.stderr


def test_without_a_database_the_commands_say_so(shop: Shop) -> None:
    nowhere = Line("postgresql://postgres@127.0.0.1:1/none?connect_timeout=2")
    assert nowhere.run("list", code=3).stderr.startswith("error: ")
    del shop
    result = CliRunner().invoke(APP, ["keys", "list"], env={"BILLING_DATABASE_URL": None})
    assert result.exit_code == 2
    assert "BILLING_DATABASE_URL" in result.stderr


def test_the_commands_are_those_of_the_program(shop: Shop) -> None:
    environment = {**os.environ, "BILLING_DATABASE_URL": shop.url}
    found = subprocess.run(
        [sys.executable, "-m", "billing_shell", "keys", "list", "--json"],
        env=environment,
        capture_output=True,
        check=True,
    )
    assert json.loads(found.stdout) == []


def test_the_doors_own_role_can_do_nothing_but_open(shop: Shop) -> None:
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute("SET ROLE billing_http")
        for statement in (
            "SELECT * FROM billing.api_key",
            "SELECT * FROM billing_api.subscription",
            "SELECT billing_api.has_access(64)",
            "SELECT billing_worker.renew_due(1)",
            "SELECT * FROM billing.invoice",
            "SELECT * FROM billing_ops.api_key",
            "SELECT billing_ops.create_api_key('x', sha256('x'), '{read}')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_a_login_of_three_roles_is_all_that_the_door_needs(shop: Shop) -> None:
    login = f"door_{uuid.uuid4().hex[:12]}"
    name = sql.Identifier(login)
    with psycopg.connect(shop.url, autocommit=True) as owner:
        owner.execute(
            sql.SQL(
                "CREATE ROLE {} LOGIN IN ROLE billing_http, billing_app, billing_operator"
            ).format(name)
        )
        try:
            as_door = make_conninfo(shop.url, user=login)
            key = create_key(shop.url, "shop", list(Scope), None)
            with (
                running_door(as_door) as door,
                httpx.Client(base_url=door.url, timeout=PATIENCE) as client,
            ):
                client.headers.update(bearer(key))
                path = f"/subscriptions/{shop.mine['subscription_id']}"
                assert client.get(path).status_code == 200
                assert client.get(f"{path}/timeline").status_code == 200
                assert client.post(f"{path}/cancel", json={"atPeriodEnd": True}).status_code == 200
                assert client.get("/metrics").status_code == 200
                assert client.get("/readyz").status_code == 200
        finally:
            owner.execute(sql.SQL("DROP ROLE {}").format(name))
