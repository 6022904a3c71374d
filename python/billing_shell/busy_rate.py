"""How fast a gateway was called while there was something to call it for.

Measured from the gateway's own log of arrivals and from when the worker was dead, nothing else:

- *Work* lasts from the first charge that arrives to the last charge that arrives for the first time
  under its key. While it lasts there is always another payment to make.
- A *pause* is a silence of more than a quarter of a second that began within a second of a 429.
  The gateway ordered it by its Retry-After, and as much of the silence as was ordered is taken off;
  what lasted longer is not. Several 429s in a row order until the last one's Retry-After is over,
  which counts from its answer.
- While the worker was *dead*, from the instant at which it stood still to be killed until the first
  charge of its successor, nobody could call. That is taken off too, up to `LONGEST_START` seconds.

Gross is arrivals per second of work; net is arrivals per second of work without pauses and death.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_START = 10.0
"""Seconds; a successor that takes longer than this to begin is slow, not dead."""

_SILENCE = 0.25
_HEARD_WITHIN = 1.0
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class ChargeCall:
    """One charge at the gateway's door: when, in microseconds, for which key, and was it a 429."""

    at_us: int
    key: str
    refused: bool


@dataclass(frozen=True, slots=True)
class BusyRate:
    """The measure; seconds, and calls per second.

    Attributes:
        arrivals: charges that arrived while there was work.
        work: how long there was work.
        paused: how much of it the gateway had ordered silence.
        dead: how much of it the worker was dead.
    """

    arrivals: int
    work: float
    paused: float
    dead: float

    @property
    def gross(self) -> float:
        """Arrivals per second of work."""
        return self.arrivals / self.work if self.work > 0 else 0.0

    @property
    def net_seconds(self) -> float:
        """Seconds of work in which calls could have been made."""
        return self.work - self.paused - self.dead

    @property
    def net(self) -> float:
        """Arrivals per second in which calls could have been made."""
        return self.arrivals / self.net_seconds if self.net_seconds > 0 else 0.0


def measure(
    calls: Sequence[ChargeCall],
    *,
    until_us: int,
    retry_after: float,
    longest_answer: float,
    deaths_us: Sequence[int],
) -> BusyRate:
    """Measure a run.

    Args:
        calls: every charge that arrived, in order of arrival.
        until_us: the instant at which nothing was due any more; later calls are not counted.
        retry_after: seconds that a 429 of this gateway asks for.
        longest_answer: seconds that an answer of it takes at most.
        deaths_us: instants at which a worker stood still to be killed.
    """
    known: set[str] = set()
    last_us = 0
    for call in calls:
        if call.at_us <= until_us and call.key not in known:
            known.add(call.key)
            last_us = call.at_us
    at_work = [call for call in calls if call.at_us <= last_us]
    if len(at_work) <= 1:
        return BusyRate(len(at_work), 0.0, 0.0, 0.0)
    paused = dead = 0.0
    refusals = [call.at_us for call in at_work if call.refused]
    for before, after in itertools.pairwise(at_work):
        silence = (after.at_us - before.at_us) / _US
        if silence <= _SILENCE:
            continue
        died = [at for at in deaths_us if before.at_us - _SILENCE * _US <= at < after.at_us]
        if died:
            dead += min(silence, LONGEST_START)
            continue
        heard = [at for at in refusals if before.at_us - _HEARD_WITHIN * _US <= at <= before.at_us]
        if heard:
            # The silence begins with the answer of one; another's may come later.
            others = longest_answer - (before.at_us - heard[-1]) / _US if len(heard) > 1 else 0.0
            paused += min(silence, retry_after + max(0.0, others))
    # The first arrival starts the clock; the others come in the time measured.
    return BusyRate(len(at_work) - 1, (last_us - at_work[0].at_us) / _US, paused, dead)
