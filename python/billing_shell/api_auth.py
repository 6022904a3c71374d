"""How a caller presents a key, and what the database is told of it."""

import re
from dataclasses import dataclass, field

from billing_shell.api_keys import Scope, hash_of
from billing_shell.api_problem import unauthorized

_BEARER = re.compile(r"bearer +(?P<key>[A-Za-z0-9._~+/=-]{1,200})", re.IGNORECASE)


@dataclass(slots=True)
class Credentials:
    """Who claims to call, and for what.

    Attributes:
        key_hash: SHA-256 of the key presented.
        scope: what the call needs.
        request_id: stands in the lifecycle log beside the name of the key.
        key_name: of the key, once the database has let it in; empty before.
    """

    key_hash: bytes = field(repr=False)
    scope: Scope
    request_id: str
    key_name: str = ""


def presented(authorization: str | None, scope: Scope, request_id: str) -> Credentials:
    """Reads the header `Authorization`.

    Raises:
        ProblemError: 401, no bearer token in it.
    """
    if authorization is None:
        raise unauthorized("there is no Authorization header")
    found = _BEARER.fullmatch(authorization.strip())
    if found is None:
        raise unauthorized("the Authorization header holds no bearer token")
    return Credentials(hash_of(found["key"]), scope, request_id)
