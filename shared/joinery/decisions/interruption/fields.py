"""Fields that an event must have.

The error names the one that is missing, for the log: such an event says of no instance what would happen to it.
"""

from collections.abc import Mapping
from typing import Any

from joinery.objects.errors import JoineryError


class MalformedNoticeError(JoineryError):
    """An event of a known kind without the fields of that kind. The message names the field."""


def mapping(value: object, name: str) -> Mapping[str, Any]:
    """The value, if it is an object. Raises ``MalformedNoticeError`` with ``name`` if it is not."""
    if not isinstance(value, dict):
        raise MalformedNoticeError(f"{name} is not an object")
    return value


def text(fields: Mapping[str, Any], name: str) -> str:
    """The field, if it is a text that is not empty. Raises ``MalformedNoticeError`` with its name if it is not."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise MalformedNoticeError(f"{name} is missing or not a text")
    return value
