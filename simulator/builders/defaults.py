"""What builders share: the moment and zones that a test may omit, and parts of objects that are given as documents."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

#: When a test's world begins.
EPOCH = datetime.fromisoformat("2026-08-24T08:00:00+00:00")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")


def zone_id(zone: str) -> str:
    """``use1-az1`` for ``us-east-1a``, the way EC2 writes them."""
    return f"use1-az{ord(zone[-1]) - ord('a') + 1}"


def as_struct(part: Any, kind: type[T]) -> T:
    """The part as the struct ``kind``. Raises ``msgspec.ValidationError`` for a document that does not fit."""
    return part if isinstance(part, kind) else msgspec.convert(part, kind)


def as_structs(parts: Iterable[Any], kind: type[T]) -> list[T]:
    return [as_struct(part, kind) for part in parts]


def as_fields(values: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    """Fields of the struct ``kind`` by their Python names, with documents among the values made structs."""
    types = _types(kind)
    return {name: msgspec.convert(value, types[name]) if name in types else value for name, value in values.items()}


@cache
def _types(kind: Any) -> Mapping[str, Any]:
    """By the name of a field, its type. To look for them takes longer than to build a pod."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}
