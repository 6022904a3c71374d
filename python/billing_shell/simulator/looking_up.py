"""`GET /v1/charges` and `GET /v1/refunds`, by `?reference=` or by id; `GET /v1/settlements`."""

import asyncio
import re
from collections.abc import Callable
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import Response

from billing_shell.simulator import books
from billing_shell.simulator.answers import Answer, hand_over, internal_error, rate_limited
from billing_shell.simulator.arrivals import Arrivals
from billing_shell.simulator.behaviour import LOOK_UP_FAULTS, OK, Behaviour, Delivery, Reply
from billing_shell.simulator.books import Call, Charge, Operation, Refund
from billing_shell.simulator.chance import Chance
from billing_shell.simulator.clocks import from_text, to_text
from billing_shell.simulator.controls import Controls
from billing_shell.simulator.ledger import Ledger
from billing_shell.simulator.lifecycle import Lifecycle
from billing_shell.simulator.options import Options
from billing_shell.simulator.problems import Problem

_MOST_LISTED = 100
_MOST_SETTLED = 500
_CURSOR = re.compile(r"(?P<kind>charge|refund)\.(?P<number>[0-9]{1,18})")


class LookingUp:
    """Answers look-ups: they meet latency, faults and a limit of their own as charges do."""

    def __init__(
        self,
        ledger: Ledger,
        controls: Controls,
        arrivals: Arrivals,
        lifecycle: Lifecycle,
        options: Options,
    ) -> None:
        self._ledger = ledger
        self._controls = controls
        self._arrivals = arrivals
        self._lifecycle = lifecycle
        self._options = options
        self._chance = Chance(options.seed)

    async def search(self, request: Request) -> Response:
        """`GET /v1/charges?reference=`: the payments under our reference, oldest first."""
        return await self._arrivals.serve(request, Operation.LOOK_UP, self._search)

    async def get(self, request: Request) -> Response:
        """`GET /v1/charges/{id}`: one payment, seen at once whatever the search's lag."""
        return await self._arrivals.serve(request, Operation.LOOK_UP, self._get)

    async def search_refunds(self, request: Request) -> Response:
        """`GET /v1/refunds?reference=`: the refunds under our reference, oldest first."""
        return await self._arrivals.serve(request, Operation.LOOK_UP, self._search_refunds)

    async def get_refund(self, request: Request) -> Response:
        """`GET /v1/refunds/{id}`: one refund."""
        return await self._arrivals.serve(request, Operation.LOOK_UP, self._get_refund)

    async def settlements(self, request: Request) -> Response:
        """`GET /v1/settlements?from=&to=`: what moved money from one instant to before another."""
        return await self._arrivals.serve(request, Operation.LOOK_UP, self._settlements)

    async def _settlements(self, call: Call, request: Request) -> Response:
        start, end = (_instant(request, name) for name in ("from", "to"))
        last = _cursor(request)
        limit = _limit(request)
        call.subject = f"settlements {start} {end} {last[0]}.{last[1]}"
        return await self._answer(call, request, lambda: self._settled(start, end, last, limit))

    async def _search_refunds(self, call: Call, request: Request) -> Response:
        reference = _reference(request)
        call.subject = call.reference = reference
        return await self._answer(call, request, lambda: self._refunds(reference))

    async def _get_refund(self, call: Call, request: Request) -> Response:
        refund_id: str = request.path_params["refund_id"]
        call.subject = refund_id
        return await self._answer(call, request, lambda: self._one_refund(call, refund_id))

    async def _search(self, call: Call, request: Request) -> Response:
        reference = _reference(request)
        call.subject = call.reference = reference
        return await self._answer(call, request, lambda: self._listing(reference))

    async def _get(self, call: Call, request: Request) -> Response:
        payment_id: str = request.path_params["payment_id"]
        call.subject = payment_id
        return await self._answer(call, request, lambda: self._one(call, payment_id))

    async def _answer(self, call: Call, request: Request, find: Callable[[], Answer]) -> Response:
        subject = call.subject or ""
        send_no = self._arrivals.next_send(call)
        before, after = self._chance.latency(
            self._controls.latency, call.operation, subject, send_no
        )
        fault = self._chance.fault(
            self._controls.faults, LOOK_UP_FAULTS, call.operation, subject, send_no
        )
        behaviour = OK if fault is None else OK.struck_by(fault)
        await asyncio.sleep(before)
        await self._lifecycle.expire_actions()
        answer = _spoiled(behaviour, find())

        call.send_no = send_no
        call.http_status = None if answer.delivery is Delivery.NEVER else answer.status
        if fault is not None:
            call.fault = fault
            call.fault_cause = "injected"
        await self._ledger.write(lambda connection: books.update_call(connection, call))
        if answer.delivery is not Delivery.NEVER:
            await asyncio.sleep(after)
        return await hand_over(request, answer, self._options.hang)

    def _listing(self, reference: str) -> Answer:
        visible = self._controls.clock.now() - timedelta(seconds=self._options.search_lag)
        rows = self._ledger.rows(
            "SELECT * FROM charges WHERE reference = ? AND created_at <= ?"
            " ORDER BY charge_no LIMIT ?",
            (reference, to_text(visible), _MOST_LISTED + 1),
        )
        document = {
            "object": "list",
            "data": [Charge.from_row(row).document() for row in rows[:_MOST_LISTED]],
            "has_more": len(rows) > _MOST_LISTED,
        }
        return Answer.of_document(200, document, Delivery.WHOLE)

    def _refunds(self, reference: str) -> Answer:
        visible = self._controls.clock.now() - timedelta(seconds=self._options.search_lag)
        rows = self._ledger.rows(
            "SELECT * FROM refunds WHERE reference = ? AND created_at <= ?"
            " ORDER BY refund_no LIMIT ?",
            (reference, to_text(visible), _MOST_LISTED + 1),
        )
        document = {
            "object": "list",
            "data": [Refund.from_row(row).document() for row in rows[:_MOST_LISTED]],
            "has_more": len(rows) > _MOST_LISTED,
        }
        return Answer.of_document(200, document, Delivery.WHOLE)

    def _settled(self, start: str, end: str, last: tuple[str, int], limit: int) -> Answer:
        """One page: charges first, then refunds, each in the order in which they were made."""
        rows = self._ledger.rows(
            "SELECT 'charge' AS kind, charge_no AS number, payment_id AS id, reference, amount,"
            " currency, captured_at AS settled_at FROM charges"
            " WHERE captured_at >= :start AND captured_at < :end"
            " UNION ALL"
            " SELECT 'refund', refund_no, refund_id, reference, amount, currency, created_at"
            " FROM refunds WHERE created_at >= :start AND created_at < :end"
            " ORDER BY 1, 2",
            {"start": start, "end": end},
        )
        left = [row for row in rows if (row["kind"], row["number"]) > last]
        page = left[:limit]
        more = f"{page[-1]['kind']}.{page[-1]['number']}" if len(left) > len(page) else None
        names = ("kind", "id", "reference", "amount", "currency", "settled_at")
        document = {
            "object": "list",
            "data": [{name: row[name] for name in names} for row in page],
            "next_cursor": more,
        }
        return Answer.of_document(200, document, Delivery.WHOLE)

    def _one_refund(self, call: Call, refund_id: str) -> Answer:
        row = self._ledger.row("SELECT * FROM refunds WHERE refund_id = ?", (refund_id,))
        if row is None:
            return Answer.of_problem(Problem(404, "refund_not_found", "There is no such refund."))
        refund = Refund.from_row(row)
        call.payment_id, call.reference = refund.payment_id, refund.reference
        return Answer.of_document(200, refund.document(), Delivery.WHOLE)

    def _one(self, call: Call, payment_id: str) -> Answer:
        row = self._ledger.row("SELECT * FROM charges WHERE payment_id = ?", (payment_id,))
        if row is None:
            return Answer.of_problem(Problem(404, "charge_not_found", "There is no such charge."))
        charge = Charge.from_row(row)
        call.payment_id = charge.payment_id
        call.reference = charge.reference
        return Answer.of_document(200, charge.document(), Delivery.WHOLE)


