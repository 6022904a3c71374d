"""PostgreSQL's isolation specs, run over real sessions where the server's own tester is missing.

The language and the output are those of PostgreSQL's `isolationtester`, so that a spec and its
expected output serve both. Left out of the language: `notices` as a condition.
"""

import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection, pq
from psycopg.errors import Diagnostic
from psycopg.pq import DiagnosticField, ExecStatus

_POLL_SECONDS = 0.01
_LONGEST_STEP_SECONDS = 240.0
_IS_BLOCKED = "SELECT pg_catalog.pg_isolation_test_session_is_blocked(%s, %s)"
_DEBIAN = "/usr/lib/postgresql/*/lib/pgxs/src/test/isolation/isolationtester"

_TOKEN = re.compile(
    r"""(?P<blank> \s+ | \#[^\n]*)
      | \{ [ \t\r\f]* (?P<sql> .*?) [ \t\r\f]* \}
      | "(?P<quoted> (?:[^"\n] | "")*)"
      | (?P<word> [A-Za-z_][A-Za-z0-9_$]*)
      | (?P<mark> [*,()] | [0-9]+)""",
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset({"notices", "permutation", "session", "setup", "step", "teardown"})


class SpecError(ValueError):
    """A spec is not written as isolationtester reads it, or cannot be run to its end."""


@dataclass(frozen=True)
class Step:
    """What one session does in one go."""

    name: str
    sql: str
    session: str


@dataclass
class Session:
    """One session with what surrounds its steps."""

    name: str
    setup: str | None = None
    teardown: str | None = None
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True)
class Call:
    """A step within a permutation, with what must happen before it counts as completed.

    Attributes:
        step: the step.
        waits_first: reported as waiting once, whatever happens: `step(*)`.
        blockers: names of steps that must be completed first: `step(other)`.
    """

    step: Step
    waits_first: bool = False
    blockers: frozenset[str] = frozenset()


@dataclass
class Spec:
    """A parsed spec."""

    setups: list[str] = field(default_factory=list)
    teardown: str | None = None
    sessions: list[Session] = field(default_factory=list)
    permutations: list[list[Call]] = field(default_factory=list)


def parse(text: str) -> Spec:
    """Reads a spec.

    Raises:
        SpecError: it is not one.
    """
    return _Parser(text).spec()


def run(spec: Spec, conninfo: str, *, longest_step_seconds: float = _LONGEST_STEP_SECONDS) -> str:
    """Runs every permutation and returns what isolationtester would print.

    Args:
        spec: what to run.
        conninfo: a database, as a role that may do all that the spec does.
        longest_step_seconds: when to give up on a step that does not end.

    Raises:
        SpecError: steps wait for each other, or one does not end.
    """
    with ExitStack() as stack:
        control = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
        tester = _Tester(spec, control, longest_step_seconds)
        for session in spec.sessions:
            connection = stack.enter_context(psycopg.connect(conninfo, autocommit=True))
            tester.add(session.name, connection)
        tester.run()
        return "".join(tester.printed)


def find_isolationtester() -> Path | None:
    """PostgreSQL's own program, on the PATH or where Debian puts it."""
    on_path = shutil.which("isolationtester")
    if on_path:
        return Path(on_path)
    installed = sorted(Path("/").glob(_DEBIAN.removeprefix("/")))
    return installed[-1] if installed else None


def run_isolationtester(program: Path, spec: Path, conninfo: str) -> str:
    """Runs a spec with PostgreSQL's own program.

    Raises:
        SpecError: the program gave up; with what it said.
    """
    with spec.open() as file:
        ended = subprocess.run(
            [program, conninfo],
            stdin=file,
            capture_output=True,
            text=True,
            timeout=10 * _LONGEST_STEP_SECONDS,
            check=False,
        )
    if ended.returncode != 0 or ended.stderr:
        raise SpecError(f"{ended.stdout}\n{ended.stderr}")
    return ended.stdout


