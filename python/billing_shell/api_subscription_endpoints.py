"""Endpoints about subscriptions: rows of the table."""

from billing_shell import api_answers as answers
from billing_shell import api_bodies as bodies
from billing_shell import api_invoice_answers as money
from billing_shell import api_results as results
from billing_shell.api_endpoint_kinds import NO_SUBSCRIPTION, SUBSCRIPTION, acting, making, reading
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation, Tag
from billing_shell.api_shapes import Call, DocumentCall, Item, Listing, RowsCall

SUBSCRIPTIONS: tuple[Operation, ...] = (
    reading(
        "/subscriptions/{subscriptionId}",
        "getSubscription",
        "Status, current period, and all else about a subscription",
        Tag.SUBSCRIPTIONS,
        Item(view="billing_api.subscription", answer=answers.Subscription, missing=NO_SUBSCRIPTION),
    ),
    making(
        "/subscriptions",
        "createSubscription",
        "Sign a customer up for a plan",
        Tag.SUBSCRIPTIONS,
        Call(function="billing_api.create_subscription", answer=answers.Subscription),
        bodies.CreateSubscription,
        "/subscriptions/{subscriptionId}",
        needs_key=True,
    ),
    making(
        "/imports/subscriptions",
        "importSubscription",
        "Take over a subscription that was billed elsewhere, without billing the past",
        Tag.SUBSCRIPTIONS,
        Call(function="billing_api.import_subscription", answer=answers.Subscription),
        bodies.ImportSubscription,
        "/subscriptions/{subscriptionId}",
        needs_key=True,
    ),
    acting(
        "cancel",
        "cancel_subscription",
        "Cancel now, or at the end of the period",
        bodies.CancelSubscription,
    ),
    acting("undo-cancel", "undo_cancel", "Take a scheduled cancellation back"),
    acting("change-plan", "change_plan", "Change plan or quantity", bodies.ChangePlan),
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
    acting("undo-change", "undo_change", "Take a change back that waits"),
    acting(
        "pause",
        "pause_subscription",
        "Pause now, or at the end of the period",
        bodies.PauseSubscription,
    ),
    acting("resume", "resume_subscription", "Resume, with the time that was left"),
    acting("extend-trial", "extend_trial", "End the trial later", bodies.ExtendTrial),
    acting("renew", "renew_now", "Renew early"),
    acting(
        "payment-method",
        "set_subscription_payment_method",
        "Choose the payment method that is charged",
        bodies.ChoosePaymentMethod,
    ),
    reading(
        "/subscriptions/{subscriptionId}/invoices",
        "listSubscriptionInvoices",
        "A subscription's invoices, newest first",
        Tag.INVOICES,
        Listing(
            view="billing_api.invoice",
            answer=money.Invoice,
            place="invoice_id",
            parent=SUBSCRIPTION,
            missing=NO_SUBSCRIPTION,
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
