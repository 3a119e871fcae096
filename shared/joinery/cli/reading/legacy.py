"""Legacy objects of files or of a cluster, among the objects that a snapshot holds.

``joinery plan`` reads a Provisioner as the NodePool it would become, so that a cluster that still runs an older
Karpenter can be planned before it moves. Pods and nodes of such a cluster name labels and annotations as they were
called then, and are read by the new names too. An object of v1 with the same name counts instead of a legacy one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace as replace_fields
from typing import Any

import msgspec
from msgspec.structs import replace
from pydantic import ValidationError

from joinery.apis.core import DaemonSet, ObjectMeta, Pod, PodSpec
from joinery.apis.labels import NODE_POOL, PROVISIONER_NAME
from joinery.apis.legacy import RENAMED, Equivalent, equivalents, modernized, renamed
from joinery.apis.meta import CustomResource
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodepool import NodePool
from joinery.apis.validation import explained
from joinery.cli.reading.refused import RefusedFilesError
from joinery.cloudprovider.offline import NODE_CLASS
from joinery.state.snapshot import Invalid, Snapshot

_MODELS: Mapping[str, tuple[str, type[CustomResource]]] = {
    "NodePool": ("node_pools", NodePool),
    "NodeClaim": ("node_claims", NodeClaim),
    NODE_CLASS.kind: ("node_classes", NODE_CLASS),
}


def decoded(equivalent: Equivalent) -> tuple[str, CustomResource]:
    """The snapshot's field, and the object. Raises ``RefusedFilesError`` with all that is wrong, field first."""
    if equivalent.problem:
        raise RefusedFilesError([equivalent.problem])
    kind = equivalent.document["kind"]
    field, model = _MODELS[kind]
    try:
        return field, model.model_validate(equivalent.document)
    except ValidationError as error:
        became = "" if equivalent.origin[0] == kind else f"as {kind}: "
        raise RefusedFilesError([f"{became}{problem}" for problem in explained(error)]) from error


def with_legacy(snapshot: Snapshot, documents: Iterable[Mapping[str, Any]]) -> Snapshot:
    """A cluster's snapshot with the equivalents of its legacy objects; those that have none are ``invalid``."""
    objects: dict[str, list[CustomResource]] = {field: [*getattr(snapshot, field)] for field, _ in _MODELS.values()}
    invalid = list(snapshot.invalid)
    for equivalent in equivalents(dict(document) for document in documents):
        try:
            field, made = decoded(equivalent)
        except RefusedFilesError as error:
            invalid.append(Invalid(*equivalent.missed_as, str(error)))
        else:
            names = {one.metadata.name for one in objects[field]}
            objects[field] += [made] if made.metadata.name not in names else []
    fields: dict[str, Any] = {field: tuple(listed) for field, listed in objects.items()}
    return in_new_words(replace_fields(snapshot, invalid=tuple(invalid), **fields))


# --- pods and nodes ---


def in_new_words(snapshot: Snapshot) -> Snapshot:
    """The snapshot with pods, DaemonSets and nodes that name old labels and annotations read by the new names."""
    return replace_fields(
        snapshot,
        pods=tuple(_pod(pod) for pod in snapshot.pods),
        daemon_sets=tuple(_daemon_set(owner) for owner in snapshot.daemon_sets),
        nodes=tuple(replace(node, metadata=_metadata(node.metadata)) for node in snapshot.nodes),
    )


def old_selections(pods: Iterable[Pod]) -> list[str]:
    """A line about pending pods that ask for nodes by the old name of a pool's label: they change with the cluster."""
    selecting = sum(not pod.spec.node_name and PROVISIONER_NAME in _selected(pod.spec) for pod in pods)
    counted = "1 pod selects" if selecting == 1 else f"{selecting} pods select"
    return (
        [f"{counted} {PROVISIONER_NAME}: read as {NODE_POOL}, which nodes of a NodePool carry instead"]
        if selecting
        else []
    )


def _pod(pod: Pod) -> Pod:
    metadata, spec = _metadata(pod.metadata), _spec(pod.spec)
    unchanged = metadata is pod.metadata and spec is pod.spec
    return pod if unchanged else replace(pod, metadata=metadata, spec=spec)


def _daemon_set(owner: DaemonSet) -> DaemonSet:
    template = owner.spec.template
    spec = _spec(template.spec)
    if spec is template.spec:
        return owner
    return replace(owner, spec=replace(owner.spec, template=replace(template, spec=spec)))


def _metadata(given: ObjectMeta) -> ObjectMeta:
    if not RENAMED.keys() & {*given.labels, *given.annotations}:
        return given
    return replace(given, labels=modernized(given.labels), annotations=modernized(given.annotations))


def _spec(spec: PodSpec) -> PodSpec:
    if not RENAMED.keys() & set(_selected(spec)):
        return spec
    affinity = msgspec.convert(_renamed_keys(msgspec.to_builtins(spec.affinity)), type(spec.affinity))
    return replace(spec, node_selector=renamed(spec.node_selector), affinity=affinity)


def _selected(spec: PodSpec) -> Iterator[str]:
    """The node labels that a pod asks for."""
    yield from spec.node_selector
    affinity = spec.affinity.node_affinity if spec.affinity else None
    if affinity is None:
        return
    required = affinity.required_during_scheduling_ignored_during_execution
    terms = [*(required.node_selector_terms if required else ())]
    terms += [term.preference for term in affinity.preferred_during_scheduling_ignored_during_execution]
    yield from (expression.key for term in terms for expression in term.match_expressions)


def _renamed_keys(value: Any) -> Any:
    """Every ``key`` of an affinity by its new name."""
    if isinstance(value, list):
        return [_renamed_keys(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        name: RENAMED.get(member, member) if name == "key" and isinstance(member, str) else _renamed_keys(member)
        for name, member in value.items()
    }
