"""One document becomes one object, with the API server's defaults; whatever is wrong with it is a line each.

A misspelt field is read as if it were spelt right, so that only what is wrong besides is told beside it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.stored import is_foreign, salvage
from joinery.objects.karpenter.validation import explain, explained, path
from joinery.objects.kubernetes import core, decoding
from joinery.objects.kubernetes.decoding import without_nulls
from joinery.objects.wording import of_struct_error
from joinery_cli.notices import Notice, note, warning
from joinery_cli.reading.defaults import claim_defaults, namespaced, pod_defaults, spec_defaults
from joinery_cli.reading.documents import Document
from joinery_cli.reading.fields import Unknown, real_kinds, unknown_in_object
from joinery_cli.reading.kinds import Kind
from joinery_cli.reading.model_fields import unknown_in_model
from joinery_cli.reading.placeholders import unfilled
from joinery_cli.reading.quantities import wrong_quantities
from joinery_cli.reading.validity import wrong_labels, wrong_metadata, wrong_pod, wrong_selector, wrong_workload
from joinery_cli.reading.workloads import API_VERSIONS

#: So many errors of one object are looked for at most.
_ROUNDS = 20
_STEP = re.compile(r"[^.\[\]]+")


class Reading(NamedTuple):
    """What became of a document: the object as a plan uses it, or ``problems`` (``field: what is wrong``), or neither.

    ``unknown`` are fields that nobody minds; ``notice`` a word where ``value`` is not all of the object, or nothing: it
    is another provider's, and fits no rule of ours.
    """

    value: Any = None
    problems: tuple[str, ...] = ()
    unknown: tuple[Unknown, ...] = ()
    notice: Notice | None = None


def read(document: Document, kind: Kind) -> Reading:
    """The object and everything that is wrong with it."""
    if issubclass(kind.model, BaseModel):
        unknown = tuple(unknown_in_model(kind.model, msgspec.json.decode(document.raw)))
        reading = _read_model(document, kind.model, _repaired(document.raw, unknown))
    else:
        unknown = tuple(unknown_in_object(document.kind, document.raw)) if document.kind in real_kinds() else ()
        reading = _read_struct(document, kind, _repaired(document.raw, unknown))
    open_ones = unfilled(document.kind, document.raw)
    wrong = {one.path: one.problem for one in unknown if one.problem}
    wrong |= {one.path: one.problem for one in open_ones if not one.advice}
    renamed = _renamed(unknown)
    for right, what in _misfits(reading.problems, renamed):
        wrong[renamed[right]] += f" It {what}"
    problems = [f"{path}: {problem}" for path, problem in wrong.items() if problem]
    problems += [problem for problem in reading.problems if not _follows(problem, wrong.keys() | renamed.keys())]
    mere = tuple(one for one in (*unknown, *open_ones) if one.advice or (not one.problem and one.path not in wrong))
    return reading._replace(problems=tuple(problems), unknown=mere, value=None if problems else reading.value)


def besides(problems: Iterable[str], unknown: Iterable[Unknown]) -> list[str]:
    """The problems that are not of a field whose name is a slip, where slips are not mended first."""
    renamed = _renamed(unknown)
    return [problem for problem in problems if not any(problem.startswith(f"{right}: ") for right in renamed)]


def _renamed(unknown: Iterable[Unknown]) -> Mapping[str, str]:
    """The paths of slips by those that were meant."""
    return {f"{one.path.removesuffix(_last(one.path))}{one.meant}": one.path for one in unknown if one.meant}


def _misfits(problems: Iterable[str], renamed: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Fields that have their right names only since they were mended, with what their values must be: nobody has
    written such a field, so the slip's line has it.
    """
    for field, _, what in (problem.partition(": ") for problem in problems):
        if field in renamed and what.startswith("must"):
            yield field, what


def _follows(problem: str, wrong: Iterable[str]) -> bool:
    """Whether a problem is about a field that has one already, or misses one that stands in a wrong place.

    Labels that cannot be read match nothing.
    """
    path, _, what = problem.partition(": ")
    if what.startswith("does not match the labels") and any(".metadata" in one for one in wrong):
        return True
    lost = {one.rpartition(".")[2] for one in wrong}
    return path in wrong or (what.startswith("is missing") and path.rpartition(".")[2] in lost)


def _repaired(raw: msgspec.Raw | bytes, unknown: Iterable[Unknown]) -> bytes:
    """The document with its slips mended."""
    slips = [one for one in unknown if one.meant]
    if not slips:
        return bytes(raw)
    document = msgspec.json.decode(raw)
    for slip in slips:
        *outside, key = _steps(slip.path)
        parent = _at(document, outside)
        if isinstance(parent, dict) and key in parent and slip.meant not in parent:
            parent[slip.meant] = parent.pop(key)
    return msgspec.json.encode(document)


def _last(path: str) -> str:
    return (_steps(path) or [""])[-1]


