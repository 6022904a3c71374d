"""Whether the door is alive and ready, and the figures that it shows."""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from billing_shell import api_health
from billing_shell.api_database import ApiDatabase
from billing_shell.api_keys import Scope
from billing_shell.embedded import KafkaBroker, RedisServer
from billing_shell.embedded_server import free_port
from billing_shell.throttle import Lane, Throttle, connect
from tests.py.support.door import ACCOUNT, PATIENCE, RunningDoor, Shop, bearer, running_door


@pytest.fixture
def equipped(
    shop: Shop,
    redis_server: RedisServer,
    kafka_broker: KafkaBroker,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[RunningDoor]:
    """A door that has been told of Redis and a broker, and waits for them as long as it takes."""
    monkeypatch.setattr(api_health, "CHECK_SECONDS", PATIENCE)
    with running_door(
        shop.url, redis_url=redis_server.url, kafka_bootstrap=kafka_broker.bootstrap
    ) as running:
        yield running


def ready(door: RunningDoor, query: str = "") -> tuple[int, dict[str, Any]]:
    answer = httpx.get(f"{door.url}/readyz{query}", timeout=PATIENCE)
    return answer.status_code, answer.json()


def test_a_process_that_answers_is_alive(shared_door: RunningDoor) -> None:
    answer = httpx.get(f"{shared_door.url}/healthz", timeout=PATIENCE)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_all_that_it_stands_on_is_named(equipped: RunningDoor) -> None:
    assert ready(equipped) == (
        200,
        {
            "status": "ready",
            "checks": {"database": "ok", "migrations": "ok", "redis": "ok", "broker": "ok"},
        },
    )


def test_what_was_not_configured_is_not_missed(shared_door: RunningDoor) -> None:
    status, told = ready(shared_door)
    assert status == 200
    assert told["checks"]["redis"] == told["checks"]["broker"] == "not_configured"


def test_what_is_missing_is_named_and_can_be_left_out(shop: Shop) -> None:
    nowhere = free_port()
    with running_door(
        shop.url,
        redis_url=f"redis://127.0.0.1:{nowhere}/0",
        kafka_bootstrap=f"127.0.0.1:{nowhere}",
    ) as door:
        status, told = ready(door)
        assert (status, told["status"]) == (503, "not_ready")
        assert told["checks"] == {
            "database": "ok", "migrations": "ok", "redis": "failed", "broker": "failed",
        }  # fmt: skip
        assert ready(door, "?exclude=redis")[0] == 503
        assert ready(door, "?exclude=redis&exclude=brooker")[0] == 422
        status, told = ready(door, "?exclude=redis&exclude=broker")
        assert (status, told["checks"]["redis"]) == (200, "excluded")
        with door.client() as client:
            assert client.get("/plans").status_code == 200


def test_a_database_that_is_away_or_behind_is_named(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_door(f"postgresql://postgres@127.0.0.1:{free_port()}/none") as door:
        status, told = ready(door)
        assert status == 503
        assert told["checks"]["database"] == told["checks"]["migrations"] == "failed"
        assert httpx.get(f"{door.url}/healthz", timeout=PATIENCE).status_code == 200
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute(
            "DELETE FROM public.schema_version"
            " WHERE version = (SELECT max(version) FROM public.schema_version)"
        )
    with running_door(shop.url) as door:
        status, told = ready(door)
        assert (status, told["checks"]["database"]) == (503, "ok")
        assert told["checks"]["migrations"] == "outdated"
        monkeypatch.setattr(api_health, "KEPT_SECONDS", 0)
        with psycopg.connect(shop.url, autocommit=True) as connection:
            connection.execute(
                "INSERT INTO public.schema_version (version, description, installed_by)"
                " VALUES (9999, 'later', 'somebody')"
            )
        assert ready(door)[0] == 200


async def test_a_check_that_does_not_end_is_not_waited_for(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released, limit = [0], asyncio.Event(), 0.01

    async def frozen(_query: str, _parameters: object) -> list[tuple[int]]:
        begun[0] += 1
        with contextlib.suppress(asyncio.CancelledError):
            await released.wait()
        await released.wait()
        return [(10**6,)]

    database = ApiDatabase(shop.url)
    monkeypatch.setattr(database, "rows", frozen)
    monkeypatch.setattr(api_health, "CHECK_SECONDS", limit)
    monkeypatch.setattr(api_health, "KEPT_SECONDS", -1.0)
    health = api_health.Health(database, None, None)
    for _ in range(3):
        async with asyncio.timeout(PATIENCE):
            found = await health.readiness()
        assert found.states[api_health.Dependency.DATABASE] == "failed"
    assert begun == [1]

    released.set()
    monkeypatch.setattr(api_health, "CHECK_SECONDS", PATIENCE)
    assert (await health.readiness()).is_ready


def test_it_becomes_ready_once_the_database_is_there(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may start first."""
    monkeypatch.setattr(api_health, "KEPT_SECONDS", 0)
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute(
            "REVOKE EXECUTE ON FUNCTION billing_worker.schema_version FROM billing_http"
        )
        with running_door(shop.url) as door:
            assert ready(door)[0] == 503
            connection.execute(
                "GRANT EXECUTE ON FUNCTION billing_worker.schema_version TO billing_http"
            )
            assert ready(door)[0] == 200


def figures(door: RunningDoor) -> dict[str, float]:
    """Every series with its value."""
    key = door.key(Scope.READ)
    answer = httpx.get(f"{door.url}/metrics", headers=bearer(key), timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


async def test_figures_tell_how_things_stand(
    equipped: RunningDoor, shop: Shop, redis_server: RedisServer
) -> None:
    client = connect(redis_server.url)
    try:
        throttle = Throttle(client, ACCOUNT, "charge", 200)
        granted = 0
        while granted < 3:
            granted += len((await throttle.reserve(1, Lane.BACKLOG)).slots)
    finally:
        await client.aclose()
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute("SELECT billing_worker.start_attempts(%s, 1, 'w')", (ACCOUNT,))
        connection.execute("SELECT billing_ops.pause_renewing()")
        connection.execute(
            "SELECT billing_worker.receive_webhook(%s, 'evt', 'charge.succeeded', '{}')", (ACCOUNT,)
        )
    found = figures(equipped)
    account = f'gateway_account="{ACCOUNT}"'
    assert found["billing_attempts_in_flight"] == 1
    assert found['billing_attempts_open{status="STARTED"}'] == 1
    assert found['billing_attempts_newest{status="SUCCEEDED"}'] == 2
    assert found[f'billing_collection_backlog{{{account},lane="interactive"}}'] == 1
    assert found['billing_stopped{what="renewing"}'] == 1
    assert found['billing_stopped{what="collecting"}'] == 0
    assert found['billing_webhooks_waiting{status="RECEIVED"}'] == 1
    assert found["billing_outbox_unpublished"] > 0
    assert found["billing_outbox_lag_seconds"] > 0
    assert found["billing_parked"] == 0
    assert found["billing_renewal_backlog"] == 0
    labels = f'{{{account},operation="charge"}}'
    assert found[f"billing_gateway_rate_limit{labels}"] == 200
    assert found[f"billing_throttle_slots_granted{labels}"] >= 3
    assert found["billing_throttle_up"] == 1


def test_figures_count_requests_by_route_and_status(door: RunningDoor, shop: Shop) -> None:
    with door.client() as client:
        client.get(f"/subscriptions/{shop.mine['subscription_id']}")
        client.get(f"/subscriptions/{shop.theirs['subscription_id']}")
        client.get("/subscriptions/1")
        client.get("/a/b/c")
        client.request("PATCH", "/d")
    found = figures(door)
    route = 'route="/subscriptions/{subscriptionId}"'
    assert found[f'billing_http_requests_total{{method="GET",{route},status="200"}}'] == 2
    assert found[f'billing_http_requests_total{{method="GET",{route},status="404"}}'] == 1
    # What nobody has heard of makes no series of its own.
    assert found['billing_http_requests_total{method="other",route="none",status="404"}'] == 2
    assert found[f"billing_http_request_seconds_count{{{route}}}"] == 3
    assert found["billing_http_requests_in_flight"] == 1
    assert not [name for name in found if re.search("PATCH|/a/b/c", name)]


def test_a_throttle_that_does_not_answer_says_so(shop: Shop) -> None:
    with running_door(shop.url, redis_url=f"redis://127.0.0.1:{free_port()}/0") as door:
        found = figures(door)
        assert found["billing_throttle_up"] == 0
        assert found["billing_parked"] == 0
