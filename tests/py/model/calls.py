"""What customers and callers do: each function is a call, at an instant of business time."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.py.model import changing, collecting, renewing
from tests.py.model.books import Account, Invoice, Line
from tests.py.model.calendar import days_later, first_period, seconds
from tests.py.model.life import OVER, Change, Life, Rest, Span
from tests.py.model.terms import Plan, Policy, RefusedError

LEEWAY = timedelta(minutes=5)
OPENS = "INITIAL", "RENEWAL"


@dataclass(frozen=True)
class Order:
    """What somebody signs up for.

    Attributes:
        zone: time zone of the customer.
        plan: what is sold.
        quantity: units.
        policy: what follows a declined payment.
        trial_days: of a trial; 0 is none.
        grants_first: service before payment.
        day: day of the month of calendar billing.
        periods: of a fixed term; None renews by itself.
        has_method: whether the customer can pay.
        minimum: below which nothing is charged, in minor units.
    """

    zone: str
    plan: Plan
    quantity: int
    policy: Policy
    trial_days: int
    grants_first: bool
    day: int | None
    periods: int | None
    has_method: bool
    minimum: int


def sign_up(order: Order, credit: Account, at: datetime) -> Life:
    """Sign up: a trial, a checkout, or service at once."""
    life = Life(
        zone=order.zone, plan=order.plan, quantity=order.quantity, policy=order.policy,
        day=order.day, periods=order.periods, has_method=order.has_method, credit=credit,
        minimum=order.minimum, created=at,
    )  # fmt: skip
    if order.trial_days:
        life.spans = [Span("TRIAL", at, days_later(at, order.zone, order.trial_days))]
        life.status, life.is_due = "TRIALING", True
        changing.anchor_after_trial(life)
        return life

    first = first_period(at, order.zone, order.plan.length, order.day)
    is_stub = first.full_start < first.start
    amount = (
        order.plan.part(
            order.quantity, seconds(first.start, first.end), seconds(first.full_start, first.end)
        )
        if is_stub
        else order.plan.price(order.quantity)
    )
    invoice = Invoice(
        "INITIAL", order.plan, order.quantity, first.start, first.end, first.full_start, at,
        drives=order.grants_first,
    )  # fmt: skip
    invoice.lines = [Line("PRORATION" if is_stub else "PERIOD", amount, invoice)]
    collecting.issue(life, invoice, at)
    if order.grants_first:
        life.spans = [Span("BILLED", first.start, first.end, invoice)]
        life.terms = [(first.start, life.plan, life.quantity)]
        life.anchor, life.number = first.anchor, first.number
        life.term_end = collecting.term_end(life, first)
        life.status, life.is_due = "ACTIVE", True
    elif invoice.status == "PAID":
        collecting.activate(life, invoice, at)
    return life


def _require_running(life: Life) -> None:
    if life.status in OVER:
        raise RefusedError("SB302")


def _catch_up(life: Life, at: datetime) -> None:
    _require_running(life)
    renewing.renew_overdue(life, at)
    _require_running(life)


def _require_nothing_open(life: Life) -> None:
    if life.open_invoices:
        raise RefusedError("SB320")


def _require_begun(life: Life, at: datetime) -> None:
    if life.current.start > at + LEEWAY:
        raise RefusedError("SB323")


def _require_next_period(life: Life) -> None:
    goes_on = life.status in {"TRIALING", "ACTIVE", "PAST_DUE"} and not life.cancels_at_end
    if not goes_on or (life.term_end is not None and life.end >= life.term_end):
        raise RefusedError("SB303")


def change_plan(
    life: Life, plan: Plan, quantity: int, timing: str, at: datetime, *, grants_first: bool
) -> None:
    """Change plan or quantity."""
    _catch_up(life, at)
    if life.change is not None:
        raise RefusedError("SB321")
    is_billed = bool(life.spans) and life.current.kind == "BILLED"
    opens = is_billed and plan.length != life.plan.length and timing != "AT_PERIOD_END"
    if opens and timing == "NEXT_INVOICE":
        raise RefusedError("SB303")
    if timing == "AT_PERIOD_END":
        _require_next_period(life)
        life.pending = plan, quantity, at
        return
    if life.status not in {"TRIALING", "ACTIVE"} or (life.pauses_at_end and grants_first):
        raise RefusedError("SB303")
    _require_nothing_open(life)
    _require_begun(life, at)
    start = max(at, life.current.start)
    if opens and start == life.end:
        _require_next_period(life)
        life.pending = plan, quantity, at
        renewing.take_boundary(life, at)
    elif is_billed:
        _change_billed(life, plan, quantity, timing, start, at, opens, grants_first)
    else:
        changing.swap_in_trial(life, plan, quantity)


def _change_billed(
    life: Life,
    plan: Plan,
    quantity: int,
    timing: str,
    start: datetime,
    at: datetime,
    opens: bool,  # noqa: FBT001
    grants_first: bool,  # noqa: FBT001
) -> None:
    covering = life.current.invoice
    assert covering is not None
    left, total = seconds(start, life.end), life.length_of(covering)
    lines: list[Line] = []
    old, old_quantity = covering.terms
    most = max(life.creditable(covering) + life.waiting_for(covering), 0)
    credit = min(old.part(old_quantity, left, total), most)
    if credit:
        lines.append(Line("PRORATION", -credit, covering))

    end = first_period(start, life.zone, plan.length, None).end if opens else life.end
    shown_end = end if end > start else None
    invoice = Invoice("CHANGE", plan, quantity, start, shown_end, start, at, drives=grants_first)
    if not opens:
        invoice.about = covering
    charge = plan.price(quantity) if opens else plan.part(quantity, left, total)
    if charge:
        is_full = opens or left == total
        lines.append(Line("PERIOD" if is_full else "PRORATION", charge, invoice.about))

    if timing == "NEXT_INVOICE":
        for line in lines:
            line.kind = "PRORATION"
        life.waiting += lines
        covering.terms = plan, quantity
        life.plan, life.quantity, life.pending = plan, quantity, None
        life.terms.append((start, plan, quantity))
        return
    invoice.lines = lines
    collecting.issue(life, invoice, at, takes_up=True)
    change = Change(plan, quantity, start, invoice, opens)
    if invoice.is_open and not grants_first:
        life.change = change
    else:
        changing.apply(life, change)


def undo_change(life: Life, at: datetime) -> None:
    """Take back a change that has not taken effect."""
    _catch_up(life, at)
    if life.change is not None:
        changing.take_back(life)
    elif life.pending is not None:
        life.pending = None
    else:
        raise RefusedError("SB322")


def pause(life: Life, at: datetime, *, at_end: bool) -> None:
    """Pause now, or at the end of the period."""
    _catch_up(life, at)
    if life.status in {"ACTIVE", "TRIALING"} and life.current.kind == "BILLED":
        if life.change is not None:
            raise RefusedError("SB321")
        _require_nothing_open(life)
    if life.status != "ACTIVE":
        raise RefusedError("SB303")
    if at_end:
        life.pauses_at_end = True
        return
    _require_begun(life, at)
    start = max(at, life.current.start)
    assert life.current.invoice is not None
    life.rest = Rest(max(seconds(start, life.end), 0), life.current.invoice)
    life.cut(start)
    life.spans.append(Span("PAUSED", start, None))
    life.status, life.is_due, life.pauses_at_end = "PAUSED", False, False


def resume(life: Life, at: datetime) -> None:
    """Resume, or take back a pause that has not begun."""
    _catch_up(life, at)
    if life.status != "PAUSED":
        if not life.pauses_at_end:
            raise RefusedError("SB303")
        life.pauses_at_end = False
        return
    pause_start = life.current.start
    start = max(at, pause_start)
    rest, left = life.rest, life.rest.seconds if life.rest else 0
    end = start + timedelta(seconds=left)
    life.cut(start)
    if start > pause_start:
        _shift(life, end)
    if left:
        assert rest is not None
        last = life.spans[-1] if life.spans else None
        if last is not None and last.invoice is rest.invoice and last.end == start:
            last.end = end
        else:
            life.spans.append(Span("BILLED", start, end, rest.invoice))
    life.status, life.rest, life.is_due = "ACTIVE", None, True
    if not left:
        renewing.take_boundary(life, at)


def _shift(life: Life, end: datetime) -> None:
    """Move the anchor to the end of what was left; a fixed term keeps its number of periods."""
    rest_of_term = None
    if life.term_end is not None:
        number = life.number
        while life.boundary(number) < life.term_end:
            number += 1
        rest_of_term = number - life.number
    life.anchor_at(end, 0)
    if rest_of_term is not None:
        life.term_end = life.boundary(rest_of_term)


def cancel(life: Life, at: datetime, *, at_end: bool, gives_credit: bool) -> None:
    """Cancel now, or at the end of the period."""
    _require_running(life)
    if at_end and life.status in {"TRIALING", "ACTIVE"}:
        if not life.cancels_at_end:
            _catch_up(life, at)
        if life.status != "PAUSED":
            if life.change is not None and not life.cancels_at_end:
                changing.take_back(life)
            life.cancels_at_end = life.is_due = True
            return
    is_over = life.cancels_at_end and bool(life.spans) and life.current.end is not None
    is_over = is_over and life.end <= at
    if is_over:
        ended = life.end
    else:
        ended = at if life.term_end is None else min(at, life.term_end)
        running = [span.start for span in life.spans if span.start <= at + LEEWAY]
        if running:
            ended = max(ended, running[-1])
        elif life.spans:
            ended = max(ended, life.current.start)
    unused = life.unused(ended) if gives_credit else []
    collecting.finish(life, "CANCELED", "period_end" if is_over else "requested", ended, at)
    for base, amount in unused:
        base.given += amount
        life.credit.give(amount)


def undo_cancel(life: Life, at: datetime) -> None:
    """Take back a cancellation at the end of the period."""
    _require_running(life)
    if not life.cancels_at_end:
        raise RefusedError("SB315")
    if life.current.end is not None and life.end < at:
        raise RefusedError("SB302")
    life.cancels_at_end = False


def extend_trial(life: Life, end: datetime, at: datetime) -> None:
    """Move the end of a trial."""
    _catch_up(life, at)
    if life.status != "TRIALING" or life.current.kind != "TRIAL":
        raise RefusedError("SB303")
    if not max(life.end, at) < end <= at + timedelta(days=731):
        raise RefusedError("SB101")
    life.current.end = end
    changing.anchor_after_trial(life)


def renew_now(life: Life, at: datetime) -> None:
    """Renew before the period has ended."""
    _catch_up(life, at)
    if (
        life.status != "ACTIVE"
        or life.current.kind != "BILLED"
        or life.cancels_at_end
        or life.pauses_at_end
        or (life.term_end is not None and life.end >= life.term_end)
    ):
        raise RefusedError("SB303")
    if life.change is not None:
        raise RefusedError("SB321")
    _require_nothing_open(life)
    if life.current.start > at:
        raise RefusedError("SB323")
    renewing.take_boundary(life, at)


def expire_checkout(life: Life, at: datetime) -> None:
    """Give up a checkout that is a day old."""
    if life.status == "INCOMPLETE" and at >= life.created + timedelta(hours=24):
        collecting.finish(life, "EXPIRED", "checkout_abandoned", at, at)
