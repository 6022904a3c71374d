"""The simulated gateway's own limit: exact in every window, and told by its ledger."""

import asyncio
import socket
import struct
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing_shell.command_errors import Exit
from billing_shell.simulator.arrival_limit import ArrivalLimit
from tests.py.support.simulator import (
    SimulatorProcess,
    charge,
    client_of,
    smooth_simulator,
    until,
)

SECOND = 1_000_000
_SO_TIMESTAMPNS = 35  # of Linux; Python has no name for it


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
    # Ten callers, who see ten answers within a second on the slowest of machines.
    with smooth_simulator(tmp_path, "--limit", "10") as gateway:
        async with client_of(gateway) as client:
            statuses = []

            async def send_again_and_again(caller: int) -> None:
                loop = asyncio.get_running_loop()
                until, sends = loop.time() + 2.5, 0
                while loop.time() < until or 429 not in statuses:
                    sends += 1
                    answer = await charge(client, f"k{caller}-{sends}")
                    statuses.append(answer.status_code)
                    if answer.status_code == 429:
                        assert answer.headers["retry-after"] == "1"
                        assert answer.json()["code"] == "rate_limited"

            await asyncio.gather(*(send_again_and_again(caller) for caller in range(10)))

        arrivals = admitted(gateway, "charge")
        assert most_in_any_second(arrivals) == 10
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


@settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    limit=st.integers(1, 5),
    arrivals=st.lists(st.integers(0, 30).map(lambda tenth: tenth * SECOND // 10), max_size=40),
)
def test_the_limit_holds_in_whatever_order_arrivals_are_told(
    limit: int, arrivals: list[int]
) -> None:
    log = ArrivalLimit(limit)
    taken: list[int] = []
    for arrival in arrivals:
        fits = most_in_any_second([*taken, arrival]) <= limit
        assert (log.admit(arrival) is None) == fits
        if fits:
            taken.append(arrival)


def kernel_stamps_arrivals() -> bool:
    """Whether it stamps what comes when that comes, and not when it is read."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        probe.bind(("127.0.0.1", 0))
        probe.sendto(b"?", probe.getsockname())
        came_by = time.time_ns()
        _, ((_, _, stamp),), *_ = probe.recvmsg(1, socket.CMSG_SPACE(16))
    seconds, nanoseconds = struct.unpack("qq", stamp)
    return bool(seconds * 1_000_000_000 + nanoseconds <= came_by)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps what arrives")
async def test_a_busy_gateway_stamps_an_arrival_when_it_came_and_not_when_it_was_read(
    tmp_path: Path,
) -> None:
    with smooth_simulator(tmp_path) as gateway:
        async with client_of(gateway) as client:
            # The first packets of a machine may go without a stamp, until the kernel has begun.
            await charge(client, "first")
            await until(kernel_stamps_arrivals)
            with gateway.frozen():
                sent_at = time.time_ns() // 1_000
                sent = asyncio.create_task(charge(client, "k"))
                # On loopback what is written has come.
                await until(lambda: gateway.unread() > 0)
                arrived_by = time.time_ns() // 1_000
                await asyncio.sleep(0.1)
                thawed_at = time.time_ns() // 1_000
            await sent
        arrived_us = gateway.value("SELECT arrived_us FROM calls WHERE idempotency_key = 'k'")
        booked_us = gateway.value("SELECT booked_us FROM charges WHERE idempotency_key = 'k'")
    assert sent_at - 1_000 <= arrived_us <= arrived_by + 1_000 < thawed_at <= booked_us


@pytest.mark.crash
async def test_two_gateways_cannot_share_a_ledger(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path) as gateway:
        second = await asyncio.create_subprocess_exec(
            *SimulatorProcess.command(gateway.ledger), stderr=asyncio.subprocess.PIPE
        )
        _, complaint = await second.communicate()
        assert second.returncode == Exit.UNREACHABLE
        assert b"in use by another simulated gateway" in complaint
