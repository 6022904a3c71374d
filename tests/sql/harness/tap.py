"""Running one pgTAP file and reading the answer."""

import re
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection, pq
from psycopg.pq import ExecStatus, TransactionStatus

from billing_shell.sql_files import SqlFile
from billing_shell.sql_script import explain, send_file

_TEXT = 25  # the type's oid
_PLAN = re.compile(r"1\.\.(?P<count>[0-9]+)\b")
_RESULT = re.compile(
    r"""(?P<not>not\ )? ok \b \ * (?P<number>[0-9]*) \ * (?:-\ )?
        (?P<description>.*?)
        (?:\ *(?<!\\)\#\ *(?P<directive>TODO|SKIP)\b\ *(?P<reason>.*))?""",
    re.VERBOSE | re.IGNORECASE,
)


@dataclass
class Assertion:
    """One line of TAP with what pgTAP says about it.

    Attributes:
        description: the sentence.
        passed: whether it holds; a TODO passes either way.
        skipped: why it was not tried, or None.
        diagnostics: lines that follow it.
    """

    description: str
    passed: bool
    skipped: str | None
    diagnostics: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Outcome:
    """What one file said.

    Attributes:
        assertions: in the order of the file.
        faults: what is wrong with the file as a whole: no plan, another number of assertions than
            planned, none at all, an error, a transaction left open.
    """

    assertions: tuple[Assertion, ...]
    faults: tuple[str, ...]


def run_tap(connection: Connection[Any], file: SqlFile) -> Outcome:
    """Executes the file over a connection in autocommit and reads every line that it returns."""
    results = send_file(connection, file)
    lines = [line for result in results for line in _lines(result)]
    outcome = read_tap(lines)
    faults = list(outcome.faults)
    if results and results[-1].status == ExecStatus.FATAL_ERROR:
        faults = [str(explain(file, len(results) - 1, results[-1]))]
    if connection.info.transaction_status != TransactionStatus.IDLE:
        faults.append("the file leaves a transaction open")
    return Outcome(outcome.assertions, tuple(faults))


def read_tap(lines: list[str]) -> Outcome:
    """Reads lines of TAP."""
    planned: int | None = None
    assertions: list[Assertion] = []
    faults: list[str] = []
    for line in lines:
        if plan := _PLAN.match(line):
            planned = int(plan["count"])
        elif result := _RESULT.fullmatch(line):
            directive = (result["directive"] or "").upper()
            assertions.append(
                Assertion(
                    description=result["description"].replace("\\#", "#"),
                    passed=not result["not"] or directive == "TODO",
                    skipped=(result["reason"] or "no reason") if directive == "SKIP" else None,
                )
            )
        elif line.startswith("Bail out!"):
            faults.append(line)
        elif line.startswith("#") and assertions:
            assertions[-1].diagnostics.append(line)
    if planned is None:
        faults.append("the file has no plan")
    elif planned != len(assertions):
        faults.append(f"{planned} assertions were planned and {len(assertions)} made")
    if not assertions:
        faults.append("the file asserts nothing")
    return Outcome(tuple(assertions), tuple(faults))


def _lines(result: pq.abc.PGresult) -> list[str]:
    """Lines of a result of one text column, which is what pgTAP returns.

    Others come from calls for their effect.
    """
    if result.status != ExecStatus.TUPLES_OK or result.nfields != 1 or result.ftype(0) != _TEXT:
        return []
    texts = ((result.get_value(row, 0) or b"").decode() for row in range(result.ntuples))
    return [line for text in texts for line in text.splitlines()]