def _steps(path: str) -> list[str]:
    return _STEP.findall(path)


def _at(value: Any, steps: Iterable[str]) -> Any:
    """The part at a path; ``None`` where there is none."""
    for step in steps:
        if isinstance(value, list):
            value = value[int(step)] if step.isdigit() and int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


# --- Kubernetes' own kinds ---


def _read_struct(document: Document, kind: Kind, raw: bytes) -> Reading:
    decoded, problems = _decoded(raw, kind.model)
    if decoded is None:
        return Reading(problems=tuple(problems))
    problems += wrong_metadata(decoded.metadata, document.kind)
    if kind.namespaced and not decoded.metadata.namespace:
        decoded = replace(decoded, metadata=namespaced(decoded.metadata))
    problems += _WRONG.get(document.kind, _nothing)(decoded)
    problems += wrong_quantities(decoded)
    value = None if problems else _DEFAULTED.get(document.kind, _unchanged)(decoded)
    return Reading(value, tuple(problems))


def _decoded(raw: bytes, model: Any) -> tuple[Any, list[str]]:
    """The object, and what does not fit: each is left out and the rest is read again.

    No object where too little is left.
    """
    try:
        return decoding.decode(raw, model), []
    except msgspec.ValidationError:
        document = without_nulls(msgspec.json.decode(raw))
    problems: list[str] = []
    for _ in range(_ROUNDS):
        try:
            return msgspec.convert(document, model), problems
        except msgspec.ValidationError as error:
            problem, steps = misfit(document, error)
        problems.append(problem)
        *outside, last = steps or [""]
        parent = _at(document, outside)
        if isinstance(parent, dict) and last in parent:
            del parent[last]
        elif isinstance(parent, list) and len(parent) == 1:
            parent.clear()
        else:
            break
    return None, problems


def misfit(document: Any, error: msgspec.ValidationError) -> tuple[str, list[str]]:
    """``field: what is wrong``, and the way to the field. ``document``: what was decoded, as it is."""
    said, _, at = str(error).partition(" - at `$")
    steps = _member(document, at.rstrip("`").lstrip("."))
    problem, lacking = of_struct_error(said, _at(document, steps))
    where = path(int(step) if step.isdigit() else step for step in (*steps, *([lacking] if lacking else ())))
    return f"{where or 'object'}: {problem}", steps


def _member(document: Any, at: str) -> list[str]:
    """msgspec writes ``[...]`` for any member of a map: take the first whose value is not a text."""
    parent, inside, rest = at.partition("[...]")
    steps = _steps(parent)
    if not inside or rest:
        return steps
    value = _at(document, steps)
    wrong = [key for key, member in value.items() if not isinstance(member, str)] if isinstance(value, dict) else []
    return [*steps, wrong[0]] if wrong else steps


# --- custom resources ---


def _read_model(document: Document, model: type[CustomResource], raw: bytes) -> Reading:
    notice = None
    try:
        value = decoding.decode_model(raw, model)
    except ValidationError as error:
        given = without_nulls(msgspec.json.decode(raw))
        salvaged = salvage(given, error) if model is NodeClaim else None
        if salvaged is None and is_foreign(given, NODE_CLASS.identity().group):
            return Reading(notice=note(f"{document}: not read: it is another provider's, by rules that are not ours"))
        if salvaged is None:
            return Reading(problems=tuple(explained(error)))
        value = salvaged
        notice = warning(f"{document}: read without what cannot be read: {explain(error)}")
    return Reading(value, tuple(wrong_metadata(value.metadata, document.kind)), notice=notice)


# --- what is looked at and filled in, by kind ---


def _nothing(_: Any) -> Iterator[str]:
    yield from ()


def _unchanged(decoded: Any) -> Any:
    return decoded


def _wrong_daemon_set(daemon_set: core.DaemonSet) -> Iterator[str]:
    template = daemon_set.spec.template
    yield from wrong_labels(template.metadata.labels, "spec.template.metadata.labels")
    yield from wrong_selector(daemon_set, daemon_set.spec.selector, template, "spec")
    yield from wrong_pod(template.spec, "spec.template.spec")


def _daemon_set(daemon_set: core.DaemonSet) -> core.DaemonSet:
    template = daemon_set.spec.template
    spec = spec_defaults(template.spec)
    if spec is template.spec:
        return daemon_set
    return replace(daemon_set, spec=replace(daemon_set.spec, template=replace(template, spec=spec)))


_WRONG: Mapping[str, Callable[[Any], Iterator[str]]] = {
    "Pod": lambda pod: wrong_pod(pod.spec, "spec"),
    "DaemonSet": _wrong_daemon_set,
    **dict.fromkeys(API_VERSIONS, wrong_workload),
}
_DEFAULTED: Mapping[str, Callable[[Any], Any]] = {
    "Pod": pod_defaults,
    "DaemonSet": _daemon_set,
    "PersistentVolumeClaim": claim_defaults,
}
