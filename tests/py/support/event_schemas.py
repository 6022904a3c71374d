"""The JSON Schemas of the events, and whether an event keeps to its own."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

DIRECTORY = Path(__file__).parents[3] / "docs" / "events"


def event_types() -> list[str]:
    """Every type that has a schema."""
    return sorted(file.name.removesuffix(".schema.json") for file in DIRECTORY.iterdir())


@cache
def schema(event_type: str) -> dict[str, Any]:
    """The schema of an event type.

    Raises:
        FileNotFoundError: the type has none.
    """
    found: dict[str, Any] = json.loads((DIRECTORY / f"{event_type}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(found)
    return found


def problems(event_type: str, payload: object) -> list[str]:
    """What is wrong with a payload, one text per fault; empty if nothing is."""
    return [
        f"{event_type}{error.json_path[1:]}: {error.message}"
        for error in Draft202012Validator(schema(event_type)).iter_errors(payload)
    ]


def assert_valid(events: Iterable[tuple[str, object]]) -> None:
    """Fails unless every (event type, payload) keeps to its schema."""
    found = [problem for event_type, payload in events for problem in problems(event_type, payload)]
    assert not found, "\n".join(found)
