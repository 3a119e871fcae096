"""Fields of an event that must be there: what is missing is said by name, because the event was worth a node."""

from collections.abc import Mapping
from typing import Any

from joinery.errors import JoineryError


class MalformedNoticeError(JoineryError):
    """An event of a known kind without the fields of that kind. The message names the field."""


def mapping(value: object, name: str) -> Mapping[str, Any]:
    """The value, an object. Raises ``MalformedNoticeError`` with ``name``."""
    if not isinstance(value, dict):
        raise MalformedNoticeError(f"{name} is not an object")
    return value


def text(fields: Mapping[str, Any], name: str) -> str:
    """A field, a text that is not empty. Raises ``MalformedNoticeError``."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedNoticeError(f"{name} is missing or not a text")
    return value
