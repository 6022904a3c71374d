"""Callers who click twice, and callers whose answers are lost: one subscription, equal answers."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest

from billing_shell import api_database
from billing_shell.api_shapes import REPLAYED_HEADER
from tests.py.support.cutting_proxy import cutting_proxy
from tests.py.support.door import PATIENCE, RunningDoor, Shop, bearer, running_door, value
from tests.py.support.world import until

CALLERS = 64


@pytest.fixture
def door(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningDoor]:
    """A door at which everybody may wait for a connection as long as it takes."""
    monkeypatch.setattr(api_database, "WAIT_SECONDS", PATIENCE)
    with running_door(shop.url) as running:
        yield running


COUNT = """
    SELECT count(*) FROM billing.subscription AS s
    INNER JOIN billing.resource AS r USING (customer_id, resource_id)
    WHERE r.external_ref = 'store'
"""
WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'billing api'
      AND wait_event_type = 'Lock'
"""
INVOICES = """
    SELECT count(*) FROM billing.invoice AS i
    INNER JOIN billing.resource AS r USING (customer_id, resource_id)
    WHERE r.external_ref = 'store'
"""


def sign_up(shop: Shop) -> dict[str, Any]:
    return {
        "url": "/subscriptions",
        "json": {
            "customerId": shop.mine["customer_id"],
            "planCode": "PRO_MONTHLY",
            "resourceRef": "store",
        },
        "headers": {"Idempotency-Key": "one and the same"},
    }


async def test_many_sign_ups_with_one_key_make_one_subscription(
    door: RunningDoor, shop: Shop
) -> None:
    async with httpx.AsyncClient(
        base_url=door.url,
        headers=bearer(door.key()),
        timeout=PATIENCE,
        limits=httpx.Limits(max_connections=CALLERS),
    ) as client:
        answers = await asyncio.gather(*(client.post(**sign_up(shop)) for _ in range(CALLERS)))
    assert {each.status_code for each in answers} == {201}
    assert len({each.content for each in answers}) == 1
    assert len({each.headers["Location"] for each in answers}) == 1
    first = [each for each in answers if REPLAYED_HEADER not in each.headers]
    assert len(first) == 1
    assert value(shop.url, COUNT) == 1
    assert value(shop.url, INVOICES) == 1


async def test_many_different_sign_ups_for_one_thing_make_one_subscription(
    door: RunningDoor, shop: Shop
) -> None:
    """Who clicks twice sends two keys."""
    async with httpx.AsyncClient(
        base_url=door.url, headers=bearer(door.key()), timeout=PATIENCE
    ) as client:
        calls = [sign_up(shop) for _ in range(16)]
        for number, call in enumerate(calls):
            call["headers"] = {"Idempotency-Key": f"click {number}"}
        answers = await asyncio.gather(*(client.post(**call) for call in calls))
    assert {each.status_code for each in answers} == {201}
    assert len({each.json()["subscriptionId"] for each in answers}) == 1
    assert value(shop.url, COUNT) == 1


@pytest.mark.parametrize("callers", [1, CALLERS])
async def test_lost_answers_are_asked_for_again(
    door: RunningDoor, shop: Shop, callers: int
) -> None:
    """The connection is cut after the commit and before the answer."""
    async with cutting_proxy(door.url, cuts=callers) as proxy:

        async def insist() -> tuple[int, httpx.Response]:
            for attempt in range(2 * CALLERS):
                async with httpx.AsyncClient(
                    base_url=proxy.url, headers=bearer(door.key()), timeout=PATIENCE
                ) as client:
                    try:
                        return attempt, await client.post(**sign_up(shop))
                    except httpx.TransportError:
                        continue
            raise AssertionError("no answer came through")

        door.key()
        found = await asyncio.gather(*(insist() for _ in range(callers)))
        assert proxy.lost == callers
    answers = [answer for _, answer in found]
    assert sum(attempts for attempts, _ in found) == callers
    assert {each.status_code for each in answers} == {201}
    assert len({each.content for each in answers}) == 1
    if callers == 1:
        assert answers[0].headers[REPLAYED_HEADER] == "true"
    assert value(shop.url, COUNT) == 1
    assert value(shop.url, INVOICES) == 1


async def test_credit_is_given_once_whatever_is_lost(door: RunningDoor, shop: Shop) -> None:
    path = f"/customers/{shop.mine['customer_id']}/credit"
    async with cutting_proxy(door.url, cuts=3) as proxy:
        for _ in range(5):
            async with httpx.AsyncClient(
                base_url=proxy.url, headers=bearer(door.key()), timeout=PATIENCE
            ) as client:
                try:
                    answer = await client.post(
                        path,
                        json={"amount": 500, "currency": "USD", "reason": "outage"},
                        headers={"Idempotency-Key": "ticket 7"},
                    )
                except httpx.TransportError:
                    continue
                assert answer.json()["balance"] == 500
        assert proxy.lost == 3
    entries = "SELECT count(*) FROM billing.credit_entry WHERE kind = 'GRANTED'"
    assert value(shop.url, entries) == 1


async def test_a_caller_who_goes_away_leaves_nothing_half_done(
    door: RunningDoor, shop: Shop
) -> None:
    """Gone before the answer: either all of it happened or nothing, and a retry tells which."""
    call = sign_up(shop)
    with psycopg.connect(shop.url) as holder:
        holder.execute("SELECT FROM billing.customer FOR UPDATE")
        async with httpx.AsyncClient(
            base_url=door.url, headers=bearer(door.key()), timeout=PATIENCE
        ) as client:
            going_away = asyncio.create_task(client.post(**call))
            await until(lambda: value(shop.url, WAITING) == 1, "the call to be in the middle")
            going_away.cancel()
            with pytest.raises(asyncio.CancelledError):
                await going_away
    async with httpx.AsyncClient(
        base_url=door.url, headers=bearer(door.key()), timeout=PATIENCE
    ) as client:
        answer = await client.post(**call)
    assert answer.status_code == 201
    assert value(shop.url, COUNT) == 1
    assert value(shop.url, INVOICES) == 1
