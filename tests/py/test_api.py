"""The door from outside: what callers meet whatever they call."""

import base64
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import psycopg
import pytest
import structlog

from billing_shell import api_database
from billing_shell.api_guard import LARGEST_BODY
from billing_shell.api_keys import Scope
from tests.py.support.door import (
    NOBODY,
    NOW,
    PATIENCE,
    RunningDoor,
    Shop,
    running_door,
    value,
)

PROBLEM = "application/problem+json"


@pytest.fixture(scope="module")
def looker(shared_door: RunningDoor) -> Iterator[httpx.Client]:
    """A client of those tests that change nothing."""
    with shared_door.client() as opened:
        yield opened


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for what another thread or process does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what} in vain"
        time.sleep(0.01)


def waits_for_a_lock(url: str) -> bool:
    """Whether a call of the door does."""
    return bool(
        value(
            url,
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'billing api' AND wait_event_type = 'Lock'",
        )
    )


@pytest.fixture
def client(door: RunningDoor) -> Iterator[httpx.Client]:
    with door.client() as opened:
        yield opened


def test_the_five_endpoints_of_a_checkout(client: httpx.Client, shop: Shop) -> None:
    customer = client.post("/customers", json={"externalRef": "new", "currency": "USD"})
    assert customer.status_code == 201
    made = client.post(
        "/subscriptions",
        json={"customerId": customer.json()["customerId"], "planCode": "PRO_MONTHLY"},
        headers={"Idempotency-Key": "checkout-1"},
    )
    assert made.status_code == 201
    path = made.headers["Location"]
    assert path == f"/subscriptions/{made.json()['subscriptionId']}"
    assert client.get(path).json() == made.json()

    running = f"/subscriptions/{shop.mine['subscription_id']}"
    changed = client.post(f"{running}/change-plan", json={"planCode": "PRO_PLUS"})
    assert changed.json()["pendingPlanCode"] == "PRO_PLUS"
    client.post(f"{running}/undo-change")
    canceled = client.post(f"{running}/cancel", json={"atPeriodEnd": True})
    assert canceled.status_code == 200
    assert canceled.json()["cancelAtPeriodEnd"] is True
    assert canceled.json()["currentPeriodStart"] == NOW.isoformat()


def test_a_sign_up_needs_an_idempotency_key(client: httpx.Client, shop: Shop) -> None:
    body = {"customerId": shop.mine["customer_id"], "planCode": "PRO_MONTHLY", "resourceRef": "b"}
    refused = client.post("/subscriptions", json=body)
    assert refused.status_code == 422
    assert refused.json()["sqlstate"] == "SB101"
    assert "p_idempotency_key" in refused.json()["detail"]


def test_a_repeated_call_is_answered_from_store_and_says_so(
    client: httpx.Client, shop: Shop
) -> None:
    body = {"customerId": shop.mine["customer_id"], "planCode": "PRO_MONTHLY", "resourceRef": "b"}
    first, again = (
        client.post("/subscriptions", json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)
    )
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    other = client.post(
        "/subscriptions", json=body | {"quantity": 2}, headers={"Idempotency-Key": "k"}
    )
    assert (other.status_code, other.json()["sqlstate"]) == (409, "SB305")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/customers", {"externalRef": "x", "currency": "USD"}),
        (
            "POST",
            "/customers/{customer_id}/credit",
            {"amount": 5, "currency": "USD", "reason": "r"},
        ),
        ("POST", "/invoices/{invoice_id}/refund", {"amount": 100}),
        (
            "POST",
            "/customers/{customer_id}/payment-methods",
            {"gatewayAccount": "sim", "token": "tok_2"},
        ),
        ("DELETE", "/customers/{customer_id}/payment-methods/{payment_method_id}", None),
        ("POST", "/subscriptions/{subscription_id}/pause", {"atPeriodEnd": True}),
        ("POST", "/plans", {
            "code": "X", "name": "X", "amount": 1, "currency": "USD", "intervalUnit": "DAY",
        }),
    ],
)  # fmt: skip
def test_every_write_honours_a_key(
    client: httpx.Client, shop: Shop, method: str, path: str, body: dict[str, Any] | None
) -> None:
    first, again = (
        client.request(
            method,
            path.format(**shop.mine),
            json=body,
            headers={"Idempotency-Key": "one thing to do"},
        )
        for _ in range(2)
    )
    assert first.is_success, first.text
    assert "Idempotent-Replayed" not in first.headers
    assert (again.status_code, again.content) == (first.status_code, first.content)
    if method != "DELETE":  # the only method is gone, and there is no answer to mark
        assert again.headers["Idempotent-Replayed"] == "true"


