"""Parts of objects may be given as structs or as documents; what the builders return holds structs."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def as_struct(part: Any, kind: type[T]) -> T:
    """The part as the struct ``kind``. Raises ``msgspec.ValidationError`` for a document that does not fit."""
    return part if isinstance(part, kind) else msgspec.convert(part, kind)


def as_structs(parts: Iterable[Any], kind: type[T]) -> list[T]:
    return [as_struct(part, kind) for part in parts]


def as_fields(values: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Fields of the struct ``kind`` by their Python names, with documents among the values made structs."""
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    return {name: msgspec.convert(value, types[name]) if name in types else value for name, value in values.items()}
