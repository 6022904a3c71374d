"""The table of the lifecycle as a part of docs/lifecycle.md."""

from itertools import groupby
from pathlib import Path

from tests.py.support.lifecycle_table import SEPARATOR, Row

DOCUMENT = Path(__file__).parents[3] / "docs" / "lifecycle.md"
BEGIN = "<!-- from tests/py/data/lifecycle.csv: begin -->\n"
END = "<!-- from tests/py/data/lifecycle.csv: end -->\n"

_HEADER = (
    "| in | becomes | terms | invoices | credit | periods | log |\n|---|---|---|---|---|---|---|\n"
)


def render(rows: list[Row]) -> str:
    """Return a section per operation, with what has the same result in one line."""
    return "\n".join(
        _section(operation, list(group))
        for operation, group in groupby(rows, key=lambda row: row.operation)
    )


def _section(operation: str, rows: list[Row]) -> str:
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        lines.setdefault(_cells(row), []).append(row.situation)
    body = "".join(
        "| " + " | ".join((" · ".join(situations), *cells)) + " |\n"
        for cells, situations in lines.items()
    )
    return f"### {operation}\n\n{_HEADER}{body}"


def _cells(row: Row) -> tuple[str, ...]:
    if row.result != "done":
        becomes = "as it is" if row.result == "nothing" else f"`{row.result}`"
        return (becomes, "", "", "", "", "")
    cells = (row.status, row.terms, row.invoices, row.credit, row.periods, row.events)
    return tuple(cell.replace(SEPARATOR, "<br>") for cell in cells)


def shown() -> str:
    """Return what stands in the document."""
    return DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def write(rows: list[Row]) -> None:
    """Replace what stands in the document."""
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(before + BEGIN + render(rows) + END + after, encoding="utf-8")
