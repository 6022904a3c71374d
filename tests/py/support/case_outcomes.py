"""What became of each test of this session, for the test that holds cases against it."""

import pytest


class CaseOutcomes:
    """A plugin that remembers which tests ran and which were skipped, whole or in part.

    Attributes:
        ran: node ids of tests of which some phase was reported.
        skipped: node ids with the reason.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.ran: set[str] = set()
        self.skipped: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a report."""
        self.ran.add(report.nodeid)
        if report.skipped:
            self.skipped[report.nodeid] = str(report.longrepr)


OUTCOMES = pytest.StashKey[CaseOutcomes]()
