"""The table of endpoints: each is one function or view of `billing_api`, and a row here.

A new function is a row, and a class in `api_bodies` where it takes arguments of its own.
"""

from http import HTTPStatus

from billing_shell import api_answers as answers
from billing_shell import api_bodies as bodies
from billing_shell import api_results as results
from billing_shell.api_fields import Body
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation, Tag
from billing_shell.api_shapes import (
    Call,
    DocumentCall,
    Item,
    Listing,
    Missing,
    RowsCall,
    Shape,
    ValueCall,
)

_NO_SUBSCRIPTION = Missing("SB201", "subscription {subscription_id} does not exist")
_NO_CUSTOMER = Missing("SB202", "customer {customer_id} does not exist")
_NO_INVOICE = Missing("SB204", "invoice {invoice_id} does not exist")

_CUSTOMER = ("billing_api.customer", "customer_id")
_PLAN = ("billing_api.plan", "plan_code")
_SUBSCRIPTION = ("billing_api.subscription", "subscription_id")
_INVOICE = ("billing_api.invoice", "invoice_id")


def _read(path: str, name: str, summary: str, tag: Tag, shape: Shape) -> Operation:
    return Operation(method="GET", path=path, name=name, summary=summary, tag=tag, shape=shape)


def _make(
    path: str, name: str, summary: str, tag: Tag, shape: Shape, body: type[Body], location: str
) -> Operation:
    """Something new, which is found at `location` afterwards."""
    return Operation(
        method="POST",
        path=path,
        name=name,
        summary=summary,
        tag=tag,
        shape=shape,
        body=body,
        scope=Scope.WRITE,
        status=HTTPStatus.CREATED,
        takes_key=True,
        needs_key=name in {"createSubscription", "importSubscription"},
        location=location,
    )


def _on_subscription(
    act: str, function: str, summary: str, body: type[Body] | None = None
) -> Operation:
    """An operation on one subscription, which returns it."""
    first, *rest = function.split("_")
    return Operation(
        method="POST",
        path=f"/subscriptions/{{subscriptionId}}/{act}",
        name=first + "".join(word.title() for word in rest),
        summary=summary,
        tag=Tag.SUBSCRIPTIONS,
        shape=Call(function=f"billing_api.{function}", answer=answers.Subscription),
        body=body,
        scope=Scope.WRITE,
        takes_key=True,
        takes_version=True,
    )


_SUBSCRIPTIONS = (
    _read(
        "/subscriptions/{subscriptionId}",
        "getSubscription",
        "Status, current period, and all else about a subscription",
        Tag.SUBSCRIPTIONS,
        Item(
            view="billing_api.subscription", answer=answers.Subscription, missing=_NO_SUBSCRIPTION
        ),
    ),
    _make(
        "/subscriptions",
        "createSubscription",
        "Sign a customer up for a plan",
        Tag.SUBSCRIPTIONS,
        Call(function="billing_api.create_subscription", answer=answers.Subscription),
        bodies.CreateSubscription,
        "/subscriptions/{subscriptionId}",
    ),
    _make(
        "/subscriptions/import",
        "importSubscription",
        "Take over a subscription that was billed elsewhere, without billing the past",
        Tag.SUBSCRIPTIONS,
        Call(function="billing_api.import_subscription", answer=answers.Subscription),
        bodies.ImportSubscription,
        "/subscriptions/{subscriptionId}",
    ),
    _on_subscription(
        "cancel",
        "cancel_subscription",
        "Cancel now, or at the end of the period",
        bodies.CancelSubscription,
    ),
    _on_subscription("undo-cancel", "undo_cancel", "Take a scheduled cancellation back"),
    _on_subscription("change-plan", "change_plan", "Change plan or quantity", bodies.ChangePlan),
    Operation(
        method="POST",
        path="/subscriptions/{subscriptionId}/change-plan/preview",
        name="previewChangePlan",
        summary="What a change would do: carried out, looked at, and rolled back",
        tag=Tag.SUBSCRIPTIONS,
        shape=DocumentCall(
            function="billing_api.preview_change_plan", answer=results.ChangePreview
        ),
        body=bodies.ChangePlan,
        scope=Scope.READ,
        takes_version=True,
    ),
    _on_subscription("undo-change", "undo_change", "Take a change back that waits"),
    _on_subscription(
        "pause",
        "pause_subscription",
        "Pause now, or at the end of the period",
        bodies.PauseSubscription,
    ),
    _on_subscription("resume", "resume_subscription", "Resume, with the time that was left"),
    _on_subscription("extend-trial", "extend_trial", "End the trial later", bodies.ExtendTrial),
    _on_subscription("renew", "renew_now", "Renew early"),
    _on_subscription(
        "payment-method",
        "set_subscription_payment_method",
        "Choose the payment method that is charged",
        bodies.ChoosePaymentMethod,
    ),
    _read(
        "/subscriptions/{subscriptionId}/invoices",
        "listSubscriptionInvoices",
        "A subscription's invoices, newest first",
        Tag.INVOICES,
        Listing(
            view="billing_api.invoice",
            answer=answers.Invoice,
            place="invoice_id",
            parent=_SUBSCRIPTION,
            missing=_NO_SUBSCRIPTION,
        ),
    ),
    Operation(
        method="GET",
        path="/subscriptions/{subscriptionId}/timeline",
        name="getSubscriptionTimeline",
        summary="Everything that happened to a subscription: when, by whom, and why",
        tag=Tag.OPERATION,
        shape=RowsCall(function="billing_ops.subscription_timeline", answer=results.TimelineEntry),
        scope=Scope.OPERATE,
    ),
)

