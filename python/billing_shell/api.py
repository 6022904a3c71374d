"""The HTTP door: FastAPI over the table of endpoints, webhooks, and what operators look at.

No rule of billing lives here. A request becomes one SQL call, and the call's rows the answer.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route, request_response
from starlette.types import ASGIApp

from billing_shell import api_openapi, crashpoints
from billing_shell.api_auth import Credentials, presented
from billing_shell.api_database import ApiDatabase
from billing_shell.api_endpoints import ENDPOINTS
from billing_shell.api_guard import Guard, exchange_of
from billing_shell.api_health import Health
from billing_shell.api_keys import Scope
from billing_shell.api_operations import Operation, Tag
from billing_shell.api_problem import Catalogue, ProblemError, of_status
from billing_shell.api_scrape import Scrape
from billing_shell.api_shapes import NotThereError
from billing_shell.api_webhooks import Secrets, Webhooks
from billing_shell.errors import DatabaseError
from billing_shell.throttle import connect

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    """How the door is run.

    Attributes:
        database_url: as `BILLING_DATABASE_URL`.
        redis_url: as `BILLING_REDIS_URL`; None: neither readiness nor figures tell of it.
        kafka_bootstrap: as `BILLING_KAFKA_BOOTSTRAP`; None: as above.
        gateway_account: whose events come to `/webhooks/payments`.
        webhook_secrets: of a gateway account.
        connections: to the database, the most that are open at once.
    """

    database_url: str = field(repr=False)
    redis_url: str | None = field(default=None, repr=False)
    kafka_bootstrap: str | None = None
    gateway_account: str = "simulated"
    webhook_secrets: Secrets = field(default=lambda account: (), repr=False)  # noqa: ARG005
    connections: int = 10


class Door:
    """What the endpoints stand on."""

    def __init__(self, options: ApiOptions) -> None:
        """Nothing is connected yet."""
        self.options = options
        self.catalogue = Catalogue()
        self.database = ApiDatabase(options.database_url, connections=options.connections)
        self.redis = None if options.redis_url is None else connect(options.redis_url)
        self.health = Health(self.database, self.redis, options.kafka_bootstrap)
        self.scrape = Scrape(self.database, self.redis)
        self.webhooks = Webhooks(self.database, options.webhook_secrets)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Connects, and closes the connections in the end."""
        async with AsyncExitStack() as stack:
            if self.redis is not None:
                stack.push_async_callback(self.redis.aclose)
            await stack.enter_async_context(self.database)
            yield

    async def know_codes(self, *, anew: bool = False) -> None:
        """Reads the error catalogue, once; without a database its codes go without their words."""
        if anew or not self.catalogue.codes:
            try:
                self.catalogue.codes = await self.database.error_codes()
            except DatabaseError:
                return

    async def answer(self, operation: Operation, request: Request) -> Response:
        """Makes the one call of an endpoint.

        Raises:
            ProblemError: the request is refused.
        """
        exchange = exchange_of(request)
        exchange.route = operation.path
        authorization = request.headers.getlist("authorization")
        credentials = presented(authorization, operation.scope, exchange.request_id)
        try:
            return await self._call(operation, request, credentials)
        except NotThereError as error:
            await self.know_codes()
            raise self.catalogue.problem(error.sqlstate, error.message) from error
        except DatabaseError as error:
            await self.know_codes(anew=error.code.startswith("SB") and not self._knows(error.code))
            raise self.catalogue.of_database(error, operation.scope) from error
        finally:
            exchange.key_name = credentials.key_name

    async def _call(
        self, operation: Operation, request: Request, credentials: Credentials
    ) -> Response:
        body = exchange_of(request).body
        try:
            arguments = operation.arguments(request, body, self.catalogue)
        except ProblemError:
            # Who is not let in learns that first.
            await self.database.authenticate(credentials)
            await self.know_codes()
            arguments = operation.arguments(request, body, self.catalogue)
        rows = await self.database.call(
            credentials,
            operation.statement(arguments),
            arguments,
            read_only=operation.reads_only,
        )
        if not operation.reads_only:
            crashpoints.reach("call_committed")
        response = operation.respond(rows, arguments)
        if operation.reads_only and _is_known(request, response):
            return _not_modified(response)
        return response

    def _knows(self, sqlstate: str) -> bool:
        return sqlstate in self.catalogue.codes


