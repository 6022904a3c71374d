"""Clients who dawdle, send too much, or leave: none of them holds the door open."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from billing_shell import api_guard, api_server
from billing_shell.api_server import LARGEST_HEAD
from tests.py.support.door import RunningDoor, Shop, running_door

Shorten = Callable[[str], RunningDoor]

SHORT = 0.3
PATIENCE = 120.0


@pytest.fixture
def impatient(shared_door: RunningDoor, monkeypatch: pytest.MonkeyPatch) -> Shorten:
    """Shortens one deadline of the door; the others leave a busy machine time for everything."""
    deadlines = {
        "HEAD_SECONDS": api_server, "READ_SECONDS": api_server, "BODY_SECONDS": api_guard,
    }  # fmt: skip
    for name, module in deadlines.items():
        monkeypatch.setattr(module, name, PATIENCE)

    def shorten(name: str) -> RunningDoor:
        monkeypatch.setattr(deadlines[name], name, SHORT)
        return shared_door

    return shorten


def connected(door: RunningDoor) -> socket.socket:
    address = urlsplit(door.url)
    opened = socket.create_connection((address.hostname, address.port), timeout=PATIENCE)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def everything(opened: socket.socket) -> bytes:
    """What comes until the other side closes."""
    received = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := opened.recv(65536):
            received += chunk
    return received


def drip(opened: socket.socket, data: bytes) -> None:
    """Sends a byte at a time, each well within any deadline, until nobody listens."""
    for byte in data:
        try:
            opened.sendall(bytes([byte]))
        except OSError:
            return
        time.sleep(SHORT / 10)


def test_who_says_nothing_is_sent_away(impatient: Shorten) -> None:
    with closing(connected(impatient("HEAD_SECONDS"))) as opened:
        assert everything(opened) == b""


def test_who_drips_headers_is_sent_away(impatient: Shorten) -> None:
    """The deadline is that of the whole head, whatever comes meanwhile."""
    with closing(connected(impatient("HEAD_SECONDS"))) as opened:
        drip(opened, b"GET /healthz HTTP/1.1\r\nHost: door\r\nX: " + b"x" * 200)
        assert everything(opened) == b""


def test_who_drips_a_second_request_is_sent_away_too(
    shared_door: RunningDoor, impatient: Shorten
) -> None:
    with closing(connected(shared_door)) as opened:
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: door\r\n\r\n")
        assert opened.recv(65536).startswith(b"HTTP/1.1 200")
        impatient("HEAD_SECONDS")
        drip(opened, b"GET /healthz HTTP/1.1\r\nHost: door\r\nX: " + b"x" * 200)
        assert everything(opened) == b""


def test_who_drips_a_body_is_told_and_sent_away(impatient: Shorten) -> None:
    with closing(connected(impatient("BODY_SECONDS"))) as opened:
        opened.sendall(
            b"POST /customers HTTP/1.1\r\nHost: door\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n"
        )
        drip(opened, b" " * 100)
        answer = everything(opened)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408")


def test_a_body_that_never_comes_is_answered(impatient: Shorten) -> None:
    with closing(connected(impatient("BODY_SECONDS"))) as opened:
        opened.sendall(b"POST /customers HTTP/1.1\r\nHost: door\r\nContent-Length: 10\r\n\r\n")
        answer = everything(opened)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"application/problem+json" in answer
    assert b"connection: close" in answer.lower()


def test_who_does_not_read_is_cut_off(impatient: Shorten) -> None:
    """It asks for the specification again and again, and reads none of it."""
    request = b"GET /openapi.json HTTP/1.1\r\nHost: door\r\n\r\n"
    with closing(connected(impatient("READ_SECONDS"))) as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deadline = time.monotonic() + PATIENCE
        was_cut_off = False
        while not was_cut_off and time.monotonic() < deadline:
            try:
                opened.sendall(request)
            except ConnectionError:
                was_cut_off = True
        assert was_cut_off


@pytest.mark.parametrize("size", [LARGEST_HEAD + 1, 10 * LARGEST_HEAD])
def test_headers_without_end_are_refused(shared_door: RunningDoor, size: int) -> None:
    with closing(connected(shared_door)) as opened:
        opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: door\r\nX: ")
        with contextlib.suppress(OSError):
            opened.sendall(b"x" * size)
        answer = everything(opened)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")


def test_a_large_body_in_the_same_breath_is_no_large_head(shared_door: RunningDoor) -> None:
    body = b" " * (LARGEST_HEAD + 100)
    with closing(connected(shared_door)) as opened:
        opened.sendall(
            b"POST /customers HTTP/1.1\r\nHost: door\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body
        )
        assert everything(opened).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /plans HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxx",
        b"POST /plans HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /plans HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nA\x00: b\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(shared_door: RunningDoor, request_bytes: bytes) -> None:
    with closing(connected(shared_door)) as opened:
        opened.sendall(request_bytes)
        assert everything(opened).startswith(b"HTTP/1.1 400")


def test_several_requests_in_one_breath_are_answered_in_order(shared_door: RunningDoor) -> None:
    with closing(connected(shared_door)) as opened:
        opened.sendall(
            b"GET /healthz HTTP/1.1\r\nHost: door\r\nX-Request-Id: one\r\n\r\n"
            b"GET /healthz HTTP/1.1\r\nHost: door\r\nX-Request-Id: two\r\nConnection: close\r\n\r\n"
        )
        answer = everything(opened)
    assert answer.count(b"HTTP/1.1 200") == 2
    assert answer.index(b"x-request-id: one") < answer.index(b"x-request-id: two")


def test_the_door_finishes_what_it_has_begun(shop: Shop) -> None:
    """Asked to stop in the middle of a call, it answers first."""
    answers: list[int] = []
    with psycopg.connect(shop.url) as holder:
        holder.execute("SELECT 1 FROM billing.subscription FOR UPDATE")
        with running_door(shop.url) as door:
            key = door.key()

            def call() -> None:
                answer = httpx.post(
                    f"{door.url}/subscriptions/{shop.mine['subscription_id']}/cancel",
                    json={"atPeriodEnd": True},
                    headers={"Authorization": f"Bearer {key}"},
                    timeout=PATIENCE,
                )
                answers.append(answer.status_code)

            caller = threading.Thread(target=call)
            caller.start()
            waiting = (
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            with psycopg.connect(shop.url, autocommit=True) as watcher:
                while watcher.execute(waiting).fetchone() == (0,):
                    time.sleep(0.02)
            threading.Timer(0.5, holder.rollback).start()
        caller.join(PATIENCE)
    assert answers == [200]