_CUSTOMERS = (
    _read(
        "/customers",
        "listCustomers",
        "Customers, newest first, or the one with an external reference",
        Tag.CUSTOMERS,
        Listing(
            view="billing_api.customer",
            answer=answers.Customer,
            place="customer_id",
            filters=("external_ref",),
        ),
    ),
    _make(
        "/customers",
        "createCustomer",
        "Create who pays",
        Tag.CUSTOMERS,
        Call(function="billing_api.create_customer", answer=answers.Customer),
        bodies.CreateCustomer,
        "/customers/{customerId}",
    ),
    _read(
        "/customers/{customerId}",
        "getCustomer",
        "A customer, without personal data",
        Tag.CUSTOMERS,
        Item(view="billing_api.customer", answer=answers.Customer, missing=_NO_CUSTOMER),
    ),
    _read(
        "/customers/{customerId}/access",
        "hasAccess",
        "Whether the customer may use a resource now",
        Tag.CUSTOMERS,
        ValueCall(
            function="billing_api.has_access", answer=results.Access, texts=("resource_ref",)
        ),
    ),
    _read(
        "/customers/{customerId}/resources",
        "listResources",
        "What gets access, newest first",
        Tag.CUSTOMERS,
        Listing(
            view="billing_api.resource",
            answer=answers.Resource,
            place="resource_id",
            parent=_CUSTOMER,
            missing=_NO_CUSTOMER,
        ),
    ),
    _read(
        "/customers/{customerId}/subscriptions",
        "listCustomerSubscriptions",
        "A customer's subscriptions, newest first",
        Tag.SUBSCRIPTIONS,
        Listing(
            view="billing_api.subscription",
            answer=answers.Subscription,
            place="subscription_id",
            parent=_CUSTOMER,
            missing=_NO_CUSTOMER,
        ),
    ),
    _read(
        "/customers/{customerId}/invoices",
        "listCustomerInvoices",
        "A customer's invoices, newest first",
        Tag.INVOICES,
        Listing(
            view="billing_api.invoice",
            answer=answers.Invoice,
            place="invoice_id",
            parent=_CUSTOMER,
            missing=_NO_CUSTOMER,
        ),
    ),
    _read(
        "/customers/{customerId}/credit",
        "listCreditBalances",
        "Credit left, per currency",
        Tag.CUSTOMERS,
        Listing(
            view="billing_api.credit_balance",
            answer=answers.CreditBalance,
            place="currency",
            parent=_CUSTOMER,
            missing=_NO_CUSTOMER,
        ),
    ),
    Operation(
        method="POST",
        path="/customers/{customerId}/credit",
        name="grantCredit",
        summary="Give credit",
        tag=Tag.CUSTOMERS,
        shape=Call(function="billing_api.grant_credit", answer=answers.CreditBalance),
        body=bodies.GrantCredit,
        scope=Scope.WRITE,
        takes_key=True,
        needs_key=True,
    ),
)

