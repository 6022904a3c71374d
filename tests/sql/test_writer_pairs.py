"""Every two writers that can meet do, and the end is that of one after the other.

The one has done all it does and not committed, when the other comes, on another connection, to the
same customer. The other waits, or passes by, or goes through; then the one commits. What each of
them answered, and all that can be seen afterwards, must be what comes of the one after the other,
in this order or in that. That is not written down for hundreds of pairs but found out: both orders
are tried on the same customer first, in a transaction that is taken back.
"""

import itertools
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.py.support.servers import TestPostgres
from tests.sql.harness.writers import ALL, APART, SWEEPS, WRITERS

PATIENCE = 240.0
ONE_IN = 29
"""Every so many-th meeting is held in the default suite; `make test-long` holds all of them."""
_LOOK_EVERY = 0.001

_STAGE = (
    "SELECT billing_test.stage(%s, %s, '2027-05-08Z'::timestamptz + %s * interval '10 minutes')"
)
_FINISH = "SELECT billing_test.finish_stage(%(account)s)"
_STATE = "SELECT billing_test.stage_state(%(customer)s)"
_IS_BLOCKED = "SELECT pg_catalog.pg_isolation_test_session_is_blocked(%s, ARRAY[%s::integer])"
_BROKEN = (
    "SELECT check_name, object, detail FROM billing_ops.check_integrity() WHERE severity = 'BROKEN'"
)
_NOTHING = "SELECT"
_FUNCTIONS = """
    SELECT n.nspname || '.' || p.proname
    FROM pg_catalog.pg_proc AS p
    INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname IN ('billing_api', 'billing_worker', 'billing_ops') AND p.provolatile = 'v'
"""


@dataclass(frozen=True)
class Meeting:
    """Two writers on a stage; the first has not committed when the second comes."""

    first: str
    second: str
    stage: str

    def __str__(self) -> str:
        return f"{self.first}, then {self.second} ({self.stage})"


def meetings() -> Iterator[Meeting]:
    """Every pair on every stage that both have in common, now the one first and now the other."""
    number = itertools.count()
    for one, other in itertools.combinations_with_replacement(WRITERS, 2):
        common = [stage for stage in WRITERS[one].stages if stage in WRITERS[other].stages]
        for stage in common:
            pair = (one, other) if next(number) % 2 else (other, one)
            yield Meeting(pair[0], pair[1], stage)
            if len(common) == 1 and one != other:
                yield Meeting(pair[1], pair[0], stage)


@dataclass(frozen=True)
class Ending:
    """What two writers answered, and how it ended."""

    answers: tuple[str, ...]
    state: Any

    def told(self) -> str:
        return f"{self.answers}: {self.state}"


