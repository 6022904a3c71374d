"""What is sold and how debts are pursued, as the model knows it."""

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from tests.py.model.calendar import Length, Unit


class RefusedError(Exception):
    """The engine refuses a call and changes nothing.

    Attributes:
        code: its SQLSTATE.
    """

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class Plan:
    """A plan with its one price.

    Attributes:
        code: its name.
        amount: per unit and period, in minor units.
        unit: of its interval.
        count: how many units make a period.
    """

    code: str
    amount: int
    unit: Unit
    count: int = 1

    @property
    def length(self) -> Length:
        """The interval."""
        return Length.of(self.unit, self.count)

    @property
    def follows_the_calendar(self) -> bool:
        """Whether calendar billing makes sense for it."""
        return self.unit in {Unit.MONTH, Unit.YEAR}

    def price(self, quantity: int) -> int:
        """A full period, in minor units."""
        return self.amount * quantity

    def part(self, quantity: int, left: int, total: int) -> int:
        """Part of a period, in minor units: exact, and floored once."""
        exact = Fraction(self.amount * quantity) * Fraction(left, total)
        return exact.numerator // exact.denominator


@dataclass(frozen=True)
class Policy:
    """What follows a declined payment.

    Attributes:
        code: its name.
        spans: one per retry.
        from_first: counted from the first failure, else from the one before.
        grace: how long access lasts, from the later of period start and issue.
        final: CANCELED or EXPIRED.
        goes_on: whether periods are opened while a payment is past due.
    """

    code: str
    spans: tuple[timedelta, ...]
    from_first: bool
    grace: timedelta | None = None
    final: str = "CANCELED"
    goes_on: bool = False
