"""The simulated gateway's chance: seeded, counted, and the same whatever the timing."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from billing_shell.simulator.behaviour import INJECTED_FAULTS, LOOK_UP_FAULTS, Fault
from billing_shell.simulator.chance import Chance, FaultRate
from billing_shell.simulator.options import Latency
from tests.py.support.simulator import (
    SimulatorProcess,
    charge,
    client_of,
    put,
    smooth_simulator,
)

KEYS = [f"db-inv-{number}-try-1" for number in range(64, 64 + 120)]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path_factory.mktemp("gateway"), "--hang", "0.1") as process:
        yield process


@pytest.fixture
async def client(gateway: SimulatorProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(gateway) as opened:
        yield opened
        await put(opened, "faults", rate=0)


def fates(gateway: SimulatorProcess) -> dict[tuple[str, int], str | None]:
    rows = gateway.rows("SELECT idempotency_key, send_no, fault FROM calls")
    return {(key, send_no): fault for key, send_no, fault in rows}


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def send(client: httpx.AsyncClient, key: str) -> None:
    try:
        await charge(client, key)
    except httpx.TransportError:
        return


async def test_the_same_seed_and_keys_meet_the_same_faults_in_any_order_and_at_any_speed(
    tmp_path: Path,
) -> None:
    seen = []
    keys = KEYS[:40]
    for number, seed in enumerate(["7", "7", "8"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        options = ("--seed", seed, "--faults", "0.3", "--hang", "0.05")
        with smooth_simulator(folder, *options) as gateway:
            async with client_of(gateway) as client:
                if number == 0:
                    for key in keys:
                        for _ in range(2):
                            await send(client, key)
                else:
                    await put(client, "latency", least=0, most=0.05)
                    for _ in range(2):
                        await asyncio.gather(*(send(client, key) for key in reversed(keys)))
            seen.append(fates(gateway))

    assert set(seen[0]) == {(key, send_no) for key in keys for send_no in (1, 2)}
    assert seen[1] == seen[0]
    assert seen[2] != seen[0]
    assert len({fault for fault in seen[0].values() if fault}) >= 5


# Fault that strikes every charge; HTTP status or None where the connection breaks, what the
# answer says, what is booked, whether an answer is kept.
STRUCK = {
    "timeout_charged": (None, None, ["succeeded"], True),
    "timeout_lost": (None, None, [], False),
    "cut": (None, None, ["succeeded"], True),
    "500_stored": (500, "internal_error", [], True),
    "500_charged": (500, "internal_error", ["succeeded"], True),
    "500_lost": (500, "internal_error", [], False),
    "429": (429, "rate_limited", [], False),
}


@pytest.mark.parametrize("fault", STRUCK)
async def test_a_fault_does_what_its_name_says(
    gateway: SimulatorProcess, client: httpx.AsyncClient, fault: str
) -> None:
    status, code, booked, kept = STRUCK[fault]
    chosen: Any = {"rate": 1, "kinds": [fault]}
    key = f"strike-{fault}"
    if fault == "500_lost":
        # By chance it befalls look-ups only; a charge meets it by script.
        await put(client, "script", token="tok_ok", outcomes=[fault])
    else:
        await put(client, "faults", **chosen)
    try:
        answer = await charge(client, key)
    except httpx.RemoteProtocolError:
        assert status is None
    else:
        assert (answer.status_code, answer.json()["code"]) == (status, code)

    statuses = gateway.rows("SELECT status FROM charges WHERE idempotency_key = ?", (key,))
    assert [text for (text,) in statuses] == booked
    answers = "SELECT count(*) FROM stored_answers WHERE idempotency_key = ?"
    assert gateway.value(answers, (key,)) == kept
    note = "SELECT fault, fault_cause FROM calls WHERE idempotency_key = ?"
    cause = "script" if fault == "500_lost" else "injected"
    assert gateway.rows(note, (key,)) == [(fault, cause)]


async def test_a_kept_answer_can_be_lost_as_well_but_nothing_is_done_twice(
    gateway: SimulatorProcess, client: httpx.AsyncClient
) -> None:
    await charge(client, "replayed")
    for kind in ("timeout_charged", "cut"):
        await put(client, "faults", rate=1, kinds=[kind])
        with pytest.raises(httpx.RemoteProtocolError):
            await charge(client, "replayed")
    await put(client, "faults", rate=1, kinds=["429"])
    assert (await charge(client, "replayed")).status_code == 429
    await put(client, "faults", rate=1, kinds=["500_stored", "500_charged", "timeout_lost"])
    assert (await charge(client, "replayed")).headers["idempotent-replayed"] == "true"
    booked = "SELECT count(*) FROM charges WHERE idempotency_key = 'replayed'"
    assert gateway.value(booked) == 1


async def test_look_ups_meet_faults_of_their_own(
    gateway: SimulatorProcess, client: httpx.AsyncClient
) -> None:
    await charge(client, "sought")
    told: list[int | None] = []
    for kind in LOOK_UP_FAULTS:
        await put(client, "faults", rate=1, kinds=[kind])
        try:
            answer = await client.get("/v1/charges", params={"reference": "sought"})
            told.append(answer.status_code)
        except httpx.RemoteProtocolError:
            told.append(None)
    assert told == [None, None, 500, 429]
    faults = "SELECT fault FROM calls WHERE operation = 'look_up' AND subject = 'sought'"
    assert [fault for (fault,) in gateway.rows(faults)] == list(LOOK_UP_FAULTS)


async def test_faults_are_counted_by_kind_and_cause_as_the_ledger_holds_them(
    gateway: SimulatorProcess, client: httpx.AsyncClient
) -> None:
    await put(client, "faults", rate=0.5, kinds=None)
    await asyncio.gather(*(send(client, f"count-{number}") for number in range(200)))
    await charge(client, "count-token", "tok_500_stored")
    report = (await client.get("/_faults")).json()

    told = {
        (row["operation"], row["fault"], row["fault_cause"]): row["calls"]
        for row in report["faults"]
    }
    rows = gateway.rows("SELECT operation, fault, fault_cause FROM calls WHERE fault IS NOT NULL")
    assert told == Counter(rows)
    assert {
        fault for operation, fault, cause in told if (operation, cause) == ("charge", "injected")
    }
    assert told["charge", "500_stored", "token"] >= 1
    answers = sum(row["calls"] for row in report["answers"])
    assert answers == gateway.value("SELECT count(*) FROM calls")


def test_every_kind_of_fault_comes_up_about_as_often_as_it_should() -> None:
    chance = Chance(seed=1)
    drawn = Counter(
        chance.fault(FaultRate(0.02), INJECTED_FAULTS, "charge", f"db-inv-{number}-try-1", 1)
        for number in range(20_000)
    )
    faults = drawn.total() - drawn[None]
    assert 330 <= faults <= 470
    assert all(drawn[fault] >= 25 for fault in INJECTED_FAULTS)
    assert Fault.ERROR_LOST not in drawn


def test_chosen_kinds_alone_come_up() -> None:
    chance = Chance(seed=1)
    rate = FaultRate(1, frozenset({Fault.CUT, Fault.RATE_LIMITED}))
    drawn = {chance.fault(rate, INJECTED_FAULTS, "charge", str(n), 1) for n in range(100)}
    assert drawn == {Fault.CUT, Fault.RATE_LIMITED}
    assert chance.fault(rate, (Fault.TIMEOUT_LOST,), "charge", "k", 1) is None
    assert chance.fault(FaultRate(0), INJECTED_FAULTS, "charge", "k", 1) is None


def test_latency_is_drawn_evenly_within_its_bounds_and_repeats_itself() -> None:
    span = Latency(0.05, 0.8)
    draws = [Chance(3).latency(span, "charge", f"k{number}", 1) for number in range(2_000)]
    totals = [before + after for before, after in draws]
    assert min(totals) >= 0.05
    assert max(totals) <= 0.8
    assert 0.40 <= sum(totals) / len(totals) <= 0.45
    assert draws == [Chance(3).latency(span, "charge", f"k{number}", 1) for number in range(2_000)]
    assert draws != [Chance(4).latency(span, "charge", f"k{number}", 1) for number in range(2_000)]


async def test_answers_take_as_long_as_the_latency_says(
    client: httpx.AsyncClient, gateway: SimulatorProcess
) -> None:
    await put(client, "latency", least=0.3, most=0.3)
    took = []
    for number in range(3):
        begun = time.monotonic()
        await charge(client, f"slow-{number}")
        took.append(time.monotonic() - begun)
    await put(client, "latency", least=0, most=0)
    assert min(took) >= 0.3
    assert gateway.value("SELECT count(*) FROM charges WHERE reference LIKE 'slow-%'") == 3


@pytest.mark.crash
async def test_scripts_clock_faults_and_latency_outlive_a_kill(tmp_path: Path) -> None:
    process = SimulatorProcess(tmp_path / "gateway.db", "--limit", "100000")
    try:
        process.start()
        async with client_of(process) as client:
            fresh = (await client.get("/_control")).json()
            await put(client, "clock", now="2027-05-01T00:00:00Z")
            await put(client, "faults", rate=0.25, kinds=["cut"])
            await put(client, "latency", least=0, most=0.01)
            await put(client, "webhooks", url="http://127.0.0.1:1/", secret="s3cret-of-tests")
            await put(client, "script", token="tok_ok_a", outcomes=["decline_a", "decline_b"])
            await charge(client, "k1", "tok_ok_a")
            before = (await client.get("/_control")).json()
        process.kill()
        process.start()
        async with client_of(process) as client:
            after = (await client.get("/_control")).json()
            second = await charge(client, "k2", "tok_ok_a")
        process.kill()
        process.start("--faults", "0", "--latency", "0")
        async with client_of(process) as client:
            overruled = (await client.get("/_control")).json()
        assert process.stop() == 0
    finally:
        process.kill()

    assert fresh == {
        "clock": None,
        "faults": {"rate": 0.02, "kinds": None},
        "latency": {"least": 0.05, "most": 0.8},
        "webhooks": None,
    }
    assert before == {
        "clock": "2027-05-01T00:00:00.000000Z",
        "faults": {"rate": 0.25, "kinds": ["cut"]},
        "latency": {"least": 0, "most": 0.01},
        "webhooks": {"url": "http://127.0.0.1:1/"},
    }
    assert after == before
    assert second.json()["code"] == "b"
    assert overruled["clock"] == before["clock"]
    assert overruled["faults"] == {"rate": 0, "kinds": None}
    assert overruled["latency"] == {"least": 0, "most": 0}


async def test_a_gateway_that_is_asked_to_end_folds_its_ledger_into_one_file(
    tmp_path: Path,
) -> None:
    with smooth_simulator(tmp_path) as process:
        async with client_of(process) as client:
            await asyncio.gather(*(charge(client, f"k{number}") for number in range(50)))
        assert process.stop() == 0
        assert names_in(tmp_path) == [
            "gateway.db",
            "gateway.db.lock",
        ]
        assert process.value("SELECT count(*) FROM charges") == 50
