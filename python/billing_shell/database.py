"""The database as a worker sees it: named calls, each a transaction of its own, in one role.

A connection takes the role of its task when it is opened, so that a process can do what
`db/privileges/` gives that role and no more, whatever its login may do. It has to be a direct one:
a transaction pooler drops the session's settings.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Any, LiteralString, Self, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import class_row
from psycopg.types.composite import CompositeInfo, register_composite
from psycopg_pool import AsyncConnectionPool

from billing_shell import crashpoints
from billing_shell.errors import DatabaseError, translate
from billing_shell.gateway import ChargeResult, RefundResult

WORKER_ROLE = "billing_worker"
RELAY_ROLE = "billing_relay"

_WAIT_SECONDS = 10.0
# Then the pool gives up, and the next call tries anew: its own pauses would grow to minutes.
_RECONNECT_SECONDS = 2.0

# Who holds a lock for longer is in trouble; who waits for longer stands in a queue that grows.
_SESSION = {
    "statement_timeout": "60s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "60s",
    "timezone": "UTC",
}
# A peer that has vanished is noticed within half a minute.
_CONNECTION: dict[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
_LONGEST_NAME = 63
_NO_SCHEMA = "3F000"

_Row = TypeVar("_Row")


def session_conninfo(
    url: str, *, role: str, application_name: str, search_path: str = "pg_catalog"
) -> str:
    """Return `url` with what a session of ours has from its first statement on.

    Time-outs and keep-alives that the URL names itself stay as they are.

    Args:
        url: as `BILLING_DATABASE_URL`.
        role: whose rights the session has; the login must be a member.
        application_name: shown in `pg_stat_activity`, cut to 63 characters.
        search_path: for code of others that does not write names out.
    """
    given = conninfo_to_dict(url)
    # The last one counts.
    options = [f"-c {name}={value}" for name, value in _SESSION.items()]
    options += [str(given["options"])] if given.get("options") else []
    options += [f"-c role={role}", f"-c search_path={search_path}"]
    return make_conninfo(
        url,
        **{name: value for name, value in _CONNECTION.items() if name not in given},
        application_name=application_name[:_LONGEST_NAME],
        options=" ".join(options),
    )


class Database:
    """A pool of connections in the role of a worker."""

    def __init__(self, url: str, *, application_name: str, connections: int = 4) -> None:
        """Nothing is connected yet.

        Args:
            url: as `BILLING_DATABASE_URL`.
            application_name: shown in `pg_stat_activity`.
            connections: the most that are open at once.
        """
        self._conninfo = session_conninfo(url, role=WORKER_ROLE, application_name=application_name)
        self._pool = AsyncConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True},
            min_size=1,
            max_size=connections,
            timeout=_WAIT_SECONDS,
            reconnect_timeout=_RECONNECT_SECONDS,
            configure=_know_types,
            open=False,
        )

    async def open(self) -> None:
        """Connects once, so that what is wrong with the address or the schema is said at once.

        Raises:
            DatabaseError: no connection, no such role, or a schema that is not there.
        """
        with _translated():
            async with await AsyncConnection.connect(self._conninfo, autocommit=True) as connection:
                await _know_types(connection)
        await self._pool.open()

    async def close(self) -> None:
        """Closes the connections; calls that run have ended by then."""
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

    async def rows(
        self,
        query: LiteralString,
        parameters: Mapping[str, object],
        row: type[_Row],
        *,
        crash_point: str = "",
    ) -> list[_Row]:
        """Makes one call and returns its rows, each as a `row` made from the columns by name.

        Args:
            query: one of `queries`.
            parameters: by name.
            row: what each row becomes.
            crash_point: reached before the call commits, unless it returns no row.

        Raises:
            BillingError: the engine refused it.
            RetryableError: the same call may be made again.
            DatabaseError: anything else.
        """
        with _translated():
            async with (
                self._pool.connection() as connection,
                connection.transaction() if crashpoints.armed(crash_point) else nullcontext(),
                connection.cursor(row_factory=class_row(row)) as cursor,
            ):
                await cursor.execute(query, parameters)
                rows = await cursor.fetchall()
                if rows:
                    crashpoints.reach(crash_point)
                return rows

    async def value(self, query: LiteralString, parameters: Mapping[str, object]) -> Any:  # noqa: ANN401
        """Makes one call and returns its one value; raises as `rows`."""
        with _translated():
            async with self._pool.connection() as connection:
                cursor = await connection.execute(query, parameters)
                row = await cursor.fetchone()
                return None if row is None else row[0]


async def _know_types(connection: AsyncConnection[Any]) -> None:
    """Teaches a connection the composite types that calls take."""
    register_composite(
        await _composite(connection, "billing.charge_result"),
        connection,
        ChargeResult,
        make_sequence=_fields_of,
    )
    register_composite(
        await _composite(connection, "billing.refund_result"),
        connection,
        RefundResult,
        make_sequence=_fields_of,
    )


async def _composite(connection: AsyncConnection[Any], name: str) -> CompositeInfo:
    info = await CompositeInfo.fetch(connection, name)
    if info is None:
        raise DatabaseError(
            _NO_SCHEMA,
            "the database has no billing schema, or an older one",
            hint="run billing migrate with the same BILLING_DATABASE_URL first",
        )
    return info


def _fields_of(result: ChargeResult | RefundResult, info: CompositeInfo) -> Sequence[object]:
    """By name: a type that has grown fields since, gets NULL in them."""
    return [getattr(result, name, None) for name in info.field_names]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error
