"""The adapter of the simulated gateway: every answer there can be, and the outcome it means.

The first half meets a server that says exactly the bytes of a case, the second the real gateway in
its own process.
"""

import asyncio
import gzip
import json
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from billing_shell.connection_lanes import ConnectionLanes
from billing_shell.gateway import (
    ChargeRequest,
    ChargeResult,
    Gateway,
    Outcome,
    Source,
    UnreadableWebhookError,
)
from billing_shell.simulated_gateway import SimulatedGateway, read_webhook
from billing_shell.webhook_signature import SignatureMismatchError, sign
from tests.py.support.raw_server import RawServer, http, raw_server
from tests.py.support.simulator import (
    SimulatorProcess,
    client_of,
    put,
    smooth_simulator,
)

KEY = "db-inv-64-try-1"
PATIENCE = 60.0
"""Seconds; costs nothing where all goes well, and machines are busy."""
REQUEST = ChargeRequest(
    customer_id=64,
    attempt_id=128,
    claim_epoch=3,
    idempotency_key=KEY,
    amount=4900,
    currency="USD",
    payment_method_token="tok_ok",
    description="Renewal \u2013 M\u00e4rz",
    lane="BACKLOG",
    gateway_account="simulated",
    gateway_payment_id=None,
    send_no=1,
)
PAYMENT: dict[str, Any] = {
    "object": "charge",
    "id": "pay_1",
    "status": "succeeded",
    "code": None,
    "amount": 4900,
    "currency": "USD",
    "reference": KEY,
    "expires_at": None,
}
EXPIRES_AT = "2027-05-01T23:00:00.000000Z"
PARTS_OF_A_PAYMENT = ("gateway_payment_id", "amount", "currency")


def payment(**changes: object) -> dict[str, Any]:
    return PAYMENT | changes


def problem(code: str, **members: object) -> dict[str, Any]:
    return {"type": "about:blank", "title": "No", "code": code, **members}


DECLINED = payment(status="declined", code="insufficient_funds")
ACTION = payment(status="requires_action", expires_at=EXPIRES_AT)

