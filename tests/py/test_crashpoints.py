"""Crash points: free unless asked for, and then they stand still where a test can see it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
from billing_shell import crashpoints
for number in range(1, 4):
    print(number, flush=True)
    crashpoints.reach("relay_acknowledged")
"""


def run(tmp_path: Path, point: str | None, *, signal_file: bool = True) -> "subprocess.Popen[str]":
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BILLING_CRASH")}
    if point is not None:
        environment["BILLING_CRASH_POINT"] = point
    if signal_file:
        environment["BILLING_CRASH_SIGNAL"] = str(tmp_path / "signal")
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("point", [None, "relay_acknowledged:4"])
def test_a_point_that_is_not_asked_for_or_not_reached_does_nothing(
    tmp_path: Path, point: str | None
) -> None:
    output, _ = run(tmp_path, point).communicate()
    assert output == "1\n2\n3\n"
    assert not (tmp_path / "signal").exists()


@pytest.mark.crash
@pytest.mark.parametrize(
    ("point", "reached"), [("relay_acknowledged", 1), ("relay_acknowledged:3", 3)]
)
def test_the_process_stands_still_at_the_point_until_it_is_killed(
    tmp_path: Path, point: str, reached: int
) -> None:
    process = run(tmp_path, point)
    deadline = time.monotonic() + 120
    told = tmp_path / "signal"
    while not (told.exists() and told.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    output, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert output == "".join(f"{number}\n" for number in range(1, reached + 1))
    assert told.read_text() == "relay_acknowledged\n"


@pytest.mark.parametrize("point", ["nowhere", "relay_acknowledged:0", "relay_acknowledged:x"])
def test_a_point_that_does_not_exist_is_refused_at_the_start(tmp_path: Path, point: str) -> None:
    process = run(tmp_path, point)
    output, errors = process.communicate()
    assert process.returncode == 1
    assert output == ""
    assert "BILLING_CRASH_POINT" in errors
    assert "relay_acknowledged" in errors


def test_a_point_without_a_file_to_tell_is_refused(tmp_path: Path) -> None:
    _, errors = run(tmp_path, "relay_acknowledged", signal_file=False).communicate()
    assert "BILLING_CRASH_SIGNAL" in errors