class Ring:
    """Three connections to one database: the two writers', and one that looks on."""

    def __init__(self, url: str) -> None:
        self.one, self.other, self.referee = (
            psycopg.connect(url, autocommit=True) for _ in range(3)
        )
        for connection in (self.one, self.other, self.referee):
            connection.execute("SET timezone = 'UTC'")
            connection.execute("SET client_min_messages = warning")
        self.pool = ThreadPoolExecutor(1)
        self.waited: Counter[str] = Counter()

    def close(self) -> None:
        self.pool.shutdown()
        for connection in (self.one, self.other, self.referee):
            connection.close()

    def meet(self, number: int, meeting: Meeting) -> str | None:
        """Have two writers meet; return what is wrong."""
        ((ids,),) = self.referee.execute(_STAGE, (meeting.stage, number, number)).fetchall()
        first, second = (WRITERS[name].statement for name in (meeting.first, meeting.second))
        forth = self._one_by_one(first, second, ids)
        back = self._one_by_one(second, first, ids)
        right = {"in order": forth, "other way": Ending((*reversed(back.answers),), back.state)}
        if meeting.second in SWEEPS:
            # What is locked it passes by; the next run of all of them comes in another order.
            alone = self._one_by_one(first, _NOTHING, ids)
            right["passed by"] = Ending((alone.answers[0], "done"), alone.state)
        ended = self._at_once(first, second, ids)
        if ended in right.values():
            return None
        told = [f"{name:9}  {ending.told()}" for name, ending in right.items()]
        return "\n  ".join((f"{meeting}", f"at once    {ended.told()}", *told))

    def _one_by_one(self, first: str, second: str, ids: dict[str, Any]) -> Ending:
        """Find out how it ends if the second comes when the first has gone, and take it back."""
        with self.referee.transaction(force_rollback=True):
            answers = (self._answer(first, ids), self._answer(second, ids))
            self.referee.execute(_FINISH, ids)
            return Ending(answers, self._state(ids))

    def _answer(self, statement: str, ids: dict[str, Any]) -> str:
        try:
            with self.referee.transaction():
                self.referee.execute(statement.encode(), ids)
        except psycopg.Error as error:
            return str(error.sqlstate)
        return "done"

    def _at_once(self, first: str, second: str, ids: dict[str, Any]) -> Ending:
        self.one.execute("BEGIN")
        one = _outcome(self.one, first, ids)
        coming = self.pool.submit(_outcome, self.other, second, ids)
        self.waited["waited" if self._waits(coming) else "passed"] += 1
        self.one.execute("COMMIT" if one == "done" else "ROLLBACK")
        answers = (one, coming.result(PATIENCE))
        self.referee.execute(_FINISH, ids)
        return Ending(answers, self._state(ids))

    def _waits(self, coming: "Future[str]") -> bool:
        """Wait until the second has gone through, or stands before a lock of the first."""
        pids = (self.other.info.backend_pid, self.one.info.backend_pid)
        deadline = time.monotonic() + PATIENCE
        while not coming.done():
            ((blocked,),) = self.referee.execute(_IS_BLOCKED, pids).fetchall()
            if blocked:
                return True
            assert time.monotonic() < deadline
            time.sleep(_LOOK_EVERY)
        return False

    def _state(self, ids: dict[str, Any]) -> Any:  # noqa: ANN401 - a JSON document
        ((state,),) = self.referee.execute(_STATE, ids).fetchall()
        return state


def _outcome(connection: psycopg.Connection, statement: str, ids: dict[str, Any]) -> str:
    try:
        connection.execute(statement.encode(), ids)
    except psycopg.Error as error:
        return str(error.sqlstate)
    return "done"


def have_meet(url: str, chosen: list[Meeting]) -> None:
    """Have writers meet; fail for any that ended otherwise."""
    ring = Ring(url)
    try:
        wrong = [
            problem
            for number, meeting in enumerate(chosen, start=1)
            if (problem := ring.meet(number, meeting)) is not None
        ]
        broken = ring.referee.execute(_BROKEN).fetchall()
    finally:
        ring.close()
    print(f"{len(chosen)} meetings: {dict(ring.waited)}")  # noqa: T201 - how many met in truth
    if wrong:
        pytest.fail("\n".join((f"{len(wrong)} of {len(chosen)} meetings", *wrong)), pytrace=False)
    assert broken == []
    assert ring.waited["waited"] > len(chosen) // 4, "most go past each other and say little"


def test_two_writers_end_as_one_after_the_other(sql_database: str, postgres: TestPostgres) -> None:
    """Each writer with itself, and a part of all other pairs, another on each version."""
    everybody = list(meetings())
    alone = {meeting.first: meeting for meeting in everybody if meeting.first == meeting.second}
    others = everybody[postgres.major_version % ONE_IN :: ONE_IN]
    have_meet(sql_database, [*alone.values(), *others])


@pytest.mark.long
def test_every_two_writers_do_so_on_every_stage(sql_database: str) -> None:
    have_meet(sql_database, list(meetings()))


def test_the_matrix_is_complete(sql_database: str) -> None:
    with psycopg.connect(sql_database, row_factory=dict_row) as connection:
        rows = connection.execute(_FUNCTIONS).fetchall()
    functions = {str(name) for row in rows for name in row.values()}
    placed = {writer.function for writer in WRITERS.values()}
    assert placed | set(APART) == functions, "a writer needs a place in the matrix, or a reason"
    assert placed.isdisjoint(APART)
    assert all(writer.stages for writer in WRITERS.values())
    assert {stage for writer in WRITERS.values() for stage in writer.stages} == set(ALL)