def _instant(request: Request, name: str) -> str:
    try:
        return to_text(from_text(request.query_params.get(name, "")))
    except ValueError:
        raise Problem(
            400,
            "parameter_invalid",
            f"{name} must be an instant with its offset from UTC.",
            parameter=name,
        ) from None


def _cursor(request: Request) -> tuple[str, int]:
    cursor = request.query_params.get("cursor", "charge.0")
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise Problem(400, "parameter_invalid", "There is no such page.", parameter="cursor")
    return found["kind"], int(found["number"])


def _limit(request: Request) -> int:
    limit = request.query_params.get("limit", str(_MOST_SETTLED))
    if not (limit.isascii() and limit.isdigit() and 0 < int(limit[:9]) <= _MOST_SETTLED):
        raise Problem(
            400,
            "parameter_invalid",
            f"limit must be a whole number from 1 to {_MOST_SETTLED}.",
            parameter="limit",
        )
    return int(limit)


def _reference(request: Request) -> str:
    reference: str = request.query_params.get("reference", "")
    if not 0 < len(reference) <= 255:  # noqa: PLR2004  as long as a payment's reference may be
        raise Problem(
            400,
            "parameter_invalid",
            "reference must be a text of 1 to 255 characters.",
            parameter="reference",
        )
    return reference


def _spoiled(behaviour: Behaviour, found: Answer) -> Answer:
    match behaviour.reply:
        case Reply.ERROR:
            return Answer.of_problem(internal_error())
        case Reply.RATE_LIMITED:
            return Answer.of_problem(rate_limited())
    return Answer(found.status, found.body, found.headers, behaviour.delivery)