class _Parser:
    """Recursive descent over tokens of kind `sql`, `quoted`, `word` and `mark`."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), ("end", "")]
        self._next = 0

    def spec(self) -> Spec:
        spec = Spec()
        while self._keyword("setup"):
            spec.setups.append(self._sql())
        if self._keyword("teardown"):
            spec.teardown = self._sql()
        while self._keyword("session"):
            spec.sessions.append(self._session())
        steps = {step.name: step for session in spec.sessions for step in session.steps}
        if not steps:
            raise SpecError("a spec needs a session with a step")
        if len(steps) != sum(len(session.steps) for session in spec.sessions):
            raise SpecError("two steps have the same name")
        while self._keyword("permutation"):
            spec.permutations.append(self._permutation(steps))
        if self._tokens[self._next][0] != "end":
            raise SpecError(f"unexpected {self._tokens[self._next][1]!r}")
        if not spec.permutations:
            spec.permutations = [
                [Call(step) for step in order]
                for order in _interleavings([session.steps for session in spec.sessions])
            ]
        return spec

    def _session(self) -> Session:
        session = Session(self._name())
        if self._keyword("setup"):
            session.setup = self._sql()
        while self._keyword("step"):
            session.steps.append(Step(self._name(), self._sql(), session.name))
        if self._keyword("teardown"):
            session.teardown = self._sql()
        return session

    def _permutation(self, steps: dict[str, Step]) -> list[Call]:
        calls: list[Call] = []
        while self._tokens[self._next][0] == "quoted" or self._is_name():
            name = self._name()
            if name not in steps:
                raise SpecError(f"undefined step {name!r} in a permutation")
            waits_first = False
            blockers: set[str] = set()
            if self._mark("("):
                while not self._mark(")"):
                    if self._mark("*"):
                        waits_first = True
                    else:
                        blockers.add(self._name())
                    self._mark(",")
            calls.append(Call(steps[name], waits_first, frozenset(blockers)))
        unknown = {name for call in calls for name in call.blockers}.difference(steps)
        if unknown:
            raise SpecError(f"undefined steps {sorted(unknown)} as blockers")
        return calls

    def _is_name(self) -> bool:
        kind, text = self._tokens[self._next]
        return kind == "word" and text not in _KEYWORDS

    def _keyword(self, word: str) -> bool:
        return self._accept("word", word)

    def _mark(self, mark: str) -> bool:
        return self._accept("mark", mark)

    def _accept(self, kind: str, text: str) -> bool:
        if self._tokens[self._next] != (kind, text):
            return False
        self._next += 1
        return True

    def _name(self) -> str:
        kind, text = self._tokens[self._next]
        if kind != "quoted" and not self._is_name():
            raise SpecError(f"a name was expected before {text!r}")
        self._next += 1
        return text.replace('""', '"')

    def _sql(self) -> str:
        kind, text = self._tokens[self._next]
        if kind != "sql":
            raise SpecError(f"a block of SQL was expected before {text!r}")
        self._next += 1
        return text


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            line = text.count("\n", 0, position) + 1
            raise SpecError(f"line {line} starts with nothing known")
        position = token.end()
        if token.lastgroup not in {None, "blank"}:
            yield str(token.lastgroup), token[str(token.lastgroup)]


def _interleavings(piles: list[list[Step]]) -> Iterator[list[Step]]:
    if not any(piles):
        yield []
    for number, pile in enumerate(piles):
        if pile:
            rest = [*piles[:number], pile[1:], *piles[number + 1 :]]
            for order in _interleavings(rest):
                yield [pile[0], *order]


class _Tester:
    """The sessions of one spec, and what has been printed so far."""

    def __init__(self, spec: Spec, control: Connection[Any], longest_step: float) -> None:
        self.printed: list[str] = []
        self._longest_step = longest_step
        self._spec = spec
        self._control = control
        self._connections: dict[str, Connection[Any]] = {}
        self._active: dict[str, Call] = {}

    def add(self, session: str, connection: Connection[Any]) -> None:
        def print_notice(notice: Diagnostic) -> None:
            self._print(f"{session}: {notice.severity}:  {notice.message_primary}\n")

        connection.add_notice_handler(print_notice)
        self._connections[session] = connection

    def run(self) -> None:
        self._print(f"Parsed test spec with {len(self._spec.sessions)} sessions\n")
        for calls in self._spec.permutations:
            self._permute(calls)

    def _permute(self, calls: list[Call]) -> None:
        names = " ".join(call.step.name for call in calls)
        self._print(f"\nstarting permutation: {names}\n")
        for setup in self._spec.setups:
            self._execute(self._control, setup)
        for session in self._spec.sessions:
            if session.setup is not None:
                self._execute(self._connections[session.name], session.setup)

        waiting: list[Call] = []
        for call in calls:
            self._await_session(call.step.session, waiting)
            self._connections[call.step.session].pgconn.send_query(call.step.sql.encode())
            self._active[call.step.session] = call
            must_wait = self._try_to_complete(call, block=False, retry=False)
            self._try_all(waiting, block=False)
            if must_wait:
                waiting.append(call)
        self._try_all(waiting, block=True)
        if waiting:
            raise SpecError(f"permutation {names}: steps wait for each other")

        for session in self._spec.sessions:
            if session.teardown is not None:
                self._execute(self._connections[session.name], session.teardown)
        if self._spec.teardown is not None:
            self._execute(self._control, self._spec.teardown)

    def _await_session(self, session: str, waiting: list[Call]) -> None:
        """Waits until a session is free for its next step, and takes note of others meanwhile."""
        deadline = time.monotonic() + self._longest_step
        while (call := self._active.get(session)) is not None:
            if not self._try_to_complete(call, block=True, retry=True):
                waiting.remove(call)
            self._try_all(waiting, block=False)
            if session in self._active and time.monotonic() > deadline:
                raise SpecError(
                    f"step {call.step.name} cannot complete before the next of {session}"
                )

    def _try_all(self, waiting: list[Call], *, block: bool) -> None:
        """Completes what can be; again while one completion may have let go of another."""
        progress = True
        while progress:
            before = len(waiting)
            for call in waiting.copy():
                if not self._try_to_complete(call, block=block, retry=True):
                    waiting.remove(call)
            progress = len(waiting) < before and any(call.blockers for call in waiting)

    def _try_to_complete(self, call: Call, *, block: bool, retry: bool) -> bool:
        """Reports a step when it has ended; tells whether it is waiting instead."""
        heading = f"step {call.step.name}: "
        if call.waits_first and not retry:
            self._print(f"{heading}{call.step.sql} <waiting ...>\n")
            return True
        connection = self._connections[call.step.session]
        is_waiting = self._wait(call, connection, block=block) or self._has_blocker(call)
        if is_waiting:
            if not retry:
                self._print(f"{heading}{call.step.sql} <waiting ...>\n")
            return True
        self._print(f"{heading}<... completed>\n" if retry else f"{heading}{call.step.sql}\n")
        self._print_results(connection)
        del self._active[call.step.session]
        return False

    def _wait(self, call: Call, connection: Connection[Any], *, block: bool) -> bool:
        """Waits for the end of a step, or, unless told to block, until a lock stops it."""
        pgconn = connection.pgconn
        deadline = time.monotonic() + self._longest_step
        while pgconn.is_busy():
            readable, _, _ = select.select([pgconn.socket], [], [], _POLL_SECONDS)
            if not readable and not block and self._is_blocked(connection):
                pgconn.consume_input()
                return bool(pgconn.is_busy())
            if readable:
                pgconn.consume_input()
            if time.monotonic() > deadline:
                connection.cancel_safe()
                raise SpecError(f"step {call.step.name} did not end")
        return False

    def _is_blocked(self, connection: Connection[Any]) -> bool:
        pids = [each.info.backend_pid for each in self._connections.values()]
        answer = self._control.execute(_IS_BLOCKED, (connection.info.backend_pid, pids)).fetchone()
        return bool(answer and answer[0])

    def _has_blocker(self, call: Call) -> bool:
        active = {running.step.name for running in self._active.values() if running is not call}
        return bool(call.blockers & active)

    def _execute(self, connection: Connection[Any], script: str) -> None:
        """Runs what surrounds the steps: only its last result is shown, and it must not fail."""
        connection.pgconn.send_query(script.encode())
        results = list(self._results(connection))
        if results[-1].status == ExecStatus.FATAL_ERROR:
            raise SpecError(f"setup or teardown failed: {_error(results[-1])}\n{script}")
        self._print(_table(results[-1]))

    def _print_results(self, connection: Connection[Any]) -> None:
        for result in self._results(connection):
            if result.status == ExecStatus.FATAL_ERROR:
                self._print(f"{_error(result)}\n")
            else:
                self._print(_table(result))

    def _results(self, connection: Connection[Any]) -> Iterator[pq.abc.PGresult]:
        pgconn = connection.pgconn
        while True:
            while pgconn.is_busy():
                select.select([pgconn.socket], [], [], _POLL_SECONDS)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is None:
                return
            yield result

    def _print(self, text: str) -> None:
        self.printed.append(text)


def _error(result: pq.abc.PGresult) -> str:
    fields = (DiagnosticField.SEVERITY, DiagnosticField.MESSAGE_PRIMARY)
    severity, message = ((result.error_field(each) or b"").decode() for each in fields)
    return f"{severity}:  {message}"


def _table(result: pq.abc.PGresult) -> str:
    """Rows as libpq's old printing function shows them: numbers to the right, all else padded."""
    if result.status != ExecStatus.TUPLES_OK or not result.nfields:
        return ""
    names = [(result.fname(column) or b"").decode() for column in range(result.nfields)]
    rows = [
        [(result.get_value(row, column) or b"").decode() for column in range(result.nfields)]
        for row in range(result.ntuples)
    ]
    columns = [[row[column] for row in rows] for column in range(result.nfields)]
    widths = [max(map(len, (name, *column))) for name, column in zip(names, columns, strict=True)]
    to_the_right = [all(_looks_numeric(value) for value in column if value) for column in columns]

    def line(values: Iterable[str]) -> str:
        cells = (
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, to_the_right, strict=True)
        )
        return "|".join(cells) + "\n"

    border = "+".join("-" * width for width in widths) + "\n"
    count = f"({len(rows)} row{'' if len(rows) == 1 else 's'})\n\n"
    return "".join((line(names), border, *map(line, rows), count))


def _looks_numeric(value: str) -> bool:
    return re.fullmatch(r"[0-9. -][0-9.Ee -]*", value) is not None and value[-1].isdigit()