def create_app(options: ApiOptions) -> Guard:
    """Makes the door, an ASGI application; it connects when the server starts it."""
    door = Door(options)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with door.running():
            yield

    app = FastAPI(
        title="Billing",
        version=version("billing-shell"),
        docs_url=None,
        redoc_url=None,
        # A path with a slash too many is another path. Sent on to an address made of what the
        # caller calls this host, behind a load balancer without TLS, a key would follow it.
        redirect_slashes=False,
        lifespan=lifespan,
    )
    for operation in ENDPOINTS:
        app.add_api_route(
            operation.path,
            _endpoint(door, operation),
            methods=[operation.method],
            operation_id=operation.name,
            name=operation.name,
            summary=operation.summary,
            tags=[operation.tag],
            status_code=operation.status,
            response_class=Response,
            openapi_extra=api_openapi.of_operation(operation),
        )
    _add_webhooks(app, door)
    door.health.add_to(app)
    door.scrape.add_to(app)
    app.openapi = lambda: _specification(app)  # type: ignore[method-assign]
    return Guard(app, _answering(app), door.scrape.process)


def _answering(app: FastAPI) -> ASGIApp:
    """What answers requests: the routes, without FastAPI's layers for what no endpoint here has.

    These are parameters to inject, resources to close, bodies to limit and telemetry; they cost as
    much as the call itself.
    """
    for route in app.router.routes:
        if isinstance(route, APIRoute):
            route.app = request_response(route.endpoint)
    handlers = {ProblemError: _refuse, HTTPException: _refuse_http}
    return ExceptionMiddleware(app.router, handlers=handlers)


def _endpoint(door: Door, operation: Operation) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await door.answer(operation, request)

    return endpoint


def _add_webhooks(app: FastAPI, door: Door) -> None:
    async def receive(request: Request, account: str) -> Response:
        exchange_of(request).route = request.scope["route"].path
        try:
            return await door.webhooks.receive(request, account)
        except DatabaseError as error:
            await door.know_codes()
            raise door.catalogue.of_database(error, Scope.WRITE) from error

    async def payments(request: Request) -> Response:
        return await receive(request, door.options.gateway_account)

    async def of_account(request: Request) -> Response:
        return await receive(request, request.path_params["gatewayAccount"])

    for path, endpoint, account_in_path in (
        ("/webhooks/payments", payments, False),
        ("/webhooks/{gatewayAccount}", of_account, True),
    ):
        app.add_api_route(
            path,
            endpoint,
            methods=["POST"],
            operation_id="receiveAccountEvent" if account_in_path else "receiveEvent",
            summary="Where a payment gateway reports"
            + (", for one of several accounts" if account_in_path else ""),
            tags=[Tag.WEBHOOKS],
            response_class=Response,
            openapi_extra=api_openapi.of_webhooks(account_in_path=account_in_path),
        )


async def _refuse(request: Request, error: Exception) -> Response:
    exchange = exchange_of(request)
    assert isinstance(error, ProblemError)  # noqa: S101 - registered for these only
    exchange.sqlstate = error.sqlstate or ""
    return error.response(exchange.request_id)


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for these only
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_allowed(request))
    return of_status(error.status_code, headers).response(exchange_of(request).request_id)


def _allowed(request: Request) -> list[str]:
    """Methods of all endpoints on this path; the framework would name those of the first."""
    matching = [
        route
        for route in request.app.routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE
    ]
    methods = {method for route in matching for method in route.methods or ()}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


def _is_known(request: Request, response: Response) -> bool:
    """Whether the caller has this very version already."""
    known = request.headers.get("if-none-match")
    tag = response.headers.get("etag")
    if known is None or tag is None:
        return False
    return known.strip() == "*" or tag in {
        each.strip().removeprefix("W/") for each in known.split(",")
    }


def _not_modified(response: Response) -> Response:
    return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": response.headers["etag"]})


def _specification(app: FastAPI) -> dict[str, Any]:
    """The specification, made once."""
    if app.openapi_schema is None:
        app.openapi_schema = api_openapi.complete(
            get_openapi(
                title=app.title,
                version=app.version,
                description=api_openapi.DESCRIPTION,
                routes=app.routes,
            )
        )
    return app.openapi_schema
