"""Standard Webhooks signatures: HMAC-SHA256 over `id.timestamp.body`, several secrets at once.

Scheme: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
The three headers are `webhook-id`, `webhook-timestamp` (whole seconds since 1970) and
`webhook-signature` (a list of `v1,<base64>` separated by spaces; other versions are passed over).
A secret is `whsec_<base64 of the key>`, or any other text, whose UTF-8 bytes then are the key.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"
TOLERANCE = timedelta(seconds=300)

_SECRET_PREFIX = "whsec_"  # noqa: S105  the public prefix of every secret, not one of them
_VERSION = "v1"
_EVENT_ID = re.compile(r"[\x21-\x2d\x2f-\x7e]{1,255}")
_TIMESTAMP = re.compile(r"[0-9]{1,11}")
_MAX_SIGNATURES = 16


class WebhookSignatureError(Exception):
    """The request is not proven to come from the gateway; it must not be stored."""


class MissingHeaderError(WebhookSignatureError):
    """One of the three headers is absent or empty."""


class MalformedHeaderError(WebhookSignatureError):
    """A header cannot be what its name says."""


class TimestampOutsideToleranceError(WebhookSignatureError):
    """Signed too long ago (a replay), or in the future (a clock that is off)."""


class SignatureMismatchError(WebhookSignatureError):
    """No signature in the header fits any of our secrets."""


class SecretError(ValueError):
    """Our own configuration: no secret at all, or one that is no key."""


@dataclass(frozen=True, slots=True)
class VerifiedWebhook:
    """What the signature vouches for, beside the body."""

    event_id: str
    signed_at: datetime


def sign(event_id: str, signed_at: datetime, raw_body: bytes, secret: str) -> dict[str, str]:
    """Return the three headers for one delivery at `signed_at` (aware; cut to whole seconds).

    Raises MalformedHeaderError for an id that cannot stand in a header or holds a full stop (which
    would make the signed text ambiguous), SecretError for a secret that is no key.
    """
    if _EVENT_ID.fullmatch(event_id) is None:
        raise MalformedHeaderError(
            f"{ID_HEADER} must be 1 to 255 visible ASCII characters without a full stop"
        )
    timestamp = str(int(signed_at.timestamp()))
    signature = _signature(event_id, timestamp, raw_body, _key(secret))
    return {
        ID_HEADER: event_id,
        TIMESTAMP_HEADER: timestamp,
        SIGNATURE_HEADER: f"{_VERSION},{base64.b64encode(signature).decode('ascii')}",
    }


def verify(
    raw_body: bytes,
    headers: Mapping[str, str],
    secrets: Iterable[str],
    now: datetime,
    tolerance: timedelta = TOLERANCE,
) -> VerifiedWebhook:
    """Check one delivery against every secret in rotation, in constant time for each.

    `raw_body` is the body as received, before any decoding. `headers` is searched without regard
    to case. `now` is the wall clock, aware. A timestamp exactly `tolerance` away, on either side,
    still passes. Raises a WebhookSignatureError, or SecretError when `secrets` is unusable.
    """
    keys = [_key(secret) for secret in secrets]
    if not keys:
        raise SecretError("no webhook secret is configured")

    lowered = {name.lower(): value for name, value in headers.items()}
    event_id = _required(lowered, ID_HEADER)
    timestamp = _required(lowered, TIMESTAMP_HEADER)
    candidates = _candidates(_required(lowered, SIGNATURE_HEADER))

    if _EVENT_ID.fullmatch(event_id) is None:
        raise MalformedHeaderError(f"{ID_HEADER} is not an identifier")
    if _TIMESTAMP.fullmatch(timestamp) is None:
        raise MalformedHeaderError(f"{TIMESTAMP_HEADER} is not a number of seconds")
    signed_at = datetime.fromtimestamp(int(timestamp), UTC)
    if abs(now - signed_at) > tolerance:
        raise TimestampOutsideToleranceError(
            f"signed at {signed_at.isoformat()}, more than {tolerance} from now"
        )

    expected = [_signature(event_id, timestamp, raw_body, key) for key in keys]
    # Every pair is compared, so that the time taken tells nothing about which one came close.
    matches = [hmac.compare_digest(one, other) for one in expected for other in candidates]
    if not any(matches):
        raise SignatureMismatchError("no signature fits any of the secrets")
    return VerifiedWebhook(event_id, signed_at)


def check_secret(secret: str) -> None:
    """Raise SecretError where a secret is no key, before anything depends on it."""
    _key(secret)


def _required(headers: Mapping[str, str], name: str) -> str:
    value = headers.get(name, "").strip()
    if not value:
        raise MissingHeaderError(f"{name} is missing")
    return value


def _candidates(header: str) -> list[bytes]:
    entries = header.split(" ")
    if len(entries) > _MAX_SIGNATURES:
        raise MalformedHeaderError(
            f"{SIGNATURE_HEADER} holds more than {_MAX_SIGNATURES} signatures"
        )
    candidates = []
    for entry in entries:
        version, _, encoded = entry.partition(",")
        if version != _VERSION:
            continue
        try:
            candidates.append(base64.b64decode(encoded, validate=True))
        except (binascii.Error, ValueError) as error:
            raise MalformedHeaderError(f"{SIGNATURE_HEADER} is not base64") from error
    if not candidates:
        raise MalformedHeaderError(f"{SIGNATURE_HEADER} holds no {_VERSION} signature")
    return candidates


def _key(secret: str) -> bytes:
    if secret.startswith(_SECRET_PREFIX):
        try:
            key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
        except (binascii.Error, ValueError) as error:
            raise SecretError("a webhook secret with the prefix whsec_ must be base64") from error
    else:
        key = secret.encode()
    if not key:
        raise SecretError("a webhook secret must not be empty")
    return key


def _signature(event_id: str, timestamp: str, raw_body: bytes, key: bytes) -> bytes:
    signed = b".".join((event_id.encode("ascii"), timestamp.encode("ascii"), raw_body))
    return hmac.new(key, signed, hashlib.sha256).digest()
