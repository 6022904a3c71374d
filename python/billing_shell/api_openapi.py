"""The specification of the door, OpenAPI 3.1, made from the table of endpoints."""

from collections.abc import Iterable
from typing import Any

from pydantic.alias_generators import to_camel
from pydantic.json_schema import models_json_schema

from billing_shell.api_endpoints import ENDPOINTS
from billing_shell.api_fields import Answer
from billing_shell.api_guard import LARGEST_BODY, REQUEST_ID_HEADER
from billing_shell.api_operations import Operation, Tag
from billing_shell.api_problem import MEDIA_TYPE as PROBLEM
from billing_shell.api_requests import DEFAULT_PAGE, LARGEST_PAGE
from billing_shell.api_results import WebhookReceipt
from billing_shell.api_shapes import REPLAYED_HEADER, Call, Item, Listing, RowsCall
from billing_shell.webhook_signature import ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER

Document = dict[str, Any]

DESCRIPTION = """
Subscription billing inside PostgreSQL, by HTTP. Every endpoint is one SQL call, whose function or
view stands in `x-sql`; the same call in SQL gives the same answer.

* **Amounts** are whole minor units of their currency, **instants** RFC 3339 in UTC. Ids and amounts
  are integers of 64 bits; who holds numbers as doubles must read them as text or big integers.
* **Retries**: send an `Idempotency-Key`, and the same key again after a lost answer. The stored
  answer comes back, marked by `Idempotent-Replayed: true`. Errors are not stored.
* **Changes by others**: a subscription's `ETag` is its version. Send it as `If-Match`, and nothing
  is done where it has changed meanwhile (412). A replay goes before that comparison.
* **Errors** are problem details (RFC 9457) with the engine's SQLSTATE in `sqlstate`: SB1xx bad
  argument, SB2xx not found, SB3xx state conflict, SB4xx try again, SB9xx broken invariant. Match
  the SQLSTATE, never a text. What belongs to another customer than the key's is not found.
* **Pages**: `nextCursor` of one page is `cursor` of the next, null on the last.
""".strip()

_TAGS = {
    Tag.SUBSCRIPTIONS: "Sign-up and everything that happens to a subscription.",
    Tag.CUSTOMERS: "Who pays, what they may use, and their credit.",
    Tag.PAYMENT_METHODS: "Tokens of gateways, never card numbers.",
    Tag.PLANS: "What is sold, and its immutable prices.",
    Tag.INVOICES: "What is owed, how it was computed, and the efforts to collect it.",
    Tag.WEBHOOKS: "Where payment gateways report.",
    Tag.OPERATION: "For people on call and for machines that watch.",
}

_REFUSALS = {
    400: "The request is not what its headers say: no JSON, or no event.",
    401: "No valid API key, or no valid signature.",
    403: "The API key does not permit this.",
    404: "There is no such thing within the scope of the key.",
    408: "The body took too long.",
    409: "The state of things does not allow it.",
    412: "The version has changed, says If-Match.",
    413: f"The body is larger than {LARGEST_BODY // 1024} KiB.",
    415: "The body is no application/json.",
    422: "An argument is missing, malformed or makes no sense.",
    500: "It failed, and it was not the caller's fault. Nothing was changed.",
    503: "A lock, a connection or time was not to be had. The same call may succeed later.",
}
_PROBLEM_EXAMPLE = {
    "type": "urn:billing:problem:unknown_subscription",
    "title": "No such subscription within the scope of the caller.",
    "status": 404,
    "detail": "subscription 128 does not exist",
    "sqlstate": "SB201",
    "requestId": "4f9c2a0de5a14c3c9f0e3a8f3c1c0a55",
}
_PROBLEM_SCHEMA: Document = {
    "type": "object",
    "description": "Problem details, RFC 9457.",
    "required": ["type", "title", "status", "requestId"],
    "properties": {
        "type": {"type": "string", "description": "Kind of problem, a URN."},
        "title": {"type": "string", "description": "The kind in words, the same every time."},
        "status": {"type": "integer", "description": "HTTP status."},
        "detail": {"type": "string", "description": "What is wrong with this request."},
        "sqlstate": {
            "type": "string",
            "pattern": "^[0-9A-Z]{5}$",
            "description": "SQLSTATE; match on this.",
        },
        "hint": {"type": "string", "description": "What to do about it."},
        "context": {
            "type": "string",
            "description": "More about it: the current version, the id of what exists, a debt.",
        },
        "errors": {
            "type": "array",
            "description": "What is wrong where in the request.",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {
                    "pointer": {"type": "string"},
                    "detail": {"type": "string"},
                },
            },
        },
        "requestId": {"type": "string", "description": "Tell it the operator; it is in the log."},
    },
    "examples": [_PROBLEM_EXAMPLE],
}
_REQUEST_ID = {
    "description": "Of the caller where it was well-formed, else made up.",
    "schema": {"type": "string"},
}
_IDENTIFIER: Document = {
    "type": "integer",
    "format": "int64",
    "minimum": -(2**63),
    "maximum": 2**63 - 1,
}
_CODE: Document = {"type": "string", "minLength": 1, "pattern": r"^[^\x00/]+$"}
_TEXT: Document = {"type": "string", "pattern": r"^[^\x00]*$"}


