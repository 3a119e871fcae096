"""Fields that no API has, at any depth: a misspelt or misplaced one is an error, any other a warning.

Models and structs read what they know and leave the rest, because a newer API server writes more than they know. In a
file that a person wrote, ``nodeSelectr`` would give a plan for another pod, and 30 CPUs under ``resource:`` a plan for none;
``kubectl apply`` refuses both. What fields there are is a table made from Kubernetes' own API (``tools/api_fields.py``).
"""

import json
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
from pydantic import BaseModel

from joinery.apis.ec2nodeclass import EC2NodeClassSpec
from joinery.apis.meta import NodeClassRef
from joinery.apis.nodepool import NodePoolSpec
from joinery.apis.stored import part

#: How alike two names must be, and how near in length, for one to be a slip of the other (``roel``, ``limts``).
_ALIKE, _LONGER = 0.75, 2
#: So long is the beginning of one longer name, of which the rest was forgotten: ``requiredDuringScheduling``, ``claim``.
_BEGINNING = 5
#: How far below an object its misplaced field is looked for: a Deployment's ``nodeSelector`` is in ``template.spec``.
_DEEP = 3
#: Parts of the API that decide where pods go and have not changed for years: what they lack is no newer field.
_CLOSED = frozenset(
    {
        "Affinity", "LabelSelector", "LabelSelectorRequirement", "NodeAffinity", "NodeSelector", "NodeSelectorRequirement",
        "NodeSelectorTerm", "PodAffinity", "PodAntiAffinity", "PreferredSchedulingTerm", "ResourceRequirements", "Taint",
        "Toleration", "VolumeResourceRequirements", "WeightedPodAffinityTerm",
    }
)  # fmt: skip
_COMPUTED = ("cpu", "memory", "ephemeral-storage", "storage")
_ONE, _ANY = "*", "?"
_SINGLE = (str, int, float, bool)


class Unknown(NamedTuple):
    """A field at ``path`` that is not the API's, or that is missing.

    ``problem`` says why that is an error; it is empty for a mere surprise, of which ``advice`` may say what to make of it.
    """

    path: str
    problem: str
    advice: str = ""


@cache
def _table() -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = json.loads(
        (resources.files("joinery.cli") / "data" / "kubernetes.json").read_text(encoding="utf-8")
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
        yield from _Walk(_is_served(document)).of_type(kind, document, "", ())


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
    if shape == _ONE:
        inner = str | int | float | bool
    elif shape[0] == "[":
        inner = list[_type(shape[1:-1])]  # type: ignore[misc]
    else:
        inner = dict[str, _type(shape[1:-1])] if shape[0] == "{" else _struct(shape)  # type: ignore[misc]
    return inner | None


def _is_served(document: Mapping[str, Any]) -> bool:
    """Whether an API server has had the object: what it stored is spelt right, and newer than the table at most."""
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("uid") or metadata.get("managedFields"))


class _Walk:
    """Looks for the fields by name, once something is known to be wrong."""

    def __init__(self, is_served: bool) -> None:
        self._is_served = is_served

    def of_type(self, name: str, value: Any, at: str, above: Sequence[tuple[str, str]]) -> Iterator[Unknown]:
        """``above``: paths and types that the value is inside of."""
        if not isinstance(value, dict):
            yield Unknown(at or "object", f"must be a map, is {_called(value)}")
            return
        fields, inside = _fields(name), (*above, (at, name))
        for key, member in value.items():
            path = f"{at}.{key}" if at else key
            if key in fields:
                yield from self._of_shape(fields[key], member, path, inside)
            else:
                yield Unknown(path, self._problem(key, member, inside))

    def _of_shape(
        self, shape: str, value: Any, at: str, above: Sequence[tuple[str, str]]
    ) -> Iterator[Unknown]:  # fmt: skip
        if value is None or shape == _ANY:
            return
        if shape == _ONE:
            if not isinstance(value, _SINGLE):
                yield Unknown(at, f"must be a single value, is {_called(value)}")
        elif shape[0] == "[":
            yield from self._of_list(shape[1:-1], value, at, above)
        elif shape[0] == "{":
            yield from self._of_map(shape[1:-1], value, at, above)
        else:
            yield from self.of_type(shape, value, at, above)

    def _of_list(self, shape: str, value: Any, at: str, above: Sequence[tuple[str, str]]) -> Iterator[Unknown]:
        if not isinstance(value, list):
            yield Unknown(at, f"must be a list, is {_called(value)}")
            return
        for index, member in enumerate(value):
            yield from self._of_shape(shape, member, f"{at}[{index}]", above)

    def _of_map(self, shape: str, value: Any, at: str, above: Sequence[tuple[str, str]]) -> Iterator[Unknown]:
        if not isinstance(value, dict):
            yield Unknown(at, f"must be a map, is {_called(value)}")
            return
        for key, member in value.items():
            yield from self._of_shape(shape, member, f"{at}.{key}", above)

    def _problem(self, key: str, value: Any, inside: Sequence[tuple[str, str]]) -> str:
        at, name = inside[-1]
        in_status = at == "status" or at.startswith("status.")
        meant = "" if in_status and self._is_served else meant_by(key, _fields(name))
        if meant:
            return f"no such field; is it {meant}?"
        if in_status or (self._is_served and name not in _CLOSED):
            return ""
        if name.endswith("ResourceRequirements") and key in _COMPUTED:
            return f"no such field; is it requests.{key}?"
        if place := _place(key, inside):
            return f"no such field here; it belongs to {place}"
        if name == "LabelSelector" and isinstance(value, str):
            return f"no such field; is it matchLabels.{key}?"
        return "no such field" if name in _CLOSED else ""


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


