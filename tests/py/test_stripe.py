"""Stripe from end to end: `billing worker` and `billing api` as processes, and a double of Stripe.

The SDK is the official one, on both ways; what was charged is read from the double's own books.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import stripe

from billing_shell.embedded import RedisServer
from billing_shell.embedded_server import free_port
from tests.py.support.stripe_double import API_KEY, SECRET, StripeDouble, signature
from tests.py.support.worker_process import QUICK, WorkerProcess
from tests.py.support.world import BEFORE, DUE, PRICE, World, until

ACCOUNT = "stripe-main"
ROOT = Path(__file__).parents[2]


class Stage:
    """A database whose gateway account is at Stripe, and the processes around it."""

    def __init__(self, world: World, double: StripeDouble, folder: Path) -> None:
        self.world = world
        self.double = double
        self.folder = folder
        self.customers: dict[str, int] = {}
        self.invoices: dict[str, int] = {}
        world.value(
            "SELECT billing_ops.create_gateway_account(p_code => %s, p_adapter => 'stripe',"
            " p_request_timeout => '8 seconds', p_lease_margin => '2 seconds')",
            ACCOUNT,
        )

    def customer(self, name: str, method: str) -> int:
        """A customer at Stripe with a payment method."""
        self.customers[name] = self.world.value(
            "SELECT customer_id FROM billing_api.create_customer(%s, 'USD')", name
        )
        self.pay_by(name, method)
        return self.customers[name]

    def pay_by(self, name: str, method: str) -> None:
        """Store another payment method, which becomes the default."""
        self.world.value(
            "SELECT billing_api.add_payment_method(%s, %s, %s)",
            self.customers[name],
            ACCOUNT,
            f"cus_{name}/{method}",
        )

    def take_over(self, name: str, method: str) -> None:
        """A customer whose subscription is due at DUE: nobody waits for the charge."""
        self.world.value(
            "SELECT subscription_id FROM billing_api.import_subscription(p_customer_id => %s,"
            " p_plan_code => 'BASIC', p_current_period_start => '2027-02-01T00:00:00Z',"
            " p_idempotency_key => %s)",
            self.customer(name, method),
            name,
        )

    def check_out(self, name: str, method: str) -> None:
        """A customer who signs up, and waits for the charge."""
        self.world.value(
            "SELECT subscription_id FROM billing_api.create_subscription(%s, 'BASIC', %s)",
            self.customer(name, method),
            name,
        )

    def state(self, name: str) -> tuple[str, str | None, str | None]:
        """Of the subscription, its newest invoice, and the newest attempt for that."""
        ((subscription, invoice, attempt),) = self.world.rows(
            "SELECT s.status, i.status, a.status FROM billing.subscription AS s"
            " LEFT JOIN billing.invoice AS i USING (customer_id, subscription_id)"
            " LEFT JOIN billing.payment_attempt AS a USING (customer_id, invoice_id)"
            " WHERE s.customer_id = %s ORDER BY i.invoice_id DESC, a.attempt_no DESC LIMIT 1",
            self.customers[name],
        )
        return subscription, invoice, attempt

    def environment(self, **more: str) -> dict[str, str]:
        """Variables of a process of ours."""
        return os.environ | {
            "BILLING_DATABASE_URL": self.world.url,
            "BILLING_GATEWAY_ACCOUNT": ACCOUNT,
            "BILLING_LOG_FORMAT": "json",
            **more,
        }

    @contextlib.contextmanager
    def process(self, *command: str, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
        """Runs a command of ours."""
        log = self.folder / f"{command[0]}.log"
        with log.open("ab") as output:
            running = subprocess.Popen(
                [sys.executable, "-m", "billing_shell", *command],
                cwd=ROOT,
                env=self.environment(**environment),
                stdout=output,
                stderr=output,
            )
        try:
            yield running
        finally:
            running.kill()
            running.wait()
            print(log.read_text())  # noqa: T201 - shown where the test has failed


@pytest.fixture
def stage(database_url: str, tmp_path: Path) -> Iterator[Stage]:
    world = World(database_url)
    with StripeDouble() as double:
        double.set_clock(DUE)
        yield Stage(world, double, tmp_path)
    world.close()


@contextlib.contextmanager
def door(stage: Stage) -> Iterator[str]:
    """`billing api`; the address for the webhooks of the account."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    secrets = f"whsec_of_last_year,{SECRET}"
    with stage.process("api", "--port", str(port), BILLING_WEBHOOK_SECRETS_STRIPE_MAIN=secrets):
        yield f"{url}/webhooks/{ACCOUNT}"


