"""Fixtures of the Python tests: a small shop to call for, and the HTTP door before it."""

import dataclasses
from collections.abc import Iterator

import pytest

from tests.py.support.door import RunningDoor, Shop, open_shop, running_door
from tests.py.support.servers import TestPostgres


@pytest.fixture(scope="session")
def shop_template(postgres: TestPostgres, template_database: str) -> Iterator[tuple[str, Shop]]:
    """A database with a shop to copy, by its name. Never connect to it."""
    with postgres.database(template=template_database) as name:
        yield name, open_shop(postgres.database_url(name))


@pytest.fixture
def shop(postgres: TestPostgres, shop_template: tuple[str, Shop]) -> Iterator[Shop]:
    """A shop of this test's own."""
    template, filled = shop_template
    with postgres.database(template=template) as name:
        yield dataclasses.replace(filled, url=postgres.database_url(name))


@pytest.fixture
def door(shop: Shop) -> Iterator[RunningDoor]:
    """A door before it."""
    with running_door(shop.url) as running:
        yield running


@pytest.fixture(scope="module")
def shared_shop(postgres: TestPostgres, shop_template: tuple[str, Shop]) -> Iterator[Shop]:
    """A shop for all tests of a module: none of them changes anything in it."""
    template, filled = shop_template
    with postgres.database(template=template) as name:
        yield dataclasses.replace(filled, url=postgres.database_url(name))


@pytest.fixture(scope="module")
def shared_door(shared_shop: Shop) -> Iterator[RunningDoor]:
    """A door before that."""
    with running_door(shared_shop.url) as running:
        yield running
