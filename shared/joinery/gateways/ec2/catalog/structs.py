"""Entries of AWS's answers as structs."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec

from joinery.gateways.answers import Answer, Tell
from joinery.objects.kubernetes.decoding import convert

T = TypeVar("T")


def converted(listed: Iterable[Answer], struct: type[T], name: str, *, call: str, tell: Tell) -> Iterator[T]:
    """Entries as structs.

    One that does not fit is left out, and ``tell`` hears of it by the value of its field ``name``.
    """
    for entry in listed:
        try:
            yield convert(entry, struct)
        except msgspec.ValidationError as error:
            tell(f"{call}: {entry.get(name)} is left out: {error}")
