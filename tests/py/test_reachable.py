"""Servers that the environment names and that do not answer are named at once."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from billing_shell import reachable
from billing_shell.command_errors import Exit
from billing_shell.embedded import KafkaBroker, RedisServer
from billing_shell.reachable import require_servers
from billing_shell.server_process import ServerError, ServerErrorCode
from billing_shell.settings import Settings


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address at which nobody listens, nor can: it is taken."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{mute.getsockname()[1]}"


def test_servers_that_answer_are_not_complained_of(
    redis_server: RedisServer, kafka_broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reachable, "_SECONDS", 120.0)  # of a busy machine
    require_servers(Settings())
    require_servers(Settings(redis_url=redis_server.url, kafka_bootstrap=kafka_broker.bootstrap))


def test_a_redis_that_does_not_answer_is_named_without_its_password(nowhere: str) -> None:
    with pytest.raises(ServerError, match="BILLING_REDIS_URL") as caught:
        require_servers(Settings(redis_url=f"redis://:hunter2@{nowhere}/0"))
    assert caught.value.code is ServerErrorCode.UNREACHABLE
    assert "hunter2" not in str(caught.value)


def test_a_redis_whose_password_is_another_is_named(redis_server: RedisServer) -> None:
    url = redis_server.url.replace("redis://", "redis://somebody:hunter2@")
    with pytest.raises(ServerError, match="BILLING_REDIS_URL") as caught:
        require_servers(Settings(redis_url=url))
    assert "hunter2" not in str(caught.value)


def test_a_broker_that_does_not_answer_is_named(nowhere: str) -> None:
    with pytest.raises(ServerError, match="BILLING_KAFKA_BOOTSTRAP") as caught:
        require_servers(Settings(kafka_bootstrap=nowhere))
    assert caught.value.code is ServerErrorCode.UNREACHABLE


@pytest.mark.parametrize("command", ["up", "demo"])
def test_commands_that_start_servers_ask_before_they_do(
    command: str, nowhere: str, tmp_path: Path
) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "billing_shell", command, "--json", "--data-dir", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        env={"BILLING_REDIS_URL": f"redis://{nowhere}/0"},
    )
    assert ended.returncode == Exit.UNREACHABLE
    assert json.loads(ended.stdout)["error"]["code"] == ServerErrorCode.UNREACHABLE
    assert list(tmp_path.iterdir()) == []
