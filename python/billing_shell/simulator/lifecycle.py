"""How payments that are under way end: completed, failed, or run out of time."""

import sqlite3
from collections.abc import Callable
from datetime import datetime

from billing_shell.simulator import books
from billing_shell.simulator.books import Charge, Event
from billing_shell.simulator.clocks import ArrivalClock, to_text
from billing_shell.simulator.controls import Controls
from billing_shell.simulator.courier import Courier
from billing_shell.simulator.ledger import Ledger
from billing_shell.simulator.problems import Problem

EXPIRED_CODE = "action_expired"
UNDER_WAY = frozenset({"requires_action", "processing"})


class Lifecycle:
    """Moves payments to their end, and tells of it."""

    def __init__(
        self,
        ledger: Ledger,
        controls: Controls,
        arrival_clock: ArrivalClock,
        courier: Courier,
    ) -> None:
        self._ledger = ledger
        self._controls = controls
        self._arrival_clock = arrival_clock
        self._courier = courier

    async def complete(self, payment_id: str) -> Charge:
        """Have the customer act, or the bank pay; raises Problem 404 and 409."""
        return await self._end(payment_id, lambda charge, now: charge.completed(now))

    async def fail(self, payment_id: str, code: str) -> Charge:
        """Have it refused after all, with `code`; raises Problem 404 and 409."""
        return await self._end(payment_id, lambda charge, _: charge.failed(code))

    async def expire_actions(self) -> None:
        """Decline the payments whose customer has not acted in time, by the business clock."""
        now = to_text(self._controls.clock.now())
        statement = "SELECT * FROM charges WHERE status = 'requires_action' AND expires_at <= ?"
        if self._ledger.row(f"{statement} LIMIT 1", (now,)) is None:
            return

        def write(connection: sqlite3.Connection) -> list[int]:
            deliveries = []
            for row in connection.execute(statement, (now,)).fetchall():
                charge = Charge.from_row(row).failed(EXPIRED_CODE)
                deliveries += self._book(connection, charge)
            return deliveries

        self._tell(await self._ledger.write(write))

    async def _end(self, payment_id: str, end: Callable[[Charge, datetime], Charge]) -> Charge:
        await self.expire_actions()

        def write(connection: sqlite3.Connection) -> tuple[Charge, list[int]]:
            charge = books.select_charge(connection, payment_id)
            if charge is None:
                raise Problem(404, "charge_not_found", "There is no such charge.")
            if charge.status not in UNDER_WAY:
                raise Problem(409, "charge_not_under_way", f"The charge is {charge.status}.")
            ended = end(charge, self._controls.clock.now())
            return ended, self._book(connection, ended)

        ended, deliveries = await self._ledger.write(write)
        self._tell(deliveries)
        return ended

    def _book(self, connection: sqlite3.Connection, charge: Charge) -> list[int]:
        books.update_charge(connection, charge)
        if self._controls.webhooks is None:
            return []
        now_us = self._arrival_clock.now_us()
        business_now = to_text(self._controls.clock.now())
        return books.insert_event(connection, Event.of_charge(charge), now_us, business_now, 1)

    def _tell(self, deliveries: list[int]) -> None:
        for delivery_no in deliveries:
            self._courier.schedule(delivery_no, 0)