# What a payment says, wherever it stands: document, outcome, code.
PAYMENTS = {
    "succeeded": (PAYMENT, Outcome.SUCCEEDED, None),
    "succeeded with more than was asked": (payment(amount=5000), Outcome.SUCCEEDED, None),
    "succeeded with less than was asked": (payment(amount=1), Outcome.SUCCEEDED, None),
    "succeeded in another currency": (payment(currency="EUR"), Outcome.SUCCEEDED, None),
    "processing": (payment(status="processing"), Outcome.PROCESSING, None),
    "requires action": (ACTION, Outcome.REQUIRES_ACTION, None),
    "declined": (DECLINED, Outcome.DECLINED, "insufficient_funds"),
    "declined for no reason": (payment(status="declined"), Outcome.DECLINED, "unrecognised_code"),
    "declined with a text for a code": (
        payment(status="declined", code="Sorry,\nno.\0"),
        Outcome.DECLINED,
        "unrecognised_code",
    ),
}
# What is no payment of ours, or none that can be understood: document, code.
NO_PAYMENTS = {
    "of another reference": (payment(reference="db-inv-128-try-1"), "reference_mismatch"),
    "without a reference": (
        {name: value for name, value in PAYMENT.items() if name != "reference"},
        "reference_mismatch",
    ),
    "an empty object": ({}, "unrecognised_answer"),
    "a maintenance page in JSON": ({"status": "server busy"}, "unrecognised_answer"),
    "of an unknown status": (payment(status="on_hold"), "unrecognised_answer"),
    "of no status": (payment(status=None), "unrecognised_answer"),
    "of a listed status": (payment(status=["succeeded"]), "unrecognised_answer"),
    "without an id": (payment(id=None), "unrecognised_answer"),
    "of a numbered id": (payment(id=1), "unrecognised_answer"),
    "of an empty id": (payment(id=""), "unrecognised_answer"),
    "of an id with NUL": (payment(id="pay\0"), "unrecognised_answer"),
    "of a very long id": (payment(id="p" * 256), "unrecognised_answer"),
    "of half a character as id": (payment(id="\ud800"), "unrecognised_answer"),
    "without an amount": (payment(amount=None), "unrecognised_answer"),
    "of a written amount": (payment(amount="4900"), "unrecognised_answer"),
    "of a broken amount": (payment(amount=49.0), "unrecognised_answer"),
    "of a true amount": (payment(amount=True), "unrecognised_answer"),
    "of no amount": (payment(amount=0), "unrecognised_answer"),
    "of a negative amount": (payment(amount=-4900), "unrecognised_answer"),
    "of an amount beyond bigint": (payment(amount=2**63), "unrecognised_answer"),
    "without a currency": (payment(currency=None), "unrecognised_answer"),
    "of a small currency": (payment(currency="usd"), "unrecognised_answer"),
    "that needs action for ever": (payment(status="requires_action"), "unrecognised_answer"),
    "that needs action until some local time": (
        payment(status="requires_action", expires_at="2027-05-01T23:00:00"),
        "unrecognised_answer",
    ),
    "that needs action until the end of time": (
        payment(status="requires_action", expires_at="0001-01-01T00:00:00+14:00"),
        "unrecognised_answer",
    ),
}
# Answers that mean the same to a send and to a look-up: bytes, code.
BROKEN = {
    "nothing at all": (b"", "connection_lost"),
    "not HTTP": (b"220 mail.example ESMTP\r\n", "connection_lost"),
    "half a head": (b"HTTP/1.1 200 OK\r\nContent-Le", "connection_lost"),
    "half a body": (http(200, b'{"id"', {"Content-Length": "99"}), "connection_lost"),
    "half a chunk": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{",
        "connection_lost",
    ),
    "an empty body": (http(200), "unreadable_answer"),
    "a page": (http(200, b"<html>OK</html>"), "unreadable_answer"),
    "a list": (http(200, []), "unreadable_answer"),
    "null": (http(200, None), "unreadable_answer"),
    "not UTF-8": (http(200, b'{"id": "\xff"}'), "unreadable_answer"),
    "nested without end": (http(200, b"[" * 100_000), "unreadable_answer"),
    "a number without end": (http(200, b'{"id": ' + b"9" * 10_000 + b"}"), "unreadable_answer"),
    "too long": (http(200, b" " * 300_000 + b"{}"), "unreadable_answer"),
    "compressed": (
        http(200, gzip.compress(json.dumps(PAYMENT).encode()), {"Content-Encoding": "gzip"}),
        "unreadable_answer",
    ),
    "a redirect": (http(302, headers={"Location": "/elsewhere"}), "http_302"),
    "no content": (http(204, headers={}), "http_204"),
    "a page that is not found": (http(404, b"<html>404</html>"), "http_404"),
    "an error without a code": (http(422, {}), "http_422"),
    "500 in JSON": (http(500, problem("internal_error")), "internal_error"),
    "500 that carries the payment": (http(500, PAYMENT), "http_500"),
    "502 of a proxy": (http(502, b"<html>Bad Gateway</html>"), "http_502"),
    "503": (http(503, b"", {"Retry-After": "10"}), "http_503"),
    "504": (http(504, b""), "http_504"),
    "an unheard-of status": (http(599, b""), "http_599"),
    "409": (http(409, problem("idempotency_key_in_use")), "idempotency_key_in_use"),
    "409 of a proxy": (http(409, b"Conflict"), "idempotency_key_in_use"),
    "wrong parameters": (
        http(400, problem("parameter_invalid", param="amount")),
        "parameter_invalid",
    ),
}
# Answers to a send that say no without a payment: bytes, outcome, code, pause.
REFUSALS = {
    "429": (
        http(429, problem("rate_limited"), {"Retry-After": "2"}),
        Outcome.NOT_ATTEMPTED,
        "rate_limited",
        Decimal(2),
    ),
    "429 without a pause": (http(429, b"slow"), Outcome.NOT_ATTEMPTED, "rate_limited", None),
    "401": (http(401, b"who?"), Outcome.NOT_ATTEMPTED, "unauthorized", None),
    "403": (http(403, problem("no_such_permission")), Outcome.NOT_ATTEMPTED, "forbidden", None),
    "402 with a code alone": (
        http(402, problem("do_not_honor")),
        Outcome.DECLINED,
        "do_not_honor",
        None,
    ),
    "402 of a page": (http(402, b"<html>Pay!</html>"), Outcome.UNKNOWN, "http_402", None),
    "402 without a code": (http(402, {}), Outcome.UNKNOWN, "unrecognised_answer", None),
    "402 about a payment that succeeded": (
        http(402, problem("declined", charge=PAYMENT)),
        Outcome.UNKNOWN,
        "unrecognised_answer",
        None,
    ),
    "402 about another payment": (
        http(402, problem("declined", charge=payment(status="declined", reference="x"))),
        Outcome.UNKNOWN,
        "reference_mismatch",
        None,
    ),
    "an error that names the source": (
        http(400, problem("mandate_revoked", param="source")),
        Outcome.DECLINED,
        "mandate_revoked",
        None,
    ),
    "a method that is not found": (
        http(404, problem("no_such_method", param="payment_method")),
        Outcome.DECLINED,
        "no_such_method",
        None,
    ),
    "an error that names the mandate without a code": (
        http(422, {"param": "mandate"}),
        Outcome.DECLINED,
        "payment_method_invalid",
        None,
    ),
    "500 that names the source": (
        http(500, problem("internal_error", param="source")),
        Outcome.UNKNOWN,
        "internal_error",
        None,
    ),
    "the key reused with other parameters": (
        http(400, problem("idempotency_key_reused", param="Idempotency-Key")),
        Outcome.UNKNOWN,
        "idempotency_mismatch",
        None,
    ),
}
# Look-ups by reference: bytes, outcome, code, payment id.
LISTINGS = {
    "none": (http(200, {"data": [], "has_more": False}), Outcome.NOT_FOUND, None, None),
    "none yet": (
        http(200, {"data": [], "has_more": True}),
        Outcome.UNKNOWN,
        "unrecognised_answer",
        None,
    ),
    "no list": (http(200, PAYMENT), Outcome.UNKNOWN, "unrecognised_answer", None),
    "a list of texts": (
        http(200, {"data": ["pay_1"], "has_more": False}),
        Outcome.UNKNOWN,
        "unrecognised_answer",
        None,
    ),
    "ours among others": (
        http(200, {"data": [PAYMENT, payment(reference="x")], "has_more": False}),
        Outcome.UNKNOWN,
        "reference_mismatch",
        None,
    ),
    "declined, then succeeded": (
        http(200, {"data": [DECLINED, payment(id="pay_2")], "has_more": False}),
        Outcome.SUCCEEDED,
        None,
        "pay_2",
    ),
    "processing beside a pending action": (
        http(
            200,
            {"data": [payment(id="pay_2", status="processing"), ACTION], "has_more": False},
        ),
        Outcome.PROCESSING,
        None,
        "pay_2",
    ),
    "twice succeeded": (
        http(200, {"data": [PAYMENT, payment(id="pay_2")], "has_more": False}),
        Outcome.SUCCEEDED,
        "several_payments",
        "pay_1",
    ),
    "a definite no to the wrong question": (
        http(404, problem("charge_not_found")),
        Outcome.UNKNOWN,
        "charge_not_found",
        None,
    ),
}
PAUSES = {
    "0": Decimal(0),
    "2": Decimal(2),
    "1.5": Decimal("1.5"),
    "999999999": Decimal(86_400),
    "-1": None,
    "soon": None,
    "NaN": None,
    "1e3": None,
    "\u0662": None,
    "Sat, 01 May 2027 00:00:30 GMT": Decimal(30),
    "Fri, 30 Apr 2027 23:59:00 GMT": Decimal(0),
    "Tue, 01 Jan 2999 00:00:00 GMT": Decimal(86_400),
    "Mon, 99 Foo 2027 00:00:00 GMT": None,
}


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with raw_server() as running:
        yield running


