"""The database as the HTTP door sees it: one call a request, in the role that the key gives.

Both statements of a request, the one that finds out who calls and the call itself, go out together
and are one transaction: a pipeline without BEGIN is one until its end. So a request takes one round
trip, a revoked key is refused from the next request on, and nothing is answered before it is
committed.
"""

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, LiteralString, Self, cast

import psycopg
import structlog
from psycopg import AsyncCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import AsyncConnectionPool, PoolTimeout, TooManyRequests

from billing_shell import api_queries as queries
from billing_shell.api_auth import Credentials
from billing_shell.api_problem import ErrorCode, forbidden, unauthorized
from billing_shell.database import session_conninfo
from billing_shell.errors import DatabaseError, RetryableError, translate

HTTP_ROLE = "billing_http"

SESSION = {
    "statement_timeout": "10s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "15s",
}
"""Time-outs of a session: whoever waits for longer has gone away. What the URL says goes before."""
WAIT_SECONDS = 5.0
"""For a free connection."""
_WAITING_PER_CONNECTION = 25
_CONNECTION_LOST = "08"
_NO_CONNECTION = "53300"

_log = structlog.get_logger(__name__)


class ApiDatabase:
    """A pool of connections that take a caller's role for one transaction each."""

    def __init__(self, url: str, *, connections: int = 10) -> None:
        """Nothing is connected yet.

        Args:
            url: as `BILLING_DATABASE_URL`; the login is a member of billing_http, billing_app and
                billing_operator.
            connections: the most that are open at once.
        """
        self._pool = AsyncConnectionPool(
            _conninfo(url),
            kwargs={"autocommit": True},
            min_size=min(2, connections),
            max_size=connections,
            timeout=WAIT_SECONDS,
            max_waiting=_WAITING_PER_CONNECTION * connections,
            open=False,
        )
        self._check: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begins to connect, and goes on trying for as long as it takes."""
        await self._pool.open()

    async def close(self) -> None:
        """Closes the connections; calls that run have ended by then."""
        if self._check is not None:
            self._check.cancel()
            await asyncio.wait([self._check])
        await self._pool.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def call(
        self,
        credentials: Credentials,
        query: LiteralString,
        parameters: Mapping[str, object],
        *,
        read_only: bool,
    ) -> list[tuple[Any, ...]]:
        """Makes one call as the key's owner and returns its rows.

        Args:
            credentials: the key, and the scope that it must have; learns the name of the key.
            query: one statement.
            parameters: of the statement.
            read_only: let the database refuse whatever the statement might write.

        Raises:
            ProblemError: 401 or 403.
            BillingError: the engine refused it.
            RetryableError: the same call may be made again.
            DatabaseError: anything else.
        """
        opening = queries.OPEN_READING if read_only else queries.OPEN_WRITING
        try:
            async with self._pool.connection() as connection:
                opened, called = connection.cursor(), connection.cursor()
                try:
                    async with connection.pipeline():
                        await opened.execute(opening, _of(credentials))
                        await called.execute(query, parameters)
                except psycopg.Error:
                    # Without a key that is let in the call had no rights; say that, not which.
                    if opened.description is not None:
                        await _let_in(opened, credentials)
                    raise
                await _let_in(opened, credentials)
                return await called.fetchall()
        except psycopg.Error as error:
            raise self._translated(error) from error

    async def authenticate(self, credentials: Credentials) -> bool:
        """Finds out who calls, and whether it is bound to a customer; raises as `call`."""
        ((is_bound,),) = await self.call(credentials, queries.IS_BOUND, {}, read_only=True)
        return bool(is_bound)

    async def rows(
        self, query: LiteralString, parameters: Mapping[str, object]
    ) -> list[tuple[Any, ...]]:
        """Makes one call in the door's own right; raises as `call`, without the problems."""
        try:
            async with self._pool.connection() as connection:
                cursor = await connection.execute(query, parameters)
                return await cursor.fetchall()
        except psycopg.Error as error:
            raise self._translated(error) from error

    async def error_codes(self) -> dict[str, ErrorCode]:
        """The error catalogue, by SQLSTATE."""
        found = await self.rows(queries.ERROR_CODES, {})
        return {row[0]: ErrorCode(*row) for row in found}

    def _translated(self, error: psycopg.Error) -> DatabaseError:
        if isinstance(error, PoolTimeout | TooManyRequests):
            return RetryableError(_NO_CONNECTION, "every connection is busy")
        translated = translate(error)
        if (
            isinstance(error, psycopg.OperationalError) and error.sqlstate is None
        ) or translated.code.startswith((_CONNECTION_LOST, "57P0")):
            self._look_at_connections()
        return translated

    def _look_at_connections(self) -> None:
        """Where one connection was lost, the idle ones are too: replace them before they are used.

        Beside the request, which has its answer already.
        """
        if self._check is None or self._check.done():
            self._check = asyncio.create_task(self._replace_lost_connections())

    async def _replace_lost_connections(self) -> None:
        try:
            await self._pool.check()
        except psycopg.Error as error:
            _log.warning("connections_not_checked", error=type(error).__name__)


async def _let_in(opened: AsyncCursor[Any], credentials: Credentials) -> None:
    """Reads what the first statement found out.

    Raises:
        ProblemError: 401 or 403.
        psycopg.Error: it found out nothing, because it failed itself.
    """
    row = await opened.fetchone()
    if row is None:
        raise unauthorized("the key is unknown, expired or revoked")
    credentials.key_name, is_allowed = row[:2]
    if not is_allowed:
        raise forbidden(credentials.scope)


def _of(credentials: Credentials) -> dict[str, object]:
    return {
        "key_hash": credentials.key_hash,
        "scope": credentials.scope,
        "request_id": credentials.request_id,
    }


def _conninfo(url: str) -> str:
    given = cast("str", conninfo_to_dict(url).get("options") or "")
    ours = [f"-c {name}={value}" for name, value in SESSION.items()]
    return session_conninfo(
        make_conninfo(url, options=" ".join([*ours, given]).strip()),
        role=HTTP_ROLE,
        application_name="billing api",
    )
