"""The doctor: asks the database whether it has kept its promises, and says what is wrong.

What is checked, and what a violation would mean, stands with each check in
`db/functions/integrity/`.
"""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, LiteralString

import psycopg
from psycopg.rows import class_row

from billing_shell.errors import translate

_ROLE: LiteralString = "SET ROLE billing_readonly"
_CHECK: LiteralString = """
    SELECT check_name, severity, customer_id, object, detail
    FROM billing_ops.check_integrity(p_since => %(since)s)
"""
_MEANINGS: LiteralString = """
    SELECT
        substr(p.proname, length('check_') + 1),
        pg_catalog.obj_description(p.oid, 'pg_proc')
    FROM pg_catalog.pg_proc AS p
    INNER JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE n.nspname = 'billing' AND p.proname LIKE 'check\\_%%'
    ORDER BY p.proname
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken promise.

    Attributes:
        check_name: which check found it.
        severity: BROKEN (money or service is wrong), STUCK (something waits that nothing will
            move) or WARNING.
        customer_id: whom it concerns; None for the database itself.
        object: what it is about, such as `invoice 64`.
        detail: what was found, and what was expected.
    """

    check_name: str
    severity: str
    customer_id: int | None
    object: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What one examination found.

    Attributes:
        violations: empty where all is well.
        meanings: what a violation means, for every check there is, by its name.
        seconds: how long it took.
    """

    violations: tuple[Violation, ...]
    meanings: dict[str, str]
    seconds: float

    @property
    def healthy(self) -> bool:
        """Whether nothing was found."""
        return not self.violations

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "healthy": self.healthy,
            "checks": len(self.meanings),
            "seconds": round(self.seconds, 3),
            "violations": [asdict(violation) for violation in self.violations],
        }

    def lines(self, most: int) -> Iterator[str]:
        """Write it for people: per check what it means, then the first `most` of what it found."""
        found = Counter(violation.check_name for violation in self.violations)
        for name, count in found.items():
            yield f"{name}: {count} found. {self.meanings.get(name, '')}"
            about = [v for v in self.violations if v.check_name == name]
            for violation in about[:most]:
                who = "" if violation.customer_id is None else f"customer {violation.customer_id}, "
                yield f"  {violation.severity} {who}{violation.object}: {violation.detail}"
            if count > most:
                yield f"  and {count - most} more"
        verdict = f"{len(self.violations)} violations" if self.violations else "nothing is wrong"
        yield f"{len(self.meanings)} checks in {self.seconds:.1f} s: {verdict}"


def examine(database_url: str, since: datetime | None = None) -> Diagnosis:
    """Run every check in one snapshot.

    Args:
        database_url: as a member of billing_readonly.
        since: leave out customers about whom nothing was written since this instant of the wall
            clock; None = everybody.

    Raises:
        DatabaseError: it could not be asked.
    """
    with (
        _translated(),
        psycopg.connect(
            database_url, autocommit=True, application_name="billing doctor"
        ) as connection,
    ):
        connection.execute(_ROLE)
        began = time.monotonic()
        with connection.cursor(row_factory=class_row(Violation)) as cursor:
            violations = cursor.execute(_CHECK, {"since": since}).fetchall()
        seconds = time.monotonic() - began
        meanings: dict[str, str] = dict(connection.execute(_MEANINGS, {}).fetchall())
    return Diagnosis(violations=tuple(violations), meanings=meanings, seconds=seconds)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise translate(error) from error
