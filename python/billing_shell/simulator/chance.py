"""Chance that can be repeated: every draw is a hash of the seed and of what is drawn for."""

import hashlib
from dataclasses import dataclass

from billing_shell.simulator.behaviour import Fault
from billing_shell.simulator.options import Latency

_DRAW_BITS = 53  # what a float holds exactly
_DRAWS: int = 1 << _DRAW_BITS


@dataclass(frozen=True, slots=True)
class FaultRate:
    """How often chance strikes, and with what; None = with everything that can strike."""

    rate: float
    kinds: frozenset[Fault] | None = None


class Chance:
    """Draws for the n-th served send of a key, whatever else happens at the same time."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def fault(
        self, rate: FaultRate, possible: tuple[Fault, ...], operation: str, key: str, send_no: int
    ) -> Fault | None:
        """Return what strikes this send, if anything; each possible kind is equally likely."""
        kinds = [fault for fault in possible if rate.kinds is None or fault in rate.kinds]
        draw = self._draw("fault", operation, key, send_no)
        if not kinds or draw >= rate.rate:
            return None
        return kinds[int(draw / rate.rate * len(kinds))]

    def latency(
        self, latency: Latency, operation: str, key: str, send_no: int
    ) -> tuple[float, float]:
        """Return the seconds before the deed and those between the deed and the answer."""
        total = latency.least + (latency.most - latency.least) * self._draw(
            "latency", operation, key, send_no
        )
        before = total * self._draw("deed", operation, key, send_no)
        return before, total - before

    def _draw(self, purpose: str, operation: str, key: str, send_no: int) -> float:
        subject = f"{self._seed}\n{purpose}\n{operation}\n{send_no}\n{key}".encode()
        digest = hashlib.blake2b(subject, digest_size=8).digest()
        return (int.from_bytes(digest) >> (64 - _DRAW_BITS)) / _DRAWS
