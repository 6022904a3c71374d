"""What every adapter of a payment gateway must do, whatever the gateway.

Each adapter meets a gateway of its own kind in its own process: the simulated one, and a double of
Stripe that its official SDK talks to.
"""

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from billing_shell import simulated_settlements, stripe_gateway, stripe_webhooks
from billing_shell.gateway import (
    ChargeRequest,
    Gateway,
    NotSentError,
    Outcome,
    RefundRequest,
    SettledItem,
    SettledPage,
    Source,
)
from billing_shell.simulated_gateway import SimulatedGateway
from billing_shell.stripe_gateway import StripeGateway
from billing_shell.webhook_signature import WebhookSignatureError
from tests.py.support.simulator import (
    SimulatorProcess,
    client_of,
    put,
    smooth_simulator,
    until,
)
from tests.py.support.stripe_double import API_KEY, SECRET, StripeDouble, signature

_numbers = itertools.count(1)
AMOUNT = 4900
PATIENCE = 120.0
"""Seconds for an answer that comes; costs nothing where all goes well, and machines are busy."""
IMPATIENCE = 2.0
"""Seconds for one that never comes, in which the request must still arrive."""


@dataclass
class Simulated:
    """The simulated gateway."""

    adapter: Gateway
    process: SimulatorProcess

    def token(self, what: str) -> str:
        return (
            "tok_"
            + {
                "ok": "ok",
                "decline": "decline_insufficient_funds",
                "hard": "decline_stolen_card",
                "action": "action",
                "processing": "processing",
                "charged": "timeout_charged",
                "lost": "timeout_lost",
                "limited": "429",
                "500": "500_stored",
                "invalid": "refuse_invalid_number",
            }[what]
        )

    def charged(self) -> list[int]:
        rows = self.process.rows("SELECT amount FROM charges WHERE status = 'succeeded'")
        return [amount for (amount,) in rows]

    def refunded(self) -> list[int]:
        return [amount for (amount,) in self.process.rows("SELECT amount FROM refunds")]

    async def paid(self, what: str) -> str:
        result = await self.adapter.charge(ask(self), timeout=PATIENCE)
        assert result.gateway_payment_id is not None
        names = {"charged": "timeout_charged", "lost": "timeout_lost", "500": "500_stored"}
        async with client_of(self.process) as client:
            await put(
                client,
                "script",
                token=result.gateway_payment_id,
                outcomes=[names.get(what, what)],
            )
        return result.gateway_payment_id

    def refund_keys(self) -> set[str]:
        rows = self.process.rows("SELECT idempotency_key FROM calls WHERE operation = 'refund'")
        return {key for (key,) in rows}

    async def set_clock(self, now: datetime) -> None:
        async with client_of(self.process) as client:
            await put(client, "clock", now=now.isoformat())


@dataclass
class Stripe:
    """A double of Stripe."""

    adapter: Gateway
    double: StripeDouble

    def token(self, what: str) -> str:
        method = {
            "ok": "pm_ok",
            "decline": "pm_decline_insufficient_funds",
            "hard": "pm_decline_stolen_card",
            "action": "pm_action",
            "processing": "pm_processing",
            "charged": "pm_charged",
            "lost": "pm_lost",
            "limited": "pm_limited",
            "500": "pm_500",
            "invalid": "pm_missing",
        }[what]
        return f"cus_double/{method}"

    def charged(self) -> list[int]:
        charges = self.double.ledger()["charges"].values()
        return [charge["amount"] for charge in charges if charge["status"] == "succeeded"]

    def refunded(self) -> list[int]:
        return [refund["amount"] for refund in self.double.ledger()["refunds"].values()]

    async def paid(self, what: str) -> str:
        request = replace(ask(self), payment_method_token=f"cus_double/pm_back_{what}")
        result = await self.adapter.charge(request, timeout=PATIENCE)
        assert result.gateway_payment_id is not None
        return result.gateway_payment_id

    def refund_keys(self) -> set[str]:
        return {str(refund["key"]) for refund in self.double.ledger()["refunds"].values()}

    async def set_clock(self, now: datetime) -> None:
        self.double.set_clock(now)


Kind = Simulated | Stripe


