"""Standard Webhooks signatures, against the vector that the scheme's reference libraries share."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest

from billing_shell.webhook_signature import (
    MalformedHeaderError,
    MissingHeaderError,
    SecretError,
    SignatureMismatchError,
    TimestampOutsideToleranceError,
    VerifiedWebhook,
    sign,
    verify,
)

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
EVENT_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
SIGNED_AT = datetime.fromtimestamp(1614265330, UTC)
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
HEADERS = {
    "webhook-id": EVENT_ID,
    "webhook-timestamp": "1614265330",
    "webhook-signature": SIGNATURE,
}


def test_signs_the_vector_of_the_reference_libraries() -> None:
    assert sign(EVENT_ID, SIGNED_AT, BODY, SECRET) == HEADERS


def test_verifies_the_vector_of_the_reference_libraries() -> None:
    assert verify(BODY, HEADERS, [SECRET], SIGNED_AT) == VerifiedWebhook(EVENT_ID, SIGNED_AT)


def test_a_secret_without_the_prefix_is_its_own_bytes() -> None:
    secret = "plain-secret-of-some-length"
    signed = sign("evt_1", SIGNED_AT, BODY, secret)
    digest = hmac.new(secret.encode(), b"evt_1.1614265330." + BODY, hashlib.sha256).digest()
    assert signed["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


def test_header_names_are_found_in_any_case() -> None:
    headers = {name.upper(): value for name, value in HEADERS.items()}
    assert verify(BODY, headers, [SECRET], SIGNED_AT).event_id == EVENT_ID


def test_any_secret_in_rotation_verifies() -> None:
    assert verify(BODY, HEADERS, ["the-next-secret-of-ours", SECRET], SIGNED_AT)
    assert verify(BODY, HEADERS, [SECRET, "the-last-secret-of-ours"], SIGNED_AT)


def test_any_of_several_signatures_verifies() -> None:
    other = sign(EVENT_ID, SIGNED_AT, BODY, "another-secret")["webhook-signature"]
    headers = HEADERS | {"webhook-signature": f"v1a,AAAA {other} {SIGNATURE}"}
    assert verify(BODY, headers, [SECRET], SIGNED_AT)


@pytest.mark.parametrize("offset", [-300, -1, 0, 1, 300])
def test_a_timestamp_within_the_tolerance_passes_on_both_sides(offset: int) -> None:
    assert verify(BODY, HEADERS, [SECRET], SIGNED_AT + timedelta(seconds=offset))


@pytest.mark.parametrize("offset", [-301, 301, -86400, 86400])
def test_a_timestamp_outside_the_tolerance_is_refused_on_both_sides(offset: int) -> None:
    with pytest.raises(TimestampOutsideToleranceError):
        verify(BODY, HEADERS, [SECRET], SIGNED_AT + timedelta(seconds=offset))


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_missing_header_is_refused(name: str, value: str | None) -> None:
    headers = {key: text for key, text in HEADERS.items() if key != name}
    if value is not None:
        headers[name] = value
    with pytest.raises(MissingHeaderError, match=name):
        verify(BODY, headers, [SECRET], SIGNED_AT)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("webhook-id", "msg.1"),
        ("webhook-id", "msg 1"),
        ("webhook-id", "m" * 256),
        ("webhook-id", "m\u00e4g"),
        ("webhook-timestamp", "now"),
        ("webhook-timestamp", "-1614265330"),
        ("webhook-timestamp", "1614265330.5"),
        ("webhook-timestamp", "1" * 400),
        ("webhook-timestamp", "\u0661\u0662"),
        ("webhook-signature", "v2," + SIGNATURE[3:]),
        ("webhook-signature", SIGNATURE[3:]),
        ("webhook-signature", "v1,not base64"),
        ("webhook-signature", "v1,====="),
        ("webhook-signature", "v1,\u00e4"),
        ("webhook-signature", " ".join([SIGNATURE] * 17)),
    ],
)
def test_a_malformed_header_is_refused(name: str, value: str) -> None:
    with pytest.raises(MalformedHeaderError, match=name):
        verify(BODY, HEADERS | {name: value}, [SECRET], SIGNED_AT)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (BODY + b" ", HEADERS),
        (b"", HEADERS),
        (BODY, HEADERS | {"webhook-id": "msg_other"}),
        (BODY, HEADERS | {"webhook-timestamp": "1614265331"}),
        (BODY, HEADERS | {"webhook-signature": "v1," + base64.b64encode(bytes(32)).decode()}),
        (BODY, HEADERS | {"webhook-signature": SIGNATURE[:23]}),
        (BODY, HEADERS | {"webhook-signature": "v1,"}),
    ],
)
def test_whatever_was_not_signed_is_refused(body: bytes, headers: dict[str, str]) -> None:
    with pytest.raises(SignatureMismatchError):
        verify(body, headers, [SECRET], SIGNED_AT)


def test_a_retired_secret_is_refused() -> None:
    with pytest.raises(SignatureMismatchError):
        verify(BODY, HEADERS, ["the-next-secret-of-ours"], SIGNED_AT)


@pytest.mark.parametrize("secrets", [[], [""], ["whsec_"], ["whsec_not base64"], [SECRET, ""]])
def test_unusable_secrets_are_our_own_fault_and_verify_nothing(secrets: list[str]) -> None:
    with pytest.raises(SecretError):
        verify(BODY, HEADERS, secrets, SIGNED_AT)


@pytest.mark.parametrize("event_id", ["", "a.b", "a b", "a\r\nx: y", "\u00e4"])
def test_an_id_that_cannot_stand_in_a_header_is_not_signed(event_id: str) -> None:
    with pytest.raises(MalformedHeaderError):
        sign(event_id, SIGNED_AT, BODY, SECRET)
