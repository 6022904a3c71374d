"""What is wrong with an import, with file, line and column."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MOST_PROBLEMS = 50
"""As many problems are kept; the rest is counted."""


class ImportErrorCode(StrEnum):
    """What is wrong with an import."""

    FILE_UNREADABLE = "file_unreadable"
    """The file is not there, not to be read, or not UTF-8."""
    HEADER_WRONG = "header_wrong"
    """A column is missing, unknown or named twice."""
    ROW_MALFORMED = "row_malformed"
    """Not CSV, or another number of values than the header."""
    VALUE_MISSING = "value_missing"
    """Empty where a value is needed."""
    VALUE_MALFORMED = "value_malformed"
    """Not of the form that the column takes."""
    DUPLICATE = "duplicate"
    """An earlier line has the same name."""
    CONTRADICTION = "contradiction"
    """Differs from an earlier line, or from the database, where it must not."""
    UNKNOWN_REFERENCE = "unknown_reference"
    """Names a customer or a plan that no file has."""
    REFUSED = "refused"
    """The engine refused the row; its SQLSTATE says why."""


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """One thing that is wrong.

    Attributes:
        file: which file.
        line: line in the file, from 1, the header's; 0 where it is the file as a whole.
        column: name of the column; empty where it is the line as a whole.
        code: what kind of problem.
        message: what is wrong, without repeating a value that may be secret.
        sqlstate: the engine's code, where it was the engine that refused.
    """

    file: Path
    line: int
    column: str
    code: ImportErrorCode
    message: str
    sqlstate: str = ""

    def __str__(self) -> str:
        """As `file:line: column: message [code]`."""
        where = f"{self.file}:{self.line}" if self.line else str(self.file)
        column = f" {self.column}:" if self.column else ""
        code = f"{self.code} {self.sqlstate}" if self.sqlstate else self.code
        return f"{where}:{column} {self.message} [{code}]"


class ImportRefusedError(Exception):
    """The import was refused, or stopped on the way.

    Attributes:
        problems: in order of file and line, at most MOST_PROBLEMS.
        count: how many there are in all.
    """

    def __init__(self, problems: Sequence[ImportProblem], count: int) -> None:
        self.problems = tuple(problems)
        self.count = count
        more = [f"and {count - len(problems)} more"] if count > len(problems) else []
        super().__init__("\n".join([*map(str, problems), *more]))


class Problems:
    """Collects what is wrong."""

    def __init__(self) -> None:
        self.count = 0
        self._kept: list[ImportProblem] = []

    def add(self, problem: ImportProblem) -> None:
        """Keep one more."""
        self.count += 1
        if len(self._kept) < MOST_PROBLEMS:
            self._kept.append(problem)

    def refuse(self) -> None:
        """Raise ImportRefusedError if there are any."""
        if self.count:
            raise ImportRefusedError(self._kept, self.count)