@pytest.fixture(params=["simulated", "stripe"])
async def kind(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kind]:
    if request.param == "simulated":
        with smooth_simulator(tmp_path, "--hang", str(PATIENCE)) as process:
            adapter: Gateway = SimulatedGateway(process.url)
            yield Simulated(adapter, process)
            await adapter.aclose()
    else:
        with StripeDouble() as double:
            adapter = StripeGateway(double.url, api_key=API_KEY)
            yield Stripe(adapter, double)
            await adapter.aclose()


def ask(kind: Kind, what: str = "ok", **others: object) -> ChargeRequest:
    """Return a stored request of its own."""
    number = next(_numbers)
    request = ChargeRequest(
        customer_id=64,
        attempt_id=64 * number,
        claim_epoch=1,
        idempotency_key=f"test0001-inv-{64 * number}-try-1",
        amount=AMOUNT,
        currency="USD",
        payment_method_token=kind.token(what),
        description=f"Invoice {64 * number}",
        lane="BACKLOG",
        gateway_account="conformance",
        gateway_payment_id=None,
        send_no=1,
    )
    return replace(request, **others)  # type: ignore[arg-type]


def back(payment_id: str | None, amount: int = AMOUNT) -> RefundRequest:
    """Return a stored refund of its own."""
    assert payment_id is not None
    number = next(_numbers)
    return RefundRequest(
        customer_id=64,
        refund_id=64 * number,
        claim_epoch=1,
        idempotency_key=f"test0001-inv-64-refund-{number}",
        gateway_payment_id=payment_id,
        amount=amount,
        currency="USD",
        gateway_account="conformance",
        gateway_refund_id=None,
        send_no=1,
    )


async def test_a_success_names_payment_amount_and_currency(kind: Kind) -> None:
    request = ask(kind)
    result = await kind.adapter.charge(request, timeout=PATIENCE)
    assert (result.outcome, result.amount, result.currency) == (Outcome.SUCCEEDED, AMOUNT, "USD")
    assert (result.customer_id, result.attempt_id, result.claim_epoch, result.source) == (
        request.customer_id,
        request.attempt_id,
        request.claim_epoch,
        Source.SEND,
    )
    assert result.gateway_payment_id
    assert kind.charged() == [AMOUNT]


async def test_the_same_request_again_is_the_same_payment(kind: Kind) -> None:
    request = ask(kind)
    first = await kind.adapter.charge(request, timeout=PATIENCE)
    again = await kind.adapter.charge(replace(request, send_no=2, claim_epoch=2), timeout=PATIENCE)
    assert (again.outcome, again.gateway_payment_id) == (first.outcome, first.gateway_payment_id)
    assert again.claim_epoch == 2
    assert kind.charged() == [AMOUNT]


async def test_the_key_with_another_request_charges_nothing_and_says_nothing(kind: Kind) -> None:
    request = ask(kind)
    await kind.adapter.charge(request, timeout=PATIENCE)
    other = await kind.adapter.charge(replace(request, amount=AMOUNT + 1), timeout=PATIENCE)
    assert (other.outcome, other.code) == (Outcome.UNKNOWN, "idempotency_mismatch")
    assert kind.charged() == [AMOUNT]


@pytest.mark.parametrize(
    ("what", "code"), [("decline", "insufficient_funds"), ("hard", "stolen_card")]
)
async def test_a_decline_has_its_code_and_is_found_again(kind: Kind, what: str, code: str) -> None:
    request = ask(kind, what)
    result = await kind.adapter.charge(request, timeout=PATIENCE)
    assert (result.outcome, result.code) == (Outcome.DECLINED, code)
    assert result.gateway_payment_id
    found = await kind.adapter.look_up(request, timeout=PATIENCE)
    assert (found.outcome, found.code, found.gateway_payment_id, found.source) == (
        Outcome.DECLINED,
        code,
        result.gateway_payment_id,
        Source.LOOKUP,
    )
    assert kind.charged() == []


async def test_an_error_that_names_the_payment_method_is_a_decline(kind: Kind) -> None:
    result = await kind.adapter.charge(ask(kind, "invalid"), timeout=PATIENCE)
    assert result.outcome == Outcome.DECLINED
    assert result.code


