"""What can go wrong when the schema is applied."""

from enum import StrEnum


class MigrationErrorCode(StrEnum):
    """Why the schema could not be applied. Whatever it was, nothing half-done is left."""

    DATABASE_UNREACHABLE = "database_unreachable"
    """No connection to the database."""
    DATABASE_UNSUITABLE = "database_unsuitable"
    """The server answers but cannot be migrated: too old, or a read-only replica."""
    ROLES_MISSING = "roles_missing"
    """The roles are not there, and this login may not make them or become their owner."""
    FILES_UNSOUND = "files_unsound"
    """The SQL files themselves are wrong; nothing was sent to the database."""
    DATABASE_IS_NEWER = "database_is_newer"
    """The database has a migration that these files lack."""
    MIGRATION_CHANGED = "migration_changed"
    """A migration was edited or renamed after it had been applied."""
    MIGRATION_OUT_OF_ORDER = "migration_out_of_order"
    """A migration that is not applied has a lower number than one that is."""
    BLOCKED = "blocked"
    """A lock was not to be had in time."""
    SQL_FAILED = "sql_failed"
    """The server refused a statement of a file."""
    LEFTOVER_OBJECT = "leftover_object"
    """The database has a function or a view that no file makes any more."""
    QUEUE_UNKNOWN = "queue_unknown"
    """The job queue's schema is there, but not by `migrate`, so its version is unknown."""


class MigrationError(Exception):
    """The schema was not applied.

    Attributes:
        code: what kind of failure; match this, never the text.
        message: what happened.
        hint: what to do about it, or an empty string.
        where: `file:line` of the SQL that failed, or an empty string.
        sqlstate: the server's SQLSTATE, or an empty string where the server had no part in it.
    """

    def __init__(
        self,
        code: MigrationErrorCode,
        message: str,
        *,
        hint: str = "",
        where: str = "",
        sqlstate: str = "",
    ) -> None:
        self.code = code
        self.message = message
        self.hint = hint
        self.where = where
        self.sqlstate = sqlstate
        first = f"{where}: {message}" if where else message
        if sqlstate:
            first = f"{first} [SQLSTATE {sqlstate}]"
        super().__init__(f"{first}\nHint: {hint}" if hint else first)
