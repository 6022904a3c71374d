"""Letting a change of plan take effect, or taking it back."""

from datetime import datetime

from tests.py.model import collecting
from tests.py.model.calendar import first_period
from tests.py.model.life import Change, Life, Span
from tests.py.model.terms import Plan


def apply(life: Life, change: Change) -> None:
    """Let a change take effect that is paid, or granted first."""
    life.change = life.pending = None
    if change.opens:
        open_period(life, change)
    else:
        change.invoice.about.terms = change.plan, change.quantity
    life.plan, life.quantity = change.plan, change.quantity
    life.terms.append((change.at, change.plan, change.quantity))


def open_period(life: Life, change: Change) -> None:
    """Begin a full period on another interval."""
    life.cut(change.at)
    reanchor(life, change.plan, change.at)
    life.spans.append(
        Span("BILLED", change.at, life.boundary(1, change.plan.length), change.invoice)
    )


def reanchor(life: Life, plan: Plan, at: datetime) -> None:
    """Count from an instant on; a fixed term ends with the first new period that reaches it."""
    life.anchor_at(at, 1)
    if life.term_end is not None:
        old, number = life.term_end, 1
        while life.boundary(number, plan.length) < old:
            number += 1
        life.term_end = life.boundary(number, plan.length)


def swap_in_trial(life: Life, plan: Plan, quantity: int) -> None:
    """Change what a trial is followed by."""
    life.plan, life.quantity, life.pending = plan, quantity, None
    anchor_after_trial(life)


def anchor_after_trial(life: Life) -> None:
    """Count from the end of a trial."""
    if not life.plan.follows_the_calendar:
        life.day = None
    first = first_period(life.end, life.zone, life.plan.length, life.day)
    life.anchor, life.number = first.anchor, first.number - 1
    life.term_end = collecting.term_end(life, first)


def take_back(life: Life) -> None:
    """Void a change that waits for its payment."""
    assert life.change is not None
    collecting.void(life, life.change.invoice)
    life.change = None
