"""The table of endpoints: each is one function or view of `billing_api`, and a row in its part.

A new function is a row, and a class in `api_bodies` where it takes arguments of its own.
"""

from billing_shell.api_customer_endpoints import CUSTOMERS, PAYMENT_METHODS, PLANS
from billing_shell.api_invoice_endpoints import INVOICES
from billing_shell.api_operations import Operation
from billing_shell.api_subscription_endpoints import SUBSCRIPTIONS

ENDPOINTS: tuple[Operation, ...] = (
    *SUBSCRIPTIONS,
    *CUSTOMERS,
    *PAYMENT_METHODS,
    *PLANS,
    *INVOICES,
)
"""All endpoints; the one asked for most often first, since they are tried in this order."""
