"""The settler: what was answered is recorded, whatever the database does meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from billing_shell import queries
from billing_shell.database import Database
from billing_shell.gateway import ChargeRequest, ChargeResult, Outcome, Source
from billing_shell.settler import Settler
from tests.py.support.outage import outage
from tests.py.support.world import ACCOUNT, World, until

PEOPLE = 9


@pytest.fixture
def world(database_url: str) -> Iterator[World]:
    made = World(database_url)
    yield made
    made.close()


@pytest.fixture
async def database(world: World) -> AsyncIterator[Database]:
    async with Database(world.url, application_name="test") as opened:
        yield opened


@pytest.fixture
async def settler(database: Database) -> AsyncIterator[Settler]:
    made = Settler(database)
    running = asyncio.create_task(made.run())
    yield made
    running.cancel()


@pytest.fixture
async def answers(world: World, database: Database) -> list[ChargeResult]:
    """Successes of attempts that are started and claimed."""
    world.subscribe(PEOPLE)
    world.value("SELECT billing_worker.renew_due(100)")
    requests = await database.rows(
        queries.START_ATTEMPTS,
        {"account": ACCOUNT, "limit": PEOPLE, "worker": "test"},
        ChargeRequest,
    )
    return [
        ChargeResult(
            customer_id=request.customer_id,
            attempt_id=request.attempt_id,
            claim_epoch=request.claim_epoch,
            outcome=Outcome.SUCCEEDED,
            gateway_payment_id=f"pay_{request.attempt_id}",
            amount=request.amount,
            currency=request.currency,
            code=None,
            retry_after=None,
            action_expires_at=None,
            source=Source.SEND,
        )
        for request in requests
    ]


def paid(world: World) -> int:
    return world.count("payment_attempt", "status = 'SUCCEEDED'")


async def test_a_batch_is_recorded_in_one_transaction(
    world: World, settler: Settler, answers: list[ChargeResult]
) -> None:
    for answer in answers:
        settler.report(answer)
    assert settler.unsettled == PEOPLE
    assert await settler.drain(180)
    assert settler.settled == paid(world) == PEOPLE
    assert settler.unsettled == 0
    transactions = "SELECT count(DISTINCT xmin::text) FROM billing.payment_report"
    assert world.value(transactions) == 1


async def test_one_result_that_is_refused_holds_up_no_other(
    world: World, settler: Settler, answers: list[ChargeResult]
) -> None:
    answers[4] = replace(answers[4], outcome="NONSENSE")
    with capture_logs() as logs:
        for answer in answers:
            settler.report(answer)
        await until(lambda: settler.settled == PEOPLE - 1, "the others")
        assert not await settler.drain(0.1)
    assert paid(world) == PEOPLE - 1
    assert settler.unsettled == 1
    refused = [line for line in logs if line["event"] == "result_refused"]
    assert {line["attempt_id"] for line in refused} == {answers[4].attempt_id}
    assert {line["code"] for line in refused} == {"SB101"}
    assert {line["log_level"] for line in refused} == {"critical"}


async def test_an_outage_of_the_database_loses_no_success(
    world: World, settler: Settler, answers: list[ChargeResult]
) -> None:
    with capture_logs() as logs:
        with outage(world.url):
            for answer in answers:
                settler.report(answer)
            await until(
                lambda: any(line["event"] == "settling_waits" for line in logs), "a failure"
            )
            assert settler.settled == 0
        assert await settler.drain(180)
    world.reconnect()
    assert paid(world) == PEOPLE


async def test_an_answer_told_twice_counts_once(
    world: World, settler: Settler, answers: list[ChargeResult]
) -> None:
    for answer in [*answers, *answers]:
        settler.report(answer)
    assert await settler.drain(180)
    assert paid(world) == PEOPLE
    assert world.count("outbox_event", "event_type = 'InvoicePaid'") == PEOPLE


async def test_an_answer_to_a_claim_that_is_no_more_is_stale(
    world: World, settler: Settler, answers: list[ChargeResult]
) -> None:
    stale = replace(
        answers[0], claim_epoch=0, outcome=Outcome.DECLINED, code="do_not_honor", amount=None
    )
    with capture_logs() as logs:
        settler.report(stale)
        assert await settler.drain(180)
    assert [line["attempt_id"] for line in logs if line["event"] == "result_stale"] == [
        stale.attempt_id
    ]
    assert world.count("payment_attempt", "status = 'DECLINED'") == 0