def _called(value: Any) -> str:
    if isinstance(value, dict):
        return "a map"
    return "a list" if isinstance(value, list) else f"{value!r:.40}"


# --- custom resources ---


def unknown_in_model(model: type[BaseModel], document: Mapping[str, Any]) -> Iterator[Unknown]:
    """The same for a custom resource: its metadata, and its ``spec`` at any depth. The status is not a person's to write."""
    walk = _Walk(_is_served(document))
    top = {"apiVersion", "kind", "metadata", "spec", "status"}
    for key in document:
        if key not in top:
            meant = meant_by(key, top)
            misplaced = key in {field.alias or name for name, field in _spec_fields(model).items()}
            belongs = "no such field here; it belongs to spec" if misplaced else ""
            yield Unknown(key, f"no such field; is it {meant}?" if meant else belongs)
    if isinstance(document.get("metadata"), dict):
        yield from walk.of_type("ObjectMeta", document["metadata"], "metadata", ())
    inner, spec = _model_in(model.model_fields["spec"].annotation), document.get("spec")
    if inner is not None and isinstance(spec, dict):
        is_served = _is_served(document)
        for path, problem in _unknown_inside(inner, spec, "spec", inner):
            yield Unknown(path, "", problem) if is_served else Unknown(path, problem)
        if inner.model_fields.keys() & {"template"} and not is_served:
            yield from _without_requirements(spec)


def _spec_fields(model: type[BaseModel]) -> Mapping[str, Any]:
    inner = _model_in(model.model_fields["spec"].annotation)
    return inner.model_fields if inner else {}


def _without_requirements(spec: Mapping[str, Any]) -> Iterator[Unknown]:
    """The CRD asks for ``requirements`` of a NodePool's template, and takes an empty list; what no requirements mean is clear."""
    inside = part(spec, "template", "spec")
    if inside and inside.get("requirements") is None:
        advice = "is missing; taken as [], an API server would refuse it"
        yield Unknown("spec.template.spec.requirements", "", advice)


def _unknown_inside(
    model: type[BaseModel], value: Mapping[str, Any], at: str, root: type[BaseModel]
) -> Iterator[tuple[str, str]]:
    """Paths and what is wrong there; ``root`` is the model of the whole spec."""
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    for key, member in value.items():
        if key not in known:
            yield f"{at}.{key}", _advice(key, known, root)
            continue
        inner = _model_in(known[key].annotation)
        if inner is None:
            continue
        for index, part_of in enumerate(member if isinstance(member, list) else [member]):
            place = f"{at}.{key}[{index}]" if isinstance(member, list) else f"{at}.{key}"
            if isinstance(part_of, dict):
                yield from _unknown_inside(inner, part_of, place, root)
    if issubclass(model, NodeClassRef):
        for name in ("group", "kind"):
            if value.get(name) is None:
                yield f"{at}.{name}", f"is missing; write {name}: {model.model_fields[name].default}"


def _advice(key: str, known: Iterable[str], root: type[BaseModel]) -> str:
    """What to do about an unknown field; empty where no field of our kinds is called anything like it."""
    if meant := meant_by(key, known):
        return f"no such field; is it {meant}?"
    if place := _place_in_model(key, root):
        return f"no such field here; it belongs to {place}"
    elsewhere = EC2NodeClassSpec if root is not EC2NodeClassSpec else NodePoolSpec
    place = _place_in_model(key, elsewhere)
    return (
        f"no such field here; it belongs to {place} of the {elsewhere.__name__.removesuffix('Spec')}" if place else ""
    )


def _place_in_model(key: str, root: type[BaseModel]) -> str:
    """The outermost part of a spec that has a field of that name; lists are no place for a lost field."""
    below: deque[tuple[str, type[BaseModel]]] = deque([("spec", root)])
    while below:
        at, model = below.popleft()
        names = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
        if key in names:
            return at
        inner = ((name, _model_in(shape)) for name, shape in names.items() if not _is_list(shape))
        below += [(f"{at}.{name}", model) for name, model in inner if model]
    return ""


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_is_list(part_of) for part_of in get_args(annotation))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in ``list[Annotated[Model, ...]]``, ``Model | None`` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


# --- names ---


def meant_by(key: str, known: Iterable[str]) -> str:
    """The name that was probably meant, or the empty string: ``topologykey``, ``node_selector``, ``limts``."""
    names = sorted(known)
    longer = [name for name in names if len(key) >= _BEGINNING and name.startswith(key)]
    same = [name for name in names if _plain(name) == _plain(key)] or longer
    if len(same) == 1:
        return same[0]
    near = [name for name in names if abs(len(name) - len(key)) <= _LONGER]
    return next(iter(get_close_matches(key, near, n=1, cutoff=_ALIKE)), "")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