@pytest.mark.parametrize("what", ["action", "processing"])
async def test_what_others_have_in_hand_is_said_and_found(kind: Kind, what: str) -> None:
    expected = Outcome.REQUIRES_ACTION if what == "action" else Outcome.PROCESSING
    request = ask(kind, what)
    result = await kind.adapter.charge(request, timeout=PATIENCE)
    assert result.outcome == expected
    assert (await kind.adapter.look_up(request, timeout=PATIENCE)).outcome == expected
    assert kind.charged() == []


async def test_a_lost_answer_is_unknown_and_the_payment_is_found(kind: Kind) -> None:
    request = ask(kind, "charged")
    result = await kind.adapter.charge(request, timeout=IMPATIENCE)
    assert (result.outcome, result.code) == (Outcome.UNKNOWN, "timeout")
    found = await kind.adapter.look_up(request, timeout=PATIENCE)
    assert (found.outcome, found.amount, found.currency) == (Outcome.SUCCEEDED, AMOUNT, "USD")
    again = await kind.adapter.charge(replace(request, send_no=2), timeout=PATIENCE)
    assert (again.outcome, again.gateway_payment_id) == (
        Outcome.SUCCEEDED,
        found.gateway_payment_id,
    )
    by_id = replace(request, gateway_payment_id=found.gateway_payment_id)
    assert (await kind.adapter.look_up(by_id, timeout=PATIENCE)).outcome == Outcome.SUCCEEDED
    assert kind.charged() == [AMOUNT]


async def test_a_lost_request_is_unknown_and_nothing_is_found(kind: Kind) -> None:
    request = ask(kind, "lost")
    result = await kind.adapter.charge(request, timeout=IMPATIENCE)
    assert result.outcome == Outcome.UNKNOWN
    assert (await kind.adapter.look_up(request, timeout=PATIENCE)).outcome == Outcome.NOT_FOUND
    assert kind.charged() == []


async def test_a_429_is_not_attempted_and_says_how_long_to_wait(kind: Kind) -> None:
    request = ask(kind, "limited")
    result = await kind.adapter.charge(request, timeout=PATIENCE)
    assert (result.outcome, result.code) == (Outcome.NOT_ATTEMPTED, "rate_limited")
    assert result.retry_after == Decimal(2)
    assert kind.charged() == []


async def test_a_500_is_unknown(kind: Kind) -> None:
    result = await kind.adapter.charge(ask(kind, "500"), timeout=PATIENCE)
    assert result.outcome == Outcome.UNKNOWN
    assert kind.charged() == []


async def test_a_call_passes_its_gate_or_is_not_sent(kind: Kind) -> None:
    passed: list[int] = []

    async def gate() -> None:
        passed.append(len(kind.charged()))

    await kind.adapter.charge(ask(kind), timeout=PATIENCE, gate=gate)
    assert passed == [0]

    async def shut() -> None:
        raise NotSentError("slot_missed")

    with pytest.raises(NotSentError):
        await kind.adapter.charge(ask(kind), timeout=PATIENCE, gate=shut)
    assert kind.charged() == [AMOUNT]


async def test_a_cancelled_call_is_not_answered(kind: Kind) -> None:
    request = ask(kind, "charged")
    call = asyncio.create_task(kind.adapter.charge(request, timeout=PATIENCE))
    await until(lambda: kind.charged() == [AMOUNT])
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_refund_goes_back_once_and_is_found(kind: Kind) -> None:
    paid = await kind.adapter.charge(ask(kind), timeout=PATIENCE)
    request = back(paid.gateway_payment_id, 98)
    missing = await kind.adapter.look_up_refund(request, timeout=PATIENCE)
    assert missing.outcome == Outcome.NOT_FOUND
    result = await kind.adapter.refund(request, timeout=PATIENCE)
    assert (result.outcome, result.amount, result.currency) == (Outcome.SUCCEEDED, 98, "USD")
    again = await kind.adapter.refund(replace(request, send_no=2), timeout=PATIENCE)
    assert again.gateway_refund_id == result.gateway_refund_id
    for asked in (request, replace(request, gateway_refund_id=result.gateway_refund_id)):
        found = await kind.adapter.look_up_refund(asked, timeout=PATIENCE)
        assert (found.outcome, found.gateway_refund_id, found.source) == (
            Outcome.SUCCEEDED,
            result.gateway_refund_id,
            Source.LOOKUP,
        )
    second = await kind.adapter.refund(back(paid.gateway_payment_id, 98), timeout=PATIENCE)
    assert second.gateway_refund_id != result.gateway_refund_id
    assert sorted(kind.refunded()) == [98, 98]


