"""Fields of custom resources that their definitions do not have, and fields that must be there and are not.

The models leave out what they do not know, and have defaults that an API server does not fill in. In a person's file
the first is a slip, and the second would be refused ("Required value"); of an object that a cluster served both are
warnings.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel

from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.karpenter.meta import Model
from joinery.objects.karpenter.nodepool import NodePoolSpec
from joinery.objects.karpenter.validation import path as path_of
from joinery.objects.slips import meant_by
from joinery_cli.reading.fields import Unknown, Walk, is_served, member_of, slip

#: Fields that are proposed for Karpenter and that no release of it has: what holds without them.
_PROPOSED = {
    "vpcID": Unknown(
        "",
        "",
        "no such field, so groups of every VPC are selected; name the group's id, or tags that no other VPC's has",
    ),
    "placementGroup": Unknown(
        "", "no such field; is it placementGroupSelector, with a name or an id and no partition?"
    ),
}
#: What people look for in a NodePool and no release has.
_OF_POOLS = {"timeZone": "no such field, and a schedule is in UTC whatever it says; give its hours in UTC"}
_TOP = ("apiVersion", "kind", "metadata", "spec", "status")


def unknown_in_model(model: type[BaseModel], document: Mapping[str, Any]) -> Iterator[Unknown]:
    """Of one object: its metadata, and its ``spec`` at any depth. The status is not a person's to write."""
    for key in document:
        if key not in _TOP:
            meant = meant_by(key, _TOP)
            misplaced = key in {field.alias or name for name, field in _spec_fields(model).items()}
            belongs = "no such field here; it belongs to spec" if misplaced else ""
            yield slip(key, meant) if meant else Unknown(key, belongs)
    if isinstance(document.get("metadata"), dict):
        yield from Walk(is_served(document)).of_type("ObjectMeta", document["metadata"], "metadata", ())
    inner, spec = _model_in(model.model_fields["spec"].annotation), document.get("spec")
    if inner is not None and isinstance(spec, dict):
        for unknown in _unknown_inside(inner, spec, "spec", inner):
            yield Unknown(unknown.path, "", unknown.problem or unknown.advice) if is_served(document) else unknown


def _spec_fields(model: type[BaseModel]) -> Mapping[str, Any]:
    inner = _model_in(model.model_fields["spec"].annotation)
    return inner.model_fields if inner else {}


def _unknown_inside(
    model: type[BaseModel], value: Mapping[str, Any], at: str, root: type[BaseModel]
) -> Iterator[Unknown]:
    """``root`` is the model of the whole spec."""
    known = {field.alias or name: field for name, field in model.model_fields.items()}
    passed_on = model.passed_on if issubclass(model, Model) else frozenset()
    emptied = [name for name, field in known.items() if value.get(name, "") is None and _is_map(field.annotation)]
    slips = set()
    for key, member in value.items():
        if key in passed_on - known.keys():
            continue
        if key not in known:
            path = f"{at}{path_of(('spec', key)).removeprefix('spec')}"
            lost = member_of(emptied, key, member)
            unknown = Unknown(path, lost) if lost else _unknown(path, key, known.keys() | passed_on, root)
            slips.add(unknown.meant)
            yield unknown
            continue
        inner = _model_in(known[key].annotation)
        if inner is None:
            continue
        for index, part_of in enumerate(member if isinstance(member, list) else [member]):
            place = f"{at}.{key}[{index}]" if isinstance(member, list) else f"{at}.{key}"
            if isinstance(part_of, dict):
                yield from _unknown_inside(inner, part_of, place, root)
    yield from (Unknown(f"{at}.{name}", what) for name, what in _lacking(model, value) if name not in slips)


def _lacking(model: type[BaseModel], value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Fields that the definition asks for and has no default of: a null is pruned first, and then they are not there.

    (apiextensions-apiserver, "Defaulting and Nullable".) What our model cannot do without it says itself.
    """
    for name in sorted(model.required_on_wire) if issubclass(model, Model) else ():
        field = model.model_fields[name]
        wire = field.alias or name
        if value.get(wire) is not None:
            continue
        if isinstance(field.default, list):
            yield wire, f"is missing; write {wire}: [] for none"
        elif isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("default", name) is None:
            yield wire, f"is missing; write {wire}: {field.default}"


def _unknown(path: str, key: str, known: Iterable[str], root: type[BaseModel]) -> Unknown:
    """What to do about an unknown field; nothing where no field of our kinds is called anything like it."""
    of_class = _model_in(NODE_CLASS.model_fields["spec"].annotation)
    if root is of_class and key in _PROPOSED:
        return _PROPOSED[key]._replace(path=path)
    if root is NodePoolSpec and (said := _OF_POOLS.get(meant_by(key, (*known, *_OF_POOLS)))):
        return Unknown(path, "", said)
    if meant := meant_by(key, known):
        return slip(path, meant)
    if place := _place_in_model(key, root):
        return Unknown(path, f"no such field here; it belongs to {place}")
    elsewhere = NodePoolSpec if of_class is None or root is of_class else of_class
    if place := _place_in_model(key, elsewhere):
        kind = elsewhere.__name__.removesuffix("Spec")
        return Unknown(path, f"no such field here; it belongs to {place} of the {kind}")
    if near := _near_elsewhere(key, root):
        return Unknown(path, "", f"no such field; is it {near}?")
    return Unknown(path, "")


def _models_below(root: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Every part of a spec with its path, the outermost first; lists are no place for a lost field."""
    below: deque[tuple[str, type[BaseModel]]] = deque([("spec", root)])
    while below:
        at, model = below.popleft()
        yield at, model
        inner = ((field.alias or name, field.annotation) for name, field in model.model_fields.items())
        below += [
            (f"{at}.{name}", inner_model)
            for name, shape in inner
            if not _is_list(shape) and (inner_model := _model_in(shape))
        ]


def _place_in_model(key: str, root: type[BaseModel]) -> str:
    """The outermost part of a spec that has a field of that name."""
    return next((at for at, model in _models_below(root) if key in _names(model)), "")


def _near_elsewhere(key: str, root: type[BaseModel]) -> str:
    """A field of another part of the spec whose name is near: both place and name are wrong."""
    return next((f"{at}.{meant}" for at, model in _models_below(root) if (meant := meant_by(key, _names(model)))), "")


def _names(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_is_list(part_of) for part_of in get_args(annotation))


def _is_map(annotation: Any) -> bool:
    return get_origin(annotation) is dict or any(_is_map(part_of) for part_of in get_args(annotation))


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model in ``list[Annotated[Model, ...]]``, ``Model | None`` and the like."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((inner_model for part in get_args(annotation) if (inner_model := _model_in(part))), None)
