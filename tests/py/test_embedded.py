"""Embedded servers: real starts, crashes and restarts, and nothing left behind."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import billing_shell.embedded_server
import billing_shell.server_binaries
from billing_shell.embedded import (
    EmbeddedServers,
    KafkaBroker,
    PostgresServer,
    RedisServer,
    ServerError,
    ServerErrorCode,
    temporary_data_dir,
)
from billing_shell.embedded_server import HOST, EmbeddedServer
from billing_shell.server_binaries import POSTGRES, TANSU, VALKEY, Wheel, locate
from tests.py.support.messages import pass_a_message
from tests.py.support.processes import Watched, descendants, user_of
from tests.py.support.servers import DEBIAN_15

SECONDS = 120.0

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root's servers run as somebody else"
)


def create_numbers(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE number (n integer)")
        connection.execute("INSERT INTO number VALUES (1), (2)")


def read_numbers(url: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [n for (n,) in connection.execute("SELECT n FROM number ORDER BY n")]


def answers(server: EmbeddedServer) -> bool:
    match server:
        case PostgresServer():
            with psycopg.connect(server.url) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        case RedisServer():
            with redis.Redis.from_url(server.url) as client:
                return client.ping() is True
        case KafkaBroker():
            return pass_a_message(server.bootstrap) == b"hello"
    pytest.fail(f"what is {server}?")


def test_all_three_start_and_answer(data_dir: Path) -> None:
    with EmbeddedServers(data_dir) as servers:
        with psycopg.connect(servers.postgres_url) as connection:
            row = connection.execute(
                "SELECT current_database(), current_setting('timezone'),"
                " current_setting('server_version_num')::integer / 10000"
            ).fetchone()
        assert row == ("billing", "UTC", 18)
        assert answers(servers.redis)
        assert answers(servers.kafka)


def test_only_those_asked_for_start(data_dir: Path) -> None:
    with EmbeddedServers(data_dir, postgres=False, kafka=False) as servers:
        assert servers.redis_url == servers.redis.url
        with pytest.raises(ServerError) as caught:
            _ = servers.postgres_url
        assert caught.value.code is ServerErrorCode.NOT_RUNNING


def test_texts_are_ordered_the_same_everywhere(data_dir: Path) -> None:
    with PostgresServer(data_dir / "postgres") as server:
        with psycopg.connect(server.url) as connection:
            row = connection.execute(
                "SELECT datlocprovider, datlocale FROM pg_database WHERE datname = 'template1'"
            ).fetchone()
        assert row == ("b", "C.UTF-8")


def test_the_unix_socket_answers_too(data_dir: Path) -> None:
    with (
        PostgresServer(data_dir / "postgres") as server,
        psycopg.connect(
            host=str(server.socket_directory), port=server.port, user="postgres"
        ) as connection,
    ):
        assert connection.info.status == psycopg.pq.ConnStatus.OK


def test_a_path_too_long_for_a_socket_still_starts(data_dir: Path) -> None:
    with PostgresServer(data_dir / ("long-" * 20)) as server:
        directory = server.socket_directory
        with psycopg.connect(host=str(directory), port=server.port, user="postgres"):
            pass
    assert not directory.exists()


def test_data_survive_a_stop_and_a_later_start(data_dir: Path) -> None:
    with EmbeddedServers(data_dir, redis=False, kafka=False) as servers:
        create_numbers(servers.postgres_url)
    with EmbeddedServers(data_dir, redis=False, kafka=False) as servers:
        assert read_numbers(servers.postgres_url) == [1, 2]


@pytest.mark.crash
def test_a_crash_keeps_what_was_committed_and_nothing_else(data_dir: Path) -> None:
    with PostgresServer(data_dir / "postgres") as server:
        create_numbers(server.url)
        port = server.port
        processes = {server.pid, *descendants(server.pid)}
        with contextlib.closing(psycopg.connect(server.url)) as open_transaction:
            open_transaction.execute("INSERT INTO number VALUES (3)")
            backend = open_transaction.info.backend_pid
            watched = Watched({*processes, backend})
            server.kill()
            assert not watched.survivors(SECONDS)
            watched.close()
            assert not server.running
            with pytest.raises(psycopg.OperationalError):
                open_transaction.commit()
        server.start()
        assert server.port == port
        assert read_numbers(server.url) == [1, 2]


@pytest.mark.crash
def test_a_postmaster_killed_from_outside_starts_again(data_dir: Path) -> None:
    with PostgresServer(data_dir / "postgres") as server:
        create_numbers(server.url)
        # Its backends outlive it for a moment and hold the shared memory.
        with contextlib.closing(psycopg.connect(server.url)):
            watched = Watched({server.pid})
            os.killpg(server.pid, signal.SIGKILL)
            assert not watched.survivors(SECONDS)
            watched.close()
            server.start()
        assert read_numbers(server.url) == [1, 2]


@pytest.mark.crash
@pytest.mark.parametrize("kind", [RedisServer, KafkaBroker])
def test_a_killed_server_starts_again_where_it_was(
    data_dir: Path, kind: type[RedisServer | KafkaBroker]
) -> None:
    with kind(data_dir / "server") as server:
        port = server.port
        watched = Watched({server.pid})
        server.kill()
        assert not watched.survivors(SECONDS)
        watched.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((HOST, port))
        server.start()
        assert server.port == port
        assert answers(server)


@pytest.mark.parametrize("kind", [PostgresServer, RedisServer, KafkaBroker])
def test_restart_keeps_the_port_and_changes_the_process(
    data_dir: Path, kind: type[EmbeddedServer]
) -> None:
    with kind(data_dir / "server") as server:
        port, pid = server.port, server.pid
        server.restart()
        assert server.port == port
        assert server.pid != pid
        assert answers(server)


def test_a_server_that_ends_by_itself_is_told_of(data_dir: Path) -> None:
    with EmbeddedServers(data_dir, postgres=False) as servers:
        servers.require_running()
        watched = Watched([servers.kafka.pid])
        os.kill(servers.kafka.pid, signal.SIGKILL)
        assert watched.survivors(SECONDS) == set()
        watched.close()
        with pytest.raises(ServerError, match="Tansu has ended by itself, status -9") as told:
            servers.require_running()
        assert told.value.code is ServerErrorCode.ENDED
        servers.kafka.start()
        servers.redis.stop()
        servers.require_running()


def test_a_server_can_be_frozen_and_thawed(data_dir: Path) -> None:
    with (
        RedisServer(data_dir / "redis") as server,
        redis.Redis.from_url(server.url, socket_timeout=0.1, retry=Retry(NoBackoff(), 0)) as client,
    ):
        server.signal(signal.SIGSTOP)
        with pytest.raises(redis.TimeoutError):
            client.ping()
        server.signal(signal.SIGCONT)
        assert answers(server)


def test_two_instances_run_side_by_side(data_dir: Path) -> None:
    with EmbeddedServers(data_dir / "a") as a, EmbeddedServers(data_dir / "b") as b:
        create_numbers(a.postgres_url)
        with psycopg.connect(b.postgres_url) as connection:
            row = connection.execute("SELECT to_regclass('number')").fetchone()
        assert row == (None,)
        ports = {s.port for each in (a, b) for s in (each.postgres, each.redis, each.kafka)}
        assert len(ports) == 6
        for server in (a.redis, b.redis, a.kafka, b.kafka):
            assert answers(server)


def test_a_directory_serves_one_process_at_a_time(data_dir: Path) -> None:
    with EmbeddedServers(data_dir, postgres=False, kafka=False):
        second = EmbeddedServers(data_dir, postgres=False, kafka=False)
        with pytest.raises(ServerError, match=f"process {os.getpid()} ") as caught:
            second.start()
        assert caught.value.code is ServerErrorCode.DIRECTORY_IN_USE
    with second:
        assert answers(second.redis)


def test_an_initialisation_cut_short_is_begun_anew(data_dir: Path) -> None:
    unfinished = data_dir / "postgres" / "data.new"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")
    with PostgresServer(data_dir / "postgres") as server:
        assert answers(server)


def test_data_of_another_version_are_refused(data_dir: Path) -> None:
    server = PostgresServer(data_dir / "postgres")
    with server:
        pass
    (data_dir / "postgres" / "data" / "PG_VERSION").write_text("14\n")
    with pytest.raises(ServerError, match="was written by PostgreSQL 14") as caught:
        server.start()
    assert caught.value.code is ServerErrorCode.DIRECTORY_OF_OTHER_VERSION


def test_a_start_that_fails_shows_the_servers_last_words(data_dir: Path) -> None:
    server = PostgresServer(data_dir / "postgres", settings={"shared_buffers": "plenty"})
    with pytest.raises(ServerError, match='invalid value for parameter "shared_buffers"') as caught:
        server.start()
    assert caught.value.code is ServerErrorCode.START_FAILED
    assert not server.running


def at_work_in(directory: Path) -> set[int]:
    """Our descendants that log into a directory.

    Others, such as the backends of servers that tests share, come and go as they please.
    """
    found = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/fd/2").readlink().is_relative_to(directory):
                found.add(pid)
    return found


def test_a_failed_start_stops_the_others(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ServerError(ServerErrorCode.BINARIES_MISSING, "no broker here")

    monkeypatch.setattr(KafkaBroker, "_command", missing)
    with pytest.raises(ServerError, match="no broker here"):
        EmbeddedServers(data_dir).start()
    assert at_work_in(data_dir) == set()
    with EmbeddedServers(data_dir, kafka=False) as servers:
        assert answers(servers.postgres)
        assert {servers.postgres.pid, servers.redis.pid} <= at_work_in(data_dir)


@pytest.mark.parametrize("kind", [PostgresServer, RedisServer, KafkaBroker])
def test_a_port_lost_to_somebody_else_is_given_up_for_another(
    data_dir: Path, kind: type[EmbeddedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server((HOST, 0)) as somebody_else:
        taken = somebody_else.getsockname()[1]
        free = billing_shell.embedded_server.free_port()
        ports = iter([taken, free])
        monkeypatch.setattr(billing_shell.embedded_server, "free_port", lambda: next(ports))
        with kind(data_dir / "server") as server:
            assert server.port == free
            assert answers(server)


def test_debians_postgresql_15_runs_when_it_is_asked_for(data_dir: Path) -> None:
    if not (DEBIAN_15 / "postgres").exists():
        pytest.skip("Debian's postgresql-15 is not installed")
    with PostgresServer(data_dir / "postgres", binaries=DEBIAN_15) as server:
        with psycopg.connect(server.url) as connection:
            assert connection.info.server_version // 10_000 == 15
        server.kill()
        server.start()
        assert answers(server)


@pytest.mark.parametrize("wheel", [POSTGRES, VALKEY, TANSU])
def test_a_missing_wheel_names_the_variable_for_a_server_of_ones_own(
    wheel: Wheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ServerError) as caught:
        locate(wheel, None)
    assert caught.value.code is ServerErrorCode.BINARIES_MISSING
    assert wheel.variable in str(caught.value)
    assert wheel.distribution in str(caught.value)


@needs_root
@pytest.mark.parametrize("kind", [PostgresServer, RedisServer, KafkaBroker])
def test_roots_servers_run_as_nobody_important(data_dir: Path, kind: type[EmbeddedServer]) -> None:
    with kind(data_dir / "server") as server:
        assert user_of(server.pid) != 0
        assert answers(server)


@needs_root
def test_a_directory_closed_to_roots_servers_is_named(data_dir: Path) -> None:
    home = data_dir / "home"
    home.mkdir(mode=0o700)
    with pytest.raises(ServerError, match=f"{home} keeps that account out") as caught:
        EmbeddedServers(home / "billing").start()
    assert caught.value.code is ServerErrorCode.DIRECTORY_CLOSED


@needs_root
@pytest.mark.parametrize("kind", [PostgresServer, RedisServer, KafkaBroker])
def test_binaries_closed_to_roots_servers_are_copied(
    data_dir: Path, kind: type[EmbeddedServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = {PostgresServer: POSTGRES, RedisServer: VALKEY, KafkaBroker: TANSU}[kind]
    program = locate(wheel, None)
    while program.name != wheel.package:
        program = program.parent
    home = data_dir / "home"
    home.mkdir(mode=0o700)
    site = home / "site-packages"
    for part in wheel.tree:
        if (program.parent / part).exists():
            shutil.copytree(program.parent / part, site / part)
    cache = data_dir / "cache"
    monkeypatch.setattr(
        billing_shell.server_binaries, "_package_directory", lambda wheel: site / wheel.package
    )
    monkeypatch.setattr(billing_shell.server_binaries, "_cache_directory", lambda: cache)
    with kind(data_dir / "server") as server:
        assert Path(f"/proc/{server.pid}/exe").resolve().is_relative_to(cache)
        assert answers(server)


def test_a_server_outlives_the_thread_that_started_it(data_dir: Path) -> None:
    server = RedisServer(data_dir / "redis")
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join(SECONDS)
    watched = Watched({server.pid})
    try:
        assert watched.survivors(0.2) == {server.pid}
        assert answers(server)
    finally:
        watched.close()
        server.stop()


# A program that uses the servers, to be killed from outside. It takes Ctrl-C, which what a shell
# runs in the background is born ignoring; and it looks up from its waiting, since a signal that
# comes just before a read begins would not end the read.
PROGRAM = """
import json, select, signal, sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
from billing_shell.embedded import EmbeddedServers
with EmbeddedServers(Path(sys.argv[1])) as servers:
    print(json.dumps({"pids": [s.pid for s in (servers.postgres, servers.redis, servers.kafka)],
                      "postgres_url": servers.postgres_url}), flush=True)
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        pass
"""


@contextlib.contextmanager
def program(data_dir: Path) -> Iterator[tuple[subprocess.Popen[str], Watched, str]]:
    """Run PROGRAM; yield it, all that it started, and the URL of its database."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        try:
            started = json.loads(process.stdout.readline())
            family = descendants(process.pid)
            assert set(started["pids"]) <= family
            watched = Watched(family)
            yield process, watched, started["postgres_url"]
        finally:
            process.kill()
        assert not watched.survivors(SECONDS)
        watched.close()


