"""Entries of EC2's answers as structs."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from joinery.answers import Answer, Tell
from joinery.apis.decoding import convert

T = TypeVar("T")


def converted(found: Iterable[Answer], struct: type[T], name: str, *, call: str, tell: Tell) -> Iterator[T]:
    """Entries as structs; ``name`` is the field that one goes by. What does not fit is left out."""
    for entry in found:
        try:
            yield convert(entry, struct)
        except msgspec.ValidationError as error:
            tell(f"{call}: {entry.get(name)} is left out: {error}")