@pytest.fixture
async def adapter(server: RawServer) -> AsyncIterator[Gateway]:
    gateway = SimulatedGateway(server.url)
    yield gateway
    await gateway.aclose()


def unmoved(result: ChargeResult) -> bool:
    """Nothing is said of a payment where none was understood."""
    return all(getattr(result, part) is None for part in PARTS_OF_A_PAYMENT)


@pytest.mark.parametrize("case", PAYMENTS)
@pytest.mark.parametrize("status", [200, 201, 202])
async def test_a_payment_settles_a_charge(
    server: RawServer, adapter: Gateway, case: str, status: int
) -> None:
    document, outcome, code = PAYMENTS[case]
    server.reply = http(status, document)

    result = await adapter.charge(REQUEST, timeout=PATIENCE)

    assert result == ChargeResult(
        customer_id=64,
        attempt_id=128,
        claim_epoch=3,
        outcome=outcome,
        gateway_payment_id="pay_1",
        amount=document["amount"],
        currency=document["currency"],
        code=code,
        retry_after=None,
        action_expires_at=datetime(2027, 5, 1, 23, tzinfo=UTC)
        if outcome is Outcome.REQUIRES_ACTION
        else None,
        source="SEND",
    )


async def test_a_402_carries_the_payment_that_was_declined(
    server: RawServer, adapter: Gateway
) -> None:
    server.reply = http(402, problem("insufficient_funds", charge=DECLINED))
    result = await adapter.charge(REQUEST, timeout=PATIENCE)
    assert (result.outcome, result.code) == (Outcome.DECLINED, "insufficient_funds")
    assert (result.gateway_payment_id, result.amount, result.currency) == ("pay_1", 4900, "USD")


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refusal_without_a_payment_is_told_apart(
    server: RawServer, adapter: Gateway, case: str
) -> None:
    server.reply, outcome, code, pause = REFUSALS[case]
    result = await adapter.charge(REQUEST, timeout=PATIENCE)
    assert (result.outcome, result.code, result.retry_after) == (outcome, code, pause)
    assert unmoved(result)


