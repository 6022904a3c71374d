"""`tests/cases.toml`: which tests show that a case comes out right."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
CASES: dict[str, list[str]] = {
    case: entry["tests"]
    for case, entry in tomllib.loads(
        (ROOT / "tests" / "cases.toml").read_text(encoding="utf-8")
    ).items()
}
"""Node ids without parameters, by case."""
