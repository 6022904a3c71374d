"""Names that workers and relays go by, in rows and in logs."""

import os
import re
import secrets
import socket

LONGEST_NAME = 200

# What the database refuses as a card number has 13 digits, in a row or in groups, at least, and
# stands outside of UUIDs and of words that hold letters too.
_MANY_DIGITS = re.compile(r"[0-9](?:[ -]?[0-9]){12}")
_NO_DIGITS = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]*[a-z][0-9a-z]*", re.IGNORECASE
)
_BARE_DIGITS = re.compile(r"(?<![0-9A-Za-z])(?=[0-9])")
_VISIBLE = re.compile(r"[!-~]+")


def made_up_name() -> str:
    """Return the name of this process, unique: host, process id and chance.

    Hosts are named by digits, `ip-10-1-123-61` for example, and together with the rest some would
    pass for a card number. Then a letter stands before each of them.
    """
    return _harmless(f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}")


def is_fit(name: str) -> bool:
    """Whether the database takes a name, which it is told with every claim."""
    return (
        len(name) <= LONGEST_NAME
        and _VISIBLE.fullmatch(name) is not None
        and not _has_many_digits(name)
    )


def _harmless(name: str) -> str:
    return _BARE_DIGITS.sub("n", name) if _has_many_digits(name) else name


def _has_many_digits(name: str) -> bool:
    return _MANY_DIGITS.search(_NO_DIGITS.sub("x", name)) is not None