@pytest.mark.parametrize("case", NO_PAYMENTS)
async def test_an_answer_that_is_no_payment_of_ours_leaves_a_charge_unknown(
    server: RawServer, adapter: Gateway, case: str
) -> None:
    document, code = NO_PAYMENTS[case]
    server.reply = http(200, document)
    result = await adapter.charge(REQUEST, timeout=PATIENCE)
    assert (result.outcome, result.code) == (Outcome.UNKNOWN, code)
    assert unmoved(result)


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_answer_leaves_a_charge_unknown(
    server: RawServer, adapter: Gateway, case: str
) -> None:
    server.reply, code = BROKEN[case]
    result = await adapter.charge(REQUEST, timeout=PATIENCE)
    assert (result.outcome, result.code, result.source) == (Outcome.UNKNOWN, code, Source.SEND)
    assert unmoved(result)


@pytest.mark.parametrize("payment_id", [None, "pay_1"])
@pytest.mark.parametrize("case", PAYMENTS)
async def test_a_look_up_finds_a_payment(
    server: RawServer, adapter: Gateway, case: str, payment_id: str | None
) -> None:
    document, outcome, code = PAYMENTS[case]
    listing = {"data": [document], "has_more": False}
    server.reply = http(200, listing if payment_id is None else document)

    result = await adapter.look_up(
        replace(REQUEST, gateway_payment_id=payment_id), timeout=PATIENCE
    )

    assert (result.outcome, result.code, result.source) == (outcome, code, Source.LOOKUP)
    assert (result.gateway_payment_id, result.amount) == ("pay_1", document["amount"])


@pytest.mark.parametrize("case", LISTINGS)
async def test_a_look_up_by_reference_reports_what_went_furthest(
    server: RawServer, adapter: Gateway, case: str
) -> None:
    server.reply, outcome, code, payment_id = LISTINGS[case]
    result = await adapter.look_up(REQUEST, timeout=PATIENCE)
    assert (result.outcome, result.code, result.gateway_payment_id) == (outcome, code, payment_id)


@pytest.mark.parametrize("payment_id", [None, "pay_1"])
@pytest.mark.parametrize("case", NO_PAYMENTS)
async def test_an_answer_that_is_no_payment_of_ours_leaves_a_look_up_unknown(
    server: RawServer, adapter: Gateway, case: str, payment_id: str | None
) -> None:
    document, code = NO_PAYMENTS[case]
    listing = {"data": [document], "has_more": False}
    server.reply = http(200, listing if payment_id is None else document)
    result = await adapter.look_up(
        replace(REQUEST, gateway_payment_id=payment_id), timeout=PATIENCE
    )
    assert (result.outcome, result.code, result.source) == (Outcome.UNKNOWN, code, Source.LOOKUP)
    assert unmoved(result)


@pytest.mark.parametrize("payment_id", [None, "pay_1"])
@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_answer_leaves_a_look_up_unknown(
    server: RawServer, adapter: Gateway, case: str, payment_id: str | None
) -> None:
    server.reply, code = BROKEN[case]
    result = await adapter.look_up(
        replace(REQUEST, gateway_payment_id=payment_id), timeout=PATIENCE
    )
    assert (result.outcome, result.code, result.source) == (Outcome.UNKNOWN, code, Source.LOOKUP)


@pytest.mark.parametrize(
    ("status", "code"), [(429, "rate_limited"), (401, "unauthorized"), (403, "forbidden")]
)
async def test_a_look_up_that_is_refused_says_nothing_about_the_payment(
    server: RawServer, adapter: Gateway, status: int, code: str
) -> None:
    server.reply = http(status, b"", {"Retry-After": "7"})
    result = await adapter.look_up(REQUEST, timeout=PATIENCE)
    assert (result.outcome, result.code) == (Outcome.UNKNOWN, code)
    assert result.retry_after == Decimal(7)


async def test_a_payment_id_that_the_gateway_does_not_know_is_not_found(
    server: RawServer, adapter: Gateway
) -> None:
    server.reply = http(404, problem("charge_not_found"))
    result = await adapter.look_up(replace(REQUEST, gateway_payment_id="pay_1"), timeout=PATIENCE)
    assert (result.outcome, result.code) == (Outcome.NOT_FOUND, "charge_not_found")


