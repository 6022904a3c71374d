"""Reads a catalogue, customers and subscriptions from CSV files, and says all that is wrong there.

UTF-8, a header line, comma separated, double quotes where needed. `docs/demo.md` lists the
columns. Nothing here knows the database: what only the engine can judge (currencies, time zones,
boundaries) it judges when the rows arrive there.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

from billing_shell.import_problems import ImportErrorCode, ImportProblem, Problems

_LONGEST_REFERENCE = 255
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_NUMBER = re.compile(r"[0-9]{1,18}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_Row = TypeVar("_Row")

_UNITS = ("DAY", "WEEK", "MONTH", "YEAR")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """A plan's price in one currency; `amount_minor` in minor units per unit and period."""

    line: int
    plan_code: str
    name: str
    interval_unit: str
    interval_count: int
    trial_days: int
    currency: str
    amount_minor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerRow:
    """A customer and, unless `payment_token` is None, how they pay."""

    line: int
    customer_ref: str
    currency: str
    time_zone: str
    email: str | None
    payment_token: str | None = field(repr=False)
    brand: str | None
    last4: str | None
    exp_month: int | None
    exp_year: int | None
    fingerprint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRow:
    """A running subscription, its present period billed elsewhere; instants are aware.

    `anchor_at` is the instant that boundaries are counted from; None = `current_period_start`.
    """

    line: int
    customer_ref: str
    resource_ref: str | None
    plan_code: str
    quantity: int
    anchor_at: datetime | None
    current_period_start: datetime
    dunning_policy: str
    auto_renew: bool
    term_periods: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFiles:
    """Where the three files are."""

    plans: Path
    customers: Path
    subscriptions: Path

    @classmethod
    def in_directory(cls, directory: Path) -> Self:
        """Return `plans.csv`, `customers.csv` and `subscriptions.csv` of a directory."""
        return cls(
            plans=directory / "plans.csv",
            customers=directory / "customers.csv",
            subscriptions=directory / "subscriptions.csv",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRows:
    """What the files hold, in their order."""

    files: ImportFiles
    prices: tuple[PriceRow, ...]
    customers: tuple[CustomerRow, ...]
    subscriptions: tuple[SubscriptionRow, ...]

    def first(self, subscriptions: int) -> Self:
        """Return the first so many subscriptions, and only the customers who have them."""
        kept = self.subscriptions[:subscriptions]
        wanted = {row.customer_ref for row in kept}
        return type(self)(
            files=self.files,
            prices=self.prices,
            customers=tuple(row for row in self.customers if row.customer_ref in wanted),
            subscriptions=kept,
        )


def read_files(files: ImportFiles) -> ImportRows:
    """Read and check all files.

    Raises:
        ImportRefusedError: with every problem of every file; then nothing of them is to be used.
    """
    problems = Problems()
    prices = _read(files.plans, problems, _PRICE_COLUMNS, _PRICE_OPTIONAL, PriceRow)
    customers = _read(files.customers, problems, _CUSTOMER_COLUMNS, _CUSTOMER_OPTIONAL, CustomerRow)
    subscriptions = _read(
        files.subscriptions,
        problems,
        _SUBSCRIPTION_COLUMNS,
        _SUBSCRIPTION_OPTIONAL,
        SubscriptionRow,
    )
    _check_prices(files.plans, prices, problems)
    _check_unique(
        files.customers, problems, "customer_ref", ((c.line, c.customer_ref) for c in customers)
    )
    _check_customers(files.customers, customers, problems)
    _check_unique(
        files.subscriptions,
        problems,
        "resource_ref",
        ((s.line, (s.customer_ref, s.resource_ref or "default")) for s in subscriptions),
    )
    if not problems.count:
        _check_references(files, prices, customers, subscriptions, problems)
    problems.refuse()
    return ImportRows(
        files=files,
        prices=tuple(prices),
        customers=tuple(customers),
        subscriptions=tuple(subscriptions),
    )


def _reference(text: str) -> str:
    if len(text) > _LONGEST_REFERENCE or _CONTROL.search(text):
        raise ValueError(f"takes at most {_LONGEST_REFERENCE} characters, none of them a control")
    return text


def _matching(pattern: re.Pattern[str], form: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if pattern.fullmatch(text) is None:
            raise ValueError(f"takes {form}")
        return text

    return parse


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if _NUMBER.fullmatch(text) is None or not least <= int(text) <= most:
            raise ValueError(f"takes a whole number from {least} to {most}")
        return int(text)

    return parse


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"takes {', '.join(words)}")
        return text

    return parse


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None or instant.microsecond:
        raise ValueError("takes an instant in whole seconds as 2027-01-31T09:30:00+01:00 or ...Z")
    return instant


def _flag(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


_Parser = Callable[[str], Any]

_code = _matching(_CODE, "letters, digits, _, . and -, at most 63")
_currency = _matching(_CURRENCY, "three capital letters, as USD")
_last4 = _matching(re.compile(r"[0-9]{4}"), "four digits")

_PRICE_COLUMNS: Mapping[str, _Parser] = {
    "plan_code": _code,
    "name": _reference,
    "interval_unit": _one_of(*_UNITS),
    "interval_count": _whole(1, 3650),
    "currency": _currency,
    "amount_minor": _whole(0, 10**15),
}
_PRICE_OPTIONAL: Mapping[str, tuple[_Parser, Any]] = {"trial_days": (_whole(0, 730), 0)}
_CUSTOMER_COLUMNS: Mapping[str, _Parser] = {
    "customer_ref": _reference,
    "currency": _currency,
    "time_zone": _reference,
}
_CUSTOMER_OPTIONAL: Mapping[str, tuple[_Parser, Any]] = {
    "email": (_reference, None),
    "payment_token": (_reference, None),
    "brand": (_reference, None),
    "last4": (_last4, None),
    "exp_month": (_whole(1, 12), None),
    "exp_year": (_whole(2000, 2100), None),
    "fingerprint": (_reference, None),
}
_SUBSCRIPTION_COLUMNS: Mapping[str, _Parser] = {
    "customer_ref": _reference,
    "plan_code": _code,
    "current_period_start": _instant,
}
_SUBSCRIPTION_OPTIONAL: Mapping[str, tuple[_Parser, Any]] = {
    "resource_ref": (_reference, None),
    "quantity": (_whole(1, 1_000_000), 1),
    "anchor_at": (_instant, None),
    "dunning_policy": (_code, "standard"),
    "auto_renew": (_flag, True),
    "term_periods": (_whole(1, 1200), None),
}


def _read(
    file: Path,
    problems: Problems,
    required: Mapping[str, _Parser],
    optional: Mapping[str, tuple[_Parser, Any]],
    make: Callable[..., _Row],
) -> list[_Row]:
    rows: list[_Row] = []
    for line, values in _lines(file, problems, required, optional):
        found: dict[str, Any] = {}
        before = problems.count
        for column, parse in required.items():
            found[column] = _value(file, line, column, values[column], parse, problems)
        for column, (parse, default) in optional.items():
            text = values.get(column, "")
            found[column] = _value(file, line, column, text, parse, problems) if text else default
        if problems.count == before:
            rows.append(make(line=line, **found))
    return rows


def _value(
    file: Path, line: int, column: str, text: str, parse: _Parser, problems: Problems
) -> Any:  # noqa: ANN401  as the parser says
    if not text.strip():
        problem = ImportErrorCode.VALUE_MISSING, "is empty"
    else:
        try:
            return parse(text)
        except ValueError as error:
            problem = ImportErrorCode.VALUE_MALFORMED, str(error)
    problems.add(ImportProblem(file, line, column, *problem))
    return None


def _lines(
    file: Path,
    problems: Problems,
    required: Mapping[str, _Parser],
    optional: Mapping[str, tuple[_Parser, Any]],
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each line with its number, by column."""
    line = 0
    try:
        with file.open(encoding="utf-8-sig", newline="") as opened:
            reader = csv.reader(opened, strict=True)
            header = next(reader, [])
            wrong = _wrong_header(header, required, optional)
            if wrong:
                problems.add(ImportProblem(file, 1, "", ImportErrorCode.HEADER_WRONG, wrong))
                return
            for values in reader:
                line = reader.line_num
                if len(values) == len(header):
                    yield line, dict(zip(header, values, strict=True))
                elif values:
                    message = f"has {len(values)} values, the header has {len(header)}"
                    problems.add(
                        ImportProblem(file, line, "", ImportErrorCode.ROW_MALFORMED, message)
                    )
    except csv.Error as error:
        problems.add(
            ImportProblem(file, line + 1, "", ImportErrorCode.ROW_MALFORMED, f"is no CSV: {error}")
        )
    except UnicodeDecodeError as error:
        message = f"is not UTF-8: {error.reason} at byte {error.start} of a block"
        problems.add(ImportProblem(file, 0, "", ImportErrorCode.FILE_UNREADABLE, message))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        problems.add(ImportProblem(file, 0, "", ImportErrorCode.FILE_UNREADABLE, message))


def _wrong_header(
    header: Sequence[str],
    required: Mapping[str, _Parser],
    optional: Mapping[str, tuple[_Parser, Any]],
) -> str:
    missing = [column for column in required if column not in header]
    unknown = [column for column in header if column not in required and column not in optional]
    twice = sorted({column for column in header if header.count(column) > 1})
    parts = [
        f"{what} {', '.join(columns)}"
        for what, columns in (("lacks", missing), ("has unknown", unknown), ("repeats", twice))
        if columns
    ]
    if not parts:
        return ""
    return f"{'; '.join(parts)}; it takes {', '.join([*required, *optional])}"


def _check_unique(
    file: Path, problems: Problems, column: str, names: Iterator[tuple[int, object]]
) -> None:
    seen: dict[object, int] = {}
    for line, name in names:
        first = seen.setdefault(name, line)
        if first != line:
            message = f"line {first} has the same"
            problems.add(ImportProblem(file, line, column, ImportErrorCode.DUPLICATE, message))


def _check_prices(file: Path, prices: Sequence[PriceRow], problems: Problems) -> None:
    """A plan's name, interval and trial are the same in every currency."""
    _check_unique(file, problems, "currency", ((p.line, (p.plan_code, p.currency)) for p in prices))
    first: dict[str, PriceRow] = {}
    for price in prices:
        known = first.setdefault(price.plan_code, price)
        for column in ("name", "interval_unit", "interval_count", "trial_days"):
            if getattr(price, column) != getattr(known, column):
                message = f"differs from line {known.line}, of the same plan"
                problems.add(
                    ImportProblem(file, price.line, column, ImportErrorCode.CONTRADICTION, message)
                )


def _check_customers(file: Path, customers: Sequence[CustomerRow], problems: Problems) -> None:
    for customer in customers:
        details = ("brand", "last4", "exp_month", "exp_year", "fingerprint")
        given = [column for column in details if getattr(customer, column) is not None]
        if customer.payment_token is None and given:
            message = f"is empty, but {given[0]} is not"
            problems.add(
                ImportProblem(
                    file,
                    customer.line,
                    "payment_token",
                    ImportErrorCode.VALUE_MISSING,
                    message,
                )
            )
        if (customer.exp_month is None) != (customer.exp_year is None):
            missing = "exp_month" if customer.exp_month is None else "exp_year"
            problems.add(
                ImportProblem(
                    file,
                    customer.line,
                    missing,
                    ImportErrorCode.VALUE_MISSING,
                    "is empty; month and year go together",
                )
            )


def _check_references(
    files: ImportFiles,
    prices: Sequence[PriceRow],
    customers: Sequence[CustomerRow],
    subscriptions: Sequence[SubscriptionRow],
    problems: Problems,
) -> None:
    currencies: dict[str, set[str]] = {}
    for price in prices:
        currencies.setdefault(price.plan_code, set()).add(price.currency)
    known = {customer.customer_ref: customer for customer in customers}
    for row in subscriptions:
        customer, priced_in = known.get(row.customer_ref), currencies.get(row.plan_code)
        wrong = [
            (column, message)
            for column, message, applies in (
                ("customer_ref", f"is not in {files.customers.name}", customer is None),
                ("plan_code", f"is not in {files.plans.name}", priced_in is None),
                (
                    "plan_code",
                    "has no price in the customer's currency",
                    customer is not None
                    and priced_in is not None
                    and customer.currency not in priced_in,
                ),
                (
                    "term_periods",
                    "makes no sense with auto_renew",
                    row.auto_renew and row.term_periods is not None,
                ),
            )
            if applies
        ]
        for column, message in wrong:
            code = (
                ImportErrorCode.CONTRADICTION
                if column == "term_periods"
                else ImportErrorCode.UNKNOWN_REFERENCE
            )
            problems.add(ImportProblem(files.subscriptions, row.line, column, code, message))
