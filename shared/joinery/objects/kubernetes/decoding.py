"""JSON of the Kubernetes API into structs: a null is a field left out.

Go prints ``null`` for an empty list or map whose field has no ``omitempty`` (``CSINode.spec.drivers``), and reads one
as nothing at all. msgspec refuses it where a list belongs. To allow it field by field would be forgotten for the next
field, and would make every reader ask twice; so a document that is refused is read again without its nulls. The same
holds for the models of custom resources.
"""

import contextlib
from collections.abc import Collection, Iterator, Mapping
from threading import Lock
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_MAKING = Lock()

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


def decode(raw: msgspec.Raw | bytes, struct: type[T]) -> T:
    """A JSON document as that struct. Raises ``msgspec.ValidationError`` with the path of what does not fit."""
    try:
        read: T = decoder(struct).decode(raw)
    except msgspec.ValidationError:
        return convert(msgspec.json.decode(raw), struct)
    return read


def decode_mark(text: str | None, struct: type[T]) -> T | None:
    """An annotation of ours as that struct; None where it is missing, or cannot be read: anybody may edit it."""
    if text is None:
        return None
    try:
        mark: T = decoder(struct).decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return mark


def with_entries(annotations: Mapping[str, str], key: str, entries: Collection[object]) -> dict[str, str]:
    """The annotations with a list of ours, which ``decode_each`` reads; without it where it is empty."""
    kept = {name: value for name, value in annotations.items() if name != key}
    return {**kept, key: msgspec.json.encode(entries).decode()} if entries else kept


def decode_each(text: str, struct: type[T]) -> tuple[T, ...]:
    """The entries of a JSON list, of which those that do not fit are left out: somebody has edited them, or another
    version has written them, which runs beside this one for a minute. None of a text that is no list.
    """
    return tuple(_fitting(text, struct))


def _fitting(text: str, struct: type[T]) -> Iterator[T]:
    try:
        entries = decoder(list[msgspec.Raw]).decode(text)
    except (msgspec.DecodeError, RecursionError):
        return
    for entry in entries:
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            yield decode(entry, struct)


def convert(document: Any, struct: type[T], *, strict: bool = True) -> T:
    """The same for a document of plain values. ``strict``: False where numbers may be texts."""
    decoder(struct)  # so that msgspec knows the struct: see there
    return msgspec.convert(without_nulls(document), struct, strict=strict)


def decode_model(raw: msgspec.Raw | bytes, model: type[M]) -> M:
    """A JSON document as that model. Raises pydantic's ``ValidationError`` with everything that does not fit."""
    try:
        return model.model_validate_json(bytes(raw))
    except ValidationError:
        return model.model_validate(without_nulls(msgspec.json.decode(raw)))


def without_nulls(document: Any) -> Any:
    """The document without what is null, at any depth."""
    if isinstance(document, dict):
        return {key: without_nulls(member) for key, member in document.items() if member is not None}
    if isinstance(document, list):
        return [without_nulls(member) for member in document if member is not None]
    return document


def decoder(struct: Any) -> msgspec.json.Decoder[Any]:
    """A decoder that takes documents as they are. Making one costs as much as a thousand documents, so it is kept.

    One is made at a time: what msgspec learns of a struct it keeps with the struct before it knows all of it, and a
    thread that takes it up from there ends the process. Lists are read by several threads.
    """
    known = _DECODERS.get(struct)
    if known is None:
        with _MAKING:
            known = _DECODERS.setdefault(struct, msgspec.json.Decoder(struct))
    return known