async def test_another_payment_than_the_one_asked_for_is_not_taken(
    server: RawServer, adapter: Gateway
) -> None:
    server.reply = http(200, PAYMENT)
    result = await adapter.look_up(replace(REQUEST, gateway_payment_id="pay_2"), timeout=PATIENCE)
    assert (result.outcome, result.code) == (Outcome.UNKNOWN, "reference_mismatch")
    assert unmoved(result)


@pytest.mark.parametrize("value", PAUSES)
async def test_a_retry_after_is_read_in_every_form_and_bounded(
    server: RawServer, adapter: Gateway, value: str
) -> None:
    headers = {"Date": "Sat, 01 May 2027 00:00:00 GMT", "Retry-After": value}
    server.reply = http(429).replace(
        b"\r\n\r\n",
        "".join(f"\r\n{name}: {text}" for name, text in headers.items()).encode() + b"\r\n\r\n",
    )
    result = await adapter.charge(REQUEST, timeout=PATIENCE)
    assert result.outcome is Outcome.NOT_ATTEMPTED
    assert result.retry_after == PAUSES[value]


@pytest.mark.parametrize(
    "reply",
    [b"", b"HTTP/1.1 200 OK\r\n", http(200, b"{", {"Content-Length": "10"})],
    ids=["before the head", "within the head", "within the body"],
)
async def test_silence_leaves_both_calls_unknown_within_their_time(
    server: RawServer, adapter: Gateway, reply: bytes
) -> None:
    server.reply, server.stays_open = reply, True
    async with asyncio.timeout(PATIENCE):
        sent = await adapter.charge(REQUEST, timeout=0.3)
        looked_up = await adapter.look_up(REQUEST, timeout=0.3)
    assert (sent.outcome, sent.code) == (Outcome.UNKNOWN, "timeout")
    assert (looked_up.outcome, looked_up.code) == (Outcome.UNKNOWN, "timeout")


async def test_an_answer_that_only_trickles_is_not_waited_for(
    server: RawServer, adapter: Gateway
) -> None:
    server.reply, server.pause = http(200, PAYMENT), 0.05
    async with asyncio.timeout(PATIENCE):
        result = await adapter.charge(REQUEST, timeout=0.5)
    assert (result.outcome, result.code) == (Outcome.UNKNOWN, "timeout")


async def test_a_refused_connection_means_that_nothing_was_sent() -> None:
    with socket.socket() as mute:
        # Taken, so that nobody else listens there.
        mute.bind(("127.0.0.1", 0))
        adapter = SimulatedGateway(f"http://127.0.0.1:{mute.getsockname()[1]}")
        sent = await adapter.charge(REQUEST, timeout=PATIENCE)
        looked_up = await adapter.look_up(REQUEST, timeout=PATIENCE)
        await adapter.aclose()
    assert (sent.outcome, sent.code) == (Outcome.NOT_ATTEMPTED, "connection_refused")
    assert (looked_up.outcome, looked_up.code) == (Outcome.UNKNOWN, "connection_refused")


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (httpx.ConnectTimeout, Outcome.NOT_ATTEMPTED, "connection_refused"),
        (httpx.PoolTimeout, Outcome.NOT_ATTEMPTED, "no_free_connection"),
        (httpx.WriteTimeout, Outcome.UNKNOWN, "timeout"),
        (httpx.ReadTimeout, Outcome.UNKNOWN, "timeout"),
        (httpx.WriteError, Outcome.UNKNOWN, "connection_lost"),
        (httpx.ReadError, Outcome.UNKNOWN, "connection_lost"),
        (httpx.LocalProtocolError, Outcome.UNKNOWN, "connection_lost"),
        (httpx.RemoteProtocolError, Outcome.UNKNOWN, "connection_lost"),
        (OSError, Outcome.UNKNOWN, "connection_lost"),
    ],
)
async def test_what_breaks_on_the_way_is_told_apart_by_whether_it_was_sent(
    monkeypatch: pytest.MonkeyPatch,
    adapter: Gateway,
    error: type[Exception],
    outcome: Outcome,
    code: str,
) -> None:
    async def fail(_: ConnectionLanes, __: httpx.Request) -> httpx.Response:
        raise error("broken")

    monkeypatch.setattr(ConnectionLanes, "handle_async_request", fail)
    result = await adapter.charge(REQUEST, timeout=PATIENCE)
    assert (result.outcome, result.code) == (outcome, code)


