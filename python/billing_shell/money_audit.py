"""Compares the money of two books: per payment, per invoice and per currency, to the minor unit."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from billing_shell.books.database_book import Attempt, DatabaseBook, Invoice
from billing_shell.books.gateway_book import Charge, GatewayBook
from billing_shell.report import Findings, Money, in_major_unit


@dataclass(frozen=True, slots=True)
class MoneyAudit:
    """Two books, and where disagreements go."""

    database: DatabaseBook
    gateway: GatewayBook
    findings: Findings

    def run(self) -> tuple[Money, ...]:
        """To the minor unit, per payment, per invoice and per currency."""
        invoices = {invoice.invoice_id: invoice for invoice in self.database.invoices}
        attempts = {attempt.reference: attempt for attempt in self.database.attempts}
        succeeded = [c for c in self.gateway.charges if c.status == "succeeded"]
        self._compare_payments(attempts, succeeded)

        moved: Counter[int] = Counter()
        charges: defaultdict[int, list[Charge]] = defaultdict(list)
        for charge in succeeded:
            attempt = attempts.get(charge.reference)
            if attempt is not None:
                moved[attempt.invoice_id] += charge.amount
                charges[attempt.invoice_id].append(charge)
        self.findings.note(
            "double_charge",
            "{n} invoices were charged more than once",
            self._charged_twice(invoices, charges, succeeded),
        )
        self.findings.note(
            "invoice_money_differs",
            "{n} invoices have captured other sums than the gateway has moved for them",
            (
                f"invoice {number}: database {self._text(invoice.amount_paid, invoice.currency)},"
                f" gateway {self._text(moved[number], invoice.currency)}"
                for number, invoice in invoices.items()
                if invoice.amount_paid != moved[number]
            ),
        )
        self.findings.note(
            "paid_invoice_owes",
            "{n} invoices are paid and owe something, or their parts do not add up",
            (
                f"invoice {i.invoice_id}"
                for i in invoices.values()
                if i.total != i.credit_applied + i.amount_paid + i.carried + i.amount_due
                or (i.status == "PAID" and i.amount_due)
            ),
        )
        self.findings.note_if(
            self.database.left_due > 0,
            "invoices_left",
            f"{self.database.left_due} open invoices could be collected and were not",
        )
        self.findings.note_if(
            self.database.unsettled > 0,
            "attempts_left",
            f"{self.database.unsettled} attempts have no known outcome, and no case was opened",
        )
        return self._sums(succeeded)

    def _compare_payments(
        self,
        attempts: Mapping[str, Attempt],
        succeeded: Sequence[Charge],
    ) -> None:
        """Each reference is one attempt, each captured attempt one charge, each key one charge."""
        by_reference = {charge.reference: charge for charge in succeeded}
        references = Counter(charge.reference for charge in succeeded)
        keys = Counter(c.idempotency_key for c in succeeded if c.idempotency_key is not None)
        self.findings.note(
            "unknown_reference",
            "{n} payments at the gateway belong to no attempt of the database",
            (
                f"{c.payment_id} ({c.description}): {self._text(c.amount, c.currency)}, {c.status}"
                for c in self.gateway.charges
                if c.reference not in attempts
            ),
        )
        self.findings.note(
            "key_charged_twice",
            "{n} idempotency keys moved money twice",
            sorted(name for name, n in (references | keys).items() if n > 1),
        )
        self.findings.note(
            "capture_without_charge",
            "{n} attempts are captured for which the gateway moved nothing",
            (
                a.reference
                for a in attempts.values()
                if a.status == "SUCCEEDED" and a.reference not in by_reference
            ),
        )
        self.findings.note(
            "charge_without_capture",
            "{n} attempts are not captured though the gateway moved the money",
            (
                f"{a.reference} ({a.status})"
                for a in attempts.values()
                if a.status != "SUCCEEDED" and a.reference in by_reference
            ),
        )
        self.findings.note(
            "payment_differs",
            "{n} captured attempts name another payment, amount or currency than the ledger",
            (
                a.reference
                for a in attempts.values()
                if a.status == "SUCCEEDED"
                and (charge := by_reference.get(a.reference)) is not None
                and (charge.payment_id, charge.amount, charge.currency)
                != (a.gateway_payment_id, a.amount, a.currency)
            ),
        )

    def _sums(self, succeeded: Sequence[Charge]) -> tuple[Money, ...]:
        captured: Counter[str] = Counter()
        paid: Counter[str] = Counter()
        for invoice in self.database.invoices:
            captured[invoice.currency] += invoice.amount_paid
            paid[invoice.currency] += invoice.amount_paid > 0
        moved: Counter[str] = Counter()
        charges: Counter[str] = Counter()
        for charge in succeeded:
            moved[charge.currency] += charge.amount
            charges[charge.currency] += 1
        moved.subtract(self.gateway.refunded)
        sums = tuple(
            Money(
                currency=currency,
                exponent=self.database.exponents.get(currency, 2),
                invoices_paid=paid[currency],
                charges=charges[currency],
                database=captured[currency],
                gateway=moved[currency],
            )
            for currency in sorted(captured.keys() | moved.keys())
        )
        self.findings.note(
            "currency_differs",
            "in {n} currencies the database has captured another sum than the gateway has moved",
            (
                f"{m.currency}: database {m.text(m.database)}, gateway {m.text(m.gateway)}"
                for m in sums
                if m.database != m.gateway
            ),
        )
        return sums

    def _charged_twice(
        self,
        invoices: Mapping[int, Invoice],
        charges: Mapping[int, Sequence[Charge]],
        succeeded: Sequence[Charge],
    ) -> Iterable[str]:
        """Describe invoices for which money moved twice: by our references, or by the statement.

        The statement's text names the invoice, so it tells even where references were made up.
        """
        statements: defaultdict[str, list[Charge]] = defaultdict(list)
        for charge in succeeded:
            statements[charge.description].append(charge)
        told = set()
        for number, theirs in sorted(charges.items()):
            if len(theirs) > 1:
                told.add(theirs[0].description)
                yield self._twice(f"invoice {number}", invoices[number].total, theirs)
        for description, theirs in sorted(statements.items()):
            if len(theirs) > 1 and description not in told:
                yield self._twice(repr(description), theirs[0].amount, theirs)

    def _twice(self, what: str, owed: int, charges: Sequence[Charge]) -> str:
        currency = charges[0].currency
        moved = sum(charge.amount for charge in charges)
        return (
            f"{what}: {len(charges)} charges, {self._text(moved, currency)} moved"
            f" for {self._text(owed, currency)}"
        )

    def _text(self, amount: int, currency: str) -> str:
        return f"{in_major_unit(amount, self.database.exponents.get(currency, 2))} {currency}"
