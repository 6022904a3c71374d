"""Log lines: one event each, and no secrets."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from billing_shell.logs import configure_logs
from billing_shell.settings import LogFormat


@pytest.fixture(autouse=True)
def _own_logs() -> Iterator[None]:
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = before, level
    structlog.reset_defaults()


def fail(token: str) -> None:
    raise ValueError(len(token))


def log_a_failure() -> None:
    log = structlog.get_logger("billing_shell.test").new()
    try:
        fail("tok_secret")
    except ValueError:
        log.exception("it_failed", attempt_id=64)


def test_json_is_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogFormat.JSON)
    structlog.get_logger("billing_shell.test").new().info("it_happened", attempt_id=64)
    logging.getLogger("some.library").warning("it said %s", "this")
    ours, theirs = map(json.loads, capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["attempt_id"], ours["level"]) == ("it_happened", 64, "info")
    assert ours["timestamp"].endswith("Z")
    assert (theirs["event"], theirs["logger"]) == ("it said this", "some.library")


@pytest.mark.parametrize("log_format", LogFormat)
def test_a_traceback_shows_no_variables(
    capsys: pytest.CaptureFixture[str], log_format: LogFormat
) -> None:
    configure_logs(log_format)
    log_a_failure()
    text = capsys.readouterr().err
    assert "it_failed" in text
    assert "ValueError" in text
    assert '"tok_secret"' not in text.replace('fail("tok_secret")', "")
    assert "token" not in text.replace("len(token)", "").replace("fail(token", "")


def test_without_a_terminal_it_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(None)
    structlog.get_logger("billing_shell.test").new().info("it_happened")
    assert json.loads(capsys.readouterr().err)["event"] == "it_happened"


def test_libraries_that_tell_every_job_are_heard_when_they_warn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs(LogFormat.JSON)
    logging.getLogger("procrastinate.worker").info("a job began")
    logging.getLogger("httpx").info("a request was made")
    logging.getLogger("procrastinate.worker").error("a job failed")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "a job failed"
