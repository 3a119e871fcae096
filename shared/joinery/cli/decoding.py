"""One document becomes one object, with the API server's defaults; whatever cannot be read is one line."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from joinery.apis import core, decoding
from joinery.apis.decoding import without_nulls
from joinery.apis.meta import CustomResource
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.stored import is_foreign, salvage
from joinery.apis.validation import explain
from joinery.apis.workloads import Workload
from joinery.cli.defaults import claim_defaults, namespaced, pod_defaults, spec_defaults
from joinery.cli.documents import Document
from joinery.cli.fields import Unknown, unknown_in_model, unknown_in_object
from joinery.cli.kinds import Kind
from joinery.cli.notices import Notice, note, warning
from joinery.cli.quantities import wrong_quantity
from joinery.cli.validity import wrong_labels, wrong_metadata, wrong_pod, wrong_workload
from joinery.cli.workloads import API_VERSIONS
from joinery.errors import ConfigurationError


def decode(document: Document, kind: Kind) -> tuple[Any, Notice | None]:
    """The object as a plan uses it, and a word where that is not all of it, or nothing: it is not ours and fits no rule of ours.

    Raises ``ConfigurationError`` naming file, object and field.
    """
    if issubclass(kind.model, BaseModel):
        return _decode_model(document, kind.model)
    return _CHECKED.get(document.kind, _unchanged)(_decode_struct(document, kind), document), None


def unknown_fields(document: Document, kind: Kind) -> Iterator[Unknown]:
    """Fields that no API has. Raises ``ConfigurationError`` for one that somebody means to act."""
    if issubclass(kind.model, BaseModel):
        found = unknown_in_model(kind.model, msgspec.json.decode(document.raw))
    else:
        found = unknown_in_object(document.kind, document.raw)
    for unknown in found:
        check(document, f"{unknown.path}: {unknown.problem}" if unknown.problem else "")
        yield unknown


def _decode_struct(document: Document, kind: Kind) -> Any:
    try:
        decoded = decoding.decode(document.raw, kind.model)
    except msgspec.ValidationError as error:
        raise _refused(document, error) from error
    check(document, wrong_metadata(decoded.metadata, document.kind))
    if kind.namespaced and not decoded.metadata.namespace:
        decoded = replace(decoded, metadata=namespaced(decoded.metadata))
    return decoded


def _refused(document: Document, error: msgspec.ValidationError) -> ConfigurationError:
    problem, _, path = str(error).partition(" - at `$")
    where = _member(without_nulls(msgspec.json.decode(document.raw)), path.rstrip("`").lstrip("."))
    return ConfigurationError(f"{document}: {where + ': ' if where else ''}{_lowered(problem)}")


def _member(value: Any, path: str) -> str:
    """msgspec writes ``[...]`` for any member of a map: name the first whose value is not a text."""
    parent, inside, rest = path.partition("[...]")
    if not inside or rest:
        return path
    for step in re.findall(r"[^.\[\]]+", parent):
        value = value[int(step)] if isinstance(value, list) else value.get(step, {})
    wrong = [key for key, member in value.items() if not isinstance(member, str)] if isinstance(value, dict) else []
    return f"{parent}.{wrong[0]}" if wrong else path


def _lowered(problem: str) -> str:
    return problem[:1].lower() + problem[1:]


def _decode_model(document: Document, model: type[CustomResource]) -> tuple[Any, Notice | None]:
    try:
        made, notice = decoding.decode_model(document.raw, model), None
    except ValidationError as error:
        given = without_nulls(msgspec.json.decode(document.raw))
        salvaged = salvage(given, error) if model is NodeClaim else None
        if salvaged is None:
            check(document, "" if is_foreign(given) else explain(error))
            return None, note(f"{document}: not read: it is another provider's, by rules that are not ours")
        made = salvaged
        notice = warning(f"{document}: read without what cannot be read: {explain(error)}")
    check(document, wrong_metadata(made.metadata, document.kind))
    return made, notice


def check(document: Document, problem: str) -> None:
    """Raises ``ConfigurationError`` if there is a problem."""
    if problem:
        raise ConfigurationError(f"{document}: {problem}")


def _unchanged(decoded: Any, _: Document) -> Any:
    return decoded


def _pod(pod: core.Pod, document: Document) -> core.Pod:
    check(document, wrong_pod(pod.spec, "spec"))
    return pod_defaults(pod)


def _daemon_set(daemon_set: core.DaemonSet, document: Document) -> core.DaemonSet:
    template = daemon_set.spec.template
    check(document, wrong_labels(template.metadata.labels, "spec.template.metadata.labels"))
    check(document, wrong_pod(template.spec, "spec.template.spec"))
    spec = spec_defaults(template.spec)
    if spec is template.spec:
        return daemon_set
    return replace(daemon_set, spec=replace(daemon_set.spec, template=replace(template, spec=spec)))


def _node(node: core.Node, document: Document) -> core.Node:
    check(document, wrong_quantity(node.status, "status"))
    return node


def _volume_claim(claim: core.PersistentVolumeClaim, _: Document) -> core.PersistentVolumeClaim:
    return claim_defaults(claim)


def _workload(workload: Workload, document: Document) -> Workload:
    check(document, wrong_workload(workload))
    return workload


_CHECKED: Mapping[str, Callable[[Any, Document], Any]] = {
    "Pod": _pod,
    "DaemonSet": _daemon_set,
    "Node": _node,
    "PersistentVolumeClaim": _volume_claim,
    **dict.fromkeys(API_VERSIONS, _workload),
}
