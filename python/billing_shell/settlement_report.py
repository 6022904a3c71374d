"""Settlement reports: loads what a gateway says that it has settled, and has it compared.

A report is a CSV file with a header and the columns `kind` (`charge` or `refund`), `gateway_id`,
`reference` (ours, may be empty), `amount` (minor units, positive) and `currency`; others are left
alone. The comparison is the database's, see `billing.settlement_differences`: in both directions,
and each difference opens a case.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.rows import class_row
from psycopg.types.composite import CompositeInfo, register_composite

from billing_shell.errors import translate
from billing_shell.gateway import SettledItem

_ROLE: LiteralString = "SET ROLE billing_operator"
_OPEN: LiteralString = """
    SELECT billing_ops.open_settlement_report(
        p_gateway_account => %(account)s, p_from => %(start)s, p_to => %(end)s
    )
"""
_ADD: LiteralString = """
    SELECT billing_ops.add_settlement_lines(
        p_report_id => %(report)s, p_lines => %(lines)s::billing.settled_item[]
    )
"""
_COMPARE: LiteralString = """
    SELECT kind, item, gateway_id, customer_id, invoice_id, attempt_id, refund_id, amount, currency
    FROM billing_ops.compare_settlement(p_report_id => %(report)s)
"""

_COLUMNS = ("kind", "gateway_id", "reference", "amount", "currency")
_REQUIRED = frozenset(_COLUMNS) - {"reference"}
_KINDS = {"charge": "CHARGE", "refund": "REFUND"}
_BATCH = 5_000
_LONGEST_AMOUNT = 16


class ReportError(ValueError):
    """A report cannot be read; says where."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What report and database do not agree on.

    `kind` is MISSING_AT_GATEWAY, MISSING_HERE or SETTLEMENT_MISMATCH, `item` CHARGE or REFUND.
    """

    kind: str
    item: str
    gateway_id: str | None
    customer_id: int | None
    invoice_id: int | None
    attempt_id: int | None
    refund_id: int | None
    amount: int
    currency: str

    def line(self) -> str:
        """Return it as one line for people."""
        ours = self.attempt_id or self.refund_id
        known = f", ours {ours}" if ours else ""
        return f"{self.kind} {self.item} {self.gateway_id}: {self.amount} {self.currency}{known}"


def read_report(path: Path) -> Iterator[SettledItem]:
    """Read a report line by line.

    Raises:
        ReportError: a column is missing, or a line cannot be read; with its number.
        OSError: the file cannot be read.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.DictReader(file, strict=True)
        try:
            header = rows.fieldnames or ()
            missing = _REQUIRED - set(header)
            if missing:
                raise ReportError(f"{path}: no column {', '.join(sorted(missing))}")
            twice = {column for column in _COLUMNS if header.count(column) > 1}
            if twice:
                raise ReportError(f"{path}: several columns {', '.join(sorted(twice))}")
            for row in rows:
                if None in row or None in row.values():
                    raise ReportError(
                        f"{path}:{rows.line_num}: has more or fewer values than the header"
                    )
                yield _item(path, rows.line_num, row)
        except (UnicodeDecodeError, csv.Error) as error:
            raise ReportError(
                f"{path}: no CSV file in UTF-8, after line {rows.line_num}: {error}"
            ) from error


def _item(path: Path, line: int, row: dict[str, Any]) -> SettledItem:
    kind, amount = _KINDS.get(str(row["kind"]).lower()), str(row["amount"])
    if kind is None:
        raise ReportError(f"{path}:{line}: kind is neither charge nor refund")
    if not (amount.isascii() and amount.isdigit() and len(amount) <= _LONGEST_AMOUNT):
        raise ReportError(f"{path}:{line}: amount is no whole number of minor units")
    if any("\0" in str(row[name]) for name in _COLUMNS if name in row):
        raise ReportError(f"{path}:{line}: a value holds a NUL character")
    return SettledItem(
        kind,
        str(row["gateway_id"]),
        row.get("reference") or None,
        int(amount),
        str(row["currency"]),
    )


def compare(
    database_url: str, gateway_account: str, path: Path, start: datetime, end: datetime
) -> list[Difference]:
    """Load a report that covers `[start, end)` and compare it, in one transaction.

    Raises:
        ReportError: the file cannot be understood; nothing is changed.
        DatabaseError: the database refused, or cannot be reached.
        OSError: the file cannot be read.
    """
    try:
        with psycopg.connect(database_url, application_name="billing reconcile") as connection:
            connection.execute(_ROLE)
            info = _composite(connection)
            register_composite(info, connection, SettledItem, make_sequence=_fields_of)
            opened = connection.execute(
                _OPEN, {"account": gateway_account, "start": start, "end": end}
            ).fetchone()
            assert opened is not None  # noqa: S101  a function's one row
            lines = read_report(path)
            while batch := list(islice(lines, _BATCH)):
                connection.execute(_ADD, {"report": opened[0], "lines": batch})
            with connection.cursor(row_factory=class_row(Difference)) as cursor:
                return cursor.execute(_COMPARE, {"report": opened[0]}).fetchall()
    except psycopg.Error as error:
        raise translate(error) from error


def _composite(connection: psycopg.Connection[Any]) -> CompositeInfo:
    """Return the type of a line.

    Raises:
        ReportError: the database has no such type; migrate it first.
    """
    info = CompositeInfo.fetch(connection, "billing.settled_item")
    if info is None:
        raise ReportError(
            "the database has no billing schema, or an older one; run billing migrate"
        )
    return info


def _fields_of(item: SettledItem, _info: CompositeInfo) -> tuple[object, ...]:
    return (item.kind, item.gateway_id, item.reference, item.amount, item.currency)
