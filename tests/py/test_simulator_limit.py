"""The simulated gateway's own limit: exact in every window, and told by its ledger."""

import asyncio
from pathlib import Path

import pytest

from billing_shell.simulator.arrival_limit import ArrivalLimit
from tests.py.support.simulator import SimulatorProcess, charge, client_of, smooth_simulator

SECOND = 1_000_000


def most_in_any_second(arrivals: list[int]) -> int:
    """Count, for every half-open second that starts at an arrival, the arrivals within."""
    return max(sum(start <= arrival < start + SECOND for arrival in arrivals) for start in arrivals)


def admitted(gateway: SimulatorProcess, operation: str) -> list[int]:
    statement = "SELECT arrived_us FROM calls WHERE operation = ? AND limited = 0 ORDER BY call_no"
    return [arrived_us for (arrived_us,) in gateway.rows(statement, (operation,))]


def test_the_second_is_half_open() -> None:
    limit = ArrivalLimit(2)
    assert limit.admit(0) is None
    assert limit.admit(10) is None
    assert limit.admit(SECOND - 1) == 1
    assert limit.admit(SECOND) is None
    assert limit.admit(SECOND + 9) == 1
    assert limit.admit(SECOND + 10) is None


def test_refused_arrivals_do_not_lengthen_the_wait() -> None:
    limit = ArrivalLimit(1)
    assert limit.admit(0) is None
    assert [limit.admit(at) for at in (100, 200, 300)] == [SECOND - 100, SECOND - 200, SECOND - 300]
    assert limit.admit(SECOND) is None


def test_what_was_admitted_before_a_restart_counts() -> None:
    limit = ArrivalLimit(2)
    limit.remember(0)
    limit.remember(10)
    assert limit.admit(20) == SECOND - 20


async def test_no_second_wherever_it_starts_admits_more_than_the_limit(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path, "--limit", "40") as gateway:
        async with client_of(gateway) as client:
            statuses = []

            async def send_again_and_again(caller: int) -> None:
                loop = asyncio.get_running_loop()
                until, sends = loop.time() + 2.5, 0
                while loop.time() < until:
                    sends += 1
                    answer = await charge(client, f"k{caller}-{sends}")
                    statuses.append(answer.status_code)
                    if answer.status_code == 429:
                        assert answer.headers["retry-after"] == "1"
                        assert answer.json()["code"] == "rate_limited"

            await asyncio.gather(*(send_again_and_again(caller) for caller in range(10)))

        arrivals = admitted(gateway, "charge")
        assert most_in_any_second(arrivals) == 40
        assert set(statuses) == {200, 429}
        assert gateway.value("SELECT count(*) FROM calls") == len(statuses)
        assert gateway.value("SELECT count(*) FROM charges") == statuses.count(200)
        refused = "SELECT count(*) FROM calls WHERE limited = 1 AND http_status = 429"
        assert gateway.value(refused) == statuses.count(429)
        assert gateway.value("SELECT count(*) FROM stored_answers") == statuses.count(200)


async def test_each_operation_has_a_limit_of_its_own(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path, "--limit", "3") as gateway:
        async with client_of(gateway) as client:
            charges = await asyncio.gather(*(charge(client, f"k{number}") for number in range(3)))
            look_ups = await asyncio.gather(
                *(client.get("/v1/charges", params={"reference": "k0"}) for _ in range(3))
            )
            refunds = await asyncio.gather(
                *(
                    client.post(
                        "/v1/refunds", json={"charge": answer.json()["id"], "reference": "r"}
                    )
                    for answer in charges
                )
            )
        assert {answer.status_code for answer in [*charges, *look_ups, *refunds]} == {200}


async def test_the_control_interface_is_not_limited(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path, "--limit", "1") as gateway:
        async with client_of(gateway) as client:
            answers = [await client.get("/_control") for _ in range(5)]
        assert {answer.status_code for answer in answers} == {200}
        assert gateway.value("SELECT count(*) FROM calls") == 0


async def test_arrivals_are_stamped_in_order_by_a_clock_that_never_goes_back(
    tmp_path: Path,
) -> None:
    with smooth_simulator(tmp_path) as gateway:
        async with client_of(gateway) as client:
            await asyncio.gather(*(charge(client, f"k{number}") for number in range(100)))
        stamps = admitted(gateway, "charge")
        assert len(stamps) == 100
        assert stamps == sorted(stamps)


@pytest.mark.crash
async def test_two_gateways_cannot_share_a_ledger(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path) as gateway:
        second = await asyncio.create_subprocess_exec(
            *SimulatorProcess.command(gateway.ledger), stderr=asyncio.subprocess.PIPE
        )
        _, complaint = await second.communicate()
        assert second.returncode == 1
        assert b"in use by another simulated gateway" in complaint