async def test_no_more_goes_back_than_was_paid(kind: Kind) -> None:
    paid = await kind.adapter.charge(ask(kind), timeout=PATIENCE)
    assert (await kind.adapter.refund(back(paid.gateway_payment_id), timeout=PATIENCE)).outcome == (
        Outcome.SUCCEEDED
    )
    over = await kind.adapter.refund(back(paid.gateway_payment_id, 1), timeout=PATIENCE)
    assert over.outcome == Outcome.DECLINED
    assert over.code
    assert kind.refunded() == [AMOUNT]


@pytest.mark.parametrize("what", ["charged", "cut", "500_charged"])
async def test_a_refund_whose_answer_is_lost_is_found_and_goes_back_once(
    kind: Kind, what: str
) -> None:
    request = back(await kind.paid(what), 98)
    result = await kind.adapter.refund(request, timeout=IMPATIENCE)
    assert (result.outcome, result.gateway_refund_id) == (Outcome.UNKNOWN, None)
    found = await kind.adapter.look_up_refund(request, timeout=PATIENCE)
    assert (found.outcome, found.amount, found.currency) == (Outcome.SUCCEEDED, 98, "USD")
    assert found.gateway_refund_id
    # A 500 that is kept under the key is repeated, whatever is behind it.
    again = await kind.adapter.refund(replace(request, send_no=2), timeout=PATIENCE)
    assert (again.outcome, again.gateway_refund_id) == (
        (Outcome.UNKNOWN, None)
        if what == "500_charged"
        else (Outcome.SUCCEEDED, found.gateway_refund_id)
    )
    assert kind.refunded() == [98]
    assert kind.refund_keys() == {request.idempotency_key}


@pytest.mark.parametrize("what", ["lost", "500"])
async def test_a_refund_that_was_not_made_is_unknown_and_not_found(kind: Kind, what: str) -> None:
    request = back(await kind.paid(what), 98)
    assert (await kind.adapter.refund(request, timeout=IMPATIENCE)).outcome == Outcome.UNKNOWN
    found = await kind.adapter.look_up_refund(request, timeout=PATIENCE)
    assert found.outcome == Outcome.NOT_FOUND
    again = await kind.adapter.refund(replace(request, send_no=2), timeout=PATIENCE)
    assert again.outcome == (Outcome.SUCCEEDED if what == "lost" else Outcome.UNKNOWN)
    assert kind.refunded() == ([98] if what == "lost" else [])


async def whole(kind: Kind, start: datetime, end: datetime) -> list[SettledItem]:
    """What a gateway has booked, from all its pages."""
    items: list[SettledItem] = []
    cursor: str | None = None
    while True:
        page = await kind.adapter.settled(start, end, timeout=PATIENCE, cursor=cursor)
        assert page.code is None
        items += page.items
        cursor = page.cursor
        if cursor is None:
            return items


async def test_what_moved_money_is_listed_for_its_time_and_no_other(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated_settlements, "_LISTED", 2)
    monkeypatch.setattr(stripe_gateway, "_LISTED", 2)
    day = datetime(2027, 5, 1, tzinfo=UTC)
    await kind.set_clock(day - timedelta(seconds=1))
    await kind.adapter.charge(ask(kind), timeout=PATIENCE)
    await kind.set_clock(day)
    paid = []
    for number in range(4):
        request = ask(kind, amount=AMOUNT + number)
        result = await kind.adapter.charge(request, timeout=PATIENCE)
        paid.append((request.idempotency_key, result.gateway_payment_id))
    for what in ("decline", "action", "processing"):
        await kind.adapter.charge(ask(kind, what), timeout=PATIENCE)
    await kind.set_clock(day + timedelta(days=1) - timedelta(seconds=1))
    sent = back(paid[0][1], 98)
    refunded = await kind.adapter.refund(sent, timeout=PATIENCE)
    await kind.set_clock(day + timedelta(days=1))
    await kind.adapter.charge(ask(kind), timeout=PATIENCE)

    listed = await whole(kind, day, day + timedelta(days=1))
    assert sorted(listed, key=lambda item: (item.kind, item.amount)) == [
        *(
            SettledItem("CHARGE", str(payment_id), key, AMOUNT + number, "USD")
            for number, (key, payment_id) in enumerate(paid)
        ),
        SettledItem("REFUND", str(refunded.gateway_refund_id), sent.idempotency_key, 98, "USD"),
    ]
    assert await whole(kind, day + timedelta(days=2), day + timedelta(days=3)) == []


