"""What a key is: 256 random bits, so that a plain SHA-256 is all it needs at rest."""

import hashlib
import secrets
from enum import StrEnum

PREFIX = "bk_"
"""What every key begins with, so that scanners for leaked secrets can find it."""

_BITS = 256


class Scope(StrEnum):
    """What a key permits."""

    READ = "read"
    WRITE = "write"
    OPERATE = "operate"


def new_key() -> str:
    """Makes a key. It is shown once, to its owner, and stored nowhere."""
    return PREFIX + secrets.token_urlsafe(_BITS // 8)


def hash_of(key: str) -> bytes:
    """What is stored of a key, and what it is looked up by."""
    return hashlib.sha256(key.encode()).digest()
