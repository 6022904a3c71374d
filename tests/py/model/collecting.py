"""Issuing invoices, collecting them, and what follows when that fails."""

from datetime import datetime

from tests.py.model import changing
from tests.py.model.books import Invoice, Line
from tests.py.model.calendar import First, boundary, first_period
from tests.py.model.life import OVER, Life, Span


def issue(life: Life, invoice: Invoice, at: datetime, *, takes_up: bool = False) -> None:
    """Issue an invoice: draw credit, give what its lines come to less than nothing."""
    if takes_up:
        invoice.took_up, life.waiting = life.waiting, []
        invoice.lines += invoice.took_up
    if invoice.total < 0:
        surplus = -invoice.total
        invoice.lines.append(Line("CREDIT", surplus, invoice.about))
        invoice.given += surplus
        life.credit.give(surplus)
    invoice.credit = life.credit.draw(invoice.total)
    invoice.due = at
    life.invoices.append(invoice)
    if invoice.owed == 0:
        invoice.close("PAID")


def void(life: Life, invoice: Invoice) -> None:
    """Make an invoice void: credit goes back, lines wait again."""
    life.credit.give(invoice.credit)
    invoice.credit = 0
    life.waiting = invoice.took_up + life.waiting
    invoice.took_up = []
    invoice.close("VOID")


def activate(life: Life, invoice: Invoice, at: datetime) -> None:
    """Open the first period of a checkout that was paid."""
    start = at if life.day is None else invoice.start
    first = first_period(start, life.zone, life.plan.length, life.day)
    is_late = first.end <= at
    life.anchor, life.number = first.anchor, first.number
    life.term_end = term_end(life, first, extra=1 if is_late else 0)
    invoice.start, invoice.end, invoice.full_start = first.start, first.end, first.full_start
    life.spans = [Span("BILLED", first.start, first.end, invoice)]
    life.terms = [(first.start, life.plan, life.quantity)]
    life.status, life.is_due = "ACTIVE", True
    if is_late:
        given = invoice.paid + invoice.credit
        life.missed = invoice
        life.waiting = [line for line in life.waiting if line.about is not invoice]
        invoice.given += given
        life.credit.give(given)


def term_end(life: Life, first: First, extra: int = 0) -> datetime | None:
    """Return where a fixed term ends whose first period this is."""
    if life.periods is None:
        return None
    number = first.number + life.periods - 1 + extra
    return boundary(first.anchor, life.zone, life.plan.length, number)


def collect(life: Life, at: datetime, *, succeeds: bool) -> None:
    """Attempt everything that is due until nothing is, always with the same answer."""
    while due := [i for i in life.open_invoices if i.due is not None and i.due <= at]:
        if life.credit.balance > 0:
            for invoice in due:
                drawn = life.credit.draw(invoice.owed)
                invoice.credit += drawn
            paid = [invoice for invoice in due if invoice.owed == 0]
            _settle(life, paid, at, succeeds=True)
            continue
        small = [invoice for invoice in due if life.has_method and invoice.owed < life.minimum]
        for invoice in small:
            life.waiting.append(Line("CARRIED", invoice.owed, invoice.about))
            invoice.carried += invoice.owed
        if small:
            _settle(life, small, at, succeeds=True)
            continue
        _settle(life, due, at, succeeds=succeeds and life.has_method)


def _settle(life: Life, invoices: list[Invoice], at: datetime, *, succeeds: bool) -> None:
    for invoice in invoices:
        if succeeds:
            invoice.paid += invoice.owed
            invoice.close("PAID")
        else:
            _step_up(life, invoice, at)
    _move(life, invoices, at)
    change = life.change
    if change is not None and any(change.invoice is invoice for invoice in invoices):
        if succeeds:
            changing.apply(life, change)
        elif change.invoice.is_open:
            changing.take_back(life)
    if any(invoice.dunning_ends is not None and invoice.dunning_ends <= at for invoice in invoices):
        end_dunning(life, at)


def _step_up(life: Life, invoice: Invoice, at: datetime) -> None:
    invoice.failures.append(at)
    invoice.due = None
    if not invoice.drives:
        return
    count = len(invoice.failures)
    if count <= len(life.policy.spans):
        base = invoice.failures[0] if life.policy.from_first else at
        invoice.due = base + life.policy.spans[count - 1]
        return
    grace = _grace_end(life, invoice)
    invoice.dunning_ends = at if grace is None else max(at, grace)


def _grace_end(life: Life, invoice: Invoice) -> datetime | None:
    if life.policy.grace is None:
        return None
    return max(invoice.start, invoice.issued) + life.policy.grace


def _move(life: Life, settled: list[Invoice], at: datetime) -> None:
    owing = [invoice for invoice in life.open_invoices if invoice.drives]
    failing = [invoice for invoice in owing if invoice.failures]
    opened = [i for i in settled if i.status == "PAID" and i.kind in {"INITIAL", "RENEWAL"}]
    if life.status == "INCOMPLETE" and opened:
        activate(life, opened[0], at)
    elif life.status in {"TRIALING", "ACTIVE"} and failing:
        life.status = "PAST_DUE"
        life.is_due = life.cancels_at_end or life.policy.goes_on
    elif (life.status == "TRIALING" and opened) or (life.status == "PAST_DUE" and not owing):
        life.status, life.access_until, life.is_due = "ACTIVE", None, True
    if life.status == "PAST_DUE":
        ends = [end for invoice in failing if (end := _grace_end(life, invoice)) is not None]
        life.access_until = min(ends, default=None)


def end_dunning(life: Life, at: datetime) -> None:
    """End a subscription whose retries are spent and whose grace is over."""
    if life.status == "PAST_DUE" and any(
        invoice.drives and invoice.dunning_ends is not None and invoice.dunning_ends <= at
        for invoice in life.open_invoices
    ):
        is_over = life.term_end is not None and life.term_end <= at
        finish(life, "EXPIRED" if is_over else life.policy.final, "payment_failed", at, at)


def finish(life: Life, status: str, reason: str, ended: datetime, at: datetime) -> None:
    """End a subscription: nothing is collected any more, what was promised becomes credit."""
    assert life.status not in OVER
    for invoice in life.open_invoices:
        stands = reason == "payment_failed" and invoice.drives and invoice.start <= at
        if stands:
            invoice.close("FAILED")
        else:
            void(life, invoice)
    for base in {id(line.about): line.about for line in life.waiting}.values():
        promised = sum(line.amount for line in life.waiting if line.about is base)
        if promised < 0:
            base.given -= promised
            life.credit.give(-promised)
    life.waiting = []
    life.cut(ended)
    life.status, life.reason, life.ended = status, reason, ended
    life.pending = life.change = None
    life.pauses_at_end = life.is_due = False
    life.access_until = None
