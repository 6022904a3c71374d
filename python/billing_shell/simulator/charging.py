"""`POST /v1/charges`."""

import sqlite3
from datetime import datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from billing_shell.simulator import books
from billing_shell.simulator.answers import hand_over
from billing_shell.simulator.arrivals import Arrivals
from billing_shell.simulator.behaviour import (
    Behaviour,
    behaviour_of_outcome,
    meaning_of_token,
)
from billing_shell.simulator.books import Call, Charge, Event, Operation
from billing_shell.simulator.clocks import ArrivalClock, to_text
from billing_shell.simulator.controls import Controls
from billing_shell.simulator.idempotency import Booking, IdempotencyLayer, Intent
from billing_shell.simulator.parameters import ChargeParameters, read_document

ACTION_LIFETIME = timedelta(hours=23)


class ChargeDeed:
    """One charge, ready to be done."""

    def __init__(
        self,
        call: Call,
        parameters: ChargeParameters,
        controls: Controls,
        arrival_clock: ArrivalClock,
    ) -> None:
        self._call = call
        self._parameters = parameters
        self._controls = controls
        self._arrival_clock = arrival_clock
        self._declines_first: int | None = None

    def fingerprint(self) -> str:
        """Return what makes another send the same request."""
        return self._parameters.fingerprint()

    def intend(self, send_no: int) -> Intent:
        """Ask the token's script, then the token itself."""
        token = self._parameters.source
        scripted = self._controls.next_outcome(token)
        if scripted is not None:
            outcome_no, outcome = scripted
            return Intent(behaviour_of_outcome(outcome), "script", outcome_no)
        meaning = meaning_of_token(token)
        self._declines_first = meaning.declines_first
        return Intent(meaning.at(send_no), "token")

    def book(self, connection: sqlite3.Connection, behaviour: Behaviour, now: datetime) -> Booking:
        """Write the payment into the ledger."""
        status, code = behaviour.status or "declined", behaviour.code
        if self._declines_first is not None:
            # Counted here, in the transaction: what was never booked does not count.
            payments = books.count_payments(connection, self._parameters.source)
            if payments >= self._declines_first:
                status, code = "succeeded", None
        charge = Charge(
            payment_id=books.new_id("pay"),
            idempotency_key=self._call.idempotency_key,
            reference=self._parameters.reference,
            amount=behaviour.amount or self._parameters.amount,
            currency=self._parameters.currency,
            status=status,
            code=code,
            token=self._parameters.source,
            description=self._parameters.description,
            requested_amount=self._parameters.amount,
            created_at=to_text(now),
            captured_at=to_text(now) if status == "succeeded" else None,
            expires_at=to_text(now + ACTION_LIFETIME) if status == "requires_action" else None,
            booked_us=self._arrival_clock.now_us(),
        )
        books.insert_charge(connection, charge)
        return booking_of(charge)


def booking_of(charge: Charge) -> Booking:
    """Return what is answered and told of a payment just made: 402 and the payment for a no."""
    document = charge.document()
    if charge.status != "declined":
        return Booking(200, document, charge.payment_id, Event.of_charge(charge))
    problem = {
        "type": "about:blank",
        "title": "Payment Required",
        "status": 402,
        "code": charge.code,
        "detail": "The payment was declined.",
        "charge": document,
    }
    return Booking(402, problem, charge.payment_id, Event.of_charge(charge))


class Charging:
    """Answers charges."""

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

    async def charge(self, request: Request) -> Response:
        """`POST /v1/charges`."""
        return await self._arrivals.serve(request, Operation.CHARGE, self._charge)

    async def _charge(self, call: Call, request: Request) -> Response:
        parameters = ChargeParameters.from_document(await read_document(request))
        call.reference = parameters.reference
        call.subject = call.idempotency_key or parameters.reference
        deed = ChargeDeed(call, parameters, self._controls, self._arrival_clock)
        answer = await self._idempotency.serve(call, deed)
        return await hand_over(request, answer, self._hang)