_PAYMENT_METHODS = (
    _read(
        "/customers/{customerId}/payment-methods",
        "listPaymentMethods",
        "Payment methods, newest first, removed ones too",
        Tag.PAYMENT_METHODS,
        Listing(
            view="billing_api.payment_method",
            answer=answers.PaymentMethod,
            place="payment_method_id",
            parent=_CUSTOMER,
            missing=_NO_CUSTOMER,
        ),
    ),
    _make(
        "/customers/{customerId}/payment-methods",
        "addPaymentMethod",
        "Add a gateway's token; open invoices become due on it",
        Tag.PAYMENT_METHODS,
        Call(function="billing_api.add_payment_method", answer=answers.PaymentMethod),
        bodies.AddPaymentMethod,
        "/customers/{customerId}/payment-methods",
    ),
    Operation(
        method="POST",
        path="/customers/{customerId}/payment-methods/{paymentMethodId}/make-default",
        name="setDefaultPaymentMethod",
        summary="Make a payment method the default",
        tag=Tag.PAYMENT_METHODS,
        shape=Call(function="billing_api.set_default_payment_method", answer=answers.PaymentMethod),
        scope=Scope.WRITE,
        takes_key=True,
    ),
    Operation(
        method="DELETE",
        path="/customers/{customerId}/payment-methods/{paymentMethodId}",
        name="removePaymentMethod",
        summary="Remove a payment method; the answer is the one that is the default now, if any",
        tag=Tag.PAYMENT_METHODS,
        shape=Call(function="billing_api.remove_payment_method", answer=answers.PaymentMethod),
        scope=Scope.WRITE,
        takes_key=True,
    ),
)

_PLANS = (
    _read(
        "/plans",
        "listPlans",
        "Plans, by code",
        Tag.PLANS,
        Listing(view="billing_api.plan", answer=answers.Plan, place="plan_code"),
    ),
    _make(
        "/plans",
        "createPlan",
        "Create a plan with its first price",
        Tag.PLANS,
        Call(function="billing_api.create_plan", answer=answers.Plan),
        bodies.CreatePlan,
        "/plans/{planCode}",
    ),
    _read(
        "/plans/{planCode}",
        "getPlan",
        "A plan",
        Tag.PLANS,
        Item(
            view="billing_api.plan",
            answer=answers.Plan,
            missing=Missing("SB203", "plan {plan_code} does not exist"),
        ),
    ),
    _read(
        "/plans/{planCode}/prices",
        "listPrices",
        "A plan's price versions, newest first",
        Tag.PLANS,
        Listing(
            view="billing_api.price",
            answer=answers.Price,
            place="price_id",
            parent=_PLAN,
            missing=Missing("SB203", "plan {plan_code} does not exist"),
        ),
    ),
    _make(
        "/plans/{planCode}/prices",
        "addPrice",
        "Add a price version; subscriptions that run keep theirs",
        Tag.PLANS,
        Call(function="billing_api.add_price", answer=answers.Price),
        bodies.AddPrice,
        "/plans/{planCode}/prices",
    ),
    Operation(
        method="POST",
        path="/plans/{planCode}/migrate-price",
        name="migratePrice",
        summary="Move a plan's subscribers to its newest price, or only count them",
        tag=Tag.PLANS,
        shape=RowsCall(function="billing_api.migrate_price", answer=results.PriceMigration),
        body=bodies.MigratePrice,
        scope=Scope.WRITE,
    ),
)

_INVOICES = (
    _read(
        "/invoices/{invoiceId}",
        "getInvoice",
        "An invoice",
        Tag.INVOICES,
        Item(view="billing_api.invoice", answer=answers.Invoice, missing=_NO_INVOICE),
    ),
    _read(
        "/invoices/{invoiceId}/lines",
        "listInvoiceLines",
        "An invoice's lines, each with how it was computed",
        Tag.INVOICES,
        Listing(
            view="billing_api.invoice_line",
            answer=answers.InvoiceLine,
            place="line_no",
            parent=_INVOICE,
            missing=_NO_INVOICE,
        ),
    ),
    _read(
        "/invoices/{invoiceId}/attempts",
        "listPaymentAttempts",
        "The efforts to collect an invoice, newest first",
        Tag.INVOICES,
        Listing(
            view="billing_api.payment_attempt",
            answer=answers.PaymentAttempt,
            place="attempt_id",
            parent=_INVOICE,
            missing=_NO_INVOICE,
        ),
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

ENDPOINTS: tuple[Operation, ...] = (
    *_SUBSCRIPTIONS,
    *_CUSTOMERS,
    *_PAYMENT_METHODS,
    *_PLANS,
    *_INVOICES,
)
"""All endpoints; the one asked for most often first, since they are tried in this order."""
