"""Servers from images: the alternative to embedded ones, and the servers of docker-compose.yml."""

import asyncio

import pytest

from billing_shell.migrate import migrate, status
from billing_shell.throttle import Lane, Throttle, connect
from tests.py.support.containers import kafka_container, postgres_container, redis_container
from tests.py.support.messages import pass_a_message

pytestmark = pytest.mark.container


def test_the_schema_goes_into_postgresql() -> None:
    with postgres_container() as url:
        migrate(url)
        assert status(url).is_current


async def test_the_throttle_hands_out_slots_of_redis() -> None:
    with redis_container() as url:
        async with connect(url) as client:
            throttle = Throttle(client, "acct_container", "charge", 200)
            reservation = await throttle.reserve(10, Lane.INTERACTIVE)
            while not reservation.slots:  # a new one starts full, and says for how long
                await asyncio.sleep(reservation.wait)
                reservation = await throttle.reserve(10, Lane.INTERACTIVE)
            assert 1 <= len(reservation.slots) <= 10


def test_kafka_takes_and_gives_messages() -> None:
    with kafka_container() as bootstrap:
        assert pass_a_message(bootstrap) == b"hello"
