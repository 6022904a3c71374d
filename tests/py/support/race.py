"""Two processes, each with a session of its own, that call at once, round after round."""

import multiprocessing
import multiprocessing.synchronize
import queue
import random
import time
from dataclasses import dataclass
from typing import Any

import psycopg

LONGEST_WAIT = 240.0
WIDEST_LEAD = 0.006
FOREIGN = "not ours: "

Call = tuple[str, dict[str, Any]]
Outcomes = list[str]


@dataclass(frozen=True)
class Side:
    """One side of a race: a call per round, and how much later than the other it starts.

    Attributes:
        calls: a query that returns one text, and its parameters.
        delays: in seconds.
    """

    calls: list[Call]
    delays: list[float]


def race(url: str, first: list[Call], second: list[Call], heat: int = 0) -> list[tuple[str, str]]:
    """Make the calls of each round at once; return what each side got: a text, or the SQLSTATE.

    Now the one, now the other is ahead by up to 6 ms, so that each may be first, or both in the
    middle of the other. In each further heat the leads are others, and up to twice as wide.

    Raises:
        AssertionError: a caller got an error that is none of ours, such as a deadlock.
    """
    chance = random.Random(20270501 + heat)  # noqa: S311 - the same race each time
    widest = WIDEST_LEAD * 2**heat
    leads = [chance.uniform(-widest, widest) for _ in first]
    sides = (
        Side(first, [max(lead, 0.0) for lead in leads]),
        Side(second, [max(-lead, 0.0) for lead in leads]),
    )
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(sides))
    answers: list[multiprocessing.Queue[Outcomes]] = [context.Queue() for _ in sides]
    processes = [
        context.Process(target=run, args=(url, barrier, side, answer), daemon=True)
        for side, answer in zip(sides, answers, strict=True)
    ]
    try:
        for process in processes:
            process.start()
        outcomes = [answer.get(timeout=LONGEST_WAIT) for answer in answers]
    except queue.Empty:
        raise TimeoutError("a side of the race did not come to its end") from None
    finally:
        for process in processes:
            process.kill()
            process.join()
    foreign = [answer for side in outcomes for answer in side if answer.startswith(FOREIGN)]
    assert foreign == [], "an error reached a caller that is none of ours"
    return list(zip(*outcomes, strict=True))


def run(
    url: str,
    barrier: multiprocessing.synchronize.Barrier,
    side: Side,
    answers: "multiprocessing.Queue[Outcomes]",
) -> None:
    """Run one side in this process."""
    outcomes: Outcomes = []
    with psycopg.connect(url, autocommit=True) as connection:
        for (query, parameters), delay in zip(side.calls, side.delays, strict=True):
            barrier.wait(LONGEST_WAIT)
            start = time.perf_counter() + delay
            while time.perf_counter() < start:
                pass
            try:
                row = connection.execute(query.encode(), parameters).fetchone()
                outcomes.append(str(row[0]) if row else "nothing")
            except psycopg.Error as error:
                code = str(error.sqlstate)
                outcomes.append(code if code.startswith("SB") else f"{FOREIGN}{code}: {error}")
    answers.put(outcomes)
