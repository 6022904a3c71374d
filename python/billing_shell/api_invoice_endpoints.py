"""Endpoints about invoices: rows of the table."""

from billing_shell import api_bodies as bodies
from billing_shell import api_invoice_answers as money
from billing_shell import api_results as results
from billing_shell.api_endpoint_kinds import INVOICE, NO_INVOICE, reading
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation, Tag
from billing_shell.api_shapes import Call, Item, Listing, RowsCall

INVOICES: tuple[Operation, ...] = (
    reading(
        "/invoices/{invoiceId}",
        "getInvoice",
        "An invoice",
        Tag.INVOICES,
        Item(view="billing_api.invoice", answer=money.Invoice, missing=NO_INVOICE),
    ),
    reading(
        "/invoices/{invoiceId}/lines",
        "listInvoiceLines",
        "An invoice's lines, each with how it was computed",
        Tag.INVOICES,
        Listing(
            view="billing_api.invoice_line",
            answer=money.InvoiceLine,
            place="line_no",
            parent=INVOICE,
            missing=NO_INVOICE,
        ),
    ),
    reading(
        "/invoices/{invoiceId}/attempts",
        "listPaymentAttempts",
        "The efforts to collect an invoice, newest first",
        Tag.INVOICES,
        Listing(
            view="billing_api.payment_attempt",
            answer=money.PaymentAttempt,
            place="attempt_id",
            parent=INVOICE,
            missing=NO_INVOICE,
        ),
    ),
    reading(
        "/invoices/{invoiceId}/refunds",
        "listRefunds",
        "Money of an invoice that goes back, newest first",
        Tag.INVOICES,
        Listing(
            view="billing_api.refund",
            answer=money.Refund,
            place="refund_id",
            parent=INVOICE,
            missing=NO_INVOICE,
        ),
    ),
    Operation(
        method="POST",
        path="/invoices/{invoiceId}/retry",
        name="retryInvoice",
        summary="Try to collect an invoice now, on another method if one is named",
        tag=Tag.INVOICES,
        shape=Call(function="billing_api.retry_invoice", answer=money.Invoice),
        body=bodies.RetryInvoice,
        scope=Scope.WRITE,
        takes_key=True,
    ),
    Operation(
        method="POST",
        path="/invoices/{invoiceId}/void",
        name="voidInvoice",
        summary="Forgive what is owed",
        tag=Tag.INVOICES,
        shape=Call(function="billing_api.void_invoice", answer=money.Invoice),
        scope=Scope.WRITE,
        takes_key=True,
    ),
    Operation(
        method="POST",
        path="/invoices/{invoiceId}/refund",
        name="refundInvoice",
        summary="Send money back; the answer is what will be sent",
        tag=Tag.INVOICES,
        shape=RowsCall(function="billing_api.refund_invoice", answer=money.Refund),
        body=bodies.RefundInvoice,
        scope=Scope.WRITE,
        takes_key=True,
        needs_key=True,
    ),
    Operation(
        method="GET",
        path="/invoices/{invoiceId}/explanation",
        name="explainInvoice",
        summary="Each line with the formula of its amount, computed again",
        tag=Tag.OPERATION,
        shape=RowsCall(function="billing_ops.explain_invoice", answer=results.ExplainedLine),
        scope=Scope.OPERATE,
    ),
)
