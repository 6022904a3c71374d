"""Crash points: named instants at which a test kills the process, to see what is left behind.

BILLING_CRASH_POINT names one, with `:n` for the n-th time that it is reached. The process then
appends the name to the file that BILLING_CRASH_SIGNAL names and stands still until it is killed, so
a test waits for the file and never for a time. Without the variable a crash point costs a
comparison.
"""

import os
import signal
from pathlib import Path
from typing import NoReturn

CRASH_POINTS = {
    "slots_reserved": "the throttle has granted slots, and no attempt is started for them",
    "claim_made": "a claim of charges, refunds or look-ups is written, and not committed",
    "attempts_started": "attempts are committed, and nothing of them is sent",
    "request_sent": "a charge is on its way, and its answer is not read",
    "answer_received": "an answer is in hand, and nothing of it is recorded",
    "settlement_made": "a batch of answers is written, and not committed",
    "settled": "a batch of answers is recorded, and nobody has been told",
    "lookup_slots_reserved": "the throttle has granted slots, and no look-up is claimed for them",
    "lookups_started": "look-ups are committed as claimed, and nobody is asked yet",
    "refund_slots_reserved": "the throttle has granted slots, and no refund is claimed for them",
    "refunds_started": "refunds are committed as claimed, and nothing of them is sent or asked",
    "refund_answered": "an answer about a refund is in hand, and nothing of it is recorded",
    "refunds_settled": "answers about refunds are recorded, and nobody has been told",
    "collect_job_ending": "what was due is collected, and the queue does not know it yet",
    "reconcile_job_ending": "what was due is asked, and the queue does not know it yet",
    "refund_job_ending": "what was due is refunded, and the queue does not know it yet",
    "relay_acknowledged": "the broker has acknowledged a batch, and nothing of it is marked yet",
    "call_committed": "a call over HTTP has changed something, and nothing of its answer is sent",
}
"""Every crash point by name, with what has happened by then."""


class _Armed:
    """The crash point of this process."""

    def __init__(self, setting: str, signal_file: str | None) -> None:
        name, _, number = setting.partition(":")
        if name not in CRASH_POINTS or not (number or "1").isdecimal() or number == "0":
            raise ValueError(
                f"BILLING_CRASH_POINT is {setting!r}; it takes NAME or NAME:n, "
                f"the names being {', '.join(sorted(CRASH_POINTS))}"
            )
        if not signal_file:
            raise ValueError("BILLING_CRASH_POINT needs a file to tell, BILLING_CRASH_SIGNAL")
        self.name = name
        self.left = int(number or "1")
        self.signal_file = Path(signal_file)

    def stand_still(self) -> NoReturn:
        """Tells the file and never returns."""
        with self.signal_file.open("a", encoding="ascii") as file:
            file.write(f"{self.name}\n")
        while True:
            signal.pause()


def _from_environment() -> _Armed | None:
    setting = os.environ.get("BILLING_CRASH_POINT")
    return _Armed(setting, os.environ.get("BILLING_CRASH_SIGNAL")) if setting else None


_armed = _from_environment()


def armed(name: str) -> bool:
    """Tells whether it is this crash point that the process stands still at.

    Args:
        name: a key of CRASH_POINTS.
    """
    return _armed is not None and _armed.name == name


def reach(name: str) -> None:
    """Marks the place of a crash point. Returns at once unless it is the one asked for.

    Args:
        name: a key of CRASH_POINTS.
    """
    if _armed is None or _armed.name != name:
        return
    _armed.left -= 1
    if _armed.left == 0:
        _armed.stand_still()