@pytest.mark.parametrize("key", ["", "a b", "a\r\nb: c", "m\u00e4g", "k" * 256])
async def test_a_key_that_cannot_be_sent_is_not_sent(
    server: RawServer, adapter: Gateway, key: str
) -> None:
    request = replace(REQUEST, idempotency_key=key)
    sent = await adapter.charge(request, timeout=PATIENCE)
    looked_up = await adapter.look_up(request, timeout=PATIENCE)
    assert (sent.outcome, sent.code) == (Outcome.NOT_ATTEMPTED, "unsendable_request")
    assert (looked_up.outcome, looked_up.code) == (Outcome.UNKNOWN, "unsendable_request")
    assert server.requests == []


async def test_every_send_repeats_the_stored_request_byte_by_byte(
    server: RawServer, adapter: Gateway
) -> None:
    server.reply = http(500)
    await adapter.charge(REQUEST, timeout=PATIENCE)
    later = replace(REQUEST, send_no=7, claim_epoch=9, lane="INTERACTIVE")
    await adapter.charge(later, timeout=PATIENCE)
    first, second = server.requests
    assert first == second
    head, _, body = first.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/charges HTTP/1.1\r\n")
    assert f"Idempotency-Key: {KEY}".encode() in head.split(b"\r\n")
    assert body == (
        b'{"amount":4900,"currency":"USD","source":"tok_ok","reference":"db-inv-64-try-1",'
        b'"description":"Renewal \\u2013 M\\u00e4rz"}'
    )


async def test_no_call_is_ever_repeated_by_itself(server: RawServer, adapter: Gateway) -> None:
    for reply in (b"", http(429), http(500), http(503, b"", {"Retry-After": "0"})):
        server.requests.clear()
        server.reply = reply
        await adapter.charge(REQUEST, timeout=PATIENCE)
        await adapter.look_up(REQUEST, timeout=PATIENCE)
        assert len(server.requests) == 2


async def test_a_cancelled_call_passes_on_the_cancellation_and_leaves_the_adapter_usable(
    server: RawServer, adapter: Gateway
) -> None:
    server.stays_open = True
    call = asyncio.create_task(adapter.charge(REQUEST, timeout=60))
    async with asyncio.timeout(PATIENCE):
        while not server.requests:  # noqa: ASYNC110  the other end is a task of this very loop
            await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    server.stays_open, server.reply = False, http(200, PAYMENT)
    assert (await adapter.charge(REQUEST, timeout=PATIENCE)).outcome is Outcome.SUCCEEDED


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path_factory.mktemp("gateway")) as process:
        yield process


@pytest.fixture
async def live(gateway: SimulatorProcess) -> AsyncIterator[Gateway]:
    adapter = SimulatedGateway(gateway.url)
    yield adapter
    await adapter.aclose()


@pytest.fixture
def request_of_its_own() -> ChargeRequest:
    return replace(REQUEST, idempotency_key=f"db-inv-{uuid.uuid4().hex}-try-1")


# Token; outcome and code of the first send, of a look-up then, of the second send.
LIVE = {
    "tok_ok": (("SUCCEEDED", None), ("SUCCEEDED", None), ("SUCCEEDED", None)),
    "tok_amount_4000": (("SUCCEEDED", None), ("SUCCEEDED", None), ("SUCCEEDED", None)),
    "tok_decline_stolen_card": (("DECLINED", "stolen_card"),) * 3,
    "tok_of_nobody": (("DECLINED", "unknown_token"),) * 3,
    "tok_refuse_mandate_revoked": (
        ("DECLINED", "mandate_revoked"),
        ("NOT_FOUND", None),
        ("DECLINED", "mandate_revoked"),
    ),
    "tok_action": (("REQUIRES_ACTION", None),) * 3,
    "tok_processing": (("PROCESSING", None),) * 3,
    "tok_timeout_charged": (("UNKNOWN", "timeout"), ("SUCCEEDED", None), ("SUCCEEDED", None)),
    "tok_timeout_lost": (("UNKNOWN", "timeout"), ("NOT_FOUND", None), ("SUCCEEDED", None)),
    "tok_cut": (("UNKNOWN", "connection_lost"), ("SUCCEEDED", None), ("SUCCEEDED", None)),
    "tok_500_stored": (
        ("UNKNOWN", "internal_error"),
        ("NOT_FOUND", None),
        ("UNKNOWN", "internal_error"),
    ),
    "tok_500_charged": (
        ("UNKNOWN", "internal_error"),
        ("SUCCEEDED", None),
        ("UNKNOWN", "internal_error"),
    ),
    "tok_500_lost": (("UNKNOWN", "internal_error"), ("NOT_FOUND", None), ("SUCCEEDED", None)),
    "tok_429_1": (("NOT_ATTEMPTED", "rate_limited"), ("NOT_FOUND", None), ("SUCCEEDED", None)),
}


