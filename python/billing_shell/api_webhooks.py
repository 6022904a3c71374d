"""Where gateways report: verified over the raw body, stored, and only then acknowledged.

The account is the one of the address, never one that the event names. Who cannot prove to be the
gateway learns nothing: not whether the account exists, and not what was wrong with the signature.
"""

import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus

import structlog
from psycopg.types.json import Jsonb
from starlette.requests import Request
from starlette.responses import Response

from billing_shell import api_queries as queries
from billing_shell.adapters import read_stripe_webhook
from billing_shell.api_database import ApiDatabase
from billing_shell.api_guard import exchange_of
from billing_shell.api_problem import ProblemError
from billing_shell.gateway import UnreadableWebhookError, WebhookEvent, WebhookReader
from billing_shell.simulated_gateway import read_webhook
from billing_shell.webhook_signature import SecretError, WebhookSignatureError

READERS: Mapping[str, WebhookReader] = {"simulated": read_webhook, "stripe": read_stripe_webhook}
"""How each adapter verifies and reads its gateway's events."""

Secrets = Callable[[str], tuple[str, ...]]
"""The secrets of a gateway account, by its code; empty where it has none."""

_ADAPTERS_KEPT_SECONDS = 30.0

_log = structlog.get_logger(__name__)


class Webhooks:
    """The endpoints for gateways."""

    def __init__(self, database: ApiDatabase, secrets: Secrets) -> None:
        """Nothing is read yet.

        Args:
            database: where events are stored.
            secrets: of accounts.
        """
        self._database = database
        self._secrets = secrets
        self._adapters: dict[str, str] = {}
        self._read_at = float("-inf")

    async def receive(self, request: Request, account: str) -> Response:
        """Takes one delivery.

        Raises:
            ProblemError: 401 where the sender is not proven, 400 where the event cannot be read.
            DatabaseError: it could not be stored; the gateway sends it again.
        """
        event = await self._verified(request, account)
        ((status,),) = await self._database.rows(
            queries.RECEIVE_WEBHOOK,
            {
                "account": account,
                "event_id": event.event_id,
                "event_type": event.event_type,
                "payload": Jsonb(event.payload),
            },
        )
        _log.info(
            "webhook_received",
            gateway_account=account,
            event_id=event.event_id,
            event_type=event.event_type,
            status=status,
        )
        return Response(json.dumps({"status": status}), media_type="application/json")

    async def _verified(self, request: Request, account: str) -> WebhookEvent:
        secrets = self._secrets(account)
        reader = READERS.get(await self._adapter(account)) if secrets else None
        if reader is None:
            _log.warning("webhook_refused", gateway_account=account[:63], reason="no such endpoint")
            raise _not_proven()
        try:
            return reader(
                exchange_of(request).body, dict(request.headers), secrets, datetime.now(UTC)
            )
        except WebhookSignatureError as error:
            _log.warning("webhook_refused", gateway_account=account, reason=type(error).__name__)
            raise _not_proven() from None
        except SecretError:
            _log.exception("webhook_secret_unusable", gateway_account=account)
            raise _not_proven() from None
        except UnreadableWebhookError as error:
            _log.warning("webhook_unreadable", gateway_account=account, reason=str(error))
            raise ProblemError(
                HTTPStatus.BAD_REQUEST, "unreadable_event", "The event cannot be read."
            ) from None

    async def _adapter(self, account: str) -> str:
        """The adapter of an account, as it was half a minute ago at most; empty for no account."""
        if time.monotonic() - self._read_at > _ADAPTERS_KEPT_SECONDS:
            self._adapters = dict(await self._database.rows(queries.GATEWAY_ADAPTERS, {}))
            self._read_at = time.monotonic()
        return self._adapters.get(account, "")


def _not_proven() -> ProblemError:
    return ProblemError(
        HTTPStatus.UNAUTHORIZED,
        "unproven_sender",
        "The sender is not proven to be the gateway.",
        "the signature is missing, malformed, too old, or not by a secret of this endpoint",
    )
