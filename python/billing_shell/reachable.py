"""Servers that the environment names answer, or a command says at once which of them does not.

For commands that end, or that people wait for: workers and relays wait for their servers instead.
"""

import redis
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from redis.backoff import NoBackoff
from redis.retry import Retry

from billing_shell.server_process import ServerError, ServerErrorCode
from billing_shell.settings import Settings

_SECONDS = 5.0


def require_servers(settings: Settings) -> None:
    """Ask Redis and Kafka, where the environment names them, whether they are there.

    Raises:
        ServerError: one of them is not; PostgreSQL says so itself.
    """
    if settings.redis_url is not None:
        _require_redis(settings.redis_url)
    if settings.kafka_bootstrap is not None:
        _require_kafka(settings.kafka_bootstrap)


def _require_redis(url: str) -> None:
    client = redis.Redis.from_url(
        url,
        socket_connect_timeout=_SECONDS,
        socket_timeout=_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        client.ping()
    except redis.RedisError as error:
        raise ServerError(
            ServerErrorCode.UNREACHABLE,
            f"BILLING_REDIS_URL names a server that does not answer: {error}",
        ) from error
    finally:
        client.close()


def _require_kafka(bootstrap: str) -> None:
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        client.list_topics(timeout=_SECONDS)
    except KafkaException as error:
        raise ServerError(
            ServerErrorCode.UNREACHABLE,
            f"BILLING_KAFKA_BOOTSTRAP names no broker that answers: {error.args[0].str()}",
        ) from error
