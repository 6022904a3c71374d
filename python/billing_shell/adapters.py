"""The adapters that this program has, by the name that a gateway account has in the database."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from billing_shell.gateway import Gateway, WebhookEvent
from billing_shell.simulated_gateway import SimulatedGateway


class AdapterMissingError(RuntimeError):
    """An adapter cannot be used as it is installed or configured; says what to do."""


def _simulated(base_url: str, api_key: str | None) -> Gateway:
    return SimulatedGateway(base_url, api_key=api_key)


def _stripe(base_url: str, api_key: str | None) -> Gateway:
    try:
        from billing_shell.stripe_gateway import StripeGateway  # noqa: PLC0415  an optional extra
    except ImportError as error:
        raise AdapterMissingError("Stripe needs its SDK: install billing-shell[stripe]") from error
    if api_key is None:
        raise AdapterMissingError("Stripe needs a secret key in BILLING_STRIPE_API_KEY")
    return StripeGateway(base_url, api_key=api_key)


def read_stripe_webhook(
    raw_body: bytes, headers: Mapping[str, str], secrets: Iterable[str], now: datetime
) -> WebhookEvent:
    """Verify and read one delivery of Stripe; a `WebhookReader` that needs the SDK only here.

    Raises:
        AdapterMissingError: the SDK is not installed.
    """
    try:
        from billing_shell.stripe_webhooks import read_webhook  # noqa: PLC0415  an optional extra
    except ImportError as error:
        raise AdapterMissingError("Stripe needs its SDK: install billing-shell[stripe]") from error
    return read_webhook(raw_body, headers, secrets, now)


ADAPTERS: Mapping[str, Callable[[str, str | None], Gateway]] = {
    "simulated": _simulated,
    "stripe": _stripe,
}
"""Each takes the base address of its gateway's API, and the key that it is called with.

Raises AdapterMissingError where it cannot be used as it is installed or configured.
"""
