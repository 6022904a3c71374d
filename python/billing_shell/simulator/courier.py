"""Delivers events by signed webhook, at least once, until they are taken or three days are over."""

import asyncio
import heapq
import sqlite3
from datetime import UTC, datetime

import httpx
import structlog

from billing_shell.simulator.clocks import ArrivalClock
from billing_shell.simulator.controls import Controls, WebhookTarget
from billing_shell.simulator.ledger import Ledger, LedgerError, Row
from billing_shell.simulator.options import Options
from billing_shell.webhook_signature import sign

_AT_ONCE = 16
_ANSWER_WITHIN_SECONDS = 5.0
_LONGEST_PAUSE_SECONDS = 3_600.0
_GIVE_UP_AFTER_US = 3 * 86_400 * 1_000_000

_log = structlog.get_logger(__name__)


class Courier:
    """Sends what is due, a few at a time, and keeps in the ledger how it went."""

    def __init__(
        self, ledger: Ledger, controls: Controls, arrival_clock: ArrivalClock, options: Options
    ) -> None:
        self._ledger = ledger
        self._controls = controls
        self._clock = arrival_clock
        self._retry = options.webhook_retry
        self._holds = options.hold_webhooks
        self._client = httpx.AsyncClient(
            timeout=_ANSWER_WITHIN_SECONDS,
            trust_env=False,
            limits=httpx.Limits(max_connections=_AT_ONCE),
        )
        self._due: list[tuple[float, int]] = []
        self._waiting: set[int] = set()
        self._changed = asyncio.Event()
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._under_way: set[asyncio.Task[None]] = set()

    def take_up(self) -> None:
        """Queue what is undelivered and not queued yet: after a restart, or for a new target."""
        for row in self._ledger.rows(
            "SELECT delivery_no FROM webhook_deliveries"
            " WHERE delivered_us IS NULL AND given_up_us IS NULL"
        ):
            self.schedule(row["delivery_no"], 0)

    def schedule(self, delivery_no: int, delay: float) -> None:
        """Have a delivery made in `delay` seconds, in the background; once, if it waits already."""
        if self._holds or delivery_no in self._waiting:
            return
        self._waiting.add(delivery_no)
        heapq.heappush(self._due, (asyncio.get_running_loop().time() + delay, delivery_no))
        self._changed.set()

    async def run(self) -> None:
        """Make the deliveries as they fall due, until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                await self._wait_until_due()
                while self._due and self._due[0][0] <= loop.time():
                    await self._places.acquire()
                    _, delivery_no = heapq.heappop(self._due)
                    self._waiting.discard(delivery_no)
                    task = loop.create_task(self._deliver_in_place(delivery_no))
                    self._under_way.add(task)
                    task.add_done_callback(self._under_way.discard)
        finally:
            for task in self._under_way:
                task.cancel()
            await asyncio.gather(*self._under_way, return_exceptions=True)
            await self._client.aclose()

    async def deliver(self, delivery_no: int) -> None:
        """Make one attempt now; where it fails, the next one is scheduled."""
        target = None if self._holds else self._controls.webhooks
        row = self._ledger.row(
            "SELECT d.attempts, e.* FROM webhook_deliveries AS d"
            " INNER JOIN webhook_events AS e ON d.event_no = e.event_no WHERE d.delivery_no = ?",
            (delivery_no,),
        )
        if target is None or row is None:
            return
        delivered, answer = await self._send(target, row)
        attempts = row["attempts"] + 1
        now_us = self._clock.now_us()
        gives_up = not delivered and now_us - row["created_us"] > _GIVE_UP_AFTER_US
        await self._ledger.write(
            lambda connection: connection.execute(
                "UPDATE webhook_deliveries"
                " SET attempts = ?, last_answer = ?, delivered_us = ?, given_up_us = ?"
                " WHERE delivery_no = ?",
                (
                    attempts,
                    answer,
                    now_us if delivered else None,
                    now_us if gives_up else None,
                    delivery_no,
                ),
            )
        )
        if not delivered and not gives_up:
            pause = min(self._retry * 2 ** min(attempts - 1, 20), _LONGEST_PAUSE_SECONDS)
            self.schedule(delivery_no, pause)

    async def _send(self, target: WebhookTarget, event: Row) -> tuple[bool, str]:
        body = event["payload"].encode()
        headers = sign(event["event_id"], datetime.now(UTC), body, target.secret)
        headers["content-type"] = "application/json"
        try:
            response = await self._client.post(target.url, content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return False, f"{type(error).__name__}: {error}"
        return response.is_success, str(response.status_code)

    async def _deliver_in_place(self, delivery_no: int) -> None:
        try:
            await self.deliver(delivery_no)
        except (LedgerError, sqlite3.Error):
            _log.exception("webhook_not_noted", delivery_no=delivery_no)
            self.schedule(delivery_no, _LONGEST_PAUSE_SECONDS)
        finally:
            self._places.release()

    async def _wait_until_due(self) -> None:
        self._changed.clear()
        pause = None
        if self._due:
            pause = max(0.0, self._due[0][0] - asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(pause):
                await self._changed.wait()
        except TimeoutError:
            return
