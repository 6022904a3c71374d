"""Invoices, lines that wait for one, and the credit of a customer."""

from dataclasses import dataclass, field
from datetime import datetime

from tests.py.model.terms import Plan


@dataclass
class Line:
    """A line of an invoice, or one that waits for it.

    Attributes:
        kind: PERIOD, PRORATION, CREDIT or CARRIED.
        amount: minor units.
        about: the invoice of the period that it is about.
    """

    kind: str
    amount: int
    about: "Invoice"


@dataclass(eq=False)
class Invoice:
    """What is owed.

    Attributes:
        kind: INITIAL, RENEWAL or CHANGE.
        plan: priced by it; of a change, the new one.
        quantity: units.
        start: of the time that it is for.
        end: of it.
        full_start: of the full period that was priced.
        issued: when.
        drives: whether it moves the status of its subscription.
        about: the invoice of the period that it changes; itself where it opens one.
        terms: plan and quantity that count for the rest of its period.
        lines: what it is made of.
        credit: paid from credit.
        paid: paid in money.
        carried: too little to be charged, and carried to the next invoice.
        status: OPEN, PAID, FAILED or VOID.
        due: when it is attempted next.
        failures: when attempts failed.
        dunning_ends: when its subscription is given up.
        given: credit given for what it paid for, beside its lines.
        took_up: lines that had waited for it.
    """

    kind: str
    plan: Plan
    quantity: int
    start: datetime
    end: datetime | None
    full_start: datetime
    issued: datetime
    drives: bool
    about: "Invoice" = field(init=False)
    terms: tuple[Plan, int] = field(init=False)
    lines: list[Line] = field(default_factory=list)
    credit: int = 0
    paid: int = 0
    carried: int = 0
    status: str = "OPEN"
    due: datetime | None = None
    failures: list[datetime] = field(default_factory=list)
    dunning_ends: datetime | None = None
    given: int = 0
    took_up: list[Line] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.about = self
        self.terms = self.plan, self.quantity

    @property
    def total(self) -> int:
        """Sum of the lines, in minor units."""
        return sum(line.amount for line in self.lines)

    @property
    def owed(self) -> int:
        """What remains, in minor units."""
        return self.total - self.credit - self.paid - self.carried

    @property
    def is_open(self) -> bool:
        """Whether it is still to be paid."""
        return self.status == "OPEN"

    def close(self, status: str) -> None:
        """Give it its last status."""
        self.status = status
        self.due = self.dunning_ends = None


@dataclass
class Account:
    """The credit of a customer in one currency, in minor units."""

    balance: int = 0

    def give(self, amount: int) -> None:
        """Add credit."""
        self.balance += amount

    def draw(self, most: int) -> int:
        """Take what there is, up to a limit; return how much that was."""
        drawn = min(self.balance, most)
        self.balance -= drawn
        return drawn
