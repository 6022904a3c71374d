"""Every case of `tests/cases.toml` has its test, which exists.

That none of them was skipped is seen by `tests/py/support/case_outcomes.py`.
"""

import subprocess
import sys

import pytest

from tests.py.support.cases import CASES, ROOT

# Failures that hurt real users of billing systems, by theme: A charges, B calendar, C changes,
# D trials, E ends, F dunning, G webhooks, H numbers, O queue and outbox, P pauses.
NAMED = {
    "A": (1, 3, 4, 5, 7, 8, 9, 11, 12, 13),
    "B": (1, 2, 3, 5, 6, 10, 11, 13, 15, 17, 18),
    "C": (1, 2, 3, 4, 7, 11, 12, 13, 14, 15, 18, 21, 22, 23, 24, 25, 26),
    "D": (1, 3, 4, 6),
    "E": (1, 2, 3, 4, 7, 10),
    "F": (1, 2, 3, 6, 7, 8, 9, 10, 12, 13, 15),
    "G": (1, 2, 4, 5, 7, 9, 11, 16),
    "H": (1, 2, 11, 13, 14, 16, 17),
    "O": (1, 3, 5, 6, 7, 9, 10, 11, 13, 15),
    "P": (1, 3, 4),
}


@pytest.fixture(scope="module")
def existing() -> set[str]:
    """Node ids of all tests in the files that the cases name, without their parameters."""
    named = {test.partition("::")[0] for tests in CASES.values() for test in tests}
    files = sorted(file for file in named if (ROOT / file).is_file())
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert collected.returncode == 0, collected.stdout + collected.stderr
    return {line.partition("[")[0] for line in collected.stdout.splitlines() if "::" in line}


def test_each_named_case_is_there() -> None:
    named = {f"{theme}{number:02}" for theme, numbers in NAMED.items() for number in numbers}
    assert set(CASES) == named


@pytest.mark.parametrize("case", CASES)
def test_its_tests_exist(case: str, existing: set[str]) -> None:
    tests = CASES[case]
    assert tests, "a case without a test"
    assert [test for test in tests if test not in existing] == []
