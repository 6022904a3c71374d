"""The report: what a run did, whether three books agree about it, and what was not shown."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

_EXAMPLES = 5
_WORST = ("double_charge", "key_charged_twice", "unknown_reference", "charge_without_capture")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that does not agree.

    Attributes:
        code: for machines.
        message: one sentence with figures.
        examples: the first few of what it is about.
    """

    code: str
    message: str
    examples: tuple[str, ...] = ()


class Findings:
    """Collects what does not agree."""

    def __init__(self) -> None:
        self._found: list[Finding] = []

    def note(self, code: str, message: str, about: Iterable[object]) -> None:
        """Note a disagreement about things, unless there are none.

        Args:
            code: for machines.
            message: one sentence; `{n}` is how many things it is about.
            about: the things.
        """
        things = [str(thing) for thing in about]
        if things:
            finding = Finding(
                code=code,
                message=message.format(n=len(things)),
                examples=tuple(things[:_EXAMPLES]),
            )
            self._found.append(finding)

    def note_if(self, wrong: bool, code: str, message: str) -> None:  # noqa: FBT001  a condition
        """Note a disagreement, if there is one."""
        if wrong:
            self._found.append(Finding(code=code, message=message))

    def worst_first(self) -> tuple[Finding, ...]:
        """Return all, money that moved for nothing before everything else."""
        return tuple(sorted(self._found, key=_gravity))


def _gravity(finding: Finding) -> int:
    return _WORST.index(finding.code) if finding.code in _WORST else len(_WORST)


def in_major_unit(amount: int, exponent: int) -> str:
    """Write an amount in the major unit, as 1,234.56."""
    if exponent == 0:
        return f"{amount:,}"
    whole, part = divmod(abs(amount), 10**exponent)
    return f"{'-' if amount < 0 else ''}{whole:,}.{part:0{exponent}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """One currency in two books, minor units.

    Attributes:
        database: captured through the gateway, by the invoices.
        gateway: moved, by the ledger, less what went back.
    """

    currency: str
    exponent: int
    invoices_paid: int
    charges: int
    database: int
    gateway: int

    def text(self, amount: int) -> str:
        """Write an amount in the major unit, as 1,234.56."""
        return in_major_unit(amount, self.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result.

    Attributes:
        findings: everything that does not agree; empty in a healthy run.
        not_exercised: what this run did not show, because it never happened.
    """

    renewals: Mapping[str, int]
    money: tuple[Money, ...]
    events: Mapping[str, int]
    throttle: Mapping[str, float | int | bool]
    dunning: Mapping[str, int]
    exercised: Mapping[str, int]
    cases: Mapping[str, int]
    findings: tuple[Finding, ...]
    not_exercised: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether all books agree and everything was exercised."""
        return not self.findings and not self.not_exercised

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"agrees": self.agrees, **asdict(self)}
