"""Servers from container images, for machines with a Docker engine."""

import contextlib
import gc
import os
import socket
import warnings
from collections.abc import Iterator
from functools import cache

import docker
import pytest
from docker.errors import APIError, DockerException, ImageNotFound
from testcontainers.community.postgres import PostgresContainer
from testcontainers.community.redis import RedisContainer
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

# The same as in docker-compose.yml; the environment may name others, older ones for example.
IMAGES = {"postgres": "postgres:18", "redis": "redis:8", "kafka": "apache/kafka:4.1.0"}
POSTGRES_IMAGE = os.environ.get("BILLING_TEST_POSTGRES_IMAGE", IMAGES["postgres"])
REDIS_IMAGE = os.environ.get("BILLING_TEST_REDIS_IMAGE", IMAGES["redis"])
KAFKA_IMAGE = os.environ.get("BILLING_TEST_KAFKA_IMAGE", IMAGES["kafka"])

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


@contextlib.contextmanager
def redis_container(image: str = REDIS_IMAGE) -> Iterator[str]:
    """Run a server of the Redis protocol from an image; yield its URL."""
    require_image(image)
    with RedisContainer(image) as container:
        host, port = container.get_container_host_ip(), container.get_exposed_port(container.port)
        yield f"redis://{host}:{port}/0"


@contextlib.contextmanager
def kafka_container(image: str = KAFKA_IMAGE) -> Iterator[str]:
    """Run Apache Kafka from an image; yield its address as `host:port`."""
    require_image(image)
    # A broker tells its clients its own address, so the port must be known before it starts.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://localhost:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    }
    container = DockerContainer(image).with_bind_ports(9092, port).with_envs(**settings)
    container.waiting_for(LogMessageWaitStrategy("Kafka Server started"))
    with container:
        yield f"localhost:{port}"