def test_a_version_that_has_changed_stops_a_call(client: httpx.Client, shop: Shop) -> None:
    path = f"/subscriptions/{shop.mine['subscription_id']}"
    etag = client.get(path).headers["ETag"]
    version = int(etag.strip('"'))
    paused = client.post(f"{path}/pause", json={"atPeriodEnd": True}, headers={"If-Match": etag})
    assert paused.headers["ETag"] == f'"{version + 1}"'

    late = client.post(f"{path}/resume", headers={"If-Match": etag})
    assert late.status_code == 412
    assert late.json()["sqlstate"] == "SB304"
    assert late.json()["context"] == str(version + 1)
    assert client.get(path).headers["ETag"] == f'"{version + 1}"'
    assert client.post(f"{path}/resume", headers={"If-Match": "*"}).is_success


def test_a_replay_goes_before_the_version(client: httpx.Client, shop: Shop) -> None:
    path = f"/subscriptions/{shop.mine['subscription_id']}"
    headers = {"If-Match": client.get(path).headers["ETag"], "Idempotency-Key": "pause"}
    first, again = (
        client.post(f"{path}/pause", json={"atPeriodEnd": True}, headers=headers) for _ in range(2)
    )
    assert first.is_success
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.json() == first.json()


@pytest.mark.parametrize("tag", ["7", '"x"', '"1", "2"', 'W/"1"', ""])
def test_a_tag_that_is_none_of_ours_is_refused(client: httpx.Client, shop: Shop, tag: str) -> None:
    refused = client.post(
        f"/subscriptions/{shop.mine['subscription_id']}/undo-cancel", headers={"If-Match": tag}
    )
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/header/If-Match"


def test_what_has_not_changed_is_not_sent_again(client: httpx.Client, shop: Shop) -> None:
    path = f"/subscriptions/{shop.mine['subscription_id']}"
    etag = client.get(path).headers["ETag"]
    known = client.get(path, headers={"If-None-Match": f'"0", {etag}'})
    assert (known.status_code, known.content) == (304, b"")
    assert known.headers["ETag"] == etag
    assert client.get(path, headers={"If-None-Match": '"0"'}).status_code == 200


def test_pages_follow_each_other_without_a_gap(client: httpx.Client, shop: Shop) -> None:
    for number in range(7):
        made = client.post("/customers", json={"externalRef": f"c{number}", "currency": "USD"})
        assert made.is_success
    whole = client.get("/customers?limit=100").json()
    assert whole["nextCursor"] is None
    seen: list[dict[str, Any]] = []
    asked: dict[str, Any] = {"limit": 2}
    for pages in range(1, 10):  # noqa: B007 - counted
        page = client.get("/customers", params=asked).json()
        seen += page["data"]
        if page["nextCursor"] is None:
            break
        asked["cursor"] = page["nextCursor"]
    assert seen == whole["data"]
    assert pages == 5
    ids = [each["customerId"] for each in seen]
    assert ids == sorted(ids, reverse=True)
    assert shop.mine["customer_id"] in ids


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=101", "limit=x", "limit=-1", "limit=", "cursor=x", "cursor=WyJ4Il0=",
        "cursor=W10=", "cursor=WzFlOTld", "limit=1&limit=2", "nope=1", "external_ref=mine",
    ],
)  # fmt: skip
def test_a_page_that_cannot_be_is_refused(looker: httpx.Client, query: str) -> None:
    refused = looker.get(f"/customers?{query}")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"].startswith("/query/")


@pytest.mark.parametrize("path", ["/plans", "/customers"])
@pytest.mark.parametrize(
    "content",
    [b"[" * 5_000, b'["\\ud800"]', b'["\\u0000"]', b"[NaN]", b"[" + b"9" * 5_000 + b"]", b"\xff"],
    ids=["deep", "half", "nul", "nan", "long", "bytes"],
)
def test_a_cursor_that_was_made_up_is_refused(
    looker: httpx.Client, path: str, content: bytes
) -> None:
    cursor = base64.urlsafe_b64encode(content).decode("ascii")
    refused = looker.get(path, params={"cursor": cursor})
    assert refused.status_code == 422
    assert [each["pointer"] for each in refused.json()["errors"]] == ["/query/cursor"]


