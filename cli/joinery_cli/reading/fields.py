"""Fields that no API has, at any depth: a misspelt or misplaced one is an error, any other a warning.

Models and structs read what they know and leave the rest, because a newer API server writes more than they know. In a
file that a person wrote, ``nodeSelectr`` would give a plan for another pod, and 30 CPUs under ``resource:`` a plan for
none; ``kubectl apply`` refuses both. What fields there are is a table made from Kubernetes' own API
(``tools/api_fields.py``).
"""

import json
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from joinery.objects.karpenter.validation import path as path_of
from joinery.objects.slips import meant_by
from joinery.objects.wording import must_be, must_be_text

#: How far below an object its misplaced field is looked for: a Deployment's ``nodeSelector`` is in ``template.spec``.
_DEEP = 3
#: Parts of the API that decide where pods go and have not changed for years: what they lack is no newer field.
_CLOSED = frozenset(
    {
        "Affinity", "LabelSelector", "LabelSelectorRequirement", "NodeAffinity", "NodeSelector",
        "NodeSelectorRequirement",
        "NodeSelectorTerm", "PodAffinity", "PodAntiAffinity", "PreferredSchedulingTerm", "ResourceRequirements",
        "Taint",
        "Toleration", "VolumeResourceRequirements", "WeightedPodAffinityTerm",
    }
)  # fmt: skip
_COMPUTED = ("cpu", "memory", "ephemeral-storage", "storage")
_ANY = "?"
_SINGLE: Mapping[str, Any] = {"s": str, "i": int, "b": bool, "*": str | int | float | bool}


class Unknown(NamedTuple):
    """A field at ``path`` that is not the API's, or that is missing.

    ``problem`` says why that is an error; it is empty for a mere surprise, of which ``advice`` may say what to make of
    it.
    """

    path: str
    problem: str
    advice: str = ""
    meant: str = ""
    """The name that the field should have, where it is a slip."""


def slip(path: str, meant: str) -> Unknown:
    """A field whose name is a slip of another's."""
    return Unknown(path, f"no such field; is it {meant}?", meant=meant)


def member_of(emptied: Sequence[str], key: str, value: Any) -> str:
    """What is wrong with an unknown field of a single value beside the only map that holds nothing: ``limits:`` with
    ``cpu: 100`` below it, not indented.
    """
    if len(emptied) != 1 or isinstance(value, dict | list | None):
        return ""
    return f"no such field; is it {_member(emptied[0], key)}? Then indent it deeper than {emptied[0]}"


@cache
def _table() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads(
        (resources.files("joinery_cli.reading") / "data" / "kubernetes.json").read_text(encoding="utf-8")
    )
    return loaded


def real_kinds() -> Collection[str]:
    """Every kind of Kubernetes' own API."""
    kinds: Collection[str] = _table()["kinds"]
    return kinds


def _fields(name: str) -> Mapping[str, str]:
    fields: Mapping[str, str] = _table()["types"][name]
    return fields


# --- Kubernetes' own kinds ---


def unknown_in_object(kind: str, raw: msgspec.Raw | bytes) -> Iterator[Unknown]:
    """The unknown fields of one object. Costs next to nothing where there is none, as in an export of 10,000 pods."""
    try:
        _strict(kind).decode(raw)
    except msgspec.ValidationError:
        document = msgspec.json.decode(raw)
        yield from Walk(is_served(document)).of_type(kind, document, "", ())


@cache
def _strict(kind: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_struct(kind))


@cache
def _struct(name: str) -> Any:
    fields = _fields(name)
    names = {f"field_{number}": field for number, field in enumerate(fields)}
    defined = [(attribute, _type(fields[field]), None) for attribute, field in names.items()]
    return msgspec.defstruct(name, defined, rename=names, forbid_unknown_fields=True, gc=False)


def _type(shape: str) -> Any:
    inner: Any
    if shape == _ANY:
        return Any
    if shape in _SINGLE:
        inner = _SINGLE[shape]
    elif shape[0] == "[":
        inner = list[_type(shape[1:-1])]  # type: ignore[misc]
    else:
        inner = dict[str, _type(shape[1:-1])] if shape[0] == "{" else _struct(shape)  # type: ignore[misc]
    return inner | None


def is_served(document: Mapping[str, Any]) -> bool:
    """Whether an API server has had the object: what it stored is spelt right, and newer than the table at most."""
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("uid") or metadata.get("managedFields"))


