"""How a caller presents a key, and what the database is told of it."""

import re
from collections.abc import Sequence
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


def presented(authorization: Sequence[str], scope: Scope, request_id: str) -> Credentials:
    """Reads the header `Authorization`.

    Args:
        authorization: its values, as often as it is there.
        scope: as of `Credentials`.
        request_id: as of `Credentials`.

    Raises:
        ProblemError: 401, no bearer token in it, or two, of which others may have read either.
    """
    if not authorization:
        raise unauthorized("there is no Authorization header")
    if len(authorization) > 1:
        raise unauthorized("there are several Authorization headers")
    found = _BEARER.fullmatch(authorization[0].strip())
    if found is None:
        raise unauthorized("the Authorization header holds no bearer token")
    return Credentials(hash_of(found["key"]), scope, request_id)