@pytest.mark.parametrize("which", ["simulated", "stripe"])
async def test_a_refused_connection_attempted_nothing(which: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        adapter: Gateway
        if which == "simulated":
            adapter, token = SimulatedGateway(url), "tok_ok"
        else:
            adapter, token = StripeGateway(url, api_key=API_KEY), "cus_a/pm_ok"
        request = replace(
            ask(Simulated(adapter, SimulatorProcess(Path("none")))), payment_method_token=token
        )
        sent = await adapter.charge(request, timeout=PATIENCE)
        assert (sent.outcome, sent.code) == (Outcome.NOT_ATTEMPTED, "connection_refused")
        asked = await adapter.look_up(request, timeout=PATIENCE)
        assert asked.outcome == Outcome.UNKNOWN
        now = datetime.now(UTC)
        assert await adapter.settled(now, now, timeout=PATIENCE) == SettledPage(
            code="connection_refused"
        )
        await adapter.aclose()


@contextlib.contextmanager
def locked(which: str, folder: Path) -> Iterator[tuple[Callable[[str], Kind], str]]:
    """A gateway that asks for a key: what makes an adapter with a key, and the right key."""
    if which == "simulated":
        with smooth_simulator(folder, "--api-key", "right") as process:
            url = process.url
            yield lambda key: Simulated(SimulatedGateway(url, api_key=key), process), "right"
    else:
        with StripeDouble() as double:
            url = double.url
            yield lambda key: Stripe(StripeGateway(url, api_key=key), double), API_KEY


@pytest.mark.parametrize("which", ["simulated", "stripe"])
async def test_a_wrong_key_attempts_nothing_and_the_right_one_does(
    which: str, tmp_path: Path
) -> None:
    now = datetime.now(UTC)
    with locked(which, tmp_path) as (make, right):
        wrong = make("sk_test_wrong")
        request = ask(wrong)
        sent = await wrong.adapter.charge(request, timeout=PATIENCE)
        assert (sent.outcome, sent.code) == (Outcome.NOT_ATTEMPTED, "unauthorized")
        asked = await wrong.adapter.look_up(request, timeout=PATIENCE)
        assert asked.outcome == Outcome.UNKNOWN
        refunded = await wrong.adapter.refund(back("pay_1"), timeout=PATIENCE)
        assert (refunded.outcome, refunded.code) == (Outcome.NOT_ATTEMPTED, "unauthorized")
        assert (await wrong.adapter.settled(now, now, timeout=PATIENCE)).code == "unauthorized"
        assert wrong.charged() == []
        let_in = make(right)
        assert (await let_in.adapter.charge(request, timeout=PATIENCE)).outcome == Outcome.SUCCEEDED
        assert let_in.charged() == [AMOUNT]
        for each in (wrong, let_in):
            await each.adapter.aclose()


# What only Stripe has.


@pytest.fixture
def double() -> Iterator[StripeDouble]:
    with StripeDouble() as process:
        yield process


@pytest.fixture
async def stripe(double: StripeDouble) -> AsyncIterator[Stripe]:
    adapter = StripeGateway(double.url, api_key=API_KEY)
    yield Stripe(adapter, double)
    await adapter.aclose()


async def test_all_tries_of_an_invoice_confirm_one_intent(stripe: Stripe) -> None:
    first = ask(stripe, "decline")
    declined = await stripe.adapter.charge(first, timeout=PATIENCE)
    assert declined.gateway_intent_id
    second = replace(
        first,
        idempotency_key=first.idempotency_key.replace("try-1", "try-2"),
        payment_method_token=stripe.token("charged"),
        gateway_intent_id=declined.gateway_intent_id,
        previous_payment_id=declined.gateway_payment_id,
    )
    assert (await stripe.adapter.look_up(second, timeout=PATIENCE)).outcome == Outcome.NOT_FOUND
    assert (await stripe.adapter.charge(second, timeout=IMPATIENCE)).outcome == Outcome.UNKNOWN
    found = await stripe.adapter.look_up(second, timeout=PATIENCE)
    assert (found.outcome, found.gateway_intent_id) == (
        Outcome.SUCCEEDED,
        declined.gateway_intent_id,
    )
    assert found.gateway_payment_id != declined.gateway_payment_id
    third = replace(
        second,
        idempotency_key=first.idempotency_key.replace("try-1", "try-3"),
        payment_method_token=stripe.token("ok"),
    )
    late = await stripe.adapter.charge(third, timeout=PATIENCE)
    assert (late.outcome, late.code) == (Outcome.UNKNOWN, "payment_intent_unexpected_state")
    books = stripe.double.ledger()
    assert len(books["intents"]) == 1
    assert len(books["charges"]) == 2
    assert stripe.charged() == [AMOUNT]


async def test_a_failed_authentication_is_a_decline_of_the_try_that_waited(stripe: Stripe) -> None:
    first = ask(stripe, "decline", lane="INTERACTIVE")
    declined = await stripe.adapter.charge(first, timeout=PATIENCE)
    second = replace(
        first,
        idempotency_key=first.idempotency_key.replace("try-1", "try-2"),
        payment_method_token=stripe.token("action"),
        gateway_intent_id=declined.gateway_intent_id,
        previous_payment_id=declined.gateway_payment_id,
    )
    waiting = replace(second, awaits_action=True)
    acting = await stripe.adapter.charge(second, timeout=PATIENCE)
    assert acting.outcome == Outcome.REQUIRES_ACTION
    assert (
        await stripe.adapter.look_up(waiting, timeout=PATIENCE)
    ).outcome == Outcome.REQUIRES_ACTION

    stripe.double.fail(str(declined.gateway_intent_id))
    failed = await stripe.adapter.look_up(waiting, timeout=PATIENCE)
    assert (failed.outcome, failed.code, failed.gateway_payment_id) == (
        Outcome.DECLINED,
        "payment_intent_authentication_failure",
        None,
    )
    # As long as nobody knows that it was confirmed, the failure may be that of the try before.
    assert (await stripe.adapter.look_up(second, timeout=PATIENCE)).outcome == Outcome.NOT_FOUND

    third = replace(second, idempotency_key=first.idempotency_key.replace("try-1", "try-3"))
    assert (await stripe.adapter.look_up(third, timeout=PATIENCE)).outcome == Outcome.NOT_FOUND
    assert (await stripe.adapter.charge(third, timeout=PATIENCE)).outcome == Outcome.REQUIRES_ACTION
    waiting = replace(third, awaits_action=True)
    assert (
        await stripe.adapter.look_up(waiting, timeout=PATIENCE)
    ).outcome == Outcome.REQUIRES_ACTION
    stripe.double.act(str(declined.gateway_intent_id))
    paid = await stripe.adapter.look_up(waiting, timeout=PATIENCE)
    assert paid.outcome == Outcome.SUCCEEDED
    assert paid.gateway_payment_id != declined.gateway_payment_id
    assert stripe.charged() == [AMOUNT]


async def test_an_expired_action_is_replaced_and_a_canceled_intent_is_a_decline(
    stripe: Stripe,
) -> None:
    first = ask(stripe, "action", lane="INTERACTIVE")
    acting = await stripe.adapter.charge(first, timeout=PATIENCE)
    assert acting.outcome == Outcome.REQUIRES_ACTION
    intent_id = str(acting.gateway_intent_id)
    # Its action has expired here, not at Stripe: the next try confirms the intent all the same.
    second = replace(
        first,
        idempotency_key=first.idempotency_key.replace("try-1", "try-2"),
        gateway_intent_id=intent_id,
    )
    assert (
        await stripe.adapter.charge(second, timeout=PATIENCE)
    ).outcome == Outcome.REQUIRES_ACTION
    stripe.double.cancel(intent_id)
    canceled = await stripe.adapter.look_up(replace(second, awaits_action=True), timeout=PATIENCE)
    assert (canceled.outcome, canceled.code) == (Outcome.DECLINED, "intent_canceled")
    third = replace(second, idempotency_key=first.idempotency_key.replace("try-1", "try-3"))
    refused = await stripe.adapter.charge(third, timeout=PATIENCE)
    assert (refused.outcome, refused.code) == (Outcome.UNKNOWN, "payment_intent_unexpected_state")
    assert (await stripe.adapter.look_up(third, timeout=PATIENCE)).code == "intent_canceled"
    assert stripe.charged() == []


async def test_a_refund_may_be_pending_and_fail_after_it_succeeded(stripe: Stripe) -> None:
    now = datetime.now(UTC)
    day = timedelta(days=1)
    request = back(await stripe.paid("pending"), 98)
    pending = await stripe.adapter.refund(request, timeout=PATIENCE)
    assert pending.outcome == Outcome.PROCESSING
    refund_id = str(pending.gateway_refund_id)
    known = replace(request, gateway_refund_id=refund_id)
    listed = [item.kind for item in await whole(stripe, now - day, now + day)]
    assert listed == ["REFUND", "CHARGE"]
    for status, outcome, code in (
        ("succeeded", Outcome.SUCCEEDED, None),
        ("failed", Outcome.DECLINED, "expired_or_canceled_card"),
    ):
        stripe.double.end(refund_id, status)
        for asked in (request, known):
            found = await stripe.adapter.look_up_refund(asked, timeout=PATIENCE)
            assert (found.outcome, found.code, found.gateway_refund_id) == (
                outcome,
                code,
                refund_id,
            )
    # What failed has moved no money.
    assert [item.kind for item in await whole(stripe, now - day, now + day)] == ["CHARGE"]
    # The key repeats what it was answered first, which is why a look-up goes before a send.
    again = await stripe.adapter.refund(replace(request, send_no=2), timeout=PATIENCE)
    assert again.outcome == Outcome.PROCESSING


async def test_advice_goes_before_the_reason(stripe: Stripe) -> None:
    request = replace(ask(stripe), payment_method_token="cus_a/pm_advice_do_not_try_again")
    result = await stripe.adapter.charge(request, timeout=PATIENCE)
    assert (result.outcome, result.code) == (Outcome.DECLINED, "do_not_try_again")


async def test_a_request_in_flight_is_unknown_to_the_other_one(stripe: Stripe) -> None:
    request = replace(ask(stripe), payment_method_token="cus_a/pm_slow")
    results = await asyncio.gather(
        *(stripe.adapter.charge(request, timeout=PATIENCE) for _ in range(2))
    )
    assert sorted(result.outcome for result in results) == [Outcome.SUCCEEDED, Outcome.UNKNOWN]
    assert stripe.charged() == [AMOUNT]


async def test_signed_events_say_which_try_they_are_about(stripe: Stripe) -> None:
    paid = ask(stripe)
    result = await stripe.adapter.charge(paid, timeout=PATIENCE)
    refund = back(result.gateway_payment_id, 98)
    await stripe.adapter.refund(refund, timeout=PATIENCE)
    charge_event, refund_event = stripe.double.ledger()["events"]
    now = datetime.now(UTC)

    def delivered(event: dict[str, Any], secret: str = SECRET, late: int = 0) -> Any:  # noqa: ANN401
        body = json.dumps(event).encode()
        header = signature(body, secret, int(now.timestamp()) - late)
        return stripe_webhooks.read_webhook(
            body, {"stripe-signature": header}, ("whsec_old_one_in_rotation", SECRET), now
        )

    told = delivered(charge_event)
    assert told.payload == {
        "paymentId": result.gateway_payment_id,
        "reference": paid.idempotency_key,
        "intentId": result.gateway_intent_id,
        "outcome": "SUCCEEDED",
        "amount": AMOUNT,
        "currency": "USD",
    }
    told = delivered(refund_event)
    assert told.payload["reference"] == refund.idempotency_key
    assert told.payload["refundId"]
    assert "paymentId" not in told.payload
    for bad in ({"secret": "whsec_of_somebody_else"}, {"late": 301}, {"late": -301}):
        with pytest.raises(WebhookSignatureError):
            delivered(charge_event, **bad)
    with pytest.raises(WebhookSignatureError):
        stripe_webhooks.read_webhook(b"{}", {}, (SECRET,), now + timedelta(0))