@pytest.mark.parametrize("header", ["If-Match", "Idempotency-Key"])
def test_a_header_that_is_given_twice_is_refused(
    client: httpx.Client, shop: Shop, header: str
) -> None:
    path = f"/subscriptions/{shop.mine['subscription_id']}"
    tag = client.get(path).headers["ETag"]
    refused = client.post(f"{path}/cancel", headers=[(header, tag), (header, '"999"')])
    assert refused.status_code == 422
    assert [each["pointer"] for each in refused.json()["errors"]] == [f"/header/{header}"]
    assert client.get(path).headers["ETag"] == tag


@pytest.mark.parametrize(
    "body",
    [
        '{"atPeriodEnd": true, "unusedTime": "NONE", "atPeriodEnd": false}',
        '{"atPeriodEnd": true, "at\\u0050eriodEnd": true}',
        '{"atPeriodEnd": {"a": [1]}, "atPeriodEnd": true}',
    ],
    ids=["two values", "escaped", "nested"],
)
def test_a_name_that_a_body_has_twice_is_refused(
    client: httpx.Client, shop: Shop, body: str
) -> None:
    path = f"/subscriptions/{shop.mine['subscription_id']}"
    before = client.get(path).json()
    headers = {"Content-Type": "application/json"}
    refused = client.post(f"{path}/cancel", content=body, headers=headers)
    assert refused.status_code == 422
    assert refused.json()["sqlstate"] == "SB101"
    assert refused.json()["errors"] == [
        {"pointer": "/body/atPeriodEnd", "detail": "is given twice"}
    ]
    assert client.get(path).json() == before


def test_one_customer_is_found_by_the_callers_own_name(client: httpx.Client, shop: Shop) -> None:
    found = client.get("/customers", params={"externalRef": "mine"}).json()
    assert [each["customerId"] for each in found["data"]] == [shop.mine["customer_id"]]
    assert client.get("/customers", params={"externalRef": "nobody"}).json()["data"] == []


def test_a_refusal_of_the_engine_keeps_its_words(client: httpx.Client, shop: Shop) -> None:
    refused = client.get(f"/subscriptions/{NOBODY}")
    assert refused.status_code == 404
    assert refused.headers["Content-Type"] == PROBLEM
    title = value(shop.url, "SELECT meaning FROM billing.error_code WHERE sqlstate = 'SB201'")
    assert refused.json() == {
        "type": "urn:billing:problem:unknown_subscription",
        "title": title,
        "status": 404,
        "detail": f"subscription {NOBODY} does not exist",
        "sqlstate": "SB201",
        "requestId": refused.headers["X-Request-Id"],
    }
    body = {"customerId": shop.mine["customer_id"], "planCode": "PRO_PLUS"}
    taken = client.post("/subscriptions", json=body, headers={"Idempotency-Key": "other"})
    assert (taken.status_code, taken.json()["sqlstate"]) == (409, "SB301")
    assert str(shop.mine["subscription_id"]) in taken.json()["context"]
    backwards = client.post("/plans/NONE/prices", json={"amount": -1, "currency": "XXX"})
    assert backwards.status_code == 422


def test_everything_wrong_with_a_request_is_told_at_once(looker: httpx.Client) -> None:
    refused = looker.post(
        "/subscriptions?x=1",
        json={"planCode": 7, "quantity": 2**40, "a/b~c": "red", "currency": "U\0D"},
        headers={"Idempotency-Key": "k"},
    )
    assert refused.status_code == 422
    assert {each["pointer"] for each in refused.json()["errors"]} == {
        "/query/x", "/body/customerId", "/body/planCode", "/body/quantity", "/body/a~1b~0c",
        "/body/currency",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"Content-Type": "application/json"}, b"{", 400),
        ({"Content-Type": "application/json"}, b"[]", 422),
        ({"Content-Type": "application/json"}, b"\xff", 400),
        ({"Content-Type": "application/json"}, b'{"currency": "\\ud800"}', 400),
        ({"Content-Type": "application/json"}, b"[" * 50_000, 400),
        ({"Content-Type": "text/plain"}, b"{}", 415),
        ({}, b"{}", 415),
        ({"Content-Type": "application/json; charset=utf-8"}, b"{}", 422),
        ({"Content-Type": "application/json"}, b" " * (LARGEST_BODY + 1), 413),
    ],
)
def test_a_body_that_is_none_is_refused(
    looker: httpx.Client, headers: dict[str, str], content: bytes, status: int
) -> None:
    refused = looker.post("/customers", content=content, headers=headers)
    assert refused.status_code == status
    assert refused.headers["Content-Type"] == PROBLEM


