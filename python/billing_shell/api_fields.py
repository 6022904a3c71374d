"""What fields of requests and answers are made of: JSON in camelCase outside, SQL inside."""

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

_INT4 = 2**31
_INT8 = 2**63


@dataclass(frozen=True, slots=True)
class Sql:
    """The SQL type that a value is cast to."""

    type: str


# Ranges are those of the types, and texts only lack what PostgreSQL cannot store: what makes sense
# is for the engine to say.
BigInteger = Annotated[
    int, Sql("bigint"), Field(ge=-_INT8, lt=_INT8, json_schema_extra={"format": "int64"})
]
Integer = Annotated[
    int, Sql("integer"), Field(ge=-_INT4, lt=_INT4, json_schema_extra={"format": "int32"})
]
Text = Annotated[str, Sql("text"), StringConstraints(pattern=r"^[^\x00]*$")]
Flag = Annotated[bool, Sql("boolean")]
Instant = Annotated[AwareDatetime, Sql("timestamptz")]


class Answer(BaseModel):
    """One row of a view, or what else a call returns. Serves the specification only.

    Attributes:
        example: for the specification.
    """

    model_config = ConfigDict(alias_generator=to_camel)

    example: ClassVar[dict[str, Any]]

    @classmethod
    def columns(cls) -> list[tuple[str, str]]:
        """(column, name in JSON), in the order of the answer."""
        return [(name, field.alias or name) for name, field in cls.model_fields.items()]


class Body(BaseModel):
    """What a request carries: arguments of a function, of which SQL knows the defaults.

    Attributes:
        examples: for the specification.
    """

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", strict=True)

    examples: ClassVar[tuple[dict[str, Any], ...]] = ()

    def given(self) -> dict[str, object]:
        """The arguments that the caller named, by their names in SQL without `p_`."""
        given = self.model_fields_set
        return {name: getattr(self, name) for name in type(self).model_fields if name in given}

    @classmethod
    def sql_types(cls) -> dict[str, str]:
        """SQL type of each argument."""
        return {name: sql_type(field) for name, field in cls.model_fields.items()}


def sql_type(field: FieldInfo) -> str:
    """The SQL type that stands in a field's annotation."""
    for found in (*field.metadata, *_metadata(field.annotation)):
        if isinstance(found, Sql):
            return found.type
    raise TypeError(f"{field!r} names no SQL type")


def _metadata(annotation: object) -> Iterator[object]:
    """Of an annotation, or of the members of a union."""
    if typing.get_origin(annotation) is Annotated:
        yield from annotation.__metadata__  # type: ignore[attr-defined]
    if typing.get_origin(annotation) in {types.UnionType, typing.Union}:
        for member in typing.get_args(annotation):
            yield from _metadata(member)