@pytest.mark.crash
def test_a_program_killed_leaves_no_server_behind(data_dir: Path) -> None:
    with program(data_dir) as (process, watched, url):
        create_numbers(url)
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(SECONDS) == -signal.SIGKILL
        assert not watched.survivors(SECONDS)
    with EmbeddedServers(data_dir, redis=False, kafka=False) as servers:
        assert read_numbers(servers.postgres_url) == [1, 2]


@pytest.mark.crash
def test_a_program_killed_can_be_started_again_at_once(data_dir: Path) -> None:
    with program(data_dir) as (process, _, url):
        create_numbers(url)
        process.kill()
        with program(data_dir) as (_, _, url_again):
            assert read_numbers(url_again) == [1, 2]


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGINT, -signal.SIGINT)]
)
def test_a_program_told_to_end_stops_its_servers_in_good_order(
    data_dir: Path, number: signal.Signals, status: int
) -> None:
    with program(data_dir) as (process, watched, _):
        # Ctrl-C reaches the whole group of a terminal; servers must not be in it.
        os.killpg(process.pid, number)
        assert process.wait(SECONDS) == status
        assert not watched.survivors(SECONDS)
    log = (data_dir / "postgres" / "server.log").read_text()
    assert log.rstrip().endswith("database system is shut down")
    assert "not properly shut down" not in log


def test_a_temporary_directory_goes_with_all_that_is_in_it() -> None:
    with temporary_data_dir() as directory, RedisServer(directory / "redis"):
        assert directory.is_dir()
    assert not directory.exists()
