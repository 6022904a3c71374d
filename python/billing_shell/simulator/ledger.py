"""The ledger file: one writer that commits in groups, readers that see what is committed.

Everything that must outlive a kill -9 goes through `Ledger.write`, which returns only after the
commit has reached the disk (WAL with `synchronous = FULL`: one fsync a commit). Writes that arrive
within a few milliseconds share that commit, so that one fsync serves many answers.
"""

import asyncio
import fcntl
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, Self, TextIO, TypeVar

import structlog

T = TypeVar("T")
Row = sqlite3.Row
Parameters = Sequence[Any] | dict[str, Any]

_SCHEMA_VERSION = 1
_LARGEST_GROUP = 1_000

_log = structlog.get_logger(__name__)


class LedgerError(Exception):
    """The ledger cannot be used: held by another process, of another version, or not writable."""


@dataclass(frozen=True, slots=True)
class _Write(Generic[T]):
    """One operation on its way to the disk, and who waits for it."""

    operation: Callable[[sqlite3.Connection], T]
    done: asyncio.Future[T]

    def run(self, connection: sqlite3.Connection) -> Callable[[], None]:
        """Run inside the open transaction; return what tells the waiting task after the commit."""
        connection.execute("SAVEPOINT one_write")
        try:
            result = self.operation(connection)
        except Exception as error:  # noqa: BLE001  it belongs to the task that waits, not to its neighbours
            connection.execute("ROLLBACK TO one_write")
            connection.execute("RELEASE one_write")
            return partial(self.fail, error)
        connection.execute("RELEASE one_write")
        return partial(self._succeed, result)

    def fail(self, error: Exception) -> None:
        """Tell the waiting task that nothing was kept."""
        if not self.done.cancelled():
            self.done.set_exception(error)

    def _succeed(self, result: T) -> None:
        if not self.done.cancelled():
            self.done.set_result(result)


class Ledger:
    """One open ledger file. Created, used and closed on one event loop."""

    def __init__(self, path: Path, commit_window: float, *, sync: bool = True) -> None:
        self._path = path
        self._commit_window = commit_window
        self._sync = sync
        self._queue: SimpleQueue[_Write[Any] | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._lock = _lock(path)
        try:
            self._writer = self._connect()
            self._create_schema()
            self._reader = self._connect()
        except sqlite3.Error as error:
            self._lock.close()
            raise LedgerError(f"{path} cannot be used as a ledger: {error}") from error
        except LedgerError:
            self._lock.close()
            raise
        self._thread = threading.Thread(target=self._commit_groups, name="ledger", daemon=True)
        self._thread.start()

    async def write(self, operation: Callable[[sqlite3.Connection], T]) -> T:
        """Run `operation` in a transaction; return its result once that is on the disk.

        Operations run one after the other, in the order in which this was called. An exception
        undoes that operation alone and is raised here.
        """
        return await self.enqueue(operation)

    def enqueue(self, operation: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """As `write`, for whoever waits later, or only for a later write of its own."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Write(operation, done))
        return done

    def rows(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        """Read what is committed. Runs on the event loop: for look-ups by index only."""
        return self._reader.execute(statement, parameters).fetchall()

    def row(self, statement: str, parameters: Parameters = ()) -> Row | None:
        """Read the first row of what is committed, if any. By index only, as `rows`."""
        found: Row | None = self._reader.execute(statement, parameters).fetchone()
        return found

    async def scan(self, statement: str, parameters: Parameters = ()) -> list[Row]:
        """Read at length, on a connection and a thread of its own."""

        def read() -> list[Row]:
            connection = self._connect()
            try:
                return connection.execute(statement, parameters).fetchall()
            finally:
                connection.close()

        return await asyncio.to_thread(read)

    async def close(self) -> None:
        """Commit what is queued, fold the write-ahead log into the file and close it."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._reader.close()
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._writer.close()
        self._lock.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, isolation_level=None, check_same_thread=False, timeout=10
        )
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._sync else 'OFF'}")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection

    def _create_schema(self) -> None:
        (version,) = self._writer.execute("PRAGMA user_version").fetchone()
        if version not in (0, _SCHEMA_VERSION):
            raise LedgerError(f"{self._path} is a ledger of version {version}")
        schema = resources.files(__package__).joinpath("schema.sql").read_text(encoding="ascii")
        self._writer.executescript(schema)
        self._writer.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")

    def _commit_groups(self) -> None:
        while (first := self._queue.get()) is not None:
            time.sleep(self._commit_window)
            group, last = self._gather(first)
            self._commit(group)
            if last:
                return

    def _gather(self, first: _Write[Any]) -> tuple[list[_Write[Any]], bool]:
        """Return the writes that share a commit, and whether the ledger closes after them."""
        group = [first]
        while len(group) < _LARGEST_GROUP:
            try:
                write = self._queue.get_nowait()
            except Empty:
                break
            if write is None:
                return group, True
            group.append(write)
        return group, False

    def _commit(self, group: list[_Write[Any]]) -> None:
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            outcomes = [write.run(self._writer) for write in group]
            self._writer.execute("COMMIT")
        except sqlite3.Error as error:
            _log.exception("ledger_commit_failed", writes=len(group))
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            failure = LedgerError(f"nothing could be committed: {error}")
            outcomes = [partial(write.fail, failure) for write in group]
        self._loop.call_soon_threadsafe(_tell, outcomes)


def _tell(outcomes: list[Callable[[], None]]) -> None:
    for tell in outcomes:
        tell()


def _lock(path: Path) -> TextIO:
    """Hold the ledger for this process; the lock goes with the process, however it ends."""
    try:
        lock = path.with_name(f"{path.name}.lock").open("w", encoding="ascii")
    except OSError as error:
        raise LedgerError(f"{path} cannot be used as a ledger: {error}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise LedgerError(f"{path} is in use by another simulated gateway") from error
    return lock
