"""Whether this process is alive, and whether what it and the product stand on is there.

`/healthz` says that the process answers. `/readyz` names the database, its migrations, Redis and
the broker, each with its state. The door itself needs the first two only: whoever balances load
over doors asks `/readyz?exclude=redis&exclude=broker`, so that a broker that is down takes no door
out of service.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Protocol

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from fastapi import FastAPI
from redis.asyncio import Redis
from redis.exceptions import RedisError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from billing_shell import api_queries as queries
from billing_shell.api_database import ApiDatabase
from billing_shell.api_guard import exchange_of
from billing_shell.api_problem import ProblemError
from billing_shell.errors import DatabaseError
from billing_shell.sql_files import SqlFiles

CHECK_SECONDS = 3.0
"""For which one check may take."""

KEPT_SECONDS = 1.0
"""For which an answer counts."""


class State(StrEnum):
    """How a dependency stands."""

    OK = "ok"
    FAILED = "failed"
    OUTDATED = "outdated"
    """The database lacks migrations of this program: run `billing migrate`."""
    NOT_CONFIGURED = "not_configured"
    """No address was given; nothing is asked, and nothing is missed."""
    EXCLUDED = "excluded"
    """The caller did not want to know."""


class Dependency(StrEnum):
    """What readiness is asked about."""

    DATABASE = "database"
    MIGRATIONS = "migrations"
    REDIS = "redis"
    BROKER = "broker"


_FINE = frozenset({State.OK, State.NOT_CONFIGURED, State.EXCLUDED})


@dataclass(frozen=True, slots=True)
class Readiness:
    """How all of them stand."""

    states: dict[Dependency, State]

    @property
    def is_ready(self) -> bool:
        """Whether nothing that was asked about is missing."""
        return all(state in _FINE for state in self.states.values())


class Broker(Protocol):
    """Asks a broker of the Kafka protocol for anything, in a thread."""

    def __call__(self) -> None:
        """Returns where it answers.

        Raises:
            KafkaException: it does not.
        """
        ...


class Health:
    """Answers both. However often it is asked, it looks at most once a second."""

    def __init__(
        self, database: ApiDatabase, redis: Redis | None, kafka_bootstrap: str | None
    ) -> None:
        """Nothing is asked yet."""
        self._database = database
        self._redis = redis
        self._broker = None if kafka_bootstrap is None else _broker(kafka_bootstrap)
        self._expected = max(migration.version for migration in SqlFiles.load().migrations)
        self._lock = asyncio.Lock()
        self._states: dict[Dependency, State] = {}
        self._looked_at = float("-inf")
        self._checks: dict[Dependency, asyncio.Task[State]] = {}

    def add_to(self, app: FastAPI) -> None:
        """Adds both endpoints."""
        for path, endpoint, name, summary in (
            ("/healthz", self._healthz, "isAlive", "Whether this process answers"),
            ("/readyz", self._readyz, "isReady", "Whether what the product stands on is there"),
        ):
            app.add_api_route(
                path,
                endpoint,
                methods=["GET"],
                operation_id=name,
                summary=summary,
                tags=["operation"],
                response_class=Response,
                openapi_extra=_specified(name),
            )

    async def _healthz(self, request: Request) -> Response:
        exchange_of(request).route = "/healthz"
        return JSONResponse({"status": "ok"})

    async def _readyz(self, request: Request) -> Response:
        exchange_of(request).route = "/readyz"
        excluded = request.query_params.getlist("exclude")
        if not set(excluded) <= set(Dependency):
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                "invalid_argument",
                "An argument makes no sense.",
                f"exclude takes {', '.join(Dependency)}",
            )
        readiness = await self.readiness(excluded)
        return JSONResponse(
            {
                "status": "ready" if readiness.is_ready else "not_ready",
                "checks": readiness.states,
            },
            status_code=HTTPStatus.OK if readiness.is_ready else HTTPStatus.SERVICE_UNAVAILABLE,
        )

    async def readiness(self, exclude: Collection[str] = ()) -> Readiness:
        """How things stand, except those that the caller does not want to know about."""
        async with self._lock:
            if time.monotonic() - self._looked_at > KEPT_SECONDS:
                self._states = await self._look()
                self._looked_at = time.monotonic()
        return Readiness(
            {
                dependency: State.EXCLUDED if dependency in exclude else state
                for dependency, state in self._states.items()
            }
        )

    async def _look(self) -> dict[Dependency, State]:
        schema, redis, broker = await asyncio.gather(
            self._limited(Dependency.DATABASE, self._schema),
            self._limited(Dependency.REDIS, self._ping),
            self._limited(Dependency.BROKER, self._metadata),
        )
        return {
            Dependency.DATABASE: State.FAILED if schema is State.FAILED else State.OK,
            Dependency.MIGRATIONS: schema,
            Dependency.REDIS: redis,
            Dependency.BROKER: broker,
        }

    async def _limited(
        self, dependency: Dependency, check: Callable[[], Coroutine[Any, Any, State]]
    ) -> State:
        """What a check finds. One that takes too long is given up, and not waited for.

        A server that is frozen takes its time for the end of a call too; until then there is no
        other, so that checks do not use up connections.
        """
        task = self._checks.pop(dependency, None)
        if task is None or task.done():
            if task is not None and not task.cancelled():
                task.exception()  # what came too late is nobody's any more
            task = asyncio.create_task(check())
        await asyncio.wait([task], timeout=CHECK_SECONDS)
        if not task.done():
            if not task.cancelling():
                task.cancel()
            self._checks[dependency] = task
            return State.FAILED
        try:
            return State.FAILED if task.cancelled() else task.result()
        except (DatabaseError, RedisError, KafkaException, OSError):
            return State.FAILED

    async def _schema(self) -> State:
        ((version,),) = await self._database.rows(queries.SCHEMA_VERSION, {})
        return State.OK if version >= self._expected else State.OUTDATED

    async def _ping(self) -> State:
        if self._redis is None:
            return State.NOT_CONFIGURED
        await self._redis.ping()
        return State.OK

    async def _metadata(self) -> State:
        if self._broker is None:
            return State.NOT_CONFIGURED
        await asyncio.to_thread(self._broker)
        return State.OK


def _broker(bootstrap: str) -> Broker:
    # The client keeps trying on its own; what it has to say about that is said by the state.
    client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def ask() -> None:
        client.list_topics(timeout=CHECK_SECONDS - 1)

    return ask


def _specified(name: str) -> dict[str, Any]:
    status = {"type": "string"}
    if name == "isAlive":
        answer = {"type": "object", "required": ["status"], "properties": {"status": status}}
        return {
            "security": [],
            "responses": {
                "200": {
                    "description": "It does.",
                    "content": {"application/json": {"schema": answer}},
                }
            },
        }
    state = {"type": "string", "enum": [*State]}
    answer = {
        "type": "object",
        "required": ["status", "checks"],
        "properties": {
            "status": {"type": "string", "enum": ["ready", "not_ready"]},
            "checks": {
                "type": "object",
                "required": [*Dependency],
                "properties": dict.fromkeys(Dependency, state),
            },
        },
    }
    content = {"application/json": {"schema": answer}}
    return {
        "security": [],
        "parameters": [
            {
                "name": "exclude",
                "in": "query",
                "required": False,
                "description": "What readiness is not to depend on.",
                "schema": {"type": "array", "items": {"type": "string", "enum": [*Dependency]}},
            }
        ],
        "responses": {
            "200": {"description": "All that was asked about is there.", "content": content},
            "422": {"$ref": "#/components/responses/Refusal422"},
            "503": {"description": "Something is missing.", "content": content},
        },
    }