class Walk:
    """Looks for the fields by name, once something is known to be wrong."""

    def __init__(self, is_served: bool) -> None:
        self._is_served = is_served

    def of_type(self, name: str, value: Any, at: str, above: Sequence[tuple[str, str]]) -> Iterator[Unknown]:
        """``above``: paths and types that the value is inside of."""
        if not isinstance(value, dict):
            yield Unknown(at or "object", must_be("a map", value))
            return
        fields, inside = _fields(name), (*above, (at, name))
        emptied = [field for field, shape in fields.items() if shape[0] == "{" and value.get(field, "") is None]
        for key, member in value.items():
            path = f"{at}.{key}" if at else key
            if key in fields:
                yield from self._of_shape(fields[key], member, path, inside)
            elif not self._is_served and (lost := member_of(emptied, key, member)):
                yield Unknown(_member(at, key), lost)
            else:
                yield self._unknown(path, key, member, inside)

    def _of_shape(
        self, shape: str, value: Any, at: str, above: Sequence[tuple[str, str]]
    ) -> Iterator[Unknown]:  # fmt: skip
        if value is None or shape == _ANY:
            return
        if shape in _SINGLE:
            if not isinstance(value, _SINGLE[shape]) or (shape == "i" and isinstance(value, bool)):
                yield Unknown(at, _single(shape, value))
        elif shape[0] == "[":
            yield from self._of_list(shape[1:-1], value, at, above)
        elif shape[0] == "{":
            yield from self._of_map(shape[1:-1], value, at, above)
        else:
            yield from self.of_type(shape, value, at, above)

    def _of_list(self, shape: str, value: Any, at: str, above: Sequence[tuple[str, str]]) -> Iterator[Unknown]:
        if not isinstance(value, list):
            yield Unknown(at, must_be("a list", value))
            return
        for index, member in enumerate(value):
            yield from self._of_shape(shape, member, f"{at}[{index}]", above)

    def _of_map(self, shape: str, value: Any, at: str, above: Sequence[tuple[str, str]]) -> Iterator[Unknown]:
        if not isinstance(value, dict):
            yield Unknown(at, must_be("a map", value))
            return
        for key, member in value.items():
            yield from self._of_shape(shape, member, _member(at, key), above)

    def _unknown(self, path: str, key: str, value: Any, inside: Sequence[tuple[str, str]]) -> Unknown:
        at, name = inside[-1]
        in_status = at == "status" or at.startswith("status.")
        meant = "" if in_status and self._is_served else meant_by(key, _fields(name))
        if meant:
            return slip(path, meant)
        return Unknown(path, self._problem(key, value, inside, in_status=in_status))

    def _problem(self, key: str, value: Any, inside: Sequence[tuple[str, str]], *, in_status: bool) -> str:
        _, name = inside[-1]
        if in_status or (self._is_served and name not in _CLOSED):
            return ""
        if name.endswith("ResourceRequirements") and key in _COMPUTED:
            return f"no such field; is it requests.{key}?"
        if place := _place(key, inside):
            return f"no such field here; it belongs to {place}"
        if name == "LabelSelector" and isinstance(value, str):
            return f"no such field; is it matchLabels.{key}?"
        return "no such field" if name in _CLOSED else ""


def _single(shape: str, value: Any) -> str:
    if shape == "s":
        return must_be_text(value)
    return must_be({"i": "a whole number", "b": "true or false"}.get(shape, "a single value"), value)


def _place(key: str, inside: Sequence[tuple[str, str]]) -> str:
    """Where such a field is: further out, or further in. Empty for a name that no part of the object has."""
    outside = next((at or "the object itself" for at, name in reversed(inside[:-1]) if key in _fields(name)), "")
    at, name = inside[-1]
    below = deque([(at, name, 0)])
    while below and not outside:
        at, name, depth = below.popleft()
        if depth and key in _fields(name):
            return at
        if depth < _DEEP:
            below += [(f"{at}.{field}".lstrip("."), shape, depth + 1) for field, shape in _parts(name)]
    return outside


def _parts(name: str) -> Iterator[tuple[str, str]]:
    """Fields that are objects or lists of objects. Status and metadata are nobody's place for a lost field."""
    for field, shape in _fields(name).items():
        inner = shape.strip("[]")
        if inner in _table()["types"] and field not in ("status", "metadata"):
            yield (f"{field}[]" if shape != inner else field), inner


def _member(at: str, key: str) -> str:
    """The path of a map's member."""
    return f"{at}{path_of(('spec', key)).removeprefix('spec')}"