@contextlib.contextmanager
def staffed(stage: Stage, folder: Path) -> Iterator[str]:
    """A worker that looks after everything each second, and a door; its address."""
    with RedisServer(folder) as redis, door(stage) as webhooks:
        worker = WorkerProcess(
            stage.folder / "quick-worker.log",
            {
                "database_url": stage.world.url,
                "redis_url": redis.url,
                "gateway_url": stage.double.url,
                "gateway_account": ACCOUNT,
                "api_keys": {"stripe": API_KEY},
                "cadence": QUICK | {"refund": "* * * * * *"},
            },
        )
        worker.start()
        try:
            yield webhooks
        finally:
            worker.kill()
            print(worker.log())  # noqa: T201 - shown where the test has failed


def answers(url: str) -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.post(url, trust_env=False).status_code == 401
    return False


def charged(books: dict[str, Any]) -> Counter[str]:
    """How often each customer at Stripe was charged, by the double's books."""
    succeeded = [c for c in books["charges"].values() if c["status"] == "succeeded"]
    assert {c["amount"] for c in succeeded} == {PRICE}
    customer = {intent["id"]: intent["customer"] for intent in books["intents"].values()}
    return Counter(customer[c["payment_intent"]] for c in succeeded)


async def test_every_invoice_is_charged_once_through_the_worker_and_the_door(
    stage: Stage, data_dir: Path
) -> None:
    world, double = stage.world, stage.double
    for name, method in (
        ("ok", "pm_ok"),
        ("advised", "pm_advice_do_not_try_again"),
        ("lost", "pm_charged"),
    ):
        stage.take_over(name, method)
    world.set_clock(DUE)
    for name, method in (("acting", "pm_action"), ("limited", "pm_limited"), ("broken", "pm_500")):
        stage.check_out(name, method)

    with (
        RedisServer(data_dir / "redis") as redis,
        door(stage) as webhooks,
        stage.process(
            "worker",
            BILLING_REDIS_URL=redis.url,
            BILLING_GATEWAY_URL=double.url,
            BILLING_STRIPE_API_KEY=API_KEY,
        ),
    ):
        first = {
            "ok": ("ACTIVE", "PAID", "SUCCEEDED"),
            # HARD: no retry of this method is planned, the ladder goes on without it.
            "advised": ("PAST_DUE", "OPEN", "DECLINED"),
            "lost": ("ACTIVE", "OPEN", "UNKNOWN"),
            "acting": ("INCOMPLETE", "OPEN", "REQUIRES_ACTION"),
            # After the 429 the same attempt was sent again, under the same key.
            "limited": ("ACTIVE", "PAID", "SUCCEEDED"),
            "broken": ("INCOMPLETE", "OPEN", "UNKNOWN"),
        }
        await until(lambda: {name: stage.state(name) for name in first} == first, "first answers")
        assert charged(double.ledger()) == {"cus_ok": 1, "cus_lost": 1, "cus_limited": 1}

        # Half a minute later the outcomes are asked for, without any webhook.
        world.set_clock(DUE + timedelta(seconds=31))
        await until(lambda: stage.state("lost") == ("ACTIVE", "PAID", "SUCCEEDED"), "the look-up")
        await until(lambda: stage.state("broken")[2] == "DECLINED", "the look-up of the 500")
        stage.pay_by("broken", "pm_ok")
        await until(lambda: stage.state("broken") == ("ACTIVE", "PAID", "SUCCEEDED"), "the other")

        # The customer passes 3-D Secure at Stripe, who tells the door.
        await until(lambda: answers(webhooks), "the door")
        double.tell(webhooks)
        acting = {i["customer"]: i for i in double.ledger()["intents"].values()}["cus_acting"]
        double.act(acting["id"])
        await until(lambda: stage.state("acting") == ("ACTIVE", "PAID", "SUCCEEDED"), "3-D Secure")

        invoice = world.value(
            "SELECT max(invoice_id) FROM billing.invoice WHERE customer_id = %s",
            stage.customers["ok"],
        )
        world.value(
            "SELECT refund_id FROM billing_api.refund_invoice(%s, 100, %s)", invoice, "ticket"
        )
        await until(lambda: world.count("refund", "status = 'SUCCEEDED'") == 1, "the refund")
        await until(lambda: len(double.ledger()["delivered"]) == 2, "both webhooks")
        await until(lambda: world.count("webhook_event", "processed_at IS NULL") == 0, "inbox")

    books = double.ledger()
    once = ("ok", "lost", "limited", "broken", "acting")
    assert charged(books) == {f"cus_{name}": 1 for name in once}
    assert world.count("invoice", "amount_paid > 0") == len(once)
    assert [(r["amount"], r["metadata"]) for r in books["refunds"].values()] == [
        (100, {"billing_reference": world.value("SELECT idempotency_key FROM billing.refund")})
    ]
    # One intent for each invoice, however many tries; on session where somebody waited.
    assert {i["customer"]: i["on_session"] for i in books["intents"].values()} == {
        **dict.fromkeys(("cus_ok", "cus_advised", "cus_lost"), False),
        **dict.fromkeys(("cus_acting", "cus_limited", "cus_broken"), True),
    }
    assert len(books["intents"]) == len(first)
    assert not any("search" in call for call in books["calls"])
    assert json.loads(books["sdk"])["bindings_version"] == stripe.VERSION
    codes = world.rows(
        "SELECT decline_code, decline_class FROM billing.payment_attempt AS a"
        " WHERE a.customer_id = %s",
        stage.customers["advised"],
    )
    assert codes == [("do_not_try_again", "HARD")]
    assert world.rows("SELECT * FROM billing_ops.check_integrity()") == []
    # Neither tokens nor keys get into the log, whatever the SDK would say.
    logged = (stage.folder / "worker.log").read_text()
    assert "worker_started" in logged
    assert not [word for word in ("cus_", "pm_", API_KEY, "stripe.com") if word in logged]