def of_operation(operation: Operation) -> Document:
    """What the specification says of one endpoint, where the framework does not know it."""
    document: Document = {
        "description": f"`{operation.shape.sql}` in SQL.",
        "x-sql": operation.shape.sql,
        "security": [{"apiKey": []}],
        "parameters": list(_parameters(operation)),
        "responses": _responses(operation),
    }
    if operation.body is not None:
        schema = operation.body.model_json_schema(by_alias=True)
        examples = {
            f"example {number}": {"value": value}
            for number, value in enumerate(operation.body.examples, 1)
        }
        document["requestBody"] = {
            "required": bool(schema.get("required")),
            "content": {"application/json": {"schema": schema, "examples": examples}},
        }
    return document


def of_webhooks(*, account_in_path: bool) -> Document:
    """What the specification says of the endpoints for gateways."""
    headers = {
        ID_HEADER: "Id of the event, the same at every delivery.",
        TIMESTAMP_HEADER: "Seconds since 1970 at which it was signed; 300 either way are taken.",
        SIGNATURE_HEADER: "`v1,<base64>`: HMAC-SHA256 over `id.timestamp.body`; several by spaces.",
    }
    parameters: list[Document] = [
        {
            "name": name,
            "in": "header",
            "required": True,
            "description": text,
            "schema": {"type": "string"},
        }
        for name, text in headers.items()
    ]
    if account_in_path:
        parameters.insert(
            0,
            {
                "name": "gatewayAccount",
                "in": "path",
                "required": True,
                "description": "Code of the gateway account.",
                "schema": _CODE,
            },
        )
    return {
        "description": "Signed as Standard Webhooks has it. 2xx once it is stored, not before;"
        " anything else means: send it again.",
        "x-sql": "billing_worker.receive_webhook",
        "security": [],
        "parameters": parameters,
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "object"},
                    "example": {"type": "charge.succeeded", "data": {"payment_id": "pay_1"}},
                }
            },
        },
        "responses": {
            "200": {
                "description": "Stored, now or before.",
                "headers": {REQUEST_ID_HEADER: _REQUEST_ID},
                "content": {"application/json": {"schema": _reference(WebhookReceipt)}},
            },
            **_refusals({400, 401, 408, 413, 422, 500, 503}),
        },
    }


