"""The simulated gateway's idempotency, judged by its ledger file as sqlite3 alone reads it."""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.py.support.simulator import (
    SimulatorProcess,
    charge,
    client_of,
    put,
    smooth_simulator,
    until,
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path_factory.mktemp("gateway")) as process:
        yield process


@pytest.fixture
def own_gateway(tmp_path: Path) -> Iterator[SimulatorProcess]:
    """A gateway that the test may kill."""
    with smooth_simulator(tmp_path) as process:
        yield process


@pytest.fixture
async def client(gateway: SimulatorProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(gateway) as opened:
        yield opened
        await put(opened, "clock", now=None)
        await put(opened, "latency", least=0, most=0)


@pytest.fixture
def key() -> str:
    return f"db-inv-{uuid.uuid4().hex}-try-1"


def calls(gateway: SimulatorProcess, key: str) -> int:
    count: int = gateway.value("SELECT count(*) FROM calls WHERE idempotency_key = ?", (key,))
    return count


def charged_keys(gateway: SimulatorProcess) -> list[str]:
    return [key for (key,) in gateway.rows("SELECT idempotency_key FROM charges")]


def payments(gateway: SimulatorProcess, key: str) -> list[tuple[int, str]]:
    return gateway.rows(
        "SELECT amount, status FROM charges WHERE idempotency_key = ? ORDER BY charge_no", (key,)
    )


async def test_the_same_key_and_parameters_replay_the_stored_answer(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    first = await charge(client, key)
    second = await charge(client, key)

    assert first.status_code == 200
    assert "idempotent-replayed" not in first.headers
    assert (second.status_code, second.content) == (200, first.content)
    assert second.headers["idempotent-replayed"] == "true"
    assert payments(gateway, key) == [(4900, "succeeded")]


async def test_a_decline_is_replayed(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    first = await charge(client, key, "tok_decline_insufficient_funds")
    second = await charge(client, key, "tok_decline_insufficient_funds")

    assert first.status_code == second.status_code == 402
    assert second.content == first.content
    assert first.json()["code"] == "insufficient_funds"
    assert payments(gateway, key) == [(4900, "declined")]


async def test_a_stored_500_is_replayed_and_moves_nothing(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    first = await charge(client, key, "tok_500_stored")
    second = await charge(client, key, "tok_500_stored")

    assert first.status_code == second.status_code == 500
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert payments(gateway, key) == []


async def test_a_500_after_the_charge_is_replayed_although_the_money_moved(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    first = await charge(client, key, "tok_500_charged")
    second = await charge(client, key, "tok_500_charged")

    assert first.status_code == second.status_code == 500
    assert second.headers["idempotent-replayed"] == "true"
    assert payments(gateway, key) == [(4900, "succeeded")]


@pytest.mark.parametrize(
    "other",
    [
        {"amount": 4901},
        {"currency": "EUR"},
        {"source": "tok_ok_other"},
        {"reference": "other"},
        {"description": "other"},
    ],
)
async def test_the_same_key_with_other_parameters_is_refused(
    gateway: SimulatorProcess, client: httpx.AsyncClient, other: dict[str, Any], key: str
) -> None:
    await charge(client, key)
    response = await charge(client, key, **other)

    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] == "idempotency_key_reused"
    assert payments(gateway, key) == [(4900, "succeeded")]


async def test_without_a_key_every_send_charges(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    await charge(client, None, reference=key)
    await charge(client, None, reference=key)
    moved = "SELECT sum(amount) FROM charges WHERE status = 'succeeded' AND reference = ?"
    assert gateway.value(moved, (key,)) == 9800


async def test_a_refusal_of_the_form_is_not_kept_under_the_key(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    assert (await charge(client, key, amount=0)).status_code == 400
    assert (await charge(client, key)).status_code == 200
    assert payments(gateway, key) == [(4900, "succeeded")]


async def test_a_key_in_flight_answers_409_and_replays_afterwards(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    # Long enough for the second one to come, on a busy machine too.
    await put(client, "latency", least=4, most=4)
    first = asyncio.create_task(charge(client, key))
    await until(lambda: calls(gateway, key) == 1)
    second = await charge(client, key)

    assert second.status_code == 409
    assert second.json()["code"] == "idempotency_key_in_use"
    assert (await first).status_code == 200
    await put(client, "latency", least=0, most=0)
    assert (await charge(client, key)).headers["idempotent-replayed"] == "true"
    assert payments(gateway, key) == [(4900, "succeeded")]


async def test_sixty_four_equal_sends_at_once_make_one_charge(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    await put(client, "latency", least=0, most=0.1)
    answers = await asyncio.gather(*(charge(client, key) for _ in range(64)))

    kinds = Counter(
        (answer.status_code, answer.headers.get("idempotent-replayed")) for answer in answers
    )
    assert kinds[200, None] == 1
    assert kinds[200, "true"] + kinds[409, None] == 63
    assert payments(gateway, key) == [(4900, "succeeded")]
    assert calls(gateway, key) == 64


async def test_a_key_is_forgotten_when_its_life_is_over_and_then_charges_again(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    await put(client, "clock", now="2027-05-01T00:00:00Z")
    first = await charge(client, key)
    await put(client, "clock", now="2027-05-01T23:59:59.999999Z")
    last_replay = await charge(client, key)
    await put(client, "clock", now="2027-05-02T00:00:00Z")
    again = await charge(client, key)

    assert last_replay.content == first.content
    assert "idempotent-replayed" not in again.headers
    assert again.json()["id"] != first.json()["id"]
    charged_at = "SELECT created_at FROM charges WHERE idempotency_key = ? ORDER BY charge_no"
    assert gateway.rows(charged_at, (key,)) == [
        ("2027-05-01T00:00:00.000000Z",),
        ("2027-05-02T00:00:00.000000Z",),
    ]
    assert (await charge(client, key)).content == again.content


async def test_a_key_forgotten_takes_other_parameters(client: httpx.AsyncClient, key: str) -> None:
    await put(client, "clock", now="2027-05-01T00:00:00Z")
    await charge(client, key)
    await put(client, "clock", now="2027-05-02T00:00:00Z")
    assert (await charge(client, key, amount=1)).json()["amount"] == 1


async def test_a_429_comes_before_the_idempotency_layer_and_keeps_nothing(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    answers = [await charge(client, key, "tok_429_2") for _ in range(4)]

    assert [answer.status_code for answer in answers] == [429, 429, 200, 200]
    assert [answer.headers.get("retry-after") for answer in answers] == ["2", "2", None, None]
    assert answers[3].headers["idempotent-replayed"] == "true"
    assert payments(gateway, key) == [(4900, "succeeded")]


async def send_and_give_up(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str, source: str
) -> None:
    """Send a charge that is never answered, and hang up once the gateway has dealt with it."""
    sent = asyncio.create_task(charge(client, key, source))
    served = "SELECT count(*) FROM calls WHERE idempotency_key = ? AND send_no = 1"
    await until(lambda: gateway.value(served, (key,)) == 1)
    sent.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sent


async def charge_again(client: httpx.AsyncClient, key: str, source: str) -> httpx.Response:
    """Send it once more, as soon as the gateway has let go of the key."""
    while (answer := await charge(client, key, source)).status_code == 409:
        pass
    return answer


async def test_a_charge_whose_connection_was_cut_is_replayed(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await charge(client, key, "tok_cut")
    assert payments(gateway, key) == [(4900, "succeeded")]

    assert (await charge(client, key, "tok_cut")).headers["idempotent-replayed"] == "true"
    assert payments(gateway, key) == [(4900, "succeeded")]


async def test_a_charge_whose_answer_was_lost_is_replayed(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    source = "tok_timeout_charged"
    await send_and_give_up(gateway, client, key, source)
    assert payments(gateway, key) == [(4900, "succeeded")]

    assert (await charge_again(client, key, source)).headers["idempotent-replayed"] == "true"
    assert payments(gateway, key) == [(4900, "succeeded")]


async def test_a_send_that_was_lost_on_the_way_has_done_nothing(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    await send_and_give_up(gateway, client, key, "tok_timeout_lost")
    assert payments(gateway, key) == []

    again = await charge_again(client, key, "tok_timeout_lost")
    assert "idempotent-replayed" not in again.headers
    assert payments(gateway, key) == [(4900, "succeeded")]


async def test_an_unanswered_connection_is_cut_after_a_while(tmp_path: Path, key: str) -> None:
    with smooth_simulator(tmp_path, "--hang", "0.2") as gateway:
        async with client_of(gateway) as client:
            with pytest.raises(httpx.RemoteProtocolError):
                await charge(client, key, "tok_timeout_charged")
        assert payments(gateway, key) == [(4900, "succeeded")]


@pytest.mark.crash
async def test_a_charge_survives_a_kill_between_the_charge_and_its_answer(
    own_gateway: SimulatorProcess, key: str
) -> None:
    async with client_of(own_gateway) as client:
        sent = asyncio.create_task(charge(client, key, "tok_timeout_charged"))
        await until(lambda: payments(own_gateway, key) != [])
        own_gateway.kill()
        with pytest.raises(httpx.TransportError):
            await sent
    own_gateway.start()
    async with client_of(own_gateway) as client:
        replay = await charge(client, key, "tok_timeout_charged")

    assert replay.headers["idempotent-replayed"] == "true"
    assert replay.json()["status"] == "succeeded"
    assert payments(own_gateway, key) == [(4900, "succeeded")]
    assert own_gateway.value("SELECT count(*) FROM runs") == 2


@pytest.mark.crash
async def test_whatever_was_answered_before_a_kill_is_in_the_ledger_after_it(
    own_gateway: SimulatorProcess,
) -> None:
    keys = [f"k{number}" for number in range(400)]
    # Of these no answer comes before the kill, however slow we are to read those of others.
    unanswered = {f"k{number}" for number in range(0, 400, 20)}
    answered: set[str] = set()

    async def send_one(client: httpx.AsyncClient, key: str) -> httpx.Response:
        return await charge(client, key, "tok_timeout_charged" if key in unanswered else "tok_ok")

    async def send(client: httpx.AsyncClient, key: str) -> None:
        try:
            answer = await send_one(client, key)
        except httpx.TransportError:
            return
        assert answer.status_code == 200
        answered.add(key)
        if len(answered) == 150:
            own_gateway.kill()

    async with client_of(own_gateway) as client:
        sent = [asyncio.create_task(send(client, key)) for key in sorted(unanswered)]
        await until(lambda: set(charged_keys(own_gateway)) == unanswered)
        await put(client, "latency", least=0, most=2)
        await asyncio.gather(*sent, *(send(client, key) for key in keys if key not in unanswered))
    assert len(answered) >= 150
    assert answered.isdisjoint(unanswered)
    booked = set(charged_keys(own_gateway))
    assert answered <= booked

    own_gateway.start("--latency", "0")
    async with client_of(own_gateway) as client:
        answers = await asyncio.gather(*(send_one(client, key) for key in keys))

    replayed = {
        key
        for key, answer in zip(keys, answers, strict=True)
        if "idempotent-replayed" in answer.headers
    }
    assert replayed == booked
    assert Counter(charged_keys(own_gateway)) == dict.fromkeys(keys, 1)