@pytest.mark.parametrize("token", LIVE)
async def test_the_real_gateway_is_understood(
    live: Gateway, gateway: SimulatorProcess, request_of_its_own: ChargeRequest, token: str
) -> None:
    request = replace(request_of_its_own, payment_method_token=token)
    # Those that get no answer are given up, long after they were booked.
    first = await live.charge(request, timeout=2 if "timeout" in token else PATIENCE)
    looked_up = await live.look_up(request, timeout=PATIENCE)
    second = await live.charge(request, timeout=PATIENCE)

    told = [(result.outcome, result.code) for result in (first, looked_up, second)]
    assert told == list(LIVE[token])
    booked = gateway.rows(
        "SELECT payment_id, amount, currency FROM charges WHERE reference = ?",
        (request.idempotency_key,),
    )
    assert len(booked) <= 1
    for result in (first, looked_up, second):
        told_payment = (result.gateway_payment_id, result.amount, result.currency)
        assert told_payment == (None, None, None) or [told_payment] == booked


def test_the_cases_cover_every_outcome_there_is() -> None:
    told = {outcome for steps in LIVE.values() for outcome, _ in steps}
    assert told == {str(outcome) for outcome in Outcome}


async def test_the_amount_told_is_the_gateways_own(
    live: Gateway, request_of_its_own: ChargeRequest
) -> None:
    request = replace(request_of_its_own, payment_method_token="tok_amount_4000")
    assert (await live.charge(request, timeout=PATIENCE)).amount == 4000
    assert (await live.look_up(request, timeout=PATIENCE)).amount == 4000


async def test_an_action_expires_after_23_hours_and_is_then_a_decline(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path) as gateway:
        adapter = SimulatedGateway(gateway.url)
        async with client_of(gateway) as control:
            await put(control, "clock", now="2027-05-01T00:00:00Z")
            request = replace(REQUEST, payment_method_token="tok_action")
            pending = await adapter.charge(request, timeout=PATIENCE)
            await put(control, "clock", now="2027-05-01T23:00:00Z")
            expired = await adapter.look_up(
                replace(request, gateway_payment_id=pending.gateway_payment_id), timeout=PATIENCE
            )
        await adapter.aclose()
    assert pending.action_expires_at == datetime(2027, 5, 1, 23, tzinfo=UTC)
    assert (expired.outcome, expired.code) == (Outcome.DECLINED, "action_expired")


async def test_a_key_that_expired_charges_again_and_the_look_up_says_so(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path) as gateway:
        adapter = SimulatedGateway(gateway.url)
        async with client_of(gateway) as control:
            await put(control, "clock", now="2027-05-01T00:00:00Z")
            first = await adapter.charge(REQUEST, timeout=PATIENCE)
            await put(control, "clock", now="2027-05-02T00:00:00Z")
            await adapter.charge(REQUEST, timeout=PATIENCE)
            found = await adapter.look_up(REQUEST, timeout=PATIENCE)
        await adapter.aclose()
        assert gateway.value("SELECT count(*) FROM charges WHERE status = 'succeeded'") == 2
    assert (found.outcome, found.code) == (Outcome.SUCCEEDED, "several_payments")
    assert found.gateway_payment_id == first.gateway_payment_id


async def test_an_api_key_is_shown_and_a_wrong_one_is_not_a_decline(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path, "--api-key", "sk_right") as gateway:
        right, wrong = (
            SimulatedGateway(gateway.url, api_key=key) for key in ("sk_right", "sk_wrong")
        )
        refused = await wrong.charge(REQUEST, timeout=PATIENCE)
        not_told = await wrong.look_up(REQUEST, timeout=PATIENCE)
        taken = await right.charge(REQUEST, timeout=PATIENCE)
        await right.aclose()
        await wrong.aclose()
    assert (refused.outcome, refused.code) == (Outcome.NOT_ATTEMPTED, "unauthorized")
    assert (not_told.outcome, not_told.code) == (Outcome.UNKNOWN, "unauthorized")
    assert taken.outcome is Outcome.SUCCEEDED