def refunds(stage: Stage) -> dict[str, tuple[str, int]]:
    """Of each customer: the status of the refund, and what its invoice says has gone back."""
    names = {customer_id: name for name, customer_id in stage.customers.items()}
    rows = stage.world.rows(
        "SELECT f.customer_id, f.status, i.amount_refunded FROM billing.refund AS f"
        " JOIN billing.invoice AS i USING (customer_id, invoice_id)"
    )
    return {names[customer_id]: (status, amount) for customer_id, status, amount in rows}


async def test_a_refund_goes_back_once_whatever_happens_to_its_answer_and_may_come_back(
    stage: Stage, data_dir: Path
) -> None:
    world, double = stage.world, stage.double
    # Stripe keeps a 500, behind which there may be a refund ("hidden") or none ("broken").
    fates = {"broken": "500", "hidden": "500_charged"}
    names = ("charged", "cut", "broken", "hidden", "pending")
    world.set_clock(DUE)
    for name in names:
        stage.check_out(name, f"pm_back_{fates.get(name, name)}")

    with staffed(stage, data_dir / "redis") as webhooks:
        paid = ("ACTIVE", "PAID", "SUCCEEDED")
        await until(lambda: {stage.state(name) for name in names} == {paid}, "the payments")
        for name in names:
            world.value(
                "SELECT refund_id FROM billing_api.refund_invoice((SELECT invoice_id"
                " FROM billing.invoice WHERE customer_id = %s), 100, %s)",
                stage.customers[name],
                name,
            )
        unknown = dict.fromkeys(names[:-1], ("UNKNOWN", 0)) | {"pending": ("PROCESSING", 0)}
        await until(lambda: refunds(stage) == unknown, "the first answers")

        # Half a minute later they are looked up, by listing, before anything is sent again.
        world.set_clock(DUE + timedelta(seconds=31))
        found = dict.fromkeys(("charged", "cut", "hidden"), ("SUCCEEDED", 100))
        pending = {"pending": ("PROCESSING", 0)}
        await until(lambda: refunds(stage) == unknown | found | pending, "the look-ups")
        assert len(double.ledger()["refund_keys"]) == len(names)

        # A kept 500 behind which there is nothing: asked once more, then sent with the same key.
        world.set_clock(DUE + timedelta(minutes=16))
        await until(lambda: len(double.ledger()["refund_keys"]) == len(names) + 1, "a repetition")
        await until(lambda: world.count("refund", "lease_until IS NOT NULL") == 0, "its answer")

        # The bank takes the pending one, and days later sends it back.
        await until(lambda: answers(webhooks), "the door")
        double.tell(webhooks)
        (refund,) = (r for r in double.ledger()["refunds"].values() if r["status"] == "pending")
        double.end(refund["id"], "succeeded")
        await until(lambda: refunds(stage)["pending"] == ("SUCCEEDED", 100), "the bank")
        double.end(refund["id"], "failed")
        await until(lambda: refunds(stage)["pending"] == ("FAILED", 0), "the bank once more")
        await until(lambda: len(double.ledger()["delivered"]) == 3, "all webhooks")
        await until(lambda: world.count("webhook_event", "processed_at IS NULL") == 0, "inbox")
        await until(
            lambda: (
                world.count("refund", "ended_at IS NOT NULL AND next_lookup_at IS NOT NULL") == 0
            ),
            "the last look-up",
        )

    books = double.ledger()
    assert refunds(stage) == unknown | found | {"pending": ("FAILED", 0)}
    assert Counter(r["status"] for r in books["refunds"].values()) == {"succeeded": 3, "failed": 1}
    keys = Counter(books["refund_keys"])
    assert set(keys) == {key for (key,) in world.rows("SELECT idempotency_key FROM billing.refund")}
    # Only the one of which nothing was found was sent again.
    assert sorted(keys.values()) == [1, 1, 1, 1, 2]
    assert not any("search" in call for call in books["calls"])
    assert world.rows("SELECT kind, customer_id, amount FROM billing_ops.open_cases") == [
        ("REFUND_FAILED", stage.customers["pending"], 100)
    ]
    assert world.rows("SELECT * FROM billing_ops.check_integrity()") == []


