"""Values of files that hold no Kubernetes objects. Wrong ones raise ``ConfigurationError`` naming file and field."""

from collections.abc import Mapping
from typing import Any

import msgspec

from joinery.objects.errors import ConfigurationError
from joinery.objects.wording import must_be
from joinery_cli.reading.yamls import split


def one_document(source: str, data: bytes, content: str) -> Any:
    """The only document of a file in YAML or JSON. ``content``: what it is to be with."""
    documents = [msgspec.json.decode(one) for _, one in split(source, data)]
    if len(documents) != 1:
        raise ConfigurationError(f"{source}: must be one document with {content}, not {len(documents):,}")
    return documents[0]


def checked_map(field: str, value: Any) -> Mapping[str, Any]:
    """The value, which is a map."""
    if not isinstance(value, dict):
        raise ConfigurationError(f"{field}: {must_be('a map', value)}")
    return value


def checked_number(field: str, value: Any, wanted: str, *, most: float) -> float:
    """The value, which is a number from 0 to the most. ``wanted``: what it should be, in words."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= most:
        raise ConfigurationError(f"{field}: {must_be(wanted, value)}")
    return float(value)
