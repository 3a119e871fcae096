"""Documents become the ``Snapshot`` that a plan is made from.

Whatever cannot be read stops here, in one line that names file, object, field and what is wrong: a plan for half of the
objects would be believed. What is merely unusual (an unknown operator, a claim that names nothing) is read as it is; the
packing core turns it into a reason on the pod. Objects are sorted, so that their order in the files decides nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel, ValidationError

from joinery.apis import core
from joinery.apis.ec2nodeclass import EC2NodeClass
from joinery.apis.legacy import equivalents, is_legacy
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.apis.validation import explain
from joinery.cli.defaults import namespaced, pod_defaults, spec_defaults
from joinery.cli.documents import Document, documents, read, source_name
from joinery.cli.fields import unknown_in_model, unknown_in_pod
from joinery.cli.legacy import decoded, in_new_words, old_selections
from joinery.cli.quantities import wrong_quantity
from joinery.errors import ConfigurationError
from joinery.state.snapshot import Snapshot


class _Kind(NamedTuple):
    field: str
    model: Any
    namespaced: bool = False


#: The objects a plan looks at, by API group and kind, and where the snapshot keeps them.
KINDS: Mapping[tuple[str, str], _Kind] = {
    ("", "Pod"): _Kind("pods", core.Pod, True),
    ("", "Node"): _Kind("nodes", core.Node),
    ("", "Namespace"): _Kind("namespaces", core.Namespace),
    ("", "PersistentVolumeClaim"): _Kind("volume_claims", core.PersistentVolumeClaim, True),
    ("", "PersistentVolume"): _Kind("volumes", core.PersistentVolume),
    ("apps", "DaemonSet"): _Kind("daemon_sets", core.DaemonSet, True),
    ("policy", "PodDisruptionBudget"): _Kind("disruption_budgets", core.PodDisruptionBudget, True),
    ("scheduling.k8s.io", "PriorityClass"): _Kind("priority_classes", core.PriorityClass),
    ("storage.k8s.io", "StorageClass"): _Kind("storage_classes", core.StorageClass),
    ("storage.k8s.io", "CSINode"): _Kind("csi_nodes", core.CSINode),
    ("storage.k8s.io", "VolumeAttachment"): _Kind("volume_attachments", core.VolumeAttachment),
    ("karpenter.sh", "NodePool"): _Kind("node_pools", NodePool),
    ("karpenter.sh", "NodeClaim"): _Kind("node_claims", NodeClaim),
    ("karpenter.k8s.aws", "EC2NodeClass"): _Kind("node_classes", EC2NodeClass),
}
#: Owners of pods: part of any export of a cluster, and nothing in them changes a plan.
_OWNERS = {("apps", "Deployment"), ("apps", "ReplicaSet"), ("apps", "StatefulSet")}
#: Objects that should change a plan and do not yet: each is named in a warning.
_NOT_SUPPORTED = {("karpenter.sh", "NodeOverlay"): "alpha API"}
_ONLY_VERSION = {"karpenter.sh": "v1", "karpenter.k8s.aws": "v1"}
_BY_KIND = {kind: (group, kind) for group, kind in KINDS}


@dataclass
class Inputs:
    """The objects of all files; ``warnings`` are lines for a person. ``found`` holds them by field of the snapshot.

    ``unknown`` counts fields that nobody knows, by kind and path. ``legacy`` holds objects of older APIs by kind and name until all files are read (``adopt_legacy``).
    """

    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    legacy: dict[tuple[str, str], Document] = field(default_factory=dict)

    def add(self, document: Document) -> None:
        """Take one object in. Raises ``ConfigurationError``."""
        group_kind = (document.group, document.kind)
        identity = group_kind if document.version else _BY_KIND.get(document.kind, group_kind)
        reason = _NOT_SUPPORTED.get(group_kind) or _foreign_version(document)
        if is_legacy((f"{document.group}/{document.version}", document.kind)):
            _check(document, "" if document.name else "metadata.name: is missing")
            self.legacy[document.kind, document.name] = document
        elif reason:
            self.warnings.append(f"not supported yet: {document.kind} {document.name} ({reason})")
        elif identity in KINDS:
            self._keep(document, KINDS[identity])
        elif identity not in _OWNERS:
            self.ignored[document.kind] += 1

    def _keep(self, document: Document, kind: _Kind) -> None:
        if not document.name:
            raise ConfigurationError(f"{document}: metadata.name: is missing")
        decoded = _decode(document, kind)
        self.unknown.update((document.kind, path) for path in _unknown(document, kind))
        key = f"{document.namespace or 'default'}/{document.name}" if kind.namespaced else document.name
        kept = self.found.setdefault(kind.field, {})
        if kept.get(key, decoded) != decoded:
            self.warnings.append(f"{document}: given twice, the later one counts")
        kept[key] = decoded

    def snapshot(self, now: datetime) -> Snapshot:
        """All objects at that moment, sorted by name."""
        ordered = {name: tuple(kept[key] for key in sorted(kept)) for name, kept in self.found.items()}
        snapshot = Snapshot(now=now, **ordered)
        return in_new_words(snapshot) if self.legacy else snapshot

    def adopt_legacy(self) -> None:
        """Read the legacy objects as what they are in v1. Raises ``ConfigurationError`` for one that is nothing there."""
        for equivalent in equivalents(_pruned(msgspec.json.decode(found.raw)) for found in self.legacy.values()):
            origin = self.legacy[equivalent.origin]
            try:
                where, made = decoded(equivalent)
            except ConfigurationError as error:
                raise ConfigurationError(f"{origin}: {error}") from error
            kept = self.found.setdefault(where, {})
            self.warnings += [f"{origin}: {note}" for note in equivalent.notes]
            if made.metadata.name in kept:
                self.warnings.append(f"{origin}: not used, there is a {made.kind} {made.metadata.name}")
            kept.setdefault(made.metadata.name, made)
        if self.legacy:
            self.warnings += old_selections(self.found.get("pods", {}).values())

    def all_warnings(self) -> list[str]:
        """Everything a person should know about what was not used, or not as it stands."""
        fields = [
            f"ignored {path} of {_number(kind, n)}: no such field" for (kind, path), n in sorted(self.unknown.items())
        ]
        kinds = [f"ignored {_number(kind, n)}: not used in a plan" for kind, n in sorted(self.ignored.items())]
        return self.warnings + fields + kinds


def load(paths: Iterable[str]) -> Inputs:
    """The objects of all files (``-`` is standard input). Raises ``ConfigurationError`` for the first broken one."""
    inputs = Inputs()
    for path in paths:
        listed = list(documents(source_name(path), read(path)))
        for document in listed:
            inputs.add(document)
        if not listed:
            inputs.warnings.append(f"{source_name(path)}: no objects in it")
    inputs.adopt_legacy()
    return inputs


def _foreign_version(document: Document) -> str:
    wanted = _ONLY_VERSION.get(document.group)
    known = (document.group, document.kind) in KINDS
    return f"{document.group}/{document.version}" if known and wanted and document.version != wanted else ""


def _number(kind: str, n: int) -> str:
    return f"{n} object{'s' if n > 1 else ''} of kind {kind}"


def _unknown(document: Document, kind: _Kind) -> Iterator[str]:
    """Fields that nobody knows. Raises ``ConfigurationError`` for one that looks misspelt: who wrote it means it to act."""
    if issubclass(kind.model, BaseModel):
        found = unknown_in_model(kind.model, msgspec.json.decode(document.raw))
    else:
        found = unknown_in_pod(document.kind, document.raw)
    for path, meant in found:
        if meant:
            raise ConfigurationError(f"{document}: {path}: no such field; is it {meant}?")
        yield path


def _decode(document: Document, kind: _Kind) -> Any:
    if issubclass(kind.model, BaseModel):
        return _decode_model(document, kind.model)
    return _DEFAULTS.get(document.kind, _unchanged)(_decode_struct(document, kind), document)


def _decode_struct(document: Document, kind: _Kind) -> Any:
    decoder = _DECODERS.get(kind.field) or _DECODERS.setdefault(kind.field, msgspec.json.Decoder(kind.model))
    try:
        decoded = decoder.decode(document.raw)
    except msgspec.ValidationError:
        decoded = _decode_without_nulls(document, kind)
    if kind.namespaced and not decoded.metadata.namespace:
        decoded = replace(decoded, metadata=namespaced(decoded.metadata))
    return decoded


_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {}


def _decode_without_nulls(document: Document, kind: _Kind) -> Any:
    """To the API server a null is a field left out, and exporters write many."""
    value = _pruned(msgspec.json.decode(document.raw))
    try:
        return msgspec.convert(value, kind.model)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).partition(" - at `$")
        where = _member(value, path.rstrip("`").lstrip("."))
        raise ConfigurationError(f"{document}: {where + ': ' if where else ''}{_lowered(problem)}") from error


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(member) for key, member in value.items() if member is not None}
    return [_pruned(member) for member in value if member is not None] if isinstance(value, list) else value


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


def _decode_model(document: Document, model: type[BaseModel]) -> Any:
    try:
        return model.model_validate(_pruned(msgspec.json.decode(document.raw)))
    except ValidationError as error:
        raise ConfigurationError(f"{document}: {explain(error)}") from error


def _unchanged(decoded: Any, _: Document) -> Any:
    return decoded


def _pod(pod: core.Pod, document: Document) -> core.Pod:
    _check(document, wrong_quantity(pod.spec, "spec"))
    return pod_defaults(pod)


def _daemon_set(daemon_set: core.DaemonSet, document: Document) -> core.DaemonSet:
    template = daemon_set.spec.template
    _check(document, wrong_quantity(template.spec, "spec.template.spec"))
    spec = spec_defaults(template.spec)
    if spec is template.spec:
        return daemon_set
    return replace(daemon_set, spec=replace(daemon_set.spec, template=replace(template, spec=spec)))


def _node(node: core.Node, document: Document) -> core.Node:
    _check(document, wrong_quantity(node.status, "status"))
    return node


def _check(document: Document, problem: str) -> None:
    if problem:
        raise ConfigurationError(f"{document}: {problem}")


_DEFAULTS: Mapping[str, Callable[[Any, Document], Any]] = {"Pod": _pod, "DaemonSet": _daemon_set, "Node": _node}