def post(url: str, event: dict[str, Any]) -> None:
    """Deliver an event as Stripe does."""
    body = json.dumps(event).encode()
    headers = {"Stripe-Signature": signature(body, SECRET, int(time.time()))}
    httpx.post(url, content=body, headers=headers, trust_env=False).raise_for_status()


async def test_a_failed_authentication_ends_its_own_try_at_once(
    stage: Stage, data_dir: Path
) -> None:
    world, double = stage.world, stage.double
    world.set_clock(DUE)
    stage.check_out("acting", "pm_decline_insufficient_funds")

    def tries() -> list[tuple[str, str | None, str | None]]:
        return world.rows(
            "SELECT status, decline_code, decline_class FROM billing.payment_attempt"
            " ORDER BY attempt_no"
        )

    with staffed(stage, data_dir / "redis") as webhooks:
        first = ("DECLINED", "insufficient_funds", "SOFT")
        await until(lambda: tries() == [first], "the first try")
        await until(lambda: answers(webhooks), "the door")
        double.tell(webhooks)
        (intent,) = double.ledger()["intents"]

        stage.pay_by("acting", "pm_action")
        acting = ("REQUIRES_ACTION", None, None)
        await until(lambda: tries() == [first, acting], "the second try")
        double.fail(intent)
        second = ("DECLINED", "payment_intent_authentication_failure", "CUSTOMER")
        await until(lambda: tries() == [first, second], "its end, without the time going on")

        stage.pay_by("acting", "pm_action_of_another_card")
        await until(lambda: tries() == [first, second, acting], "the third try")
        # News of the second come once more, under their id and under another one.
        (event,) = double.ledger()["events"][-1:]
        assert event["type"] == "payment_intent.payment_failed"
        post(webhooks, event)
        post(webhooks, event | {"id": "evt_again"})
        await until(
            lambda: (
                world.count("payment_report", "source = 'LOOKUP' AND outcome = 'REQUIRES_ACTION'")
                == 1
            ),
            "the look-up of the third try",
        )
        assert tries() == [first, second, acting]
        double.act(intent)
        await until(lambda: stage.state("acting") == ("ACTIVE", "PAID", "SUCCEEDED"), "3-D Secure")

    books = double.ledger()
    assert tries() == [first, second, ("SUCCEEDED", None, None)]
    assert charged(books) == {"cus_acting": 1}
    assert list(books["intents"]) == [intent]
    assert world.count("outbox_event", "event_type = 'InvoiceActionRequired'") == 2
    assert world.rows("SELECT * FROM billing_ops.check_integrity()") == []


async def test_without_its_key_a_worker_charges_nobody_and_says_why(
    stage: Stage, data_dir: Path
) -> None:
    stage.world.set_clock(BEFORE)
    stage.check_out("ok", "pm_ok")
    with (
        RedisServer(data_dir / "redis") as redis,
        stage.process(
            "worker", BILLING_REDIS_URL=redis.url, BILLING_GATEWAY_URL=stage.double.url
        ) as worker,
    ):
        log = stage.folder / "worker.log"
        await until(lambda: "BILLING_STRIPE_API_KEY" in log.read_text(), "the complaint")
        assert worker.poll() is None
    assert stage.double.ledger()["calls"] == []
    assert stage.world.count("payment_attempt") == 0
