"""The simulated gateway's webhooks: signed, at least once, and still owed after a kill."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from billing_shell.simulated_gateway import read_webhook
from billing_shell.webhook_signature import verify
from tests.py.support.simulator import (
    SimulatorProcess,
    charge,
    client_of,
    put,
    smooth_simulator,
    until,
)

KEY = base64.b64encode(b"thirty-two bytes of made-up key!").decode()
SECRET = f"whsec_{KEY}"


@dataclass(slots=True)
class Inbox:
    """What a receiver was sent, and what it answers next; 200 when nothing is lined up."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    async def receive(self, request: Request) -> Response:
        """Take one delivery."""
        self.bodies.append(await request.body())
        self.headers.append(dict(request.headers))
        return Response(status_code=self.answers.pop(0) if self.answers else 200)

    def events(self) -> list[dict[str, Any]]:
        """Return the events in the order in which they came, duplicates included."""
        return [json.loads(body) for body in self.bodies]


class _QuietServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the test runner's signals alone."""
        yield


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    box = Inbox()
    application = Starlette(routes=[Route("/webhooks", box.receive, methods=["POST"])])
    config = uvicorn.Config(application, port=0, log_level="warning", lifespan="off")
    server = _QuietServer(config)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve())
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        box.url = f"http://127.0.0.1:{port}/webhooks"
        yield box
        server.should_exit = True


@pytest.fixture
def gateway(tmp_path: Path, inbox: Inbox) -> Iterator[SimulatorProcess]:
    options = ("--webhook-url", inbox.url, "--webhook-secret", SECRET, "--webhook-retry", "0.02")
    with smooth_simulator(tmp_path, *options) as process:
        yield process


