"""Fields that no API has, at any depth, and values that do not fit: a misspelt or misplaced field is an error, any
other a surprise.

Models and structs read what they know and leave the rest, because a newer API server writes more than they know. In a
file that a person wrote, ``nodeSelectr`` would give a plan for another pod, and 30 CPUs under ``resource:`` a plan for
none; ``kubectl apply`` refuses both. What an API server has served is spelt right, and newer than our types at most.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from joinery.objects.karpenter.validation import path as path_of
from joinery.objects.kubernetes.quantity import parse
from joinery.objects.spelling import meant_by
from joinery.objects.wording import A_QUANTITY, must_be, must_be_text
from joinery_cli.reading.schema import ANYTHING, CLOSED, CUSTOM_KINDS, SINGLE, kinds_beside, strict_decoder, types

#: How far below a part of an object its misplaced field is looked for: a Deployment's ``nodeSelector`` is in
#: ``template.spec``.
_DEEP = 3
#: What every object has is no place for a field of that name elsewhere.
_OF_THE_OBJECT = ("apiVersion", "kind", "status")
#: Said of a field that may be a newer API's.
IGNORED = "no such field; it is ignored"
#: Such a field of an EC2NodeClass's spec may ask for what nodes would lack, so functions make no nodes of the class.
_NOT_READY = "no such field; in a cluster the class is not Ready with it"


class FieldFinding(NamedTuple):
    """What is wrong with the field at ``path``. It stops a plan if it ``is_error``."""

    path: str
    problem: str
    is_error: bool = True
    meant: str = ""
    """The name that the field should have, where it is misspelt."""


def findings(kind: str, raw: msgspec.Raw | bytes) -> list[FieldFinding]:
    """All of one object. Costs next to nothing where there are none, as in an export of 10,000 pods."""
    if kind not in types():
        return []
    if kind not in CUSTOM_KINDS:
        try:
            strict_decoder(kind).decode(raw)
        except msgspec.ValidationError:
            pass
        else:
            return []
    document = msgspec.json.decode(raw)
    return list(_Walk(kind, _is_served(document)).of_type(kind, document, "", ()))


def _is_served(document: Mapping[str, Any]) -> bool:
    """Whether an API server has had the object."""
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and bool(metadata.get("uid") or metadata.get("managedFields"))


class _Part(NamedTuple):
    """A part of an object: where it is, and the name of its type."""

    path: str
    type: str


class _Walk:
    """Looks at every field of an object of this kind."""

    def __init__(self, kind: str, is_served: bool) -> None:
        self._kind, self._is_served = kind, is_served

    def of_type(self, name: str, value: Any, at: str, outside: Sequence[_Part]) -> Iterator[FieldFinding]:
        """``outside``: the parts that the value is inside of, the innermost last."""
        if not isinstance(value, dict):
            yield FieldFinding(at or "object", must_be("a map", value))
            return
        fields, inside, misspelt = types()[name].fields, (*outside, _Part(at, name)), set()
        emptied = ""
        for key, member in value.items():
            path = _member(at, key)
            if key in fields:
                emptied = key if member is None and fields[key][0] == "{" else emptied
                yield from self._of_shape(fields[key], member, path, inside)
                continue
            if emptied and not self._is_served and not isinstance(member, dict | list | None):
                # ``limits:`` with ``cpu: 100`` below it, not indented.
                hint = f"is it {_member(emptied, key)}? Then indent it deeper than {emptied}"
                yield FieldFinding(path, f"no such field; {hint}")
                continue
            successor = types()[name].gone.get(key, "")
            replaced = successor.partition(":")[0]
            if successor and replaced not in value:
                misspelt.add(replaced)
                yield FieldFinding(path, f"no such field in v1; write {successor} instead", not self._is_served)
                continue
            meant = meant_by(key, fields)
            yield self._unknown(path, key, member, inside, meant)
            if meant and not self._is_served:
                misspelt.add(meant)
                yield from self._of_shape(fields[meant], member, path, inside)
        for key, hint in types()[name].required.items():
            if value.get(key) is None and key not in misspelt:
                yield FieldFinding(_member(at, key), f"is missing; write {hint}", not self._is_served)

    def _of_shape(self, shape: str, value: Any, at: str, outside: Sequence[_Part]) -> Iterator[FieldFinding]:
        if value is None or shape == ANYTHING:
            return
        if shape in SINGLE:
            if problem := _of_single(shape, value):
                yield FieldFinding(at, problem)
        elif shape[0] == "[":
            if not isinstance(value, list):
                yield FieldFinding(at, must_be("a list", value))
                return
            for index, member in enumerate(value):
                yield from self._of_shape(shape[1:-1], member, f"{at}[{index}]", outside)
        elif shape[0] == "{":
            if not isinstance(value, dict):
                yield FieldFinding(at, must_be("a map", value))
                return
            for key, member in value.items():
                yield from self._of_shape(shape[1:-1], member, _member(at, key), outside)
        else:
            yield from self.of_type(shape, value, at, outside)

    def _unknown(self, path: str, key: str, value: Any, inside: Sequence[_Part], meant: str) -> FieldFinding:
        at, name = inside[-1]
        if meant:
            problem = f"no such field; is it {meant}?"
            return FieldFinding(path, problem, not self._is_served, "" if self._is_served else meant)
        maps = [field for field, shape in types()[name].fields.items() if shape[0] == "{"]
        if name in CLOSED and maps and not isinstance(value, dict | list):
            return FieldFinding(path, f"no such field; is it {maps[-1]}.{key}?", not self._is_served)
        if at.partition(".")[0] != "status" and (place := self._place(key, inside)):
            return FieldFinding(path, f"no such field here; it belongs to {place}", not self._is_served)
        if name in CLOSED:
            *others, last = sorted(types()[name].fields)
            known = f"are only {', '.join(others)} and {last}" if others else f"is only {last}"
            return FieldFinding(path, f"no such field; there {known}", not self._is_served)
        problem = _NOT_READY if (self._kind, at) == ("EC2NodeClass", "spec") else IGNORED
        return FieldFinding(path, problem, is_error=False)

    def _place(self, key: str, inside: Sequence[_Part]) -> str | None:
        """Where such a field is: further in, further out, or in the other kind of a pair; None where it is nowhere."""
        if key in _OF_THE_OBJECT:
            return None
        for part in reversed(inside):
            if place := _below(key, part, in_lists=part is inside[-1]):
                return place
        for kind in kinds_beside(self._kind):
            if place := _below(key, _Part("spec", types()[kind].fields["spec"]), in_lists=False):
                return f"{place} of the {kind}"
        return None


def _of_single(shape: str, value: Any) -> str | None:
    """Why a single value does not fit, if it does not."""
    is_one = isinstance(value, SINGLE[shape]) and (shape not in "iq" or not isinstance(value, bool))
    if shape == "q" and is_one:
        try:
            return "must not be negative" if parse(value) < 0 else None
        except ValueError as error:
            return f"{error}: write {A_QUANTITY}"
    if is_one:
        return None
    if shape == "s":
        return must_be_text(value)
    wanted = {"i": "a whole number", "b": "true or false", "q": A_QUANTITY}
    return must_be(wanted.get(shape, "a single value"), value)


def _below(key: str, part: _Part, *, in_lists: bool) -> str | None:
    """The outermost part from here on that has a field of that name."""
    below = deque([(part, 0)])
    while below:
        (at, name), depth = below.popleft()
        if key in types()[name].fields:
            return at or "the object itself"
        if depth < _DEEP:
            below += [(one, depth + 1) for one in _parts(at, name, in_lists=in_lists)]
    return None


def _parts(at: str, name: str, *, in_lists: bool) -> Iterator[_Part]:
    """Fields that are objects or lists of objects. Nobody has lost a field of the status."""
    for field, shape in types()[name].fields.items():
        inner = shape.strip("[]") if in_lists else shape
        if inner in types() and field != "status":
            yield _Part(f"{at}.{field}".lstrip(".") + ("[]" if shape != inner else ""), inner)


def _member(at: str, key: str) -> str:
    """The path of a map's member."""
    return f"{at}{path_of(('spec', key)).removeprefix('spec')}" if at else key