async def test_the_limit_of_the_gateway_is_no_decline(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path, "--limit", "1") as gateway:
        adapter = SimulatedGateway(gateway.url)
        results = await asyncio.gather(
            *(
                adapter.charge(replace(REQUEST, idempotency_key=f"k{number}"), timeout=PATIENCE)
                for number in range(20)
            )
        )
        await adapter.aclose()
    refused = [result for result in results if result.outcome is Outcome.NOT_ATTEMPTED]
    assert refused
    assert {(result.code, result.retry_after) for result in refused} == {
        ("rate_limited", Decimal(1))
    }
    assert {result.outcome for result in results} == {Outcome.SUCCEEDED, Outcome.NOT_ATTEMPTED}


def test_the_dataclasses_hold_what_the_composites_of_the_database_hold() -> None:
    assert list(asdict(REQUEST)) == [
        "customer_id",
        "attempt_id",
        "claim_epoch",
        "idempotency_key",
        "amount",
        "currency",
        "payment_method_token",
        "description",
        "lane",
        "gateway_account",
        "gateway_payment_id",
        "send_no",
        "gateway_intent_id",
        "previous_payment_id",
        "awaits_action",
    ]
    assert list(ChargeResult.__dataclass_fields__) == [
        "customer_id",
        "attempt_id",
        "claim_epoch",
        "outcome",
        "gateway_payment_id",
        "amount",
        "currency",
        "code",
        "retry_after",
        "action_expires_at",
        "source",
        # Of the shell alone: kept by billing_worker.keep_intents.
        "gateway_intent_id",
    ]


SECRETS = ["the-next-secret-of-ours", "the-present-secret-of-ours"]
NOW = datetime(2027, 5, 1, tzinfo=UTC)
DATA: dict[str, Any] = {
    "payment_id": "pay_1",
    "reference": KEY,
    "amount": 4900,
    "currency": "USD",
    "status": "succeeded",
    "code": None,
    "expires_at": None,
}
FULL = {
    "paymentId": "pay_1",
    "reference": KEY,
    "outcome": "SUCCEEDED",
    "amount": 4900,
    "currency": "USD",
}


def delivery(event: object) -> tuple[bytes, dict[str, str]]:
    body = event if isinstance(event, bytes) else json.dumps(event).encode()
    return body, sign("evt_1", NOW, body, SECRETS[1])


def event_of(event_type: str = "charge.succeeded", **changes: object) -> dict[str, Any]:
    return {"id": "evt_1", "type": event_type, "data": DATA | changes}


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        (event_of(), FULL),
        (
            event_of("charge.declined", status="declined", code="stolen_card"),
            FULL | {"outcome": "DECLINED", "code": "stolen_card"},
        ),
        (
            event_of("charge.declined", status="declined"),
            FULL | {"outcome": "DECLINED", "code": "unrecognised_code"},
        ),
        (event_of("charge.processing", status="processing"), FULL | {"outcome": "PROCESSING"}),
        (
            event_of("charge.requires_action", status="requires_action"),
            FULL | {"outcome": "REQUIRES_ACTION"},
        ),
        (
            event_of("charge.held", status="on_hold"),
            {name: value for name, value in FULL.items() if name != "outcome"},
        ),
        (
            event_of(amount="4900", currency=None, payment_id="\0", reference=[]),
            {"outcome": "SUCCEEDED"},
        ),
        (
            event_of(amount=True, currency="usd", payment_id=7, reference=" "),
            {"outcome": "SUCCEEDED"},
        ),
        (event_of("refund.succeeded", reference="refund-1", amount=98), {"paymentId": "pay_1"}),
        (event_of("charge.succeeded") | {"customer": {"email": "a@b.example"}}, FULL),
    ],
)
def test_a_webhook_is_put_into_the_engines_words(event: object, payload: dict[str, Any]) -> None:
    body, headers = delivery(event)
    read = read_webhook(body, headers, SECRETS, NOW)
    assert read.event_id == "evt_1"
    assert read.payload == payload


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"\xff",
        [],
        None,
        {"type": "charge.succeeded"},
        {"type": "charge.succeeded", "data": []},
        {"data": DATA},
        {"type": 7, "data": DATA},
        {"type": "", "data": DATA},
        {"type": "charge\0", "data": DATA},
    ],
)
def test_a_signed_body_that_is_no_event_is_refused(event: object) -> None:
    body, headers = delivery(event)
    with pytest.raises(UnreadableWebhookError):
        read_webhook(body, headers, SECRETS, NOW)


def test_a_webhook_is_read_only_once_its_signature_holds() -> None:
    body, headers = delivery(event_of())
    with pytest.raises(SignatureMismatchError):
        read_webhook(body + b" ", headers, SECRETS, NOW)
    with pytest.raises(SignatureMismatchError):
        read_webhook(b"{", headers, SECRETS, NOW)
