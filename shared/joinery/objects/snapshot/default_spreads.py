"""Pods with the topology spread that their scheduler gives them, because they ask for none themselves.

It is filled in where pods are read, as a default of the API server's would be, so that plans, the check, consolidation
and explanations all see it. Which pods a constraint counts is deduced as the scheduler does (kube-scheduler
``helper.DefaultSelector``): by the selectors of all Services that select the pod, and by that of its ReplicaSet,
StatefulSet or ReplicationController. Pods that neither selects get no constraint. Those of a DaemonSet need none: of
the nodes that count for one, which are those that its affinity admits, there is one.

Pods that only stand for room (``decisions.headroom``) are made of templates, so these get what pods of them will have.
Of a Deployment they count the pods of all its ReplicaSets, because nobody knows whose theirs will be.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields

from msgspec.structs import replace

from joinery.objects.default_spread import DefaultSpread, DefaultSpreads
from joinery.objects.kubernetes.core import (
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    PodSpec,
    Service,
    TopologySpreadConstraint,
)
from joinery.objects.kubernetes.shapes import Shape
from joinery.objects.kubernetes.workloads import Workload, label_selector
from joinery.objects.snapshot.pods import controller_of, is_daemon
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.successors import FIELDS, OwnerKey, owner_key

DEFAULT_SCHEDULER = "default-scheduler"
#: The controllers whose selectors count, by their API group.
_COUNTED = {"ReplicaSet": "apps", "StatefulSet": "apps", "ReplicationController": ""}


@dataclass
class SpreadFiller:
    """Fills in the constraints of some schedulers. Whoever reads snapshots has one: a pod that has not changed, and
    whose selector has not, stays the same object.
    """

    spreads: DefaultSpreads
    _filled: dict[str, tuple[Pod, LabelSelector, Pod]] = field(default_factory=dict)

    def fields_wanted(self, pods: Iterable[Pod]) -> tuple[str, ...]:
        """What has to be read to know the pods' selectors, by field of the snapshot; nothing where no pod has one."""
        if not self.spreads:
            return ()
        kinds = {getattr(controller_of(pod), "kind", "") for pod in pods if self._of(pod)}
        return ("services", *sorted(FIELDS[kind] for kind in kinds & _COUNTED.keys())) if kinds else ()

    def filled(self, snapshot: Snapshot, owners: Mapping[OwnerKey, Workload] | None = None) -> Snapshot:
        """The snapshot with them. ``owners``: where others are known than the snapshot has."""
        if not self.spreads:
            return snapshot
        services = _by_namespace(snapshot.services)
        known = snapshot.owners if owners is None else owners
        before, self._filled = self._filled, {}
        pods = tuple(self._pod(pod, services, known, before) for pod in snapshot.pods)
        return replace_fields(snapshot, pods=pods)

    def of_shapes(self, shapes: Mapping[str, Shape], services: Callable[[], Iterable[Service]]) -> Mapping[str, Shape]:
        """The shapes (by namespace and name) with them. ``services``: of the cluster, asked for where a pod of some
        shape gets one.
        """
        examples = ((name, shape.example(name.partition("/")[0])) for name, shape in shapes.items())
        getting = {name: pod for name, pod in examples if pod and self._of(pod)}
        selecting = _by_namespace(services()) if getting else {}
        return {**shapes, **{name: self._shape(shapes[name], pod, selecting) for name, pod in getting.items()}}

    def _shape(self, shape: Shape, example: Pod, services: Mapping[str, list[Service]]) -> Shape:
        selector = _selector(example, services, _equal(shape.selector or {}))
        if selector is None or shape.template is None:
            return shape
        spec = _spread(example.spec, self._of(example), selector)
        return replace_fields(shape, template=replace(shape.template, spec=spec))

    def _pod(
        self,
        pod: Pod,
        services: Mapping[str, list[Service]],
        owners: Mapping[OwnerKey, Workload],
        before: Mapping[str, tuple[Pod, LabelSelector, Pod]],
    ) -> Pod:
        spreads = self._of(pod)
        selector = _selector(pod, services, _of_owner(pod, owners)) if spreads else None
        if selector is None:
            return pod
        kept = before.get(pod.key)
        if kept is None or kept[0] is not pod or kept[1] != selector:
            kept = pod, selector, replace(pod, spec=_spread(pod.spec, spreads, selector))
        self._filled[pod.key] = kept
        return kept[2]

    def _of(self, pod: Pod) -> DefaultSpreads:
        if pod.spec.topology_spread_constraints or is_daemon(pod):
            return ()
        scheduler = pod.spec.scheduler_name or DEFAULT_SCHEDULER
        return tuple(one for one in self.spreads if one.scheduler in ("", scheduler))


def _by_namespace(services: Iterable[Service]) -> Mapping[str, list[Service]]:
    found: dict[str, list[Service]] = defaultdict(list)
    for service in services:
        if service.spec.selector:
            found[service.metadata.namespace or "default"].append(service)
    return found


def _selector(
    pod: Pod, services: Mapping[str, list[Service]], of_owner: list[LabelSelectorRequirement]
) -> LabelSelector | None:
    """The pods that count together with this one; None where nobody says. ``of_owner``: what its owner selects by.

    A key of both is asked for twice, as by the scheduler.
    """
    labels: dict[str, str] = {}
    for service in services.get(pod.metadata.namespace or "default", ()):
        if service.spec.selector.items() <= pod.metadata.labels.items():
            labels |= service.spec.selector
    return LabelSelector(match_labels=labels, match_expressions=of_owner) if labels or of_owner else None


def _of_owner(pod: Pod, owners: Mapping[OwnerKey, Workload]) -> list[LabelSelectorRequirement]:
    controller = controller_of(pod)
    if controller is None or _COUNTED.get(controller.kind) != controller.api_version.rpartition("/")[0]:
        return []
    owner = owners.get(owner_key(pod) or ("", "", ""))
    selector = label_selector(owner.spec) if owner is not None else None
    if selector is None:
        return []
    return [*_equal(selector.match_labels), *selector.match_expressions]


def _equal(labels: Mapping[str, str]) -> list[LabelSelectorRequirement]:
    return [LabelSelectorRequirement(key=key, operator="In", values=[value]) for key, value in sorted(labels.items())]


def _spread(spec: PodSpec, spreads: DefaultSpreads, selector: LabelSelector) -> PodSpec:
    return replace(spec, topology_spread_constraints=[_constraint(one, selector) for one in spreads])


def _constraint(spread: DefaultSpread, selector: LabelSelector) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        topology_key=spread.topology_key,
        max_skew=spread.max_skew,
        when_unsatisfiable=spread.when_unsatisfiable,
        min_domains=spread.min_domains,
        node_affinity_policy=spread.node_affinity_policy,
        node_taints_policy=spread.node_taints_policy,
        label_selector=selector,
    )