def complete(document: Document) -> Document:
    """Adds what endpoints refer to: answers, refusals, the key."""
    answers: set[type[Answer]] = {operation.shape.answer for operation in ENDPOINTS}
    answers.add(WebhookReceipt)
    _, schemas = models_json_schema(
        [(answer, "serialization") for answer in sorted(answers, key=lambda each: each.__name__)],
        ref_template="#/components/schemas/{model}",
    )
    definitions = schemas["$defs"]
    for answer in answers:
        definitions[answer.__name__]["examples"] = [answer.example]
    definitions["Problem"] = _PROBLEM_SCHEMA
    document["tags"] = [{"name": tag, "description": text} for tag, text in _TAGS.items()]
    document["components"] = {
        "schemas": definitions,
        "responses": {
            f"Refusal{status}": {
                "description": text,
                "headers": {REQUEST_ID_HEADER: _REQUEST_ID},
                "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }
            for status, text in _REFUSALS.items()
        },
        "securitySchemes": {
            "apiKey": {
                "type": "http",
                "scheme": "bearer",
                "description": "Made by `billing keys create`; scopes read, write, operate.",
            }
        },
    }
    return document


def _parameters(operation: Operation) -> Iterable[Document]:
    for name, sql_type in operation.path_parameters.items():
        yield {
            "name": to_camel(name),
            "in": "path",
            "required": True,
            "schema": _CODE if sql_type == "text" else _IDENTIFIER,
        }
    for name in operation.shape.query:
        yield {"name": name, "in": "query", "required": False, **_query(name)}
    if operation.takes_key:
        yield {
            "name": "Idempotency-Key",
            "in": "header",
            "required": operation.needs_key,
            "description": "Chosen by the caller, one for each thing to be done.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            "example": "8e03978e-40d5-43e8-bc93-6894a57f9324",
        }
    if operation.takes_version:
        yield {
            "name": "If-Match",
            "in": "header",
            "required": False,
            "description": "The ETag that the caller has read: do nothing where it has changed.",
            "schema": {"type": "string", "pattern": r'^("[0-9]{1,18}"|\*)$'},
            "example": '"3"',
        }
    if operation.method == "GET" and isinstance(operation.shape, Item):
        yield {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": "An ETag: answer 304 where nothing has changed since.",
            "schema": {"type": "string"},
        }


def _query(name: str) -> Document:
    if name == "limit":
        return {
            "description": f"Rows of a page at most, {DEFAULT_PAGE} unless said otherwise.",
            "schema": {
                "type": "integer",
                "minimum": 1,
                "maximum": LARGEST_PAGE,
                "default": DEFAULT_PAGE,
            },
        }
    if name == "cursor":
        return {
            "description": "nextCursor of the page before.",
            "schema": {"type": "string", "pattern": "^[A-Za-z0-9_=-]+$"},
        }
    return {"description": "In the calling system's words.", "schema": _TEXT}


def _responses(operation: Operation) -> Document:
    shape = operation.shape
    headers: Document = {REQUEST_ID_HEADER: _REQUEST_ID}
    if "version" in shape.answer.model_fields:
        headers["ETag"] = {"description": "Version in quotes.", "schema": {"type": "string"}}
    if operation.location:
        headers["Location"] = {"description": "Where it is.", "schema": {"type": "string"}}
    if operation.takes_key:
        headers[REPLAYED_HEADER] = {
            "description": "true where a stored answer came back.",
            "schema": {"type": "string", "const": "true"},
        }
    schema = _reference(shape.answer)
    if isinstance(shape, Listing | RowsCall):
        schema = _list_of(schema, paged=isinstance(shape, Listing))
    responses: Document = {
        str(int(operation.status)): {
            "description": "Done." if operation.method != "GET" else "As it stands.",
            "headers": headers,
            "content": {"application/json": {"schema": schema}},
            "links": _links(operation),
        }
    }
    refusals = {401, 403, 404, 422, 500, 503, 408, 413}
    if operation.body is not None:
        refusals |= {400, 415}
    if operation.method != "GET":
        refusals |= {409}
    if operation.takes_version:
        refusals |= {412}
    if operation.method == "DELETE" and isinstance(shape, Call):
        responses["204"] = {"description": "Done, and there is none left."}
    if operation.method == "GET" and isinstance(shape, Item):
        responses["304"] = {"description": "Nothing has changed."}
    return responses | _refusals(refusals)


def _links(operation: Operation) -> Document:
    """What can be done next with an id of the answer."""
    prefix = "#/data/0/" if isinstance(operation.shape, Listing) else "#/"
    fields = operation.shape.answer.model_fields
    links: Document = {}
    for other in ENDPOINTS:
        names = list(other.path_parameters)
        if other is not operation and len(names) == 1 and names[0] in fields:
            name = to_camel(names[0])
            links[other.name] = {
                "operationId": other.name,
                "parameters": {name: f"$response.body{prefix}{name}"},
            }
    return links


def _list_of(schema: Document, *, paged: bool) -> Document:
    properties: Document = {"data": {"type": "array", "items": schema}}
    if paged:
        properties["nextCursor"] = {"type": ["string", "null"]}
    return {"type": "object", "required": list(properties), "properties": properties}


def _reference(answer: type[Answer]) -> Document:
    return {"$ref": f"#/components/schemas/{answer.__name__}"}


def _refusals(statuses: Iterable[int]) -> Document:
    return {
        str(status): {"$ref": f"#/components/responses/Refusal{status}"}
        for status in sorted(statuses)
    }