@pytest.fixture
async def client(gateway: SimulatorProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(gateway) as opened:
        yield opened


async def test_a_delivery_is_signed_as_standard_webhooks_says(
    client: httpx.AsyncClient, inbox: Inbox
) -> None:
    payment = (await charge(client, "k")).json()
    await until(lambda: len(inbox.bodies) == 1)
    (body,), (headers,) = inbox.bodies, inbox.headers

    verified = verify(body, headers, [SECRET], datetime.now(UTC))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    digest = hmac.new(base64.b64decode(KEY), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    assert headers["content-type"] == "application/json"

    event = json.loads(body)
    assert event["id"] == headers["webhook-id"] == verified.event_id
    assert event["type"] == "charge.succeeded"
    assert event["timestamp"] == payment["created_at"]
    assert read_webhook(body, headers, [SECRET], datetime.now(UTC)).payload == {
        "paymentId": payment["id"],
        "reference": "k",
        "outcome": "SUCCEEDED",
        "amount": 4900,
        "currency": "USD",
    }
    assert event["data"] == {
        "payment_id": payment["id"],
        "reference": "k",
        "amount": 4900,
        "currency": "USD",
        "status": "succeeded",
        "code": None,
        "expires_at": None,
    }


async def test_every_status_has_its_event(client: httpx.AsyncClient, inbox: Inbox) -> None:
    succeeded = (await charge(client, "k1")).json()["id"]
    await charge(client, "k2", "tok_decline_stolen_card")
    action = (await charge(client, "k3", "tok_action")).json()
    processing = (await charge(client, "k4", "tok_processing")).json()
    await until(lambda: len(inbox.bodies) == 4)
    await client.post(f"/_control/charges/{action['id']}/complete")
    await client.post(f"/_control/charges/{processing['id']}/fail", json={"code": "returned"})
    await client.post(
        "/v1/refunds", json={"charge": succeeded, "amount": 98, "reference": "refund-1"}
    )
    await until(lambda: len(inbox.bodies) == 7)

    told = {
        (
            event["type"],
            event["data"]["reference"],
            event["data"]["status"],
            event["data"]["code"],
            event["data"]["amount"],
        )
        for event in inbox.events()
    }
    assert told == {
        ("charge.succeeded", "k1", "succeeded", None, 4900),
        ("charge.declined", "k2", "declined", "stolen_card", 4900),
        ("charge.requires_action", "k3", "requires_action", None, 4900),
        ("charge.processing", "k4", "processing", None, 4900),
        ("charge.succeeded", "k3", "succeeded", None, 4900),
        ("charge.declined", "k4", "declined", "returned", 4900),
        ("refund.succeeded", "refund-1", "succeeded", None, 98),
    }


async def test_an_action_that_ran_out_is_told(client: httpx.AsyncClient, inbox: Inbox) -> None:
    await put(client, "clock", now="2027-05-01T00:00:00Z")
    await charge(client, "k", "tok_action")
    await put(client, "clock", now="2027-05-02T00:00:00Z")
    await until(lambda: len(inbox.bodies) == 2)
    last = inbox.events()[-1]
    assert (last["type"], last["data"]["code"]) == ("charge.declined", "action_expired")
    assert last["timestamp"] == "2027-05-02T00:00:00.000000Z"


async def test_a_delivery_is_repeated_under_its_id_until_it_is_taken(
    gateway: SimulatorProcess, client: httpx.AsyncClient, inbox: Inbox
) -> None:
    inbox.answers += [500, 404, 301, 204]
    await charge(client, "k")
    taken = "SELECT attempts, last_answer FROM webhook_deliveries WHERE delivered_us IS NOT NULL"
    await until(lambda: gateway.rows(taken) == [(4, "204")])
    assert len(inbox.bodies) == 4
    assert len(set(inbox.bodies)) == 1
    assert len({headers["webhook-id"] for headers in inbox.headers}) == 1


async def test_a_replay_tells_nothing_anew(
    gateway: SimulatorProcess, client: httpx.AsyncClient, inbox: Inbox
) -> None:
    await charge(client, "k")
    await charge(client, "k")
    await charge(client, "last")
    await until(lambda: len(inbox.bodies) == 2)
    assert {event["data"]["reference"] for event in inbox.events()} == {"k", "last"}
    assert gateway.value("SELECT count(*) FROM webhook_events") == 2


async def test_a_duplicate_on_purpose_comes_twice_under_one_id(
    client: httpx.AsyncClient, inbox: Inbox
) -> None:
    await charge(client, "k", "tok_webhook_twice")
    await until(lambda: len(inbox.bodies) == 2)
    assert inbox.bodies[0] == inbox.bodies[1]
    assert inbox.headers[0]["webhook-id"] == inbox.headers[1]["webhook-id"]


async def test_an_early_event_comes_before_the_answer(
    client: httpx.AsyncClient, inbox: Inbox
) -> None:
    await charge(client, "k", "tok_webhook_early")
    assert [event["data"]["reference"] for event in inbox.events()] == ["k"]


async def test_an_event_tells_of_a_charge_whose_answer_was_lost(
    client: httpx.AsyncClient, inbox: Inbox
) -> None:
    sent = asyncio.create_task(charge(client, "k", "tok_timeout_charged"))
    await until(lambda: len(inbox.bodies) == 1)
    assert not sent.done()
    sent.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sent
    assert inbox.events()[0]["data"]["status"] == "succeeded"


@pytest.mark.crash
async def test_what_was_owed_before_a_kill_is_delivered_after_it(
    tmp_path: Path, inbox: Inbox
) -> None:
    with smooth_simulator(tmp_path) as process:
        async with client_of(process) as client:
            await put(client, "webhooks", url="http://127.0.0.1:1/", secret=SECRET)
            await asyncio.gather(*(charge(client, f"k{number}") for number in range(20)))
        process.kill()
        process.start("--webhook-url", inbox.url, "--webhook-secret", SECRET)
        owed = "SELECT count(*) FROM webhook_deliveries WHERE delivered_us IS NULL"
        await until(lambda: process.value(owed) == 0)
    assert Counter(event["data"]["reference"] for event in inbox.events()) == Counter(
        f"k{number}" for number in range(20)
    )


async def test_a_new_target_is_sent_what_the_old_one_did_not_take(
    tmp_path: Path, inbox: Inbox
) -> None:
    with smooth_simulator(tmp_path, "--webhook-retry", "0.02") as process:
        async with client_of(process) as client:
            await charge(client, "untold")
            await put(client, "webhooks", url="http://127.0.0.1:1/", secret=SECRET)
            await charge(client, "k")
            await put(client, "webhooks", url=inbox.url, secret=SECRET)
            await until(lambda: len(inbox.bodies) > 0)
    assert [event["data"]["reference"] for event in inbox.events()] == ["k"]


async def test_an_unreachable_target_delays_no_charge(tmp_path: Path) -> None:
    options = ("--webhook-url", "http://127.0.0.1:1/", "--webhook-secret", SECRET)
    with smooth_simulator(tmp_path, *options) as process:
        async with client_of(process) as client:
            answers = await asyncio.gather(
                *(charge(client, f"k{number}", seconds=120) for number in range(100))
            )
    assert {answer.status_code for answer in answers} == {200}
