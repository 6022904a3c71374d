"""The dispatcher: at its slot or not at all, within its lease or not at all."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from decimal import Decimal

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from billing_shell import dispatcher as module
from billing_shell.breaker import Breaker
from billing_shell.clocks import lease_clock
from billing_shell.dispatcher import Claim, Dispatcher
from billing_shell.embedded import RedisServer
from billing_shell.gateway import ChargeRequest, ChargeResult, Gate, Outcome, Source
from billing_shell.settler import Settler
from billing_shell.throttle import Lane, Slot, Throttle
from tests.py.support.world import until

LIMIT = 100
# As wide as it may be, so that a busy machine misses few slots.
JITTER = 0.25


class Reports(Settler):
    """Keeps what it is told, and settles nothing."""

    def __init__(self) -> None:
        self.results: list[ChargeResult] = []

    def report(self, result: ChargeResult) -> None:
        self.results.append(result)


class Gateway:
    """Answers as it is told to.

    Attributes:
        calls: begun, by attempt.
        sent: let through by the gate, by attempt, and when.
        connected: calls wait for this before they come to their gate.
        answering: calls wait for this behind their gate.
    """

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.sent: list[tuple[int, float]] = []
        self.connected = asyncio.Event()
        self.connected.set()
        self.answering = asyncio.Event()
        self.answering.set()
        self.answer: Callable[[ChargeRequest], ChargeResult] = succeeded

    async def charge(self, request: ChargeRequest, _seconds: float, gate: Gate) -> ChargeResult:
        self.calls.append(request.attempt_id)
        await self.connected.wait()
        await gate()
        self.sent.append((request.attempt_id, time.monotonic()))
        await self.answering.wait()
        return self.answer(request)


def succeeded(request: ChargeRequest) -> ChargeResult:
    return ChargeResult(
        request.customer_id,
        request.attempt_id,
        request.claim_epoch,
        Outcome.SUCCEEDED,
        "pay",
        request.amount,
        request.currency,
        None,
        None,
        None,
        Source.SEND,
    )


def claim(attempt_id: int, lane: str = "BACKLOG", lease: float = 60) -> Claim:
    request = ChargeRequest(
        64, attempt_id, 1, "key", 100, "USD", "tok_ok", "text", lane, "account", None, 1
    )
    return Claim(request, lease_clock() + lease, 30)


@pytest.fixture
async def redis(redis_server: RedisServer) -> AsyncIterator[Redis]:
    # Waits for answers as long as it takes; that a worker does not is tested elsewhere.
    async with Redis.from_url(redis_server.url) as opened:
        yield opened


class Setting:
    """A dispatcher and what surrounds it."""

    def __init__(self, redis: Redis) -> None:
        self.gateway = Gateway()
        self.reports = Reports()
        # Its clock stands still: once open it stays so.
        self.breaker = Breaker(lambda: 0.0)
        self.given_back: list[tuple[int, str]] = []
        self.throttle = Throttle(redis, uuid.uuid4().hex, "charge", LIMIT, JITTER)
        self.dispatcher = Dispatcher(
            self.gateway.charge,
            throttle=self.throttle,
            breaker=self.breaker,
            settler=self.reports,
            give_back=lambda request, why: self.given_back.append((request.attempt_id, why)),
        )

    async def slots(self, number: int) -> list[Slot]:
        """So many slots; a throttle that is new starts full."""
        slots: list[Slot] = []
        while len(slots) < number:
            reservation = await self.throttle.reserve(number - len(slots), Lane.INTERACTIVE)
            slots += reservation.slots
            await asyncio.sleep(0 if len(slots) == number else reservation.wait)
        return slots

    async def serve_until(self, condition: Callable[[], bool]) -> None:
        """Brings slots to what waits for them; a busy machine may miss some."""
        async with asyncio.timeout(180):
            while not condition():
                if waiting := self.dispatcher.waiting():
                    self.dispatcher.use(await self.slots(waiting))
                await asyncio.sleep(0.01)

    async def serve(self, answers: int) -> None:
        """Brings slots until so many calls are answered."""
        await self.serve_until(lambda: len(self.reports.results) == answers)


@pytest.fixture
async def setting(redis: Redis) -> AsyncIterator[Setting]:
    made = Setting(redis)
    yield made
    made.gateway.answering.set()
    assert await made.dispatcher.drain(120)


async def serve_one(setting: Setting) -> None:
    """Brings slots to the first one that waits, one at a time, until it is sent."""
    waiting = setting.dispatcher.waiting()
    while not setting.gateway.sent:
        setting.dispatcher.use(await setting.slots(1))
        await until(
            lambda: bool(setting.gateway.sent) or setting.dispatcher.waiting() == waiting, "a slot"
        )


async def missed(slot: Slot) -> None:
    """Lets a slot pass."""
    await asyncio.sleep(slot.late_after - time.monotonic() + 0.001)


async def test_each_call_is_sent_at_its_slot(setting: Setting) -> None:
    setting.dispatcher.add([claim(n) for n in range(5)])
    slots = await setting.slots(5)
    setting.dispatcher.use(slots)
    await setting.serve(5)
    sent = [at for _, at in setting.gateway.sent]
    assert all(slot.at <= at for slot, at in zip(slots, sent, strict=True))


async def test_without_a_slot_a_call_connects_and_waits(setting: Setting) -> None:
    setting.dispatcher.add([claim(1)])
    await until(lambda: setting.gateway.calls == [1], "the connection")
    assert setting.dispatcher.waiting() == setting.dispatcher.in_flight == 1
    assert setting.gateway.sent == []


async def test_people_who_wait_go_first(setting: Setting) -> None:
    setting.dispatcher.add([claim(1), claim(2, "INTERACTIVE")])
    await serve_one(setting)
    assert [attempt for attempt, _ in setting.gateway.sent] == [2]


async def test_a_call_that_misses_its_slot_gets_another(setting: Setting) -> None:
    setting.gateway.connected.clear()
    setting.dispatcher.add([claim(1)])
    (slot,) = await setting.slots(1)
    setting.dispatcher.use([slot])
    await missed(slot)
    setting.gateway.connected.set()
    await until(lambda: setting.dispatcher.waiting() == 1, "its wait for another slot")
    assert setting.gateway.sent == []
    await setting.serve(1)
    assert setting.gateway.calls == [1], "on the connection that it had"


async def test_what_is_older_than_its_lease_is_not_sent(setting: Setting) -> None:
    """Ruling R26."""
    setting.dispatcher.add([claim(1, lease=0), claim(2)])
    await setting.serve(1)
    assert [attempt for attempt, _ in setting.gateway.sent] == [2]
    assert setting.given_back == [(1, "lease_lapsed")]


async def test_what_waits_for_a_slot_beyond_its_lease_is_given_back(setting: Setting) -> None:
    setting.dispatcher.add([claim(1, lease=0), claim(2)])
    setting.dispatcher.drop_expired()
    await until(lambda: setting.given_back == [(1, "lease_lapsed")], "the return")
    assert setting.dispatcher.waiting() == 1


async def test_an_open_breaker_lets_nothing_through(setting: Setting) -> None:
    setting.dispatcher.add([claim(1)])
    setting.breaker.record(
        replace(succeeded(claim(9).request), outcome="NOT_ATTEMPTED", code="unauthorized")
    )
    await setting.serve_until(lambda: setting.given_back == [(1, "breaker_open")])
    assert setting.gateway.sent == []


async def test_a_connection_that_was_silent_for_long_is_not_trusted(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LONGEST_SILENCE", 0.05)
    setting.dispatcher.add([claim(1)])
    await until(lambda: len(setting.gateway.calls) >= 2, "another connection")
    monkeypatch.setattr(module, "_LONGEST_SILENCE", 180)
    await setting.serve(1)
    assert len(setting.gateway.sent) == 1


async def test_a_429_pauses_everybody(setting: Setting) -> None:
    setting.gateway.answer = lambda request: replace(
        succeeded(request),
        outcome=Outcome.NOT_ATTEMPTED,
        code="rate_limited",
        retry_after=Decimal(1000),
    )
    setting.dispatcher.add([claim(1)])
    await setting.serve(1)
    await until(lambda: setting.dispatcher.in_flight == 0, "the pause")
    reservation = await setting.throttle.reserve(1, Lane.INTERACTIVE)
    assert reservation.slots == ()
    assert 800 < reservation.paused <= 1000


async def test_a_call_that_breaks_leaves_its_attempt_to_be_looked_up(setting: Setting) -> None:
    def break_down(_request: ChargeRequest) -> ChargeResult:
        raise ZeroDivisionError

    setting.gateway.answer = break_down
    with capture_logs() as logs:
        setting.dispatcher.add([claim(1)])
        await setting.serve_until(lambda: setting.dispatcher.in_flight == 0)
    assert [line["event"] for line in logs] == ["call_failed"]
    assert (setting.reports.results, setting.given_back) == ([], [])


async def test_at_the_end_what_has_no_slot_is_given_back_and_the_rest_is_awaited(
    setting: Setting,
) -> None:
    setting.gateway.answering.clear()
    setting.dispatcher.add([claim(1), claim(2)])
    await serve_one(setting)
    draining = asyncio.create_task(setting.dispatcher.drain(120))
    await until(lambda: setting.given_back == [(2, "worker_stopped")], "the return")
    setting.gateway.answering.set()
    assert await draining
    assert [result.attempt_id for result in setting.reports.results] == [1]


async def test_a_call_that_is_not_answered_in_time_is_left(setting: Setting) -> None:
    setting.gateway.answering.clear()
    setting.dispatcher.add([claim(1)])
    await serve_one(setting)
    assert not await setting.dispatcher.drain(0)
    assert (setting.reports.results, setting.given_back) == ([], [])
    await until(lambda: setting.dispatcher.in_flight == 0, "the cancellation")
