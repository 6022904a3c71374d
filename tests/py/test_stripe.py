"""Stripe from end to end: `billing worker` and `billing api` as processes, and a double of Stripe.

The SDK is the official one, on both ways; what was charged is read from the double's own books.
"""

import contextlib
import json
import os
import subprocess
import sys
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
from tests.py.support.stripe_double import API_KEY, SECRET, StripeDouble
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
            " p_request_timeout => '4 seconds', p_lease_margin => '2 seconds')",
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
