"""The breaker: when calls pass, when they do not, and when one of them probes."""

import pytest

from billing_shell.breaker import Breaker
from billing_shell.gateway import ChargeResult, Outcome, Source

FAILURES_TO_OPEN = 20


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(clock)


def result(outcome: Outcome, code: str | None = None) -> ChargeResult:
    return ChargeResult(64, 128, 1, outcome, None, None, None, code, None, None, Source.SEND)


TIMEOUT = result(Outcome.UNKNOWN, "timeout")
ANSWER = result(Outcome.DECLINED, "insufficient_funds")


def fail(breaker: Breaker, times: int = FAILURES_TO_OPEN) -> None:
    for _ in range(times):
        breaker.record(TIMEOUT)


def test_it_opens_after_so_many_failures_in_a_row(breaker: Breaker) -> None:
    fail(breaker, FAILURES_TO_OPEN - 1)
    assert breaker.permits(0) > 100
    fail(breaker, 1)
    assert breaker.permits(0) == 0


def test_one_answer_in_between_begins_the_row_anew(breaker: Breaker) -> None:
    fail(breaker, FAILURES_TO_OPEN - 1)
    breaker.record(ANSWER)
    fail(breaker, FAILURES_TO_OPEN - 1)
    assert breaker.closed


@pytest.mark.parametrize("code", ["unauthorized", "forbidden"])
def test_wrong_credentials_open_it_at_once(breaker: Breaker, code: str) -> None:
    breaker.record(result(Outcome.NOT_ATTEMPTED, code))
    assert breaker.permits(0) == 0


def test_after_the_pause_a_single_call_probes(breaker: Breaker, clock: Clock) -> None:
    fail(breaker)
    clock.now += 0.99
    assert breaker.permits(0) == 0
    clock.now += 0.01
    assert breaker.permits(0) == 1
    assert breaker.permits(1) == 0


def test_a_probe_that_is_answered_closes_it(breaker: Breaker, clock: Clock) -> None:
    fail(breaker)
    clock.now += 1
    breaker.record(ANSWER)
    assert breaker.closed
    fail(breaker)
    clock.now += 1
    assert breaker.permits(0) == 1, "the pause is the shortest one again"


def test_each_probe_that_fails_doubles_the_pause_up_to_a_minute(
    breaker: Breaker, clock: Clock
) -> None:
    fail(breaker)
    for pause in (1, 2, 4, 8, 16, 32, 60, 60):
        clock.now += pause - 0.5
        assert breaker.permits(0) == 0
        clock.now += 0.5
        assert breaker.permits(0) == 1
        breaker.record(TIMEOUT)


def test_calls_that_were_under_way_when_it_opened_do_not_lengthen_the_pause(
    breaker: Breaker, clock: Clock
) -> None:
    fail(breaker, 3 * FAILURES_TO_OPEN)
    clock.now += 1
    assert breaker.permits(0) == 1


@pytest.mark.parametrize(
    "answer",
    [
        result(Outcome.UNKNOWN, "idempotency_key_in_use"),
        result(Outcome.NOT_ATTEMPTED, "rate_limited"),
        result(Outcome.NOT_FOUND),
        result(Outcome.PROCESSING),
    ],
)
def test_a_gateway_that_answers_is_not_down(breaker: Breaker, answer: ChargeResult) -> None:
    fail(breaker, FAILURES_TO_OPEN - 1)
    breaker.record(answer)
    fail(breaker, FAILURES_TO_OPEN - 1)
    assert breaker.closed


def test_a_fault_of_our_own_says_nothing_about_the_gateway(breaker: Breaker) -> None:
    fail(breaker, FAILURES_TO_OPEN - 1)
    breaker.record(result(Outcome.NOT_ATTEMPTED, "no_free_connection"))
    fail(breaker, 1)
    assert not breaker.closed
