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
from joinery.objects.slips import label_meant_by, meant_by, type_label_meant_by, value_meant_by
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import Notice, note, warning, warnings_of
from joinery_cli.view.workloads import subject_of

#: Values that exist whatever the catalogue sells.
_VALUES: Mapping[str, frozenset[str]] = {
    labels.CAPACITY_TYPE: frozenset({labels.SPOT, labels.ON_DEMAND, labels.RESERVED}),
    labels.ARCH: frozenset({"amd64", "arm64"}),
    labels.OS: frozenset({"linux", "windows"}),
}

#: How many labels, and how many values, are compared with those that exist.
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

_NOWHERE = "no node is known to have the label {}"

_Required = NodeSelectorRequirement | Requirement


class _Asked(NamedTuple):
    """A label that somebody asks for at ``path``, with the values that would do."""

    path: str
    key: str
    values: tuple[str, ...] = ()


def misnamed(snapshot: Snapshot, types: Mapping[str, Sequence[InstanceType]]) -> Iterator[Notice]:
    """A warning for each slip, naming who made it. ``types``: by node class."""
    yield from _classes(snapshot)
    yield from _limits(snapshot, types)
    doubts = _Doubts(snapshot, types)
    yield from warnings_of(chain(_slips(snapshot, doubts), _choosing_nothing(snapshot)))
    if doubts.left_out:
        yield note(f"more than {_MOST_COMPARED:,} names are nowhere: the others are not compared with those that exist")


def _slips(snapshot: Snapshot, doubts: "_Doubts") -> Iterator[tuple[str, str]]:
    for subject, asked in _all_asked(snapshot):
        of_pool = subject.startswith("NodePool ")
        found = (doubts.of(one, of_pool=of_pool) for one in asked)
        yield from ((subject, doubt) for doubt in found if doubt)


class _Doubts:
    """What is doubted of names that are asked for: each is compared once with those that exist, and only so many are.

    Whoever writes thousands of names that do not exist has made no slip of the pen.
    """

    def __init__(self, snapshot: Snapshot, types: Mapping[str, Sequence[InstanceType]]) -> None:
        self._defined, self._values = _defined(snapshot), _values(snapshot, types)
        self._labels: dict[str, str] = {}
        self._questions: dict[tuple[str, str], str] = {}
        self.left_out = 0

    def of(self, asked: _Asked, *, of_pool: bool) -> str:
        """The doubt, or the empty string. What a NodePool asks for, its nodes have: only pods look for a label that
        may not be there.
        """
        if (of_pool or asked.key not in self._defined) and (meant := self._label_meant_by(asked.key)):
            nowhere = _NOWHERE.format(asked.key)
            why = f"{asked.key} chooses nothing, nodes are only labelled with it" if of_pool else nowhere
            return f"{asked.path}: {why}; is it {meant}?"
        sold = self._values.get(labels.canonical(asked.key), frozenset())
        for value in asked.values if sold else ():
            if value not in sold and (meant := self._value_meant_by(asked.key, value, sold)):
                return f"{asked.path}: {asked.key} is nowhere {value}; is it {meant}?"
        return ""

    def _label_meant_by(self, key: str) -> str:
        if key not in self._labels:
            if len(self._labels) >= _MOST_COMPARED:
                self.left_out += 1
                return ""
            self._labels[key] = label_meant_by(key)
        return self._labels[key]

    def _value_meant_by(self, key: str, value: str, sold: frozenset[str]) -> str:
        if (key, value) not in self._questions:
            if len(self._questions) >= _MOST_COMPARED:
                self.left_out += 1
                return ""
            self._questions[key, value] = value_meant_by(key, value, sold) or _label_with(value, self._values)
        return self._questions[key, value]


def _label_with(value: str, values: Mapping[str, frozenset[str]]) -> str:
    """The label of instance types that has the value: of ``m5.large`` the type's, not the family's. Numbers are those
    of many.
    """
    if value.isdigit():
        return ""
    return next((key for key in _TAKEN_FOR_EACH_OTHER if value in values.get(key, ())), "")


