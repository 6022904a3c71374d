"""The gateway's door: every arrival is stamped and kept, then let in or turned away."""

import hmac
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response

from billing_shell.simulator import books
from billing_shell.simulator.arrival_limit import ArrivalLimit
from billing_shell.simulator.books import Call, Operation
from billing_shell.simulator.clocks import ArrivalClock
from billing_shell.simulator.ledger import Ledger
from billing_shell.simulator.options import Options
from billing_shell.simulator.parameters import idempotency_key
from billing_shell.simulator.problems import Problem, problem_response
from billing_shell.simulator.wire import ARRIVAL_STATE

Handler = Callable[[Call, Request], Awaitable[Response]]

_SECOND_US = 1_000_000
_LONGEST_PATH = 1_000


class Arrivals:
    """Numbers the calls, holds the limit of each operation, and knows which keys are in flight."""

    def __init__(self, ledger: Ledger, clock: ArrivalClock, options: Options, run_no: int) -> None:
        self._ledger = ledger
        self._clock = clock
        self._run_no = run_no
        self._authorization = None if options.api_key is None else f"Bearer {options.api_key}"
        self._limits = {operation: ArrivalLimit(options.limit) for operation in Operation}
        self._in_flight: set[tuple[Operation, str]] = set()
        last = ledger.row("SELECT coalesce(max(call_no), 0) AS call_no FROM calls")
        self._last_call_no: int = 0 if last is None else last["call_no"]
        self._remember_last_second()

    async def serve(self, request: Request, operation: Operation, handle: Handler) -> Response:
        """Stamp and keep one arrival, and answer it: through `handle`, or with what refused it."""
        call = self._stamp(request, operation)
        try:
            self._admit(call, request)
        except Problem as problem:
            call.http_status = problem.status
            await self._ledger.write(lambda connection: books.insert_call(connection, call))
            return problem_response(problem)
        # Not awaited: the ledger writes in order, and the answer waits for a later write.
        self._ledger.enqueue(lambda connection: books.insert_call(connection, call))
        try:
            return await handle(call, request)
        except Problem as problem:
            call.http_status = problem.status
            await self._ledger.write(lambda connection: books.update_call(connection, call))
            return problem_response(problem)

    @contextmanager
    def in_flight(self, call: Call) -> Iterator[None]:
        """Hold the call's key; raises Problem 409 where another call holds it."""
        if call.idempotency_key is None:
            yield
            return
        held = (call.operation, call.idempotency_key)
        if held in self._in_flight:
            raise Problem(
                409, "idempotency_key_in_use", "A request with this idempotency key is in flight."
            )
        self._in_flight.add(held)
        try:
            yield
        finally:
            self._in_flight.discard(held)

    def next_send(self, call: Call) -> int:
        """Return the number of this send among those of its subject that were served."""
        row = self._ledger.row(
            "SELECT max(send_no) AS send_no FROM calls"
            " WHERE operation = ? AND subject = ? AND send_no IS NOT NULL",
            (call.operation, call.subject),
        )
        return 1 if row is None or row["send_no"] is None else row["send_no"] + 1

    def _stamp(self, request: Request, operation: Operation) -> Call:
        arrived_us = self._clock.at_us(request.scope["state"][ARRIVAL_STATE])
        self._last_call_no += 1
        return Call(
            call_no=self._last_call_no,
            run_no=self._run_no,
            arrived_us=arrived_us,
            operation=operation,
            path=request.url.path[:_LONGEST_PATH],
            idempotency_key=None,
            subject=None,
        )

    def _admit(self, call: Call, request: Request) -> None:
        call.idempotency_key = call.subject = idempotency_key(request)
        if self._authorization is not None:
            given = request.headers.get("authorization", "")
            if not hmac.compare_digest(given.encode(), self._authorization.encode()):
                raise Problem(
                    401,
                    "unauthorized",
                    "The API key is missing or wrong.",
                    headers={"WWW-Authenticate": "Bearer"},
                )
        wait_us = self._limits[call.operation].admit(call.arrived_us)
        if wait_us is not None:
            call.limited = True
            seconds = math.ceil(wait_us / _SECOND_US)
            raise Problem(
                429,
                "rate_limited",
                "Too many requests in the last second.",
                headers={"Retry-After": str(seconds)},
            )

    def _remember_last_second(self) -> None:
        """A restart must not admit a second helping in the same second."""
        for row in self._ledger.rows(
            "SELECT operation, arrived_us FROM calls"
            " WHERE arrived_us > ? AND limited = 0 ORDER BY arrived_us",
            (self._clock.now_us() - _SECOND_US,),
        ):
            self._limits[Operation(row["operation"])].remember(row["arrived_us"])
