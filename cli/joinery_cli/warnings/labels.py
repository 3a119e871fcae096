"""Labels, values and classes that nothing has, beside one with a similar name that is there: "is it ...?".

An API server takes any label; a pod that asks for ``topology.kubernetes.io/zones`` only waits for ever. What nodes,
NodePools or the catalogue really have is never doubted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import validate
from joinery.objects.kubernetes.core import NodeSelectorRequirement, PodSpec
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.spelling import label_meant_by, meant_by, value_meant_by
from joinery_cli.notices import UserNotice, note, warning, warnings_of
from joinery_cli.view.workloads import subject_of

#: Values that exist whatever the catalogue sells.
_VALUES: Mapping[str, frozenset[str]] = {
    labels.CAPACITY_TYPE: frozenset({labels.SPOT, labels.ON_DEMAND, labels.RESERVED}),
    labels.ARCH: frozenset({"amd64", "arm64"}),
    labels.OS: frozenset({"linux", "windows"}),
}
#: How many names are compared with those that exist: whoever writes thousands has misspelt none.
_MOST_COMPARED = 1000
#: Our kind of node class as people write it; no other provider has one of that name.
_KIND_OF_OURS = (NODE_CLASS.kind.lower(), NODE_CLASS.plural)
#: Labels of one thing that people mix up: a type, its family, its size.
_TAKEN_FOR_EACH_OTHER = (
    labels.INSTANCE_TYPE,
    *(f"{labels.AWS_GROUP}/instance-{name}" for name in ("family", "category", "size")),
    labels.ZONE,
    labels.ZONE_ID,
)
_OF_TYPES = labels.WELL_KNOWN | labels.ALIASES.keys()

#: Instance types by node class.
Types = Mapping[str, Sequence[InstanceType]]


class _Asked(NamedTuple):
    """A label that somebody asks for at ``path``, with the values that would do."""

    path: str
    key: str
    values: tuple[str, ...] = ()


def misspelt_labels(snapshot: Snapshot, types: Types) -> Iterator[UserNotice]:
    """A warning for each, naming who wrote it."""
    yield from _classes(snapshot)
    yield from _limits(snapshot, types)
    spelling = _Spelling(snapshot, types)
    asked = chain(_asked_by_pools(filter(snapshot.serves, snapshot.node_pools)), _asked_by_pods(snapshot))
    wrong = ((subject, question) for subject, one in asked if (question := spelling.question(subject, one)))
    yield from warnings_of(wrong)
    if spelling.is_exhausted:
        yield note(f"more than {_MOST_COMPARED:,} names are nowhere: the others are not compared with those that exist")


def _classes(snapshot: Snapshot) -> Iterator[UserNotice]:
    names = {node_class.metadata.name for node_class in snapshot.node_classes}
    for pool in snapshot.node_pools:
        ref = pool.spec.template.spec.node_class_ref
        where = f"NodePool {pool.metadata.name}: spec.template.spec.nodeClassRef"
        if snapshot.serves(pool) and ref.name not in names and (meant := meant_by(ref.name, names)):
            yield warning(f"{where}.name: there is no {ref.kind} {ref.name}; is it {meant}?")
        if not snapshot.serves(pool) and ref.kind.lower() in _KIND_OF_OURS:
            ours = f"{NODE_CLASS.kind}.{NODE_CLASS.identity().group}"
            yield warning(f"{where}: no provider is known to have a {ref.kind}.{ref.group}; is it {ours}?")


def _limits(snapshot: Snapshot, types: Types) -> Iterator[UserNotice]:
    resources = {"nodes"}.union(*(kind.capacity for listed in types.values() for kind in listed))
    for pool in snapshot.node_pools:
        for name in sorted(pool.spec.limits.keys() - resources) if any(types.values()) else ():
            question = f"; is it {meant}?" if (meant := meant_by(name, resources)) else ""
            where = f"NodePool {pool.metadata.name}: spec.limits.{name}"
            yield warning(f"{where}: no instance type has {name}, so that limits nothing{question}")


class _Spelling:
    """Compares what is asked for with what there is: each name once, and only so many."""

    def __init__(self, snapshot: Snapshot, types: Types) -> None:
        self._defined, self._values = _defined(snapshot), _values(snapshot, types)
        self._meant: dict[tuple[str, ...], str] = {}
        self.is_exhausted = False

    def question(self, subject: str, asked: _Asked) -> str | None:
        """What is wrong with it, if anything is. What a NodePool asks for, its nodes have: only pods look for a label
        that may not be there.
        """
        of_pool = subject.startswith("NodePool ")
        if (of_pool or asked.key not in self._defined) and (meant := self._label(asked.key, of_types=of_pool)):
            why = "chooses nothing, nodes are only labelled with it" if of_pool else ""
            why = f"{asked.key} {why}" if why else f"no node is known to have the label {asked.key}"
            return f"{asked.path}: {why}; is it {meant}?"
        there = self._values.get(labels.canonical(asked.key), frozenset())
        for value in asked.values if there else ():
            if value not in there and (meant := self._value(asked.key, value, there)):
                return f"{asked.path}: {asked.key} is nowhere {value}; is it {meant}?"
        return None

    def _label(self, key: str, *, of_types: bool) -> str:
        if self._may_compare(key):
            self._meant[key,] = label_meant_by(key, of_types=of_types)
        return self._meant.get((key,), "")

    def _value(self, key: str, value: str, there: frozenset[str]) -> str:
        if self._may_compare(key, value):
            self._meant[key, value] = value_meant_by(key, value, there) or self._label_with(value)
        return self._meant.get((key, value), "")

    def _may_compare(self, *names: str) -> bool:
        is_new = names not in self._meant
        self.is_exhausted |= is_new and len(self._meant) >= _MOST_COMPARED
        return is_new and not self.is_exhausted

    def _label_with(self, value: str) -> str:
        """The label of instance types that has the value: of ``m5.large`` the type's, not the family's. Numbers are
        those of many.
        """
        labelled = (key for key in _TAKEN_FOR_EACH_OTHER if value in self._values.get(key, ()))
        return "" if value.isdigit() else next(labelled, "")


# --- what there is ---


def _defined(snapshot: Snapshot) -> frozenset[str]:
    """Labels that nodes have, or would have."""
    keys = {key for node in snapshot.nodes for key in node.metadata.labels}
    for pool in snapshot.node_pools:
        template = pool.spec.template
        keys |= template.metadata.labels.keys()
        keys |= {one.key for one in template.spec.requirements if not label_meant_by(one.key)}
    return frozenset(keys)


def _values(snapshot: Snapshot, types: Types) -> Mapping[str, frozenset[str]]:
    """The values of well-known labels: of what is sold, and of the nodes there are."""
    by_key: dict[str, set[str]] = defaultdict(set, {key: {*values} for key, values in _VALUES.items()})
    for kind in (kind for listed in types.values() for kind in listed):
        for key, values in kind.labels.items():
            by_key[key].update(values)
        by_key[labels.ZONE].update(offering.zone for offering in kind.offerings)
    for node in snapshot.nodes:
        for key, value in node.metadata.labels.items():
            by_key[labels.canonical(key)].add(value)
    return {key: frozenset(values) for key, values in by_key.items() if key in labels.WELL_KNOWN}


# --- who asks for what ---


def _asked_by_pools(pools: Iterable[NodePool]) -> Iterator[tuple[str, _Asked]]:
    for pool in pools:
        subject, template = f"NodePool {pool.metadata.name}", pool.spec.template
        refused = validate(pool)
        for index, requirement in enumerate(template.spec.requirements):
            # For some the pool cannot be used at all, which is said as the reason.
            if not any(why.startswith(f"spec.template.spec.requirements[{index}].values: ") for why in refused):
                yield subject, _of_requirement(requirement, "spec.template.spec.requirements")
        for key, value in template.metadata.labels.items():
            # Labels of a person's own have any name; those of instance types choose them.
            if key in _OF_TYPES:
                yield subject, _Asked("spec.template.metadata.labels", key, (value,))


def _asked_by_pods(snapshot: Snapshot) -> Iterator[tuple[str, _Asked]]:
    for one in snapshot.daemon_sets:
        subject = f"DaemonSet {one.metadata.namespace}/{one.metadata.name}"
        yield from ((subject, asked) for asked in _of_pod(one.spec.template.spec))
    for pod in snapshot.pods:
        if not pod.spec.node_name and is_active(pod):
            yield from ((subject_of(pod), asked) for asked in _of_pod(pod.spec))


def _of_pod(spec: PodSpec) -> Iterator[_Asked]:
    for key, value in spec.node_selector.items():
        yield _Asked("nodeSelector", key, (value,))
    for spread in spec.topology_spread_constraints:
        yield _Asked("topologySpreadConstraints", spread.topology_key)
    affinity = spec.affinity
    if affinity is None:
        return
    if (nodes := affinity.node_affinity) is not None:
        required = nodes.required_during_scheduling_ignored_during_execution
        terms = [*(required.node_selector_terms if required else ())]
        terms += [one.preference for one in nodes.preferred_during_scheduling_ignored_during_execution]
        for term in terms:
            yield from (_of_requirement(one, "nodeAffinity") for one in term.match_expressions)
    for name, side in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if side is not None:
            listed = [*side.required_during_scheduling_ignored_during_execution]
            listed += [w.pod_affinity_term for w in side.preferred_during_scheduling_ignored_during_execution]
            yield from (_Asked(name, term.topology_key) for term in listed)


def _of_requirement(one: NodeSelectorRequirement | Requirement, path: str) -> _Asked:
    return _Asked(path, one.key, tuple(one.values) if one.operator in ("In", "NotIn") else ())