def _choosing_nothing(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What pools of ours ask for in the words of EKS Auto Mode, or of nobody, after the pool."""
    for pool in filter(snapshot.serves, snapshot.node_pools):
        for key in dict.fromkeys(one.key for one in pool.spec.template.spec.requirements):
            if not label_meant_by(key) and (meant := type_label_meant_by(key)):
                doubt = f"spec.template.spec.requirements: {key} chooses no instance types; is it {meant}?"
                yield f"NodePool {pool.metadata.name}", doubt


def _classes(snapshot: Snapshot) -> Iterator[Notice]:
    names = {node_class.metadata.name for node_class in snapshot.node_classes}
    for pool in snapshot.node_pools:
        ref = pool.spec.template.spec.node_class_ref
        if snapshot.serves(pool) and ref.name not in names and (meant := meant_by(ref.name, names)):
            where = f"NodePool {pool.metadata.name}: spec.template.spec.nodeClassRef.name"
            yield warning(f"{where}: there is no {ref.kind} {ref.name}; is it {meant}?")
        if not snapshot.serves(pool) and ref.kind.lower() in _KIND_OF_OURS:
            ours = NODE_CLASS.identity()
            yield warning(
                f"NodePool {pool.metadata.name}: spec.template.spec.nodeClassRef: no provider is known to have a "
                f"{ref.kind}.{ref.group}; is it {NODE_CLASS.kind}.{ours.group}?"
            )


def _limits(snapshot: Snapshot, types: Mapping[str, Sequence[InstanceType]]) -> Iterator[Notice]:
    resources = {"nodes"}.union(*(kind.capacity for listed in types.values() for kind in listed))
    for pool in snapshot.node_pools:
        for name in sorted(pool.spec.limits.keys() - resources) if any(types.values()) else ():
            question = f"; is it {meant}?" if (meant := meant_by(name, resources)) else ""
            where = f"NodePool {pool.metadata.name}: spec.limits.{name}"
            yield warning(f"{where}: no instance type has {name}, so that limits nothing{question}")


# --- what there is ---


def _defined(snapshot: Snapshot) -> frozenset[str]:
    """Labels that nodes have, or would have."""
    keys = {key for node in snapshot.nodes for key in node.metadata.labels}
    for pool in snapshot.node_pools:
        template = pool.spec.template
        keys |= template.metadata.labels.keys()
        keys |= {one.key for one in template.spec.requirements if not label_meant_by(one.key)}
    return frozenset(keys)


def _values(snapshot: Snapshot, types: Mapping[str, Sequence[InstanceType]]) -> Mapping[str, frozenset[str]]:
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


def _all_asked(snapshot: Snapshot) -> Iterator[tuple[str, Iterator[_Asked]]]:
    for pool in snapshot.node_pools:
        yield f"NodePool {pool.metadata.name}", _of_requirements(_usable(pool), "spec.template.spec.requirements")
        # Labels of a person's own have any name; those of instance types choose them.
        given = pool.spec.template.metadata.labels.items()
        chosen = [_Asked("spec.template.metadata.labels", key, (value,)) for key, value in given if key in _OF_TYPES]
        yield f"NodePool {pool.metadata.name}", iter(chosen)
    for daemon_set in snapshot.daemon_sets:
        yield (
            f"DaemonSet {daemon_set.metadata.namespace}/{daemon_set.metadata.name}",
            _of_pod(daemon_set.spec.template.spec),
        )
    for pod in snapshot.pods:
        if not pod.spec.node_name and is_active(pod):
            yield subject_of(pod), _of_pod(pod.spec)


def _usable(pool: NodePool) -> Iterator[Requirement]:
    """Without those for which the pool cannot be used at all, which is told as the reason."""
    refused = validate(pool)
    for index, requirement in enumerate(pool.spec.template.spec.requirements):
        if not any(reason.startswith(f"spec.template.spec.requirements[{index}].values: ") for reason in refused):
            yield requirement


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
            yield from _of_requirements(term.match_expressions, "nodeAffinity")
    for name, side in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        if side is not None:
            listed = [*side.required_during_scheduling_ignored_during_execution]
            listed += [w.pod_affinity_term for w in side.preferred_during_scheduling_ignored_during_execution]
            yield from (_Asked(name, term.topology_key) for term in listed)


def _of_requirements(requirements: Iterable[_Required], path: str) -> Iterator[_Asked]:
    for one in requirements:
        yield _Asked(path, one.key, tuple(one.values) if one.operator in ("In", "NotIn") else ())
