"""Calls side by side, each on a connection of its own, over real sockets."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from billing_shell.connection_lanes import ConnectionLanes
from tests.py.support.raw_server import RawServer, http, raw_server
from tests.py.support.world import until

PATIENCE = 120.0


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with raw_server() as running:
        running.reply, running.stays_open = http(200, b"ok"), True
        yield running


def client(server: RawServer, most: int) -> httpx.AsyncClient:
    lanes = ConnectionLanes(most=most, idle_seconds=30)
    return httpx.AsyncClient(base_url=server.url, transport=lanes, timeout=PATIENCE)


async def test_calls_one_after_the_other_share_a_connection(server: RawServer) -> None:
    async with client(server, most=10) as opened:
        for _ in range(5):
            assert (await opened.get("/")).text == "ok"
    assert (len(server.requests), server.connections) == (5, 1)


async def test_calls_at_once_each_have_a_connection_up_to_the_most(server: RawServer) -> None:
    async with client(server, most=3) as opened:
        answers = await asyncio.gather(*(opened.get("/") for _ in range(30)))
    assert {answer.text for answer in answers} == {"ok"}
    assert (len(server.requests), server.connections) == (30, 3)


async def test_a_call_without_a_free_connection_gives_up_and_sends_nothing(
    server: RawServer,
) -> None:
    async with client(server, most=1) as opened, opened.stream("GET", "/held"):
        with pytest.raises(httpx.PoolTimeout):
            await opened.get("/", timeout=httpx.Timeout(PATIENCE, pool=0.05))
    assert len(server.requests) == 1


async def test_a_connection_that_broke_is_not_used_again_and_its_place_is_free(
    server: RawServer,
) -> None:
    server.reply, server.stays_open = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", False
    async with client(server, most=1) as opened:
        for _ in range(2):
            with pytest.raises(httpx.RemoteProtocolError):
                await opened.get("/")
        server.reply, server.stays_open = http(200, b"ok"), True
        assert (await opened.get("/")).text == "ok"
    assert server.connections == 3


async def test_a_connection_whose_call_was_cancelled_is_not_used_again(server: RawServer) -> None:
    server.reply = b""
    async with client(server, most=1) as opened:
        call = asyncio.create_task(opened.get("/"))
        await until(lambda: len(server.requests) == 1, "the request")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        server.reply = http(200, b"ok")
        assert (await opened.get("/")).text == "ok"
    assert server.connections == 2


async def test_a_body_read_in_part_does_not_spill_into_the_next_answer(server: RawServer) -> None:
    server.reply = http(200, b"x" * 200_000)
    async with client(server, most=1) as opened:
        async with opened.stream("GET", "/") as response:
            async for _ in response.aiter_raw():
                break
        server.reply = http(200, b"ok")
        assert (await opened.get("/")).text == "ok"


async def test_a_call_that_outlives_the_client_closes_its_own_connection(
    server: RawServer,
) -> None:
    lanes = ConnectionLanes(most=1, idle_seconds=30)
    opened = httpx.AsyncClient(base_url=server.url, transport=lanes, timeout=PATIENCE)
    async with opened.stream("GET", "/") as response:
        await lanes.aclose()
        assert (await response.aread()) == b"ok"
    await opened.aclose()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*server.tasks)
