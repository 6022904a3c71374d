"""The simulated gateway's payments: tokens, scripts, look-ups, ends, refunds, and bad input."""

import asyncio
import json
import uuid
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
)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatorProcess]:
    with smooth_simulator(tmp_path_factory.mktemp("gateway")) as process:
        yield process


@pytest.fixture
async def client(gateway: SimulatorProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(gateway) as opened:
        yield opened
        await put(opened, "clock", now=None)


@pytest.fixture
def key() -> str:
    return f"db-inv-{uuid.uuid4().hex}-try-1"


def payments(gateway: SimulatorProcess, reference: str) -> list[tuple[Any, ...]]:
    return gateway.rows(
        "SELECT status, code, amount FROM charges WHERE reference = ? ORDER BY charge_no",
        (reference,),
    )


# Token; HTTP status, and status, code and amount of the payment that is booked, if any.
TOKENS = {
    "tok_ok": (200, ("succeeded", None, 4900)),
    "tok_ok_of_customer_7": (200, ("succeeded", None, 4900)),
    "tok_ok.7": (200, ("succeeded", None, 4900)),
    "tok_amount_4899": (200, ("succeeded", None, 4899)),
    "tok_decline_insufficient_funds": (402, ("declined", "insufficient_funds", 4900)),
    "tok_decline_stolen_card.7": (402, ("declined", "stolen_card", 4900)),
    "tok_action": (200, ("requires_action", None, 4900)),
    "tok_processing": (200, ("processing", None, 4900)),
    "tok_500_stored": (500, None),
    "tok_500_charged": (500, ("succeeded", None, 4900)),
    "tok_500_lost": (500, None),
    "tok_429": (429, None),
    "tok_refuse_mandate_revoked": (400, None),
    "tok_webhook_twice": (200, ("succeeded", None, 4900)),
    "tok_webhook_early": (200, ("succeeded", None, 4900)),
    "tok_nonsense": (402, ("declined", "unknown_token", 4900)),
    "tok_okay": (402, ("declined", "unknown_token", 4900)),
    "tok_decline_": (402, ("declined", "unknown_token", 4900)),
    "pm_card_visa": (402, ("declined", "unknown_token", 4900)),
}


@pytest.mark.parametrize("token", TOKENS)
async def test_a_token_says_what_happens(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str, token: str
) -> None:
    status, booked = TOKENS[token]
    response = await charge(client, key, token)

    assert response.status_code == status
    assert payments(gateway, key) == ([] if booked is None else [booked])
    if status == 200 and booked is not None:
        document = response.json()
        assert (document["status"], document["amount"], document["currency"]) == (
            booked[0],
            booked[2],
            "USD",
        )
        assert document["reference"] == key
    else:
        assert response.headers["content-type"] == "application/problem+json"


async def test_a_token_may_decline_first_and_then_succeed(
    client: httpx.AsyncClient, key: str
) -> None:
    token = f"tok_decline_insufficient_funds_then_ok_2.{key}"
    answers = [await charge(client, f"{key}{number}", token) for number in range(4)]
    replay = await charge(client, f"{key}0", token)
    assert [answer.status_code for answer in answers] == [402, 402, 200, 200]
    assert replay.content == answers[0].content


async def test_a_script_lines_outcomes_up_and_then_the_token_speaks_again(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    token = f"tok_ok_{key}"
    outcomes = ["decline_do_not_honor", "429", "action", "amount_5000"]
    await put(client, "script", token=token, outcomes=outcomes)

    declined = await charge(client, f"{key}-1", token)
    replayed = await charge(client, f"{key}-1", token)
    limited = await charge(client, f"{key}-2", token)
    pending = await charge(client, f"{key}-2", token)
    more = await charge(client, f"{key}-3", token)
    after = await charge(client, f"{key}-4", token)

    assert (declined.status_code, declined.json()["code"]) == (402, "do_not_honor")
    assert replayed.content == declined.content
    assert limited.status_code == 429
    assert pending.json()["status"] == "requires_action"
    assert more.json()["amount"] == 5000
    assert (after.json()["status"], after.json()["amount"]) == ("succeeded", 4900)
    used = "SELECT outcome FROM script_outcomes WHERE token = ? AND used_by_call IS NOT NULL"
    assert gateway.rows(used, (token,)) == [(outcome,) for outcome in outcomes]


async def test_a_script_gives_each_of_many_calls_at_once_an_outcome_of_its_own(
    client: httpx.AsyncClient, key: str
) -> None:
    token = f"tok_ok_{key}"
    await put(client, "script", token=token, outcomes=["decline_a"] * 5 + ["decline_b"] * 5)
    answers = await asyncio.gather(
        *(charge(client, f"{key}-{number}", token) for number in range(15))
    )
    codes = [answer.json()["code"] for answer in answers]
    assert (codes.count("decline_a"), codes.count("decline_b"), codes.count(None)) == (0, 0, 5)
    assert (codes.count("a"), codes.count("b")) == (5, 5)


async def test_a_new_script_replaces_what_is_left_of_the_old_one(
    client: httpx.AsyncClient, key: str
) -> None:
    token = f"tok_ok_{key}"
    await put(client, "script", token=token, outcomes=["decline_a", "decline_a"])
    await charge(client, f"{key}-1", token)
    await put(client, "script", token=token, outcomes=["decline_b"])
    assert (await charge(client, f"{key}-2", token)).json()["code"] == "b"
    assert (await charge(client, f"{key}-3", token)).json()["status"] == "succeeded"
    await put(client, "script", token=token, outcomes=["decline_c"])
    await put(client, "script", token=token, outcomes=[])
    assert (await charge(client, f"{key}-4", token)).json()["status"] == "succeeded"


async def test_look_ups_find_a_payment_by_reference_and_by_id(
    client: httpx.AsyncClient, key: str
) -> None:
    made = (await charge(client, key)).json()
    by_reference = (await client.get("/v1/charges", params={"reference": key})).json()
    by_id = (await client.get(f"/v1/charges/{made['id']}")).json()
    assert by_reference == {"object": "list", "data": [made], "has_more": False}
    assert by_id == made


async def test_look_ups_find_what_was_declined_and_what_was_never_answered(
    client: httpx.AsyncClient, key: str
) -> None:
    declined = (await charge(client, key, "tok_decline_expired_card")).json()["charge"]
    with pytest.raises(httpx.RemoteProtocolError):
        await charge(client, f"{key}-cut", "tok_cut")
    found = (await client.get("/v1/charges", params={"reference": key})).json()["data"]
    cut = (await client.get("/v1/charges", params={"reference": f"{key}-cut"})).json()["data"]
    assert found == [declined]
    assert [payment["status"] for payment in cut] == ["succeeded"]


async def test_a_look_up_of_nothing_says_so_definitely(client: httpx.AsyncClient, key: str) -> None:
    listing = await client.get("/v1/charges", params={"reference": key})
    by_id = await client.get("/v1/charges/pay_none")
    assert listing.json() == {"object": "list", "data": [], "has_more": False}
    assert (by_id.status_code, by_id.json()["code"]) == (404, "charge_not_found")


async def test_the_search_may_lag_while_the_id_is_known_at_once(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path, "--search-lag", "3600") as gateway:
        async with client_of(gateway) as client:
            await put(client, "clock", now="2027-05-01T00:00:00Z")
            made = (await charge(client, "k")).json()
            unseen = (await client.get("/v1/charges", params={"reference": "k"})).json()
            by_id = await client.get(f"/v1/charges/{made['id']}")
            await put(client, "clock", now="2027-05-01T01:00:00Z")
            seen = (await client.get("/v1/charges", params={"reference": "k"})).json()
    assert unseen["data"] == []
    assert by_id.json() == made
    assert seen["data"] == [made]


@pytest.mark.parametrize("token", ["tok_action", "tok_processing"])
async def test_a_payment_under_way_is_completed(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str, token: str
) -> None:
    pending = await charge(client, key, token)
    completed = await client.post(f"/_control/charges/{pending.json()['id']}/complete")
    again = await client.post(f"/_control/charges/{pending.json()['id']}/complete")

    assert completed.json()["status"] == "succeeded"
    assert (again.status_code, again.json()["code"]) == (409, "charge_not_under_way")
    assert payments(gateway, key) == [("succeeded", None, 4900)]
    # The answer under the key stays what it was: the end is told by webhook and by look-up.
    assert (await charge(client, key, token)).content == pending.content


async def test_a_payment_under_way_fails(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    first = (await charge(client, f"{key}-1", "tok_processing")).json()["id"]
    second = (await charge(client, f"{key}-2", "tok_action")).json()["id"]
    await client.post(f"/_control/charges/{first}/fail")
    await client.post(f"/_control/charges/{second}/fail", json={"code": "debit_returned"})
    assert payments(gateway, f"{key}-1") == [("declined", "generic_decline", 4900)]
    assert payments(gateway, f"{key}-2") == [("declined", "debit_returned", 4900)]
    assert (await client.post("/_control/charges/pay_none/fail")).status_code == 404


async def test_an_action_expires_after_23_hours_of_the_business_clock(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    await put(client, "clock", now="2027-05-01T00:00:00Z")
    pending = (await charge(client, key, "tok_action")).json()
    await put(client, "clock", now="2027-05-01T22:59:59Z")
    assert payments(gateway, key) == [("requires_action", None, 4900)]
    await put(client, "clock", now="2027-05-01T23:00:00Z")
    late = await client.post(f"/_control/charges/{pending['id']}/complete")

    assert pending["expires_at"] == "2027-05-01T23:00:00.000000Z"
    assert payments(gateway, key) == [("declined", "action_expired", 4900)]
    assert late.status_code == 409


async def refund(
    client: httpx.AsyncClient, key: str, payment_id: str, amount: int | None = None
) -> httpx.Response:
    document: dict[str, Any] = {"charge": payment_id, "reference": key}
    if amount is not None:
        document["amount"] = amount
    return await client.post("/v1/refunds", json=document, headers={"Idempotency-Key": key})


async def test_refunds_are_partial_idempotent_and_never_above_what_was_captured(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    payment_id = (await charge(client, key)).json()["id"]
    first = await refund(client, f"{key}-r1", payment_id, 98)
    replay = await refund(client, f"{key}-r1", payment_id, 98)
    reused = await refund(client, f"{key}-r1", payment_id, 99)
    second = await refund(client, f"{key}-r2", payment_id, 98)
    too_much = await refund(client, f"{key}-r3", payment_id, 4705)
    rest = await refund(client, f"{key}-r4", payment_id)
    nothing_left = await refund(client, f"{key}-r5", payment_id)

    assert (first.json()["amount"], first.json()["charge"]) == (98, payment_id)
    assert replay.content == first.content
    assert replay.headers["idempotent-replayed"] == "true"
    assert (reused.status_code, reused.json()["code"]) == (400, "idempotency_key_reused")
    assert second.json()["id"] != first.json()["id"]
    for refused in (too_much, nothing_left):
        assert (refused.status_code, refused.json()["code"]) == (400, "amount_exceeds_remaining")
    assert rest.json()["amount"] == 4704
    amounts = "SELECT amount FROM refunds WHERE payment_id = ? ORDER BY refund_no"
    assert gateway.rows(amounts, (payment_id,)) == [(98,), (98,), (4704,)]


async def test_refunds_at_once_do_not_exceed_the_payment(
    gateway: SimulatorProcess, client: httpx.AsyncClient, key: str
) -> None:
    payment_id = (await charge(client, key)).json()["id"]
    answers = await asyncio.gather(
        *(refund(client, f"{key}-r{number}", payment_id, 1000) for number in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [400] * 16
    total = "SELECT sum(amount) FROM refunds WHERE payment_id = ?"
    assert gateway.value(total, (payment_id,)) == 4000


async def test_what_was_not_captured_is_not_refunded(client: httpx.AsyncClient, key: str) -> None:
    pending = (await charge(client, key, "tok_processing")).json()["id"]
    uncaptured = await refund(client, f"{key}-r1", pending)
    unknown = await refund(client, f"{key}-r2", "pay_none")
    assert (uncaptured.status_code, uncaptured.json()["code"]) == (400, "charge_not_captured")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "charge_not_found")


async def test_a_charge_and_a_refund_may_have_the_same_key(
    client: httpx.AsyncClient, key: str
) -> None:
    payment_id = (await charge(client, key)).json()["id"]
    assert (await refund(client, key, payment_id)).json()["amount"] == 4900


GOOD: dict[str, Any] = {"amount": 4900, "currency": "USD", "source": "tok_ok", "reference": "r"}
BAD_MEMBERS: dict[str, list[Any]] = {
    "amount": [None, "4900", 49.0, True, [4900], {}, 0, -1, 10**15 + 1, float("nan")],
    "currency": [None, 840, "", "US", "usd", "USDT", "U\u00dfD", ["USD"]],
    "source": [None, 1, "", "t" * 256, "tok\0ok", "\ud800", ["tok_ok"]],
    "reference": [None, 1, "", "r" * 256, "r\0", "\udfff"],
    "description": [None, 1, "d" * 1001, "d\0", {}],
    "amount_of_something_else": [1],
}
BAD_BODIES = {
    "nothing": b"",
    "no JSON": b"amount=4900",
    "half of it": b'{"amount": 4900',
    "a list": b"[]",
    "null": b"null",
    "a text": b'"tok_ok"',
    "not UTF-8": b'{"amount": "\xff"}',
    "nested without end": b"[" * 60_000,
    "a number without end": b'{"amount": ' + b"9" * 20_000 + b"}",
    "a million": json.dumps(GOOD | {"description": "x" * 1_000_000}).encode(),
    **{
        f"{name} = {value!r}"[:60]: json.dumps(GOOD | {name: value}).encode()
        for name, values in BAD_MEMBERS.items()
        for value in values
    },
    **{
        f"without {name}": json.dumps({k: v for k, v in GOOD.items() if k != name}).encode()
        for name in GOOD
    },
}


@pytest.mark.parametrize("case", BAD_BODIES)
async def test_a_bad_body_is_refused_and_books_nothing(
    gateway: SimulatorProcess, client: httpx.AsyncClient, case: str, key: str
) -> None:
    before = gateway.value("SELECT count(*) FROM charges")
    response = await client.post(
        "/v1/charges", content=BAD_BODIES[case], headers={"Idempotency-Key": key}
    )
    assert response.status_code == 400
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"]
    assert gateway.value("SELECT count(*) FROM charges") == before
    kept = "SELECT count(*) FROM stored_answers WHERE idempotency_key = ?"
    assert gateway.value(kept, (key,)) == 0
    arrived = "SELECT http_status FROM calls WHERE idempotency_key = ?"
    assert gateway.rows(arrived, (key,)) == [(400,)]


@pytest.mark.parametrize("bad", ["", "a b", "k" * 256, "m\u00e4g"])
async def test_a_bad_key_is_refused(client: httpx.AsyncClient, bad: str) -> None:
    response = await client.post(
        "/v1/charges", json=GOOD, headers={b"Idempotency-Key": bad.encode("latin-1")}
    )
    assert (response.status_code, response.json()["param"]) == (400, "Idempotency-Key")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/charges", None, 400),
        ("GET", "/v1/charges?reference=", None, 400),
        ("GET", f"/v1/charges?reference={'r' * 256}", None, 400),
        ("GET", "/v1/charges?reference=%00%FF", None, 200),
        ("GET", "/v1/charges/%00%FF", None, 404),
        ("GET", "/v1/nowhere", None, 404),
        ("DELETE", "/v1/charges", None, 405),
        ("PUT", "/v1/charges/pay_1", None, 405),
        ("POST", "/v1/refunds", {}, 400),
        ("POST", "/v1/refunds", {"charge": "pay_1", "reference": "r", "amount": 0}, 400),
        ("POST", "/v1/refunds", {"charge": "pay_1", "reference": "r", "why": "so"}, 400),
        ("PUT", "/_control/clock", {}, 400),
        ("PUT", "/_control/clock", {"now": 5}, 400),
        ("PUT", "/_control/clock", {"now": "tomorrow"}, 400),
        ("PUT", "/_control/clock", {"now": "2027-05-01T00:00:00"}, 400),
        ("PUT", "/_control/script", {"token": "tok_ok"}, 400),
        ("PUT", "/_control/script", {"token": 1, "outcomes": []}, 400),
        ("PUT", "/_control/script", {"token": "tok_ok", "outcomes": ["nonsense"]}, 400),
        ("PUT", "/_control/script", {"token": "tok_ok", "outcomes": [1]}, 400),
        ("PUT", "/_control/faults", {"rate": 2}, 400),
        ("PUT", "/_control/faults", {"rate": True}, 400),
        ("PUT", "/_control/faults", {"rate": 0, "kinds": ["nonsense"]}, 400),
        ("PUT", "/_control/faults", {"rate": 0, "kinds": [[]]}, 400),
        ("PUT", "/_control/latency", {"least": 1, "most": 0}, 400),
        ("PUT", "/_control/latency", {"least": 0}, 400),
        ("PUT", "/_control/webhooks", {"url": "ftp://host", "secret": "s"}, 400),
        ("PUT", "/_control/webhooks", {"url": "http://host", "secret": ""}, 400),
        ("PUT", "/_control/webhooks", {"url": "http://host", "secret": "whsec_!"}, 400),
        ("POST", "/_control/charges/pay_1/fail", {"code": 1}, 400),
        ("GET", "/_calls?after=x", None, 400),
        ("GET", "/_calls?limit=0", None, 400),
        ("GET", "/_ledger?limit=1000000", None, 400),
        ("GET", "/_ledger?after=99999999999999999999", None, 400),
    ],
)
async def test_nonsense_is_a_problem_and_never_a_500(
    client: httpx.AsyncClient, method: str, path: str, body: object, status: int
) -> None:
    response = await client.request(method, path, json=body)
    assert response.status_code == status
    if status >= 400:
        assert response.headers["content-type"] == "application/problem+json"


async def test_the_books_are_shown_as_json_page_by_page(tmp_path: Path) -> None:
    with smooth_simulator(tmp_path) as gateway:
        async with client_of(gateway) as client:
            for number in range(5):
                await charge(client, f"k{number}")
            await charge(client, "no", "tok_decline_x")
            payment_id = (await charge(client, "k0")).json()["id"]
            await refund(client, "r", payment_id, 100)

            first = (await client.get("/_ledger", params={"limit": 4})).json()
            second = (
                await client.get("/_ledger", params={"limit": 4, "after": first["next_after"]})
            ).json()
            one = (await client.get("/_ledger", params={"reference": "k0"})).json()
            calls = (await client.get("/_calls", params={"limit": 7})).json()

    keys = [charge["idempotency_key"] for charge in first["charges"] + second["charges"]]
    assert keys == ["k0", "k1", "k2", "k3", "k4", "no"]
    assert second["next_after"] is None
    assert first["totals"] == {
        "charges": [
            {"currency": "USD", "status": "declined", "payments": 1, "amount": 4900},
            {"currency": "USD", "status": "succeeded", "payments": 5, "amount": 24500},
        ],
        "refunds": [{"currency": "USD", "refunds": 1, "amount": 100}],
    }
    assert [charge["payment_id"] for charge in one["charges"]] == [payment_id]
    assert [refund["amount"] for refund in one["refunds"]] == [100]
    assert [call["replayed"] for call in calls["calls"]] == [0, 0, 0, 0, 0, 0, 1]
    assert calls["next_after"] == 7
