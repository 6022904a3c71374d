"""Fails a session that skipped the test of a case, whole or in part.

What became of each test is known where all reports come together, which is none of the sessions
that run side by side. Hence a plugin and no test.
"""

import pytest
from _pytest.terminal import TerminalReporter

from tests.py.support.cases import CASES


class CaseOutcomes:
    """A plugin that holds what was skipped against `tests/cases.toml`."""

    def __init__(self) -> None:
        """Begin with nothing skipped."""
        self._cases_of: dict[str, list[str]] = {}
        for case, tests in CASES.items():
            for test in tests:
                self._cases_of.setdefault(test, []).append(case)
        self._skipped: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a report."""
        cases = self._cases_of.get(report.nodeid.partition("[")[0])
        if report.skipped and cases:
            reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
            self._skipped[report.nodeid] = f"{', '.join(cases)}: {report.nodeid}: {reason}"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the session."""
        if self._skipped and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Say which cases had no test."""
        if self._skipped:
            terminalreporter.section("cases whose tests were skipped", red=True, bold=True)
            for line in self._skipped.values():
                terminalreporter.line(line)
