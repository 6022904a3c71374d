"""The idempotency layer: one key, one deed, one answer that is replayed.

Order of things for one send, as real gateways have it: the limit, the key in flight (409), a 429 on
purpose, the kept answer (replayed, or 400 for other parameters), and only then the deed. Deed, kept
answer, script and event are one transaction, on the disk before anything is answered: whatever
kills the process, a key has either done nothing or can replay what it did.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from billing_shell.simulator import books
from billing_shell.simulator.answers import Answer, internal_error, rate_limited
from billing_shell.simulator.arrivals import Arrivals
from billing_shell.simulator.behaviour import (
    INJECTED_FAULTS,
    REPLAY_FAULTS,
    WEBHOOK_FAULTS,
    Behaviour,
    Delivery,
    Fault,
    Reply,
)
from billing_shell.simulator.books import Call, Event
from billing_shell.simulator.chance import Chance
from billing_shell.simulator.clocks import ArrivalClock, to_text
from billing_shell.simulator.controls import Controls
from billing_shell.simulator.courier import Courier
from billing_shell.simulator.ledger import Ledger, Row
from billing_shell.simulator.options import Options
from billing_shell.simulator.problems import Problem

REPLAYED_HEADER = "Idempotent-Replayed"


@dataclass(frozen=True, slots=True)
class Intent:
    """What a send will meet: how the gateway behaves, who asked for it, and from which script."""

    behaviour: Behaviour
    cause: str | None = None
    outcome_no: int | None = None


@dataclass(frozen=True, slots=True)
class Booking:
    """What a deed wrote: what to answer, and what to tell."""

    status: int
    document: dict[str, Any]
    payment_id: str
    event: Event


class Deed(Protocol):
    """A charge or a refund, ready to be done."""

    def fingerprint(self) -> str:
        """Return what makes another send the same request."""
        ...

    def intend(self, send_no: int) -> Intent:
        """Decide what this send meets, before chance has its say."""
        ...

    def book(self, connection: sqlite3.Connection, behaviour: Behaviour, now: datetime) -> Booking:
        """Write it into the ledger, as of the business instant `now`.

        Raises Problem to refuse, and then nothing is written.
        """
        ...


class IdempotencyLayer:
    """Serves the sends of deeds."""

    def __init__(
        self,
        ledger: Ledger,
        controls: Controls,
        arrivals: Arrivals,
        arrival_clock: ArrivalClock,
        courier: Courier,
        options: Options,
    ) -> None:
        self._ledger = ledger
        self._controls = controls
        self._arrivals = arrivals
        self._clock = arrival_clock
        self._courier = courier
        self._options = options
        self._chance = Chance(options.seed)

    async def serve(self, call: Call, deed: Deed) -> Answer:
        """Do the deed, or replay what came of it; raises Problem 400 and 409."""
        with self._arrivals.in_flight(call):
            kept = self._kept_answer(call)
            if kept is not None and kept["fingerprint"] != deed.fingerprint():
                raise Problem(
                    400,
                    "idempotency_key_reused",
                    "This idempotency key was used with other parameters.",
                    parameter="Idempotency-Key",
                )
            send_no = self._arrivals.next_send(call)
            before, after = self._chance.latency(
                self._controls.latency, call.operation, call.subject or "", send_no
            )
            if kept is not None:
                intent = self._struck(call, send_no, Intent(_REPLAY), REPLAY_FAULTS)
                write = self._replay(call, kept, intent)
            else:
                intent = self._struck(call, send_no, deed.intend(send_no), self._possible_faults())
                write = self._perform(call, deed, intent)

            await asyncio.sleep(before)
            call.send_no = send_no
            try:
                answer, deliveries = await self._ledger.write(write)
            except Problem:
                call.send_no = None
                raise
            if intent.behaviour.fault is Fault.WEBHOOK_EARLY:
                for delivery_no in deliveries:
                    await self._courier.deliver(delivery_no)
            else:
                for delivery_no in deliveries:
                    self._courier.schedule(delivery_no, after)
            if answer.delivery is not Delivery.NEVER:
                await asyncio.sleep(after)
        return answer

    def _kept_answer(self, call: Call) -> Row | None:
        if call.idempotency_key is None:
            return None
        return self._ledger.row(
            "SELECT * FROM stored_answers AS s"
            " WHERE s.answer_no = (SELECT max(answer_no) FROM stored_answers"
            "  WHERE operation = ? AND idempotency_key = ?) AND s.expires_at > ?",
            (call.operation, call.idempotency_key, to_text(self._controls.clock.now())),
        )

    def _possible_faults(self) -> tuple[Fault, ...]:
        if self._controls.webhooks is not None:
            return INJECTED_FAULTS
        return tuple(fault for fault in INJECTED_FAULTS if fault not in WEBHOOK_FAULTS)

    def _struck(
        self, call: Call, send_no: int, intent: Intent, possible: tuple[Fault, ...]
    ) -> Intent:
        """Let chance strike a send, unless something happens to it anyway or a script rules it."""
        if intent.behaviour.fault is not None or intent.outcome_no is not None:
            return intent
        fault = self._chance.fault(
            self._controls.faults, possible, call.operation, call.subject or "", send_no
        )
        if fault is None:
            return intent
        return replace(intent, behaviour=intent.behaviour.struck_by(fault), cause="injected")

    def _replay(
        self, call: Call, kept: Row, intent: Intent
    ) -> Callable[[sqlite3.Connection], tuple[Answer, list[int]]]:
        behaviour = intent.behaviour

        def write(connection: sqlite3.Connection) -> tuple[Answer, list[int]]:
            if behaviour.reply is Reply.RATE_LIMITED:
                answer = Answer.of_problem(rate_limited())
            else:
                call.replayed = True
                call.payment_id = kept["payment_id"]
                headers = {REPLAYED_HEADER: "true"}
                answer = Answer(kept["http_status"], kept["body"], headers, behaviour.delivery)
            self._note(connection, call, intent, answer)
            return answer, []

        return write

    def _perform(
        self, call: Call, deed: Deed, intent: Intent
    ) -> Callable[[sqlite3.Connection], tuple[Answer, list[int]]]:
        behaviour = intent.behaviour

        def write(connection: sqlite3.Connection) -> tuple[Answer, list[int]]:
            now = self._controls.clock.now()
            booking = None
            if behaviour.status is not None:
                booking = deed.book(connection, behaviour, now)
            answer = _answer(behaviour, booking)
            if booking is not None:
                call.payment_id = booking.payment_id
            if behaviour.kept and call.idempotency_key is not None:
                expires_at = now + timedelta(seconds=self._options.key_lifetime)
                row = {
                    "operation": call.operation,
                    "idempotency_key": call.idempotency_key,
                    "fingerprint": deed.fingerprint(),
                    "http_status": answer.status,
                    "body": answer.body,
                    "payment_id": call.payment_id,
                    "created_at": to_text(now),
                    "expires_at": to_text(expires_at),
                }
                books.insert_kept_answer(connection, row)
            if intent.outcome_no is not None:
                books.use_up_outcome(connection, intent.outcome_no, call.call_no)
            deliveries = []
            if booking is not None and self._controls.webhooks is not None:
                copies = 2 if behaviour.fault is Fault.WEBHOOK_TWICE else 1
                deliveries = books.insert_event(
                    connection, booking.event, self._clock.now_us(), to_text(now), copies
                )
            self._note(connection, call, intent, answer)
            return answer, deliveries

        return write

    def _note(
        self, connection: sqlite3.Connection, call: Call, intent: Intent, answer: Answer
    ) -> None:
        call.http_status = None if answer.delivery is Delivery.NEVER else answer.status
        if intent.behaviour.fault is not None:
            call.fault = intent.behaviour.fault
            call.fault_cause = intent.cause
        books.update_call(connection, call)


_REPLAY = Behaviour(None, kept=False)


def _answer(behaviour: Behaviour, booking: Booking | None) -> Answer:
    match behaviour.reply:
        case Reply.ERROR:
            return Answer.of_problem(internal_error(), behaviour.delivery)
        case Reply.RATE_LIMITED:
            return Answer.of_problem(rate_limited(), behaviour.delivery)
        case Reply.REFUSED:
            refusal = Problem(
                400,
                behaviour.code or "payment_method_invalid",
                "This payment method cannot be charged.",
                parameter="source",
            )
            return Answer.of_problem(refusal, behaviour.delivery)
    if booking is None:
        # Never delivered: nothing was executed, so there is nothing to say.
        return Answer.of_problem(internal_error(), Delivery.NEVER)
    return Answer.of_document(booking.status, booking.document, behaviour.delivery)
