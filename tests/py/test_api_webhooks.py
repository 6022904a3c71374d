"""Where gateways report: proven, stored, and only then acknowledged."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from billing_shell.api_guard import LARGEST_EVENT
from billing_shell.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from tests.py.support.door import ACCOUNT, PATIENCE, SECRET, RunningDoor, Shop, running_door, value

PATHS = ("/webhooks/payments", f"/webhooks/{ACCOUNT}")
EVENT = json.dumps(
    {
        "type": "charge.succeeded",
        "data": {
            "payment_id": "pay_1",
            "reference": "x-inv-1-try-1",
            "status": "succeeded",
            "amount": 4900,
            "currency": "USD",
            "customer_email": "somebody@example.org",
        },
    }
).encode()
STORED = "SELECT count(*) FROM billing.webhook_event"


@pytest.fixture
def gateway(door: RunningDoor) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=door.url, timeout=PATIENCE) as client:
        yield client


def signed(
    body: bytes = EVENT,
    *,
    event_id: str = "evt_1",
    secret: str = SECRET,
    age: timedelta = timedelta(0),
) -> dict[str, Any]:
    """What a gateway sends."""
    headers = sign(event_id, datetime.now(UTC) - age, body, secret)
    return {
        "content": body,
        "headers": {**headers, "Content-Type": "application/json"},
        "timeout": PATIENCE,
    }


@pytest.mark.parametrize("path", PATHS)
def test_an_event_is_stored_before_it_is_acknowledged(
    gateway: httpx.Client, shop: Shop, path: str
) -> None:
    answer = gateway.post(path, **signed())
    assert (answer.status_code, answer.json()) == (200, {"status": "STORED"})
    with psycopg.connect(shop.url) as connection:
        rows = connection.execute(
            "SELECT a.code, e.event_id, e.event_type, e.status, e.payload"
            " FROM billing.webhook_event AS e INNER JOIN billing.gateway_account AS a"
            " USING (gateway_account_id)"
        ).fetchall()
    payload = {"paymentId": "pay_1", "reference": "x-inv-1-try-1", "outcome": "SUCCEEDED",
               "amount": 4900, "currency": "USD"}  # fmt: skip
    assert rows == [(ACCOUNT, "evt_1", "charge.succeeded", "RECEIVED", payload)]


def test_an_event_that_comes_again_is_acknowledged_and_stored_once(
    gateway: httpx.Client, shop: Shop
) -> None:
    answers = [gateway.post(PATHS[0], **signed()).json()["status"] for _ in range(3)]
    assert answers == ["STORED", "DUPLICATE", "DUPLICATE"]
    assert value(shop.url, STORED) == 1


def test_what_cannot_be_stored_is_not_acknowledged(gateway: httpx.Client, shop: Shop) -> None:
    with psycopg.connect(shop.url) as holder:
        holder.execute("LOCK TABLE billing.webhook_event IN ACCESS EXCLUSIVE MODE")
        refused = gateway.post(PATHS[0], **signed())
    assert refused.status_code == 503
    assert refused.headers["Retry-After"]
    assert gateway.post(PATHS[0], **signed()).json() == {"status": "STORED"}


def test_an_event_settles_what_it_is_about(gateway: httpx.Client, shop: Shop) -> None:
    """All the way: the stored event pays the invoice once it is processed."""
    with psycopg.connect(shop.url, autocommit=True) as connection:
        row = connection.execute(
            "SELECT idempotency_key, amount FROM billing_worker.start_attempts(%s, 1, 'w')",
            (ACCOUNT,),
        ).fetchone()
        assert row is not None
        data = {"payment_id": "pay_9", "reference": row[0], "status": "succeeded",
                "amount": row[1], "currency": "USD"}  # fmt: skip
        body = json.dumps({"type": "charge.succeeded", "data": data}).encode()
        assert gateway.post(PATHS[0], **signed(body)).is_success
        connection.execute("SELECT billing_worker.process_webhooks(10)")
        status = connection.execute(
            "SELECT status FROM billing.payment_attempt WHERE gateway_payment_id = 'pay_9'"
        ).fetchone()
    assert status == ("SUCCEEDED",)


def forged() -> dict[str, dict[str, Any]]:
    """Deliveries by somebody who does not know the secret, or is late."""
    good = signed()
    return {
        "no headers": {**good, "headers": {}},
        "another secret": signed(secret="not the secret that we share"),
        "another body": {**good, "content": EVENT.replace(b"4900", b"1")},
        "another id": {**good, "headers": {**good["headers"], ID_HEADER: "evt_2"}},
        "one byte more": {**good, "content": EVENT + b" "},
        "too old": signed(age=timedelta(seconds=301)),
        "from the future": signed(age=timedelta(hours=-1)),
        "no signature": {**good, "headers": {**good["headers"], SIGNATURE_HEADER: "v1,"}},
        "another version": {**good, "headers": {**good["headers"], SIGNATURE_HEADER: "v2,eHg="}},
        "no time": {**good, "headers": {**good["headers"], TIMESTAMP_HEADER: "now"}},
    }


@pytest.mark.parametrize("how", list(forged()))
def test_a_forged_event_is_refused_in_the_same_words_and_not_stored(
    shared_door: RunningDoor, shared_shop: Shop, how: str
) -> None:
    answers = [
        httpx.post(shared_door.url + path, **forged()[how])
        for path in (*PATHS, "/webhooks/nowhere", "/webhooks/-", "/webhooks/%F0%9F%92%B0")
    ]
    texts = set()
    for answer in answers:
        assert answer.status_code == 401
        content = answer.json()
        content.pop("requestId")
        texts.add(json.dumps(content))
    assert len(texts) == 1
    assert value(shared_shop.url, STORED) == 0


def test_an_account_without_secrets_takes_nothing(
    shared_door: RunningDoor, shared_shop: Shop
) -> None:
    """Whoever signs for one account is nobody at another."""
    with psycopg.connect(shared_shop.url, autocommit=True) as connection:
        connection.execute("SELECT billing_ops.create_gateway_account('eu', 'simulated')")
        connection.execute("SELECT billing_ops.create_gateway_account('odd', 'unheard_of')")
    for account in ("eu", "odd"):
        assert httpx.post(f"{shared_door.url}/webhooks/{account}", **signed()).status_code == 401
    both = {"eu": ("the secret of another account",), "odd": (SECRET,)}
    with running_door(shared_shop.url, webhook_secrets=lambda code: both.get(code, ())) as door:
        assert httpx.post(f"{door.url}/webhooks/eu", **signed()).status_code == 401
        assert httpx.post(f"{door.url}/webhooks/odd", **signed()).status_code == 401
        assert httpx.post(f"{door.url}/webhooks/payments", **signed()).status_code == 401
    assert value(shared_shop.url, STORED) == 0


def test_several_secrets_are_taken_while_they_rotate(shop: Shop) -> None:
    secrets = ("the new secret of the account", SECRET)
    with running_door(shop.url, webhook_secrets=lambda _: secrets) as door:
        for number, secret in enumerate(secrets):
            answer = httpx.post(
                f"{door.url}/webhooks/payments", **signed(event_id=f"evt_{number}", secret=secret)
            )
            assert answer.json() == {"status": "STORED"}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"type": "x"}', b'{"type": 1, "data": {}}', b"\xff" * 9]
)
def test_a_signed_body_that_is_no_event_is_refused_so_that_it_is_sent_again(
    shared_door: RunningDoor, body: bytes
) -> None:
    refused = httpx.post(f"{shared_door.url}/webhooks/payments", **signed(body))
    assert refused.status_code == 400
    assert refused.json()["type"] == "urn:billing:problem:unreadable_event"


def test_a_body_larger_than_any_event_is_not_read(shared_door: RunningDoor) -> None:
    body = b" " * (LARGEST_EVENT + 1)
    refused = httpx.post(f"{shared_door.url}/webhooks/payments", **signed(body))
    assert refused.status_code == 413
