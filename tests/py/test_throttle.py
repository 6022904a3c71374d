"""The throttle, against a real server: never more than the limit, never a slot without Redis.

Bounds from above are exact. They hold on the server's clock, or for calls that a slot permits at
the very instant that is recorded, so a slow machine cannot break them.
"""

import asyncio
import itertools
import json
import os
import signal
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from billing_shell.embedded import RedisServer
from billing_shell.throttle import (
    DEFAULT_JITTER,
    LONGEST_PAUSE,
    Lane,
    Slot,
    Throttle,
    ThrottleUnavailableError,
    connect,
    rate_within,
)

LIMIT = 200
SPACING = 5209  # microseconds: 1 / 192 s, rounded up
SECOND = 1_000_000
HORIZON = 250_000
JITTER = 35_000
_CLOCK = "redis.call('TIME')"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis may take its time on a busy machine; one that never answers has a test of its own."""
    monkeypatch.setattr("billing_shell.throttle._SOCKET_TIMEOUT", 60.0)


@pytest.fixture
async def client(redis_server: RedisServer) -> AsyncIterator[Redis]:
    async with connect(redis_server.url) as opened:
        yield opened


@pytest.fixture
def own_redis(data_dir: Path) -> Iterator[RedisServer]:
    """A server that the test may kill and flush."""
    with RedisServer(data_dir / "redis") as server:
        yield server


@pytest.fixture
def account() -> str:
    return f"acct_{uuid.uuid4().hex}"


def key_of(account: str) -> str:
    return f"billing:throttle:{account}:charge"


def most_in_any_window(instants: Sequence[float], width: float) -> int:
    """The most instants in any half-open window of this width; it suffices to start at each."""
    ordered = sorted(instants)
    most, first = 0, 0
    for last, instant in enumerate(ordered):
        while ordered[first] <= instant - width:
            first += 1
        most = max(most, last - first + 1)
    return most


class Script:
    """The Lua script itself, called with plain numbers: exact instants on the server's clock.

    Attributes:
        at: the instant that it takes for the present, in microseconds; None is the server's clock.
    """

    def __init__(self, client: Redis, account: str) -> None:
        self.client = client
        self.key = key_of(account)
        self.text = Path("python/billing_shell/throttle.lua").read_text("ascii")
        self.at: int | None = None

    async def __call__(
        self, wanted: int, lane: Lane = Lane.BACKLOG, spacing: int = SPACING, lead: int = 0
    ) -> tuple[int, int, list[int]]:
        """Server's now, wait, slots: microseconds."""
        arguments = map(str, (wanted, lane.value, spacing, lead, 0))
        text = self.text
        if self.at is not None:
            assert text.count(_CLOCK) == 1
            text = text.replace(_CLOCK, f"{{{self.at // SECOND}, {self.at % SECOND}}}")
        now, wait, _, *slots = await self.client.eval(text, 1, self.key, *arguments)
        return now, wait, slots

    async def warm(self) -> None:
        """Makes the state that of a key whose last slot is long past."""
        now, _, _ = await self(1)
        await self.assign("last", now - SECOND)
        await self.assign("paused_until", 0)
        await self.assign("backlog_until", 0)

    async def assign(self, field: str, value: int | str) -> None:
        """Overwrites one field of the state."""
        await self.client.hset(self.key, field, str(value))

    async def read(self, field: str) -> str:
        """One field of the state."""
        value = await self.client.hget(self.key, field)
        assert isinstance(value, bytes)
        return value.decode()

    async def last(self) -> int:
        """The last slot that was reserved, in microseconds."""
        return int(await self.read("last"))


@pytest.fixture
def script(client: Redis, account: str) -> Script:
    return Script(client, account)


@pytest.fixture
async def throttle(client: Redis, account: str, script: Script) -> Throttle:
    """A throttle that grants at once."""
    await script.warm()
    return Throttle(client, account, "charge", LIMIT)


async def granted(throttle: Throttle) -> Slot:
    """The next slot, however long it takes."""
    while True:
        reservation = await throttle.reserve(1, Lane.BACKLOG)
        if reservation.slots:
            return reservation.slots[0]
        await asyncio.sleep(reservation.wait)


@pytest.mark.parametrize(
    ("limit", "rate"),
    [(200, 192), (100, 95), (25, 23), (3, 1), (2, 1 / 1.035), (1, 1 / 1.035)],
)
def test_the_rate_leaves_room_for_one_call_and_the_jitter(limit: int, rate: float) -> None:
    assert rate_within(limit) == pytest.approx(rate)


