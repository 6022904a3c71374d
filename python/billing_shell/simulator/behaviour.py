"""What the gateway does with one send: the vocabulary of outcomes, tokens and faults.

An outcome is a word such as `ok` or `decline_insufficient_funds`; the token `tok_<outcome>` asks
for it, a script lines outcomes up for a token, and chance injects those that are faults.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

RETRY_AFTER_SECONDS = 2
UNKNOWN_TOKEN_CODE = "unknown_token"  # noqa: S105  a decline code


class Fault(StrEnum):
    """What can go wrong on purpose. Each is counted under this name."""

    TIMEOUT_CHARGED = "timeout_charged"
    """Executed and kept, but the connection hangs and is cut without an answer."""
    TIMEOUT_LOST = "timeout_lost"
    """Nothing executed, nothing kept, and no answer either."""
    CUT = "cut"
    """Executed and kept; the connection is cut in the middle of the answer."""
    ERROR_STORED = "500_stored"
    """Nothing executed; a 500 is answered and kept under the key."""
    ERROR_CHARGED = "500_charged"
    """Executed; yet a 500 is answered and kept under the key."""
    ERROR_LOST = "500_lost"
    """Nothing executed; a 500 is answered and nothing kept."""
    RATE_LIMITED = "429"
    """Refused with Retry-After ahead of the idempotency layer, which keeps nothing."""
    WEBHOOK_TWICE = "webhook_twice"
    """The event is delivered twice under one id."""
    WEBHOOK_EARLY = "webhook_early"
    """The event is delivered before the answer."""


WEBHOOK_FAULTS = frozenset({Fault.WEBHOOK_TWICE, Fault.WEBHOOK_EARLY})
INJECTED_FAULTS = tuple(fault for fault in Fault if fault is not Fault.ERROR_LOST)
"""What chance injects into charges and refunds."""
REPLAY_FAULTS = (Fault.TIMEOUT_CHARGED, Fault.CUT, Fault.RATE_LIMITED)
"""What can still befall a kept answer on its way."""
LOOK_UP_FAULTS = (Fault.TIMEOUT_LOST, Fault.CUT, Fault.ERROR_LOST, Fault.RATE_LIMITED)


class Reply(StrEnum):
    """What kind of answer is given."""

    DOCUMENT = "document"
    ERROR = "error"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"


class Delivery(StrEnum):
    """How the answer travels."""

    WHOLE = "whole"
    CUT = "cut"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What happens to one send.

    Attributes:
        status: status of the payment that is booked; None = nothing is booked.
        code: decline code, or the code of a refusal.
        amount: what is captured instead of the amount asked for.
        reply: kind of the answer.
        kept: whether the answer is kept under the key.
        delivery: how it travels.
        fault: what is counted; None = nothing went wrong.
    """

    status: str | None
    code: str | None = None
    amount: int | None = None
    reply: Reply = Reply.DOCUMENT
    kept: bool = True
    delivery: Delivery = Delivery.WHOLE
    fault: Fault | None = None

    def struck_by(self, fault: Fault) -> Self:
        """Return the same send, with `fault` befalling it."""
        match fault:
            case Fault.TIMEOUT_CHARGED:
                return replace(self, delivery=Delivery.NEVER, fault=fault)
            case Fault.CUT:
                return replace(self, delivery=Delivery.CUT, fault=fault)
            case Fault.ERROR_CHARGED:
                return replace(self, reply=Reply.ERROR, fault=fault)
            case Fault.WEBHOOK_TWICE | Fault.WEBHOOK_EARLY:
                return replace(self, fault=fault)
        return self._unexecuted(fault)

    def _unexecuted(self, fault: Fault) -> Self:
        untouched = replace(self, status=None, code=None, amount=None, fault=fault)
        match fault:
            case Fault.TIMEOUT_LOST:
                return replace(untouched, delivery=Delivery.NEVER, kept=False)
            case Fault.ERROR_STORED:
                return replace(untouched, reply=Reply.ERROR)
            case Fault.ERROR_LOST:
                return replace(untouched, reply=Reply.ERROR, kept=False)
            case Fault.RATE_LIMITED:
                return replace(untouched, reply=Reply.RATE_LIMITED, kept=False)
        raise ValueError(f"{fault} happens to what was executed")


OK = Behaviour("succeeded")
_CODE = r"[a-z][a-z0-9_]{0,63}"
_PLAIN = {
    "ok": OK,
    "action": Behaviour("requires_action"),
    "processing": Behaviour("processing"),
} | {fault.value: OK.struck_by(fault) for fault in Fault}
_DECLINE = re.compile(rf"decline_({_CODE})")
_REFUSE = re.compile(rf"refuse_({_CODE})")
_AMOUNT = re.compile(r"amount_([1-9][0-9]{0,14})")
_DECLINE_THEN_OK = re.compile(rf"decline_({_CODE}?)_then_ok_([0-9]{{1,6}})")
_LIMITED_FIRST = re.compile(r"429_([0-9]{1,6})")
_FIRST_SEND_ONLY = frozenset({"timeout_lost", "500_lost", "429"})


def behaviour_of_outcome(outcome: str) -> Behaviour:
    """Return what one outcome of a script means; raises ValueError for an unknown word."""
    if outcome in _PLAIN:
        return _PLAIN[outcome]
    if match := _DECLINE.fullmatch(outcome):
        return Behaviour("declined", code=match[1])
    if match := _REFUSE.fullmatch(outcome):
        return Behaviour(None, code=match[1], reply=Reply.REFUSED)
    if match := _AMOUNT.fullmatch(outcome):
        return replace(OK, amount=int(match[1]))
    raise ValueError(f"unknown outcome {outcome!r}")


@dataclass(frozen=True, slots=True)
class TokenMeaning:
    """What a token asks for, as far as the token alone tells.

    Attributes:
        behaviour: of a send that executes.
        declines_first: so many payments with this token are `behaviour`, later ones succeed;
            told apart where the payment is booked.
        afflicted_sends: the first sends of a key are `behaviour`, later ones succeed.
    """

    behaviour: Behaviour
    declines_first: int | None = None
    afflicted_sends: int | None = None

    def at(self, send_no: int) -> Behaviour:
        """Return what the `send_no`-th send of a key meets."""
        if self.afflicted_sends is not None and send_no > self.afflicted_sends:
            return OK
        return self.behaviour


def meaning_of_token(token: str) -> TokenMeaning:
    """Read a token: `tok_ok…`, `tok_<outcome>`, or one of the counting ones.

    Whatever follows the first full stop only makes a token unique. A token that means nothing is
    declined with UNKNOWN_TOKEN_CODE.
    """
    word = token.partition(".")[0].removeprefix("tok_")
    if not token.startswith("tok_"):
        return TokenMeaning(Behaviour("declined", code=UNKNOWN_TOKEN_CODE))
    if word == "ok" or word.startswith("ok_"):
        return TokenMeaning(OK)
    if match := _DECLINE_THEN_OK.fullmatch(word):
        declined = Behaviour("declined", code=match[1])
        return TokenMeaning(declined, declines_first=int(match[2]))
    if match := _LIMITED_FIRST.fullmatch(word):
        limited = OK.struck_by(Fault.RATE_LIMITED)
        return TokenMeaning(limited, afflicted_sends=int(match[1]))
    try:
        behaviour = behaviour_of_outcome(word)
    except ValueError:
        return TokenMeaning(Behaviour("declined", code=UNKNOWN_TOKEN_CODE))
    return TokenMeaning(behaviour, afflicted_sends=1 if word in _FIRST_SEND_ONLY else None)
