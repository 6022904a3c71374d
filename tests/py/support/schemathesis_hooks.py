"""What schemathesis is told of the shop before whose door it stands, and one check of our own."""

import json
import os
from typing import Any

import psycopg
import schemathesis
from pydantic.alias_generators import to_camel

SHOP_VARIABLE = "BILLING_TEST_SHOP"
"""Names the environment variable with the shop: `{"url": …, "mine": {…}}`."""

_SHOP = json.loads(os.environ[SHOP_VARIABLE])
_KNOWN = {to_camel(name): value for name, value in _SHOP["mine"].items()}
_REFUSED = 400

_connection = psycopg.connect(_SHOP["url"], autocommit=True)


class _Seen:
    """How the database looked after the last answer."""

    fingerprint: Any = None


def _fingerprint() -> Any:  # noqa: ANN401 - as the driver has it
    row = _connection.execute("SELECT billing_test.fingerprint()").fetchone()
    return row and row[0]


def _with_things_that_exist(given: Any) -> Any:  # noqa: ANN401 - whatever was generated
    """Two of three well-formed ids become those of things that are there."""
    if not isinstance(given, dict):
        return given
    return {
        name: _KNOWN[name]
        if name in _KNOWN and type(value) is type(_KNOWN[name]) and _weight(value) % 3
        else value
        for name, value in given.items()
    }


def _weight(value: int | str) -> int:
    return value if isinstance(value, int) else sum(value.encode())


@schemathesis.hook
def map_path_parameters(context: schemathesis.HookContext, path_parameters: Any) -> Any:  # noqa: ANN401
    """Path parameters as generated, with ids of things that exist."""
    del context
    return _with_things_that_exist(path_parameters)


@schemathesis.hook
def map_body(context: schemathesis.HookContext, body: Any) -> Any:  # noqa: ANN401
    """A body as generated, with ids of things that exist."""
    del context
    return _with_things_that_exist(body)


@schemathesis.check
def a_refused_request_changes_nothing(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """Neither does one that only reads."""
    del ctx
    before, after = _Seen.fingerprint, _fingerprint()
    _Seen.fingerprint = after
    if before is not None and (response.status_code >= _REFUSED or case.method == "GET"):
        assert after == before, f"{case.method} {case.formatted_path} changed something"


_Seen.fingerprint = _fingerprint()
