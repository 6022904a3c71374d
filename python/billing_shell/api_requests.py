"""Reading a request: paths, queries, headers and cursors as arguments, and what is wrong with them.

Only the form is judged: a number is a number, a text can be stored. The rest is the engine's.
"""

import base64
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

DEFAULT_PAGE = 50
LARGEST_PAGE = 100

Arguments = dict[str, object]
"""What a request says, by the names that SQL has for it, without `p_`."""

_INTEGER = re.compile(r"-?[0-9]{1,19}")
_LEAST, _MOST = -(2**63), 2**63 - 1
_ETAG = re.compile(r'"(?P<version>[0-9]{1,18})"')


@dataclass(slots=True)
class Faults:
    """Everything that is wrong with a request: where, and what."""

    found: list[dict[str, str]] = field(default_factory=list)

    def add(self, pointer: str, detail: str) -> None:
        """Notes one more."""
        self.found.append({"pointer": pointer, "detail": detail})

    def text(self, pointer: str, value: str) -> str:
        """A text that can be stored."""
        if "\0" in value:
            self.add(pointer, "must not contain NUL")
        return value

    def number(self, pointer: str, value: str) -> int:
        """A whole number of 64 bits."""
        number = int(value) if _INTEGER.fullmatch(value) else _MOST + 1
        if not _LEAST <= number <= _MOST:
            self.add(pointer, "must be a whole number of 64 bits")
        return number

    def page_size(self, pointer: str, value: str) -> int:
        """How many rows a page has at most."""
        number = int(value) if _INTEGER.fullmatch(value) else 0
        if not 1 <= number <= LARGEST_PAGE:
            self.add(pointer, f"must be 1 to {LARGEST_PAGE}")
        return number

    def place(self, pointer: str, cursor: str, kind: type[int] | type[str]) -> int | str:
        """The place at which a page before ended."""
        try:
            (place,) = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
        except (ValueError, TypeError, RecursionError):
            place = None
        if type(place) is kind and (
            _is_storable(place) if isinstance(place, str) else _LEAST <= place <= _MOST
        ):
            return place
        self.add(pointer, "must be the nextCursor of a page before")
        return kind()

    def version(self, header: str) -> int | None:
        """The version in `If-Match`; None for `*`, which every version matches."""
        if header.strip() == "*":
            return None
        found = _ETAG.fullmatch(header.strip())
        if found is None:
            self.add("/header/If-Match", 'must be one ETag of this resource, like "7", or *')
            return None
        return int(found["version"])

    def header(self, name: str, values: Sequence[str]) -> str | None:
        """The one value of a header, or None; of two, others on the way may have read either."""
        if len(values) > 1:
            self.add(f"/header/{name}", "is given twice")
        return values[0] if values else None

    def once(self, parameters: Iterable[tuple[str, str]], known: Iterable[str]) -> dict[str, str]:
        """Parameters of the query string, each known and given once."""
        read: dict[str, str] = {}
        for name, value in parameters:
            if name not in known:
                self.add(f"/query/{name}", "there is no such parameter")
            elif name in read:
                self.add(f"/query/{name}", "is given twice")
            read[name] = value
        return read


def _is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold it: JSON may escape NUL and halves of characters."""
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def cursor_at(place: int | str) -> str:
    """The cursor of the page that follows this place."""
    return base64.urlsafe_b64encode(json.dumps([place]).encode()).decode("ascii")
