"""One document becomes one object, with the API server's defaults; whatever is wrong with it is a line each.

A misspelt field is read as if it were spelt right, so that only what is wrong besides is said beside it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.kubernetes.workloads import Workload
from joinery.objects.wording import of_struct_error
from joinery_cli.notices import UserNotice, note, warning
from joinery_cli.reading.admission.defaults import claim_defaults, namespaced, pod_defaults, spec_defaults
from joinery_cli.reading.documents import Document
from joinery_cli.reading.fields import FieldFinding, findings
from joinery_cli.reading.kinds import ReadKind
from joinery_cli.reading.names import wrong_labels, wrong_metadata, wrong_resources
from joinery_cli.reading.placeholders import unfilled
from joinery_cli.reading.places import steps_of
from joinery_cli.reading.pod_groups import group_findings


class Reading(NamedTuple):
    """What became of a document: the object as a plan uses it, or ``problems`` (``field: what is wrong``), or neither.

    ``surprises`` are fields that stop no plan. ``notice`` is said where ``value`` is not all of the object, or is
    nothing, because the object is another provider's.
    """

    value: Any = None
    problems: tuple[str, ...] = ()
    surprises: tuple[FieldFinding, ...] = ()
    notice: UserNotice | None = None


def read(document: Document, kind: ReadKind) -> Reading:
    """The object and everything that is wrong with it."""
    placeholder = unfilled(document.kind, document.raw)
    if placeholder and placeholder.is_error:
        return Reading(problems=(f"{placeholder.path}: {placeholder.problem}",))
    of_fields = findings(document.kind, document.raw)
    raw, renamed = _mended(document.raw, of_fields)
    if issubclass(kind.model, BaseModel):
        reading = _read_model(document, kind.model, raw)
    else:
        reading = _read_struct(document, kind, raw)
    if isinstance(reading.value, PodGroup):
        of_fields += group_findings(reading.value, document.group, raw)
    besides = _besides(reading.problems, of_fields, renamed)
    problems = [*(f"{one.path}: {one.problem}" for one in of_fields if one.is_error), *besides]
    surprises = [one for one in (placeholder, *of_fields) if one and not one.is_error]
    return Reading(None if problems else reading.value, tuple(problems), tuple(surprises), reading.notice)


def _besides(problems: Iterable[str], of_fields: Sequence[FieldFinding], renamed: Mapping[str, str]) -> Iterator[str]:
    """The problems that are not of a field that was found already, by the names that the fields have in the file.

    A field is not missing where it stands in a wrong place, or under a wrong name.
    """
    there = {one.path for one in of_fields if one.is_error and not one.meant}
    lost = {step for one in of_fields for step in (_last(one.path), one.meant) if one.is_error and step}
    for problem in problems:
        at, _, what = problem.partition(": ")
        for right, written in renamed.items():
            if at == right or at.startswith((f"{right}.", f"{right}[")):
                at = written + at.removeprefix(right)
        is_known = any(at == one or at.startswith((f"{one}.", f"{one}[")) for one in there)
        if not is_known and not (what.startswith("is missing") and _last(at) in lost):
            yield f"{at}: {what}"


def _mended(raw: msgspec.Raw | bytes, of_fields: Iterable[FieldFinding]) -> tuple[bytes, Mapping[str, str]]:
    """The document with its misspelt fields as they were meant, and their paths in the file by the right ones.

    Values that do not fit are left out: a decoder stops at the first, and would say nothing of all else.
    """
    errors = [one for one in of_fields if one.is_error]
    if not errors:
        return bytes(raw), {}
    document, renamed = msgspec.json.decode(raw), {}
    # The innermost first: their paths are as they were written.
    for one in reversed(errors):
        *outside, key = steps_of(one.path) or [""]
        parent = _at(document, outside)
        if not isinstance(parent, dict) or key not in parent:
            continue
        value = parent.pop(key)
        if one.meant and one.meant not in parent:
            parent[one.meant] = value
            renamed[one.path.removesuffix(key) + one.meant] = one.path
    return msgspec.json.encode(document), renamed


def _last(path: str) -> str:
    return (steps_of(path) or [""])[-1]


def _at(value: Any, steps: Iterable[str]) -> Any:
    """The part at a path; ``None`` where there is none."""
    for step in steps:
        if isinstance(value, list):
            value = value[int(step)] if step.isdigit() and int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


# --- Kubernetes' own kinds ---


def _read_struct(document: Document, kind: ReadKind, raw: bytes) -> Reading:
    try:
        decoded = decoding.decode(raw, kind.model)
    except msgspec.ValidationError as error:
        return Reading(problems=(misfit(without_nulls(msgspec.json.decode(raw)), error),))
    problems = [*wrong_metadata(decoded.metadata, document.kind), *_wrong_pods(document.kind, decoded)]
    if kind.namespaced and not decoded.metadata.namespace:
        decoded = replace(decoded, metadata=namespaced(decoded.metadata))
    value = None if problems else _DEFAULTED.get(document.kind, _unchanged)(decoded)
    return Reading(value, tuple(problems))


def misfit(document: Any, error: msgspec.ValidationError) -> str:
    """``field: what is wrong``. ``document``: what was decoded, as it is."""
    said, _, at = str(error).partition(" - at `$")
    steps = _member(document, at.rstrip("`").lstrip("."))
    problem, lacking = of_struct_error(said, _at(document, steps))
    where = path(int(step) if step.isdigit() else step for step in (*steps, *([lacking] if lacking else ())))
    return f"{where or 'object'}: {problem}"


def _member(document: Any, at: str) -> list[str]:
    """msgspec writes ``[...]`` for any member of a map: take the first whose value is not a text."""
    parent, inside, rest = at.partition("[...]")
    steps = steps_of(parent)
    if not inside or rest:
        return steps
    value = _at(document, steps)
    wrong = [key for key, member in value.items() if not isinstance(member, str)] if isinstance(value, dict) else []
    return [*steps, wrong[0]] if wrong else steps


def _wrong_pods(kind: str, decoded: Any) -> Iterator[str]:
    """What is wrong with a pod, or with those that an object makes."""
    if kind == "Pod":
        spec, at = decoded.spec, "spec"
    elif kind == "DaemonSet" or isinstance(decoded, Workload):
        job = getattr(decoded.spec, "job_template", None)
        maker, of_maker = (job or decoded).spec, "spec.jobTemplate.spec" if job else "spec"
        for count in ("replicas", "parallelism", "completions"):
            if (getattr(maker, count, None) or 0) < 0:
                yield f"{of_maker}.{count}: must not be negative"
        spec, at = maker.template.spec, f"{of_maker}.template.spec"
        yield from wrong_labels(maker.template.metadata.labels, f"{of_maker}.template.metadata.labels")
    else:
        return
    # The API server takes a StatefulSet whose template is empty; its pods it does not.
    if not spec.containers and (kind == "Pod" or not decoded.metadata.uid):
        yield f"{at}.containers: a pod needs a container"
    yield from wrong_resources(spec, at)


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


# --- what is filled in, by kind ---


def _unchanged(decoded: Any) -> Any:
    return decoded


def _daemon_set(daemon_set: core.DaemonSet) -> core.DaemonSet:
    template = daemon_set.spec.template
    spec = spec_defaults(template.spec)
    if spec is template.spec:
        return daemon_set
    return replace(daemon_set, spec=replace(daemon_set.spec, template=replace(template, spec=spec)))


_DEFAULTED: Mapping[str, Callable[[Any], Any]] = {
    "Pod": pod_defaults,
    "DaemonSet": _daemon_set,
    "PersistentVolumeClaim": claim_defaults,
}
