"""What becomes of a subscription at its boundaries."""

from datetime import datetime

from tests.py.model import changing, collecting
from tests.py.model.books import Invoice, Line
from tests.py.model.calendar import seconds
from tests.py.model.life import OVER, Life, Span
from tests.py.model.terms import Plan


def renew_due(life: Life, at: datetime) -> None:
    """Take up every boundary that has come, one by one."""
    while life.status not in OVER and life.is_due and life.end <= at:
        take_boundary(life, at)


def renew_overdue(life: Life, at: datetime) -> None:
    """Take up the boundaries that lie before an instant, as every call does first."""
    while life.status not in OVER and life.is_due and life.end < at:
        take_boundary(life, at)


def take_boundary(life: Life, at: datetime) -> None:
    """Cancel, expire, pause, rest or renew at the end of the current period."""
    if life.change is not None:
        changing.take_back(life)
    plan, quantity = life.plan, life.quantity
    is_chosen = life.pending is not None and life.pending[2] <= life.end
    if is_chosen:
        assert life.pending is not None
        plan, quantity, _ = life.pending
    can_pay = life.has_method or plan.amount == 0
    if life.cancels_at_end:
        collecting.finish(life, "CANCELED", "period_end", life.end, at)
    elif life.current.kind == "TRIAL" and not can_pay:
        collecting.finish(life, "CANCELED", "no_payment_method", life.end, at)
    elif life.term_end is not None and life.end >= life.term_end:
        if life.status == "PAST_DUE":
            life.is_due = False
        else:
            collecting.finish(life, "EXPIRED", "term_end", life.end, at)
    elif life.pauses_at_end and life.status == "ACTIVE":
        _pause(life)
    elif life.status == "PAST_DUE" and not life.policy.goes_on:
        life.is_due = False
    else:
        if is_chosen:
            life.pending = None
        _renew(life, plan, quantity, at)


def _pause(life: Life) -> None:
    life.spans.append(Span("PAUSED", life.end, None))
    life.status, life.is_due, life.pauses_at_end = "PAUSED", False, False


def _renew(life: Life, plan: Plan, quantity: int, at: datetime) -> None:
    start = life.end
    if plan.length != life.plan.length and life.current.kind == "TRIAL":
        life.plan = plan
        changing.anchor_after_trial(life)
    elif plan.length != life.plan.length:
        changing.reanchor(life, plan, start)
        life.number = 0
    full_start = min(life.boundary(life.number, plan.length), start)
    life.number += 1
    end = life.boundary(life.number, plan.length)
    invoice = Invoice("RENEWAL", plan, quantity, start, end, full_start, at, drives=True)
    is_stub = full_start < start
    amount = (
        plan.part(quantity, seconds(start, end), seconds(full_start, end))
        if is_stub
        else plan.price(quantity)
    )
    if amount or is_stub:
        invoice.lines.append(Line("PRORATION" if is_stub else "PERIOD", amount, invoice))
    collecting.issue(life, invoice, at, takes_up=True)
    life.plan, life.quantity = plan, quantity
    life.terms.append((start, plan, quantity))
    life.spans.append(Span("BILLED", start, end, invoice))
    if life.status == "TRIALING" and invoice.status == "PAID":
        life.status = "ACTIVE"
