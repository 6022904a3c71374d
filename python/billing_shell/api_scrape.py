"""The endpoint that Prometheus scrapes, with a key: figures tell how business goes."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from redis.asyncio import Redis
from starlette.requests import Request
from starlette.responses import Response

from billing_shell import api_queries as queries
from billing_shell import metrics
from billing_shell.api_auth import presented
from billing_shell.api_database import ApiDatabase
from billing_shell.api_guard import exchange_of
from billing_shell.api_keys import Scope
from billing_shell.api_problem import ProblemError, internal_error
from billing_shell.errors import DatabaseError, RetryableError
from billing_shell.metrics import Figure, HttpMetrics
from billing_shell.throttle import ThrottleUnavailableError, look_at

_RATE_LIMIT = "billing_gateway_rate_limit"


class Scrape:
    """Figures of this process, of the database, and of the throttle."""

    def __init__(self, database: ApiDatabase, redis: Redis | None) -> None:
        """Nothing is read yet."""
        self.process = HttpMetrics()
        self._database = database
        self._redis = redis

    def add_to(self, app: FastAPI) -> None:
        """Adds the endpoint."""
        app.add_api_route(
            "/metrics",
            self._metrics,
            methods=["GET"],
            operation_id="scrapeMetrics",
            summary="Figures for Prometheus",
            tags=["operation"],
            response_class=Response,
            openapi_extra=_SPECIFIED,
        )

    async def _metrics(self, request: Request) -> Response:
        exchange = exchange_of(request)
        exchange.route = "/metrics"
        authorization = request.headers.getlist("authorization")
        try:
            is_bound = await self._database.authenticate(
                presented(authorization, Scope.READ, exchange.request_id)
            )
            if is_bound:
                raise _not_for_customers()
            figures = metrics.from_rows(await self._database.rows(queries.METRICS, {}))
        except RetryableError:
            raise _no_database() from None
        except DatabaseError as error:
            raise internal_error() from error
        figures += await self._of_throttle(figures)
        return Response(
            metrics.exposition(self.process, figures),
            headers={"Content-Type": metrics.MEDIA_TYPE},
        )

    async def _of_throttle(self, figures: list[Figure]) -> list[Figure]:
        """Slots of every account and operation whose rate is known."""
        if self._redis is None:
            return []
        found: list[Figure] = []
        try:
            for labels in [each.labels for each in figures if each.name == _RATE_LIMIT]:
                state = await look_at(self._redis, labels["gateway_account"], labels["operation"])
                found += [
                    Figure("billing_throttle_slots_granted", labels, state.granted),
                    Figure("billing_throttle_reserved_ahead_seconds", labels, state.reserved_ahead),
                    Figure("billing_throttle_paused_seconds", labels, state.paused),
                ]
        except ThrottleUnavailableError:
            return [Figure("billing_throttle_up", {}, 0)]
        return [*found, Figure("billing_throttle_up", {}, 1)]


def _not_for_customers() -> ProblemError:
    return ProblemError(
        HTTPStatus.FORBIDDEN,
        "forbidden",
        "The API key does not permit this.",
        "a key that is bound to a customer sees no figures of others",
    )


def _no_database() -> ProblemError:
    return ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "try_again",
        "The database was busy or not to be reached.",
        headers={"Retry-After": "1"},
    )


_SPECIFIED: dict[str, Any] = {
    "description": "For a key with the scope read that is bound to no customer.",
    "security": [{"apiKey": []}],
    "responses": {
        "200": {
            "description": "In Prometheus' text format.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        },
        **{
            str(status): {"$ref": f"#/components/responses/Refusal{status}"}
            for status in (401, 403, 500, 503)
        },
    },
}