def test_a_body_without_an_announced_length_is_measured_too(looker: httpx.Client) -> None:
    chunks = (b" " * 1024 for _ in range(LARGEST_BODY // 1024 + 1))
    refused = looker.post(
        "/customers", content=chunks, headers={"Content-Type": "application/json"}
    )
    assert refused.status_code == 413
    assert refused.headers["Connection"] == "close"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/subscriptions", 405),
        ("PUT", "/subscriptions/64", 405),
        ("GET", "/subscriptions/x", 422),
        ("GET", "/subscriptions/9223372036854775808", 422),
        ("GET", "/subscriptions/-1", 404),
        ("GET", "/subscriptions/1_0", 422),
        ("GET", "/plans/%00", 422),
        ("GET", "/plans/", 404),
        ("POST", "/subscriptions/", 404),
        ("GET", "/plans/%2e%2e%2f%2e%2e", 404),
        ("GET", "/plans/'; DROP TABLE billing.plan; --", 404),
    ],
)
def test_an_address_that_is_none_is_refused(
    looker: httpx.Client, method: str, path: str, status: int
) -> None:
    refused = looker.request(method, path)
    assert refused.status_code == status, refused.text
    assert refused.headers["Content-Type"] == PROBLEM
    assert refused.json()["status"] == status


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/subscriptions", "POST"),
        ("/subscriptions/64", "GET, HEAD"),
        ("/customers", "GET, HEAD, POST"),
        ("/openapi.json", "GET, HEAD"),
        ("/readyz", "GET, HEAD"),
    ],
)
def test_what_is_allowed_on_a_path_is_said(looker: httpx.Client, path: str, allowed: str) -> None:
    refused = looker.delete(path)
    assert refused.status_code == 405
    assert refused.headers["Allow"] == allowed


