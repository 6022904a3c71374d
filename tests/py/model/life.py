"""One subscription and the credit of its customer: what there is, not what is done to it."""

from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

from tests.py.model.books import Account, Invoice, Line
from tests.py.model.calendar import Length, boundary, local, seconds
from tests.py.model.terms import Plan, Policy

FOREVER = None
LIVE = frozenset({"INCOMPLETE", "TRIALING", "ACTIVE", "PAST_DUE", "PAUSED"})
OVER = frozenset({"CANCELED", "EXPIRED"})


@dataclass
class Span:
    """A row of the timeline; `end` None is a pause without end."""

    kind: str
    start: datetime
    end: datetime | None
    invoice: Invoice | None = None


@dataclass
class Change:
    """A change of plan that waits for its payment.

    Attributes:
        plan: the new plan.
        quantity: the new quantity.
        at: when it takes effect.
        invoice: what has to be paid.
        opens: whether it begins a new period.
    """

    plan: Plan
    quantity: int
    at: datetime
    invoice: Invoice
    opens: bool


@dataclass
class Rest:
    """What was left of a period when it was paused."""

    seconds: int
    invoice: Invoice


@dataclass
class Life:
    """A subscription.

    Attributes:
        zone: time zone.
        plan: what is sold.
        quantity: units.
        policy: what follows a declined payment.
        day: day of the month of calendar billing.
        periods: of a fixed term.
        has_method: whether its customer can pay.
        credit: of its customer.
        minimum: below which nothing is charged, in minor units.
        created: when it was signed up.
        status: as in the engine.
        anchor: local time that boundaries are counted from.
        number: of the boundary that ends the current period.
        spans: its timeline.
        terms: what was sold from when on, as far as it was granted.
        invoices: in order of issue.
        missed: of a stub that was over before it was paid, so that nobody was served.
    """

    zone: str
    plan: Plan
    quantity: int
    policy: Policy
    day: int | None
    periods: int | None
    has_method: bool
    credit: Account
    minimum: int
    created: datetime
    status: str = "INCOMPLETE"
    anchor: datetime | None = None
    number: int = 0
    term_end: datetime | None = None
    spans: list[Span] = field(default_factory=list)
    terms: list[tuple[datetime, Plan, int]] = field(default_factory=list)
    invoices: list[Invoice] = field(default_factory=list)
    waiting: list[Line] = field(default_factory=list)
    cancels_at_end: bool = False
    pauses_at_end: bool = False
    pending: tuple[Plan, int, datetime] | None = None
    change: Change | None = None
    rest: Rest | None = None
    missed: Invoice | None = None
    is_due: bool = False
    access_until: datetime | None = None
    ended: datetime | None = None
    reason: str | None = None

    @property
    def current(self) -> Span:
        """The last period that was opened."""
        return self.spans[-1]

    @property
    def end(self) -> datetime:
        """Its end."""
        assert self.current.end is not None
        return self.current.end

    @property
    def open_invoices(self) -> list[Invoice]:
        """What is still to be paid."""
        return [invoice for invoice in self.invoices if invoice.is_open]

    def boundary(self, number: int, length: Length | None = None) -> datetime:
        """Return a boundary of the present anchor."""
        assert self.anchor is not None
        return boundary(self.anchor, self.zone, length or self.plan.length, number)

    def anchor_at(self, at: datetime, number: int) -> None:
        """Count boundaries from an instant."""
        self.anchor, self.day, self.number = local(at, self.zone), None, number

    def cut(self, at: datetime) -> None:
        """End the timeline at an instant."""
        self.spans = [span for span in self.spans if span.start < at]
        if self.spans and (self.current.end is None or self.current.end > at):
            self.current.end = at

    def length_of(self, base: Invoice) -> int:
        """Return the seconds of the full period that an invoice priced."""
        assert base.end is not None
        return seconds(base.full_start, base.end)

    def creditable(self, base: Invoice) -> int:
        """Return what was paid for a period and not given back, in minor units."""
        settled = sum(
            line.amount
            for invoice in self.invoices
            if invoice.status == "PAID"
            for line in invoice.lines
            if line.about is base
        )
        back = sum(
            invoice.given + invoice.carried for invoice in self.invoices if invoice.about is base
        )
        # A change of interval that is still owed: what it brought along from the period before.
        brought = sum(
            -line.amount
            for line in base.lines[: len(base.lines) - len(base.took_up)]
            if base.is_open and base.drives and line.about is not base
        )
        return settled + brought - back

    def waiting_for(self, base: Invoice) -> int:
        """Return what lines about a period come to that an end would leave without an invoice."""
        on_open = [line for invoice in self.open_invoices for line in invoice.took_up]
        return sum(line.amount for line in self.waiting + on_open if line.about is base)

    def owed_for(self, base: Invoice) -> int:
        """Return how else what was granted of a period is to be paid, by credit included."""
        return sum(
            invoice.owed + invoice.credit - sum(line.amount for line in invoice.took_up)
            for invoice in self.open_invoices
            if invoice.about is base and invoice.drives
        )

    def left(self, at: datetime) -> dict[int, tuple[Invoice, int]]:
        """Return the seconds that are left from an instant on, by the invoice that covers them."""
        found: dict[int, tuple[Invoice, int]] = {}
        for span in self.spans:
            if span.kind != "BILLED" or span.end is None or span.end <= at:
                continue
            assert span.invoice is not None
            rest = seconds(max(span.start, at), span.end)
            _, before = found.get(id(span.invoice), (span.invoice, 0))
            found[id(span.invoice)] = (span.invoice, before + rest)
        if self.rest is not None and self.rest.seconds:
            found[id(self.rest.invoice)] = (self.rest.invoice, self.rest.seconds)
        return found

    def unused(self, at: datetime) -> list[tuple[Invoice, int]]:
        """Return what a cancellation gives back, in minor units, by invoice."""
        back: list[tuple[Invoice, int]] = []
        for base, rest in self.left(at).values():
            plan, quantity = base.terms
            waiting = self.waiting_for(base)
            value = plan.part(quantity, rest, self.length_of(base)) - self.owed_for(base)
            amount = min(value - max(waiting, 0), self.creditable(base) + min(waiting, 0))
            if amount > 0:
                back.append((base, amount))
        return back

    def used(self) -> Fraction:
        """Return what the time that was served is worth, at the terms of each moment."""
        worth = Fraction(0)
        for span in self.spans:
            if span.kind != "BILLED" or span.end is None or span.invoice is self.missed:
                continue
            assert span.invoice is not None
            length = self.length_of(span.invoice)
            cuts = [at for at, _, _ in self.terms if span.start < at < span.end]
            for start, end in pairwise([span.start, *cuts, span.end]):
                plan, quantity = [terms[1:] for terms in self.terms if terms[0] <= start][-1]
                worth += Fraction(plan.price(quantity) * seconds(start, end), length)
        return worth

    def has_access(self, at: datetime) -> bool:
        """Return whether the customer may use what was sold, now or later."""
        if self.status not in {"TRIALING", "ACTIVE", "PAST_DUE"}:
            return False
        if self.term_end is not None and at >= self.term_end:
            return False
        pauses = self.pauses_at_end and self.status == "ACTIVE"
        if (self.cancels_at_end or pauses) and at >= self.end:
            return False
        if self.status == "PAST_DUE":
            return at >= self.created and (self.access_until is None or at < self.access_until)
        return self._serves(at)

    def _serves(self, at: datetime) -> bool:
        if at < self.end:
            return any(
                span.kind in {"TRIAL", "BILLED"}
                and span.start <= at
                and (span.end is None or at < span.end)
                for span in self.spans
            )
        if self.current.kind == "TRIAL":
            plan = self.pending[0] if self.pending else self.plan
            return self.has_method or plan.amount == 0
        return self.current.kind == "BILLED"
