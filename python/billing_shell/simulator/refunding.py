"""`POST /v1/refunds`: in part or in full, never more than was captured."""

import sqlite3
from datetime import datetime

from starlette.requests import Request
from starlette.responses import Response

from billing_shell.simulator import books
from billing_shell.simulator.answers import hand_over
from billing_shell.simulator.arrivals import Arrivals
from billing_shell.simulator.behaviour import OK, Behaviour, behaviour_of_outcome
from billing_shell.simulator.books import Call, Event, Operation, Refund
from billing_shell.simulator.clocks import ArrivalClock, to_text
from billing_shell.simulator.controls import Controls
from billing_shell.simulator.idempotency import Booking, IdempotencyLayer, Intent
from billing_shell.simulator.parameters import RefundParameters, read_document
from billing_shell.simulator.problems import Problem


class RefundDeed:
    """One refund, ready to be done."""

    def __init__(
        self,
        call: Call,
        parameters: RefundParameters,
        controls: Controls,
        arrival_clock: ArrivalClock,
    ) -> None:
        self._call = call
        self._parameters = parameters
        self._controls = controls
        self._arrival_clock = arrival_clock

    def fingerprint(self) -> str:
        """Return what makes another send the same request."""
        return self._parameters.fingerprint()

    def intend(self, send_no: int) -> Intent:
        """Ask the script that may have been lined up for the charge."""
        del send_no
        scripted = self._controls.next_outcome(self._parameters.charge)
        if scripted is None:
            return Intent(OK, "token")
        outcome_no, outcome = scripted
        return Intent(behaviour_of_outcome(outcome), "script", outcome_no)

    def book(self, connection: sqlite3.Connection, behaviour: Behaviour, now: datetime) -> Booking:
        """Write the refund into the ledger; raises Problem where there is not that much left."""
        if behaviour.status == "declined":
            raise Problem(400, "refund_refused", "The refund is refused.", parameter="charge")
        charge = books.select_charge(connection, self._parameters.charge)
        if charge is None:
            raise Problem(404, "charge_not_found", "There is no such charge.", parameter="charge")
        if charge.status != "succeeded":
            raise Problem(
                400, "charge_not_captured", f"The charge is {charge.status}.", parameter="charge"
            )
        left = charge.amount - books.refunded_amount(connection, charge.payment_id)
        amount = left if self._parameters.amount is None else self._parameters.amount
        if left == 0 or amount > left:
            raise Problem(
                400, "amount_exceeds_remaining", f"{left} are left to refund.", parameter="amount"
            )
        refund = Refund(
            refund_id=books.new_id("ref"),
            payment_id=charge.payment_id,
            idempotency_key=self._call.idempotency_key,
            reference=self._parameters.reference,
            amount=amount,
            currency=charge.currency,
            created_at=to_text(now),
            booked_us=self._arrival_clock.now_us(),
        )
        books.insert_refund(connection, refund)
        return Booking(200, refund.document(), charge.payment_id, Event.of_refund(refund))


class Refunding:
    """Answers refunds."""

    def __init__(
        self,
        controls: Controls,
        arrivals: Arrivals,
        arrival_clock: ArrivalClock,
        idempotency: IdempotencyLayer,
        hang: float,
    ) -> None:
        self._controls = controls
        self._arrivals = arrivals
        self._arrival_clock = arrival_clock
        self._idempotency = idempotency
        self._hang = hang

    async def refund(self, request: Request) -> Response:
        """`POST /v1/refunds`."""
        return await self._arrivals.serve(request, Operation.REFUND, self._refund)

    async def _refund(self, call: Call, request: Request) -> Response:
        parameters = RefundParameters.from_document(await read_document(request))
        call.reference = parameters.reference
        call.subject = call.idempotency_key or parameters.reference
        deed = RefundDeed(call, parameters, self._controls, self._arrival_clock)
        answer = await self._idempotency.serve(call, deed)
        return await hand_over(request, answer, self._hang)