def test_head_is_get_without_its_content(client: httpx.Client, shop: Shop) -> None:
    for path in (f"/subscriptions/{shop.mine['subscription_id']}", f"/subscriptions/{NOBODY}"):
        got = client.get(path)
        head = client.head(path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        for name in ("Content-Type", "Content-Length", "ETag", "Allow"):
            assert head.headers.get(name) == got.headers.get(name)
    assert client.head("/subscriptions").status_code == 405


def test_every_answer_forbids_to_guess_frame_and_keep_it(shared_door: RunningDoor) -> None:
    for path in ("/healthz", "/subscriptions/64", "/nowhere", "/openapi.json"):
        headers = httpx.get(shared_door.url + path, timeout=PATIENCE).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Strict-Transport-Security"]
        assert "Server" not in headers


def test_a_requests_id_stands_in_answer_log_and_lifecycle(
    door: RunningDoor, client: httpx.Client, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    caplog.set_level(logging.INFO)
    try:
        answer = client.post(
            f"/subscriptions/{shop.mine['subscription_id']}/cancel",
            json={"atPeriodEnd": True},
            headers={"X-Request-Id": "shop/42"},
        )
        # The answer is out a moment before its line.
        until(lambda: "http_request" in caplog.text, "the line")
    finally:
        structlog.reset_defaults()
    assert answer.headers["X-Request-Id"] == "shop/42"
    actor = value(
        shop.url, "SELECT actor FROM billing.subscription_event ORDER BY event_seq DESC LIMIT 1"
    )
    name = value(shop.url, "SELECT name FROM billing.api_key")
    assert actor == f"shop/42 {name}"
    (line,) = [each.msg for each in caplog.records if "http_request" in str(each.msg)]
    assert isinstance(line, dict)
    assert line["request_id"] == "shop/42"
    assert (line["route"], line["key"]) == ("/subscriptions/{subscriptionId}/cancel", name)
    assert door.key() not in caplog.text


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", "ü", "<script>"])
def test_an_id_that_could_do_harm_is_replaced(shared_door: RunningDoor, given: str) -> None:
    headers = [(b"X-Request-Id", given.encode("latin-1"))]
    answer = httpx.get(f"{shared_door.url}/healthz", headers=headers, timeout=PATIENCE)
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"])


def test_what_we_did_wrong_is_not_told_in_detail(client: httpx.Client, shop: Shop) -> None:
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION billing.customer_of_subscription(p_subscription_id bigint)"
            " RETURNS bigint LANGUAGE plpgsql AS $f$ BEGIN RAISE 'secret %', 1/0; END $f$"
        )
    failed = client.post(f"/subscriptions/{shop.mine['subscription_id']}/resume")
    assert failed.status_code in {422, 500}
    assert "secret" not in failed.text
    assert "billing." not in failed.text
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute("ALTER VIEW billing_api.plan RENAME TO gone")
    failed = client.get("/plans")
    assert failed.status_code == 500
    assert failed.json()["type"] == "urn:billing:problem:internal_error"
    assert "plan" not in failed.text


def test_a_lock_that_is_not_to_be_had_says_try_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(api_database.SESSION, "lock_timeout", "100ms")
    with running_door(shop.url) as impatient, impatient.client() as other:
        with psycopg.connect(shop.url) as holder:
            holder.execute("SELECT 1 FROM billing.subscription FOR UPDATE")
            path = f"/subscriptions/{shop.mine['subscription_id']}/resume"
            refused = other.post(path)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "1"
        assert refused.json()["sqlstate"] == "55P03"
        assert other.post(path).status_code == 409


def test_a_call_that_takes_too_long_is_ended(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(api_database.SESSION, "statement_timeout", "200ms")
    with running_door(shop.url) as impatient, impatient.client() as client:
        with psycopg.connect(shop.url) as holder:
            holder.execute("LOCK TABLE billing.plan")
            refused = client.get("/plans")
        assert refused.status_code == 503
        assert refused.json()["sqlstate"] == "57014"


def test_who_waits_for_a_connection_in_vain_is_told_so(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_database, "WAIT_SECONDS", 0.2)
    with running_door(shop.url, connections=1) as small, small.client() as client:
        client.get("/plans")
        with psycopg.connect(shop.url) as holder:
            holder.execute("LOCK TABLE billing.plan")
            with small.client() as other:
                waiter = threading.Thread(target=other.get, args=("/plans",))
                waiter.start()
                until(partial(waits_for_a_lock, shop.url), "the only connection to be taken")
                refused = client.get("/plans")
                holder.rollback()
                waiter.join(PATIENCE)
        assert refused.status_code == 503
        assert refused.json()["sqlstate"] == "53300"


def test_connections_that_were_lost_are_replaced(client: httpx.Client, shop: Shop) -> None:
    assert client.get("/plans").is_success
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'billing api'"
        )
    first = client.get("/plans")
    assert first.status_code in {200, 503}
    until(lambda: client.get("/plans").is_success, "a connection")


def test_a_refused_call_changes_nothing(client: httpx.Client, shop: Shop) -> None:
    before = value(shop.url, "SELECT billing_test.fingerprint()")
    mine = shop.mine
    for path, body in (
        ("/subscriptions", {"customerId": mine["customer_id"], "planCode": "NONE"}),
        (f"/subscriptions/{mine['subscription_id']}/change-plan", {"planCode": "NONE"}),
        (f"/subscriptions/{mine['subscription_id']}/cancel", {"unusedTime": "SOME"}),
        (
            f"/customers/{mine['customer_id']}/credit",
            {"amount": 0, "currency": "USD", "reason": "x"},
        ),
    ):
        refused = client.post(path, json=body, headers={"Idempotency-Key": "k"})
        assert 400 <= refused.status_code < 500
    assert value(shop.url, "SELECT billing_test.fingerprint()") == before


def test_a_read_cannot_write(client: httpx.Client, shop: Shop) -> None:
    with psycopg.connect(shop.url, autocommit=True) as connection:
        connection.execute(
            "CREATE OR REPLACE FUNCTION billing_api.has_access(p_customer_id bigint,"
            " p_resource_ref text DEFAULT NULL, p_as_of timestamptz DEFAULT billing.now())"
            " RETURNS boolean LANGUAGE sql SECURITY DEFINER AS"
            " 'UPDATE billing.plan SET name = name RETURNING true'"
        )
    assert client.get(f"/customers/{shop.mine['customer_id']}/access").status_code == 500


def test_both_statements_of_a_request_are_one_transaction(door: RunningDoor, shop: Shop) -> None:
    """What the first sets is gone after the second, and a failing second leaves no trace."""
    with door.client(Scope.OPERATE, Scope.READ) as operator, door.client() as client:
        path = f"/invoices/{shop.mine['invoice_id']}/explanation"
        assert operator.get(path).status_code == 200
        for _ in range(10):
            assert client.get(path).status_code == 403
    with door.client(customer=shop.mine["customer_id"]) as bound, door.client() as free:
        for _ in range(10):
            path = f"/subscriptions/{shop.theirs['subscription_id']}"
            assert bound.get(path).status_code == 404
            assert free.get(path).status_code == 200
