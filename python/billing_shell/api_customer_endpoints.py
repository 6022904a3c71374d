"""Endpoints about customers, their payment methods, and plans: rows of the table."""

from billing_shell import api_answers as answers
from billing_shell import api_bodies as bodies
from billing_shell import api_invoice_answers as money
from billing_shell import api_results as results
from billing_shell.api_endpoint_kinds import CUSTOMER, NO_CUSTOMER, NO_PLAN, PLAN, making, reading
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation, Tag
from billing_shell.api_shapes import Call, Item, Listing, RowsCall, ValueCall

CUSTOMERS: tuple[Operation, ...] = (
    reading(
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
    making(
        "/customers",
        "createCustomer",
        "Create who pays",
        Tag.CUSTOMERS,
        Call(function="billing_api.create_customer", answer=answers.Customer),
        bodies.CreateCustomer,
        "/customers/{customerId}",
    ),
    reading(
        "/customers/{customerId}",
        "getCustomer",
        "A customer, without personal data",
        Tag.CUSTOMERS,
        Item(view="billing_api.customer", answer=answers.Customer, missing=NO_CUSTOMER),
    ),
    Operation(
        method="DELETE",
        path="/customers/{customerId}",
        name="eraseCustomer",
        summary="Close a customer for good and erase contact, cards and tokens",
        tag=Tag.CUSTOMERS,
        shape=Call(function="billing_api.erase_customer", answer=answers.Customer),
        scope=Scope.WRITE,
        takes_key=True,
    ),
    reading(
        "/customers/{customerId}/access",
        "hasAccess",
        "Whether the customer may use a resource now",
        Tag.CUSTOMERS,
        ValueCall(
            function="billing_api.has_access", answer=results.Access, texts=("resource_ref",)
        ),
    ),
    reading(
        "/customers/{customerId}/resources",
        "listResources",
        "What gets access, newest first",
        Tag.CUSTOMERS,
        Listing(
            view="billing_api.resource",
            answer=answers.Resource,
            place="resource_id",
            parent=CUSTOMER,
            missing=NO_CUSTOMER,
        ),
    ),
    reading(
        "/customers/{customerId}/subscriptions",
        "listCustomerSubscriptions",
        "A customer's subscriptions, newest first",
        Tag.SUBSCRIPTIONS,
        Listing(
            view="billing_api.subscription",
            answer=answers.Subscription,
            place="subscription_id",
            parent=CUSTOMER,
            missing=NO_CUSTOMER,
        ),
    ),
    reading(
        "/customers/{customerId}/invoices",
        "listCustomerInvoices",
        "A customer's invoices, newest first",
        Tag.INVOICES,
        Listing(
            view="billing_api.invoice",
            answer=money.Invoice,
            place="invoice_id",
            parent=CUSTOMER,
            missing=NO_CUSTOMER,
        ),
    ),
    reading(
        "/customers/{customerId}/credit",
        "listCreditBalances",
        "Credit left, per currency",
        Tag.CUSTOMERS,
        Listing(
            view="billing_api.credit_balance",
            answer=answers.CreditBalance,
            place="currency",
            parent=CUSTOMER,
            missing=NO_CUSTOMER,
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
    making(
        "/customers/{customerId}/invoices",
        "createManualInvoice",
        "Invoice an amount by itself",
        Tag.INVOICES,
        Call(function="billing_api.create_manual_invoice", answer=money.Invoice),
        bodies.CreateManualInvoice,
        "/invoices/{invoiceId}",
        needs_key=True,
    ),
    Operation(
        method="POST",
        path="/customers/{customerId}/suspend-resource",
        name="suspendResource",
        summary="Take access away, until it is lifted by an administrator again",
        tag=Tag.CUSTOMERS,
        shape=Call(function="billing_api.suspend_resource", answer=answers.Resource),
        body=bodies.NameResource,
        scope=Scope.WRITE,
        takes_key=True,
    ),
    Operation(
        method="POST",
        path="/customers/{customerId}/lift-suspension",
        name="liftSuspension",
        summary="Lift an administrator's suspension; billing's stays",
        tag=Tag.CUSTOMERS,
        shape=Call(function="billing_api.lift_suspension", answer=answers.Resource),
        body=bodies.NameResource,
        scope=Scope.WRITE,
        takes_key=True,
    ),
)

PAYMENT_METHODS: tuple[Operation, ...] = (
    reading(
        "/customers/{customerId}/payment-methods",
        "listPaymentMethods",
        "Payment methods, newest first, removed ones too",
        Tag.PAYMENT_METHODS,
        Listing(
            view="billing_api.payment_method",
            answer=answers.PaymentMethod,
            place="payment_method_id",
            parent=CUSTOMER,
            missing=NO_CUSTOMER,
        ),
    ),
    making(
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

PLANS: tuple[Operation, ...] = (
    reading(
        "/plans",
        "listPlans",
        "Plans, by code",
        Tag.PLANS,
        Listing(view="billing_api.plan", answer=answers.Plan, place="plan_code"),
    ),
    making(
        "/plans",
        "createPlan",
        "Create a plan with its first price",
        Tag.PLANS,
        Call(function="billing_api.create_plan", answer=answers.Plan),
        bodies.CreatePlan,
        "/plans/{planCode}",
    ),
    reading(
        "/plans/{planCode}",
        "getPlan",
        "A plan",
        Tag.PLANS,
        Item(
            view="billing_api.plan",
            answer=answers.Plan,
            missing=NO_PLAN,
        ),
    ),
    reading(
        "/plans/{planCode}/prices",
        "listPrices",
        "A plan's price versions, newest first",
        Tag.PLANS,
        Listing(
            view="billing_api.price",
            answer=answers.Price,
            place="price_id",
            parent=PLAN,
            missing=NO_PLAN,
        ),
    ),
    making(
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