def test_windows_are_half_open() -> None:
    assert most_in_any_window([0.0, 0.5, 1.0, 1.25], 1.0) == 3


async def run_clients(
    redis_server: RedisServer, accounts: Sequence[str], wanted: int
) -> dict[str, list[float]]:
    """Runs one client process per entry; their slots and arrivals, together, on one clock."""
    clients = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.py.support.throttle_client"),
            *(redis_server.url, account, str(LIMIT), str(wanted)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        for account in accounts
    ]
    for client in clients:
        assert client.stdout is not None
        assert await client.stdout.readline() == b"ready\n"
    outputs = await asyncio.gather(*(client.communicate(b"go\n") for client in clients))
    results = [json.loads(output) for output, _ in outputs]
    return {
        name: [instant for result in results for instant in result[name]]
        for name in ("slots", "arrivals")
    }


@pytest.mark.parametrize("processes", [1, 4, 8])
async def test_no_second_sees_more_calls_than_the_limit_however_many_processes_ask(
    redis_server: RedisServer, account: str, processes: int
) -> None:
    calls = await run_clients(redis_server, [account] * processes, 480 // processes)
    assert len(calls["slots"]) == 480
    assert calls["arrivals"]
    assert most_in_any_window(calls["arrivals"], 1.0) <= LIMIT


async def test_the_instrument_sees_calls_beyond_the_limit(
    redis_server: RedisServer, account: str
) -> None:
    apart = [f"{account}_{number}" for number in range(3)]
    calls = await run_clients(redis_server, apart, 150)
    assert most_in_any_window(calls["slots"], 1.0) > LIMIT


async def test_a_new_key_starts_as_if_the_last_second_were_full(script: Script) -> None:
    started, wait, slots = await script(10)
    assert slots == []
    assert wait == SECOND - 200_000
    while not slots:
        await asyncio.sleep(wait / SECOND)
        _, wait, slots = await script(10)
    assert slots[0] == started + SECOND


async def test_under_demand_slots_follow_each_other_without_a_gap(script: Script) -> None:
    await script.warm()
    slots: list[int] = []
    asked_at: set[int] = set()
    while len(slots) < 300:
        now, wait, batch = await script(50)
        asked_at.add(now)
        slots += batch
        await asyncio.sleep(wait / SECOND)

    gaps = [(later, later - earlier) for earlier, later in itertools.pairwise(slots)]
    # A longer gap than the spacing must be one in which nobody asked: it ends at the question.
    without_demand = sum(gap - SPACING for later, gap in gaps if later in asked_at)
    seconds = (slots[-1] - slots[0] - without_demand) / SECOND
    assert min(gap for _, gap in gaps) == SPACING
    assert (len(slots) - 1) / seconds >= 0.95 * rate_within(LIMIT)


async def test_nothing_is_reserved_beyond_the_horizon(script: Script) -> None:
    await script.warm()
    for lane in (Lane.BACKLOG, Lane.INTERACTIVE):
        now, wait, slots = await script(1000, lane)
        assert slots[-1] <= now + HORIZON
        assert wait > 0


async def test_an_idle_time_earns_no_burst(script: Script) -> None:
    await script.warm()
    now, _, slots = await script(1000)
    assert slots[0] == now
    assert {later - earlier for earlier, later in itertools.pairwise(slots)} == {SPACING}


async def test_no_slot_is_earlier_than_the_lead(script: Script) -> None:
    await script.warm()
    now, _, slots = await script(1, lead=50_000)
    assert slots == [now + 50_000]


async def test_flushing_the_server_in_mid_run_lets_nothing_through(
    own_redis: RedisServer, account: str
) -> None:
    slots: list[int] = []
    async with connect(own_redis.url) as client:
        script = Script(client, account)
        await script.warm()
        for target in (150, 300):
            while len(slots) < target:
                _, wait, batch = await script(20)
                slots += batch
                await asyncio.sleep(wait / SECOND)
            await client.flushall()
    assert most_in_any_window(slots, SECOND + JITTER) <= LIMIT


@pytest.mark.parametrize(
    ("field", "value"),
    [("run", "0123456789abcdef"), ("last", "9000000000000000"), ("last", "")],
    ids=["another server's state", "a clock that went back", "a damaged state"],
)
async def test_a_past_that_cannot_be_trusted_counts_as_a_full_second(
    script: Script, field: str, value: str
) -> None:
    await script.warm()
    await script.assign(field, value)
    now, wait, slots = await script(1)
    assert slots == []
    assert wait == SECOND - 200_000
    assert int(await script.read("paused_until")) == now + SECOND


async def test_a_changed_rate_counts_from_the_next_reservation(
    throttle: Throttle, script: Script
) -> None:
    await throttle.reserve(1, Lane.BACKLOG)
    before = await script.last()
    throttle.limit_per_second = 25
    reservation = await throttle.reserve(2, Lane.BACKLOG)
    after = await script.last()
    assert len(reservation.slots) == 2
    assert after - before >= 2 * SECOND / 23


async def test_an_interactive_call_never_waits_longer_than_the_horizon(script: Script) -> None:
    await script.warm()
    for _ in range(20):
        await script(1000, Lane.BACKLOG)
        now, _, slots = await script(1, Lane.INTERACTIVE)
        assert len(slots) == 1
        assert slots[0] <= now + HORIZON
        await asyncio.sleep(0.02)


async def test_interactive_calls_that_wait_go_before_backlog(script: Script) -> None:
    await script.warm()
    _, wait, _ = await script(1000, Lane.INTERACTIVE)
    await asyncio.sleep(wait / SECOND)
    asked, _, backlog = await script(1000, Lane.BACKLOG)
    # As long as the interactive caller may still come back in time.
    if asked < int(await script.read("interactive_until")):
        assert backlog == []
    _, _, interactive = await script(1000, Lane.INTERACTIVE)
    assert interactive


@pytest.mark.parametrize("limit", [200, 25])
async def test_interactive_calls_leave_a_fifth_to_waiting_backlog(
    script: Script, limit: int
) -> None:
    """Time is told to the script, so that both callers ask at the very instants they were told."""
    script.at, _, _ = await script(1)
    await script.warm()
    rate = rate_within(limit)
    spacing = -int(-SECOND // rate)
    got: dict[Lane, list[int]] = {Lane.INTERACTIVE: [], Lane.BACKLOG: []}
    _, _, slots = await script(1000, Lane.BACKLOG, spacing)
    first = slots[-1]

    begun = script.at
    asks = [(begun, Lane.INTERACTIVE), (begun, Lane.BACKLOG)]
    while asks:
        script.at, lane = asks.pop(0)
        _, wait, batch = await script(1000, lane, spacing)
        got[lane] += batch
        if not got[lane] or got[lane][-1] < first + 1_500_000:
            asks = sorted([*asks, (script.at + wait, lane)])
    instants = sorted(got[Lane.INTERACTIVE] + got[Lane.BACKLOG])
    assert min(b - a for a, b in itertools.pairwise(instants)) >= spacing
    contended = min(got[Lane.INTERACTIVE][-1], got[Lane.BACKLOG][-1]) - first
    capacity = contended // spacing
    interactive = sum(instant - first <= contended for instant in got[Lane.INTERACTIVE])
    assert interactive <= 0.8 * capacity + 4
    assert interactive > len(got[Lane.BACKLOG])


async def test_interactive_calls_take_everything_when_no_backlog_waits(script: Script) -> None:
    await script.warm()
    _, _, slots = await script(1000, Lane.INTERACTIVE)
    assert len(slots) == HORIZON // SPACING + 1
    assert {later - earlier for earlier, later in itertools.pairwise(slots)} == {SPACING}


async def test_slots_left_to_backlog_that_went_away_are_used_by_interactive_calls(
    script: Script,
) -> None:
    await script.warm()
    await script(1000, Lane.BACKLOG)
    await script(1000, Lane.INTERACTIVE)
    left = await script.read("left_out")
    assert left
    await script.assign("backlog_until", 0)
    _, _, slots = await script(1, Lane.INTERACTIVE)
    assert slots == [int(left.split(",")[0])]


async def test_a_pause_stops_everybody_and_the_longest_counts(
    client: Redis, account: str, throttle: Throttle, script: Script
) -> None:
    other = Throttle(client, account, "charge", LIMIT)
    held = await granted(throttle)
    await throttle.pause(30)
    await throttle.pause(2)
    assert not held.usable()
    reservation = await other.reserve(1, Lane.INTERACTIVE)
    assert reservation.slots == ()
    assert 25 < reservation.wait < 30
    assert 25 < reservation.paused <= 30
    other_operation = Throttle(client, account, "refund", LIMIT)
    assert await granted(other_operation)
    await script.assign("paused_until", 0)
    assert (await other.reserve(1, Lane.INTERACTIVE)).slots


async def test_an_absurd_pause_is_cut_to_an_hour(throttle: Throttle) -> None:
    await throttle.pause(1e12)
    assert (await throttle.reserve(1, Lane.BACKLOG)).paused <= LONGEST_PAUSE


async def test_a_slot_is_never_early_and_void_after_the_jitter(
    throttle: Throttle, script: Script
) -> None:
    for _ in range(20):
        slot = await granted(throttle)
        before = time.monotonic()
        wall = time.time()
        after = time.monotonic()
        # The server runs on this machine, so its clock is our wall clock.
        reserved = await script.last() / SECOND - wall
        assert slot.at >= reserved + before - 1e-4
        assert slot.late_after <= reserved + after + DEFAULT_JITTER + 1e-4
        assert not slot.usable(slot.late_after + 1e-6)


async def test_a_reached_slot_may_be_used_and_a_missed_one_may_not(throttle: Throttle) -> None:
    slot = await granted(throttle)
    reached = await slot.reached()
    now = time.monotonic()
    assert now >= slot.at
    assert reached or now > slot.late_after
    await asyncio.sleep(max(0.0, slot.late_after - time.monotonic()) + 0.001)
    assert not await slot.reached()


async def test_a_step_of_the_server_clock_starts_everybody_anew(
    client: Redis, account: str, throttle: Throttle, monkeypatch: pytest.MonkeyPatch
) -> None:
    await granted(throttle)
    real = time.monotonic
    # Our clock a second behind is the server's a second ahead.
    monkeypatch.setattr("billing_shell.throttle.time.monotonic", lambda: real() - 1.0)
    reservation = await throttle.reserve(10, Lane.BACKLOG)
    assert reservation.slots == ()
    monkeypatch.undo()
    other = await Throttle(client, account, "charge", LIMIT).reserve(1, Lane.BACKLOG)
    assert other.slots == ()
    assert other.paused > 0


async def test_a_killed_server_means_no_slots_and_a_new_one_starts_full(
    own_redis: RedisServer, account: str
) -> None:
    async with connect(own_redis.url) as client:
        throttle = Throttle(client, account, "charge", LIMIT)
        await granted(throttle)
        own_redis.kill()
        for call in (
            lambda: throttle.reserve(1, Lane.INTERACTIVE),
            lambda: throttle.pause(0.5),
            throttle.server_time,
        ):
            with pytest.raises(ThrottleUnavailableError):
                await call()
        own_redis.start()
        reservation = await throttle.reserve(1, Lane.INTERACTIVE)
        assert reservation.slots == ()
        assert 0.5 < reservation.paused <= 1
        assert await granted(throttle)


async def test_a_server_that_hangs_means_no_slots(
    own_redis: RedisServer, account: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connect(own_redis.url) as client:
        await granted(Throttle(client, account, "charge", LIMIT))
    monkeypatch.undo()
    async with connect(own_redis.url) as client:
        throttle = Throttle(client, account, "charge", LIMIT)
        os.kill(own_redis.pid, signal.SIGSTOP)
        try:
            with pytest.raises(ThrottleUnavailableError):
                await throttle.reserve(1, Lane.INTERACTIVE)
        finally:
            os.kill(own_redis.pid, signal.SIGCONT)


async def test_a_server_that_has_forgotten_the_script_gets_it_again(
    client: Redis, throttle: Throttle
) -> None:
    await client.script_flush()
    assert (await throttle.reserve(1, Lane.BACKLOG)).slots


async def test_the_server_tells_its_time(throttle: Throttle) -> None:
    before = datetime.now(UTC)
    told = await throttle.server_time()
    tolerance = timedelta(milliseconds=1)
    assert before - tolerance <= told <= datetime.now(UTC) + tolerance


async def test_nonsense_is_refused_before_anything_is_sent(client: Redis) -> None:
    throttle = Throttle(client, "a", "charge", LIMIT)
    for n, lead in ((0, 0.0), (1001, 0.0), (1, -0.1), (1, 0.25), (1, float("nan"))):
        with pytest.raises(ValueError, match="must be"):
            await throttle.reserve(n, Lane.BACKLOG, lead)
    for seconds in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="pause"):
            await throttle.pause(seconds)
    for limit in (0, -1, 100_001):
        with pytest.raises(ValueError, match="limit"):
            Throttle(client, "a", "charge", limit)
    for jitter in (-0.001, 0.3, float("nan")):
        with pytest.raises(ValueError, match="jitter"):
            Throttle(client, "a", "charge", LIMIT, jitter)
    with pytest.raises(ValueError, match="empty"):
        Throttle(client, "", "charge", LIMIT)
