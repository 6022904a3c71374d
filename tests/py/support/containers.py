"""Servers from container images, for machines with a Docker engine."""

import contextlib
import gc
import os
import warnings
from collections.abc import Iterator
from functools import cache

import docker
import pytest
from docker.errors import APIError, DockerException, ImageNotFound
from testcontainers.community.postgres import PostgresContainer
from testcontainers.core.config import testcontainers_config

POSTGRES_IMAGE = os.environ.get("BILLING_TEST_POSTGRES_IMAGE", "postgres:18")

# Its own clean-up container is one more image to pull; ours are removed by their context managers.
testcontainers_config.ryuk_disabled = True


@cache
def missing_engine() -> str | None:
    """Say why containers cannot be used here; None when they can."""
    # Where none listens, the client library leaves its socket to the garbage collector.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        try:
            with contextlib.closing(docker.from_env()) as client:
                client.ping()
        except DockerException as error:
            return f"no Docker engine answers: {error}"
        finally:
            gc.collect()
    return None


def require_engine() -> None:
    """Skip the test that asks, with the reason, where no Docker engine answers."""
    reason = missing_engine()
    if reason is not None:
        pytest.skip(reason)


def require_image(image: str) -> None:
    """Skip the test that asks, with the reason, where an image is neither here nor to be had."""
    require_engine()
    with contextlib.closing(docker.from_env()) as client:
        try:
            client.images.get(image)
        except ImageNotFound:
            try:
                client.images.pull(image)
            except APIError as error:
                pytest.skip(f"the image {image} is not here and cannot be pulled: {error}")


@contextlib.contextmanager
def postgres_container(image: str = POSTGRES_IMAGE) -> Iterator[str]:
    """Run PostgreSQL from an image; yield its URL, as the superuser."""
    require_image(image)
    with PostgresContainer(image, driver=None) as container:
        yield container.get_connection_url()
