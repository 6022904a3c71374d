"""The usual kinds of endpoints, and what they say where something is not there."""

from http import HTTPStatus

from billing_shell import api_answers as answers
from billing_shell.api_fields import Body
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation, Tag
from billing_shell.api_shapes import Call, Missing, Shape

CUSTOMER = ("billing_api.customer", "customer_id")
PLAN = ("billing_api.plan", "plan_code")
SUBSCRIPTION = ("billing_api.subscription", "subscription_id")
INVOICE = ("billing_api.invoice", "invoice_id")

NO_SUBSCRIPTION = Missing("SB201", "subscription {subscription_id} does not exist")
NO_CUSTOMER = Missing("SB202", "customer {customer_id} does not exist")
NO_PLAN = Missing("SB203", "plan {plan_code} does not exist")
NO_INVOICE = Missing("SB204", "invoice {invoice_id} does not exist")


def reading(path: str, name: str, summary: str, tag: Tag, shape: Shape) -> Operation:
    """Something to look at."""
    return Operation(method="GET", path=path, name=name, summary=summary, tag=tag, shape=shape)


def making(
    path: str,
    name: str,
    summary: str,
    tag: Tag,
    shape: Shape,
    body: type[Body],
    location: str,
    *,
    needs_key: bool = False,
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
        needs_key=needs_key,
        location=location,
    )


def acting(act: str, function: str, summary: str, body: type[Body] | None = None) -> Operation:
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
