"""The cluster as a plan would have it: every node booted and initialised, every pod in place.

Verification looks at this final state only, as the scheduler would if each pod in turn were taken out and asked again.
Pods that no rule can tell apart are one class, and a node holds classes with counts, so that 10,000 pods in 50 classes
cost as much to check as there are different (class, node) pairs, not pairs of pods.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b

import msgspec

from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.verification.daemon_sets import DaemonSets, daemon_pods
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode, existing_node, launched_node, sold
from joinery.decisions.verification.predicates import allocated_to, ports_of, without_resize
from joinery.decisions.verification.selections import NodeSelections
from joinery.decisions.verification.templates import nodes_of
from joinery.decisions.verification.violation import Violation, ViolationCode, of_launch, of_pod
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.quantity import Resources, fits
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.offerings import InstanceType, Offering, types_for
from joinery.objects.snapshot.pods import is_daemon, is_terminal, lasting

_ENCODE = msgspec.json.Encoder().encode
#: Two pods that differ have one digest as often as somebody guesses a UUID.
_DIGEST_BYTES = 16
#: For so many classes all nodes are asked for their pods. Where more are asked for, those of all are found at once.
_FEW_ASKED = 64


@dataclass(frozen=True, slots=True)
class Running:
    """Pods of one node that have not ended.

    ``alike``: by their identity, one of them; ``numbers``: of each of these, how many are like it. ``daemons``: whose
    DaemonSets' they are, as ``namespace/name``. ``may_move``: the names (``namespace/name``) of those that a plan may
    put elsewhere.
    """

    alike: Mapping[bytes, Pod]
    numbers: Sequence[int]
    daemons: frozenset[str]
    may_move: Sequence[str] = ()

    @classmethod
    def of(cls, pods: Iterable[Pod], may_move: Sequence[str] = ()) -> "Running":
        alike: dict[bytes, Pod] = {}
        numbers: dict[bytes, int] = {}
        daemons: set[str] = set()
        for pod in pods:
            if not is_terminal(pod):
                key = identity_of(pod)
                alike.setdefault(key, pod)
                numbers[key] = numbers.get(key, 0) + 1
                if is_daemon(pod):
                    daemons.update(f"{pod.metadata.namespace}/{o.name}" for o in pod.metadata.owner_references)
        return cls(alike, tuple(numbers.values()), frozenset(daemons), may_move)


def running_on(view: NodeView) -> Running:
    """The pods of a node as they are now: worked out once for a node about which nothing changes (``Derives``)."""
    may_move = [pod.key for pod in view.staying if view.is_leaving or not pod.spec.node_name]
    return Running.of(view.staying, may_move)


@dataclass
class FinalState:
    """The cluster with the plan in place.

    ``nodes``: existing and launched ones; ``launched``: each launch with its node; ``classes``: pods by what rules look
    at; ``planned``: those of which the plan puts some in place; ``selections``: which nodes they select.
    ``wrong``: what could not be put in place. Pods are named ``namespace/name``.
    """

    problem: Problem
    packing: Packing
    nodes: list[FinalNode] = field(default_factory=list)
    launched: list[tuple[Launch, FinalNode]] = field(default_factory=list)
    wrong: list[Violation] = field(default_factory=list)
    classes: dict[bytes, EquivalenceClass] = field(default_factory=dict)
    planned: list[EquivalenceClass] = field(default_factory=list)
    selections: NodeSelections = field(default_factory=NodeSelections)
    _places: dict[EquivalenceClass, Mapping[FinalNode, int]] = field(default_factory=dict)

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        return self.problem.snapshot.pods_by_key

    @property
    def pools(self) -> Mapping[str, NodePool]:
        return self.problem.snapshot.pools_by_name

    @cached_property
    def _types(self) -> Mapping[str, Mapping[str, InstanceType]]:
        """Instance types by name, by the problem's keys, the largest first."""
        return {
            name: {t.name: t for t in sorted(types, key=lambda kind: -kind.allocatable.get("cpu", 0))}
            for name, types in self.problem.instance_types.items()
        }

    def types_of(self, pool: NodePool) -> Mapping[str, InstanceType]:
        """The instance types a pool's nodes may be of, by name, the largest first."""
        return types_for(self._types, pool.spec.template.spec.node_class_ref.name, pool.metadata.name) or {}

    @cached_property
    def daemon_sets(self) -> DaemonSets:
        """The pods that DaemonSets put on every node that they select."""
        return DaemonSets(daemon_pods(self.problem.snapshot, self.class_of), self._nodes_of)

    def _nodes_of(self, name: str, requests: Resources) -> Iterator[FinalNode]:
        """What the NodePool of that name may buy that has room for so much."""
        if pool := self.pools.get(name):
            yield from nodes_of(pool, (k for k in self.types_of(pool).values() if fits(requests, k.allocatable)))

    def booted(self, launch: Launch, pool: NodePool, kind: InstanceType) -> FinalNode:
        """The node that the launch's offering gives.

        Launches that share their rules and labels give nodes alike but for the name.
        """
        offering = launch.offering
        shared = (launch.requirements, launch.labels, launch.taints)
        likeness = launch.node_pool, offering, *map(id, shared)
        node = self._booted.get(likeness)
        if node is None:
            placed = sold(kind, offering) or Offering(offering.zone, offering.capacity_type, offering.price)
            node = self._booted[likeness] = launched_node(launch, pool, kind, placed)
        return replace(
            node, name=launch.name, labels={**node.labels, keys.HOSTNAME: launch.name}, pods={}, planned={}, claiming=[]
        )

    @cached_property
    def _booted(self) -> dict[Hashable, FinalNode]:
        return {}

    def class_of(self, pod: Pod) -> EquivalenceClass:
        """The class of the pod. Pods of one class differ in nothing that a rule looks at."""
        return self._class_of(identity_of(pod), pod)

    def _class_of(self, key: bytes, pod: Pod) -> EquivalenceClass:
        pod_class = self.classes.get(key)
        if pod_class is None:
            pod_class = EquivalenceClass(
                index=len(self.classes),
                pod=pod,
                namespace=pod.metadata.namespace or "default",
                labels=pod.metadata.labels,
                ports=ports_of(pod.spec),
                is_terminating=pod.metadata.deletion_timestamp is not None,
            )
            self.classes[key] = pod_class
        return pod_class

    def put(self, node: FinalNode, pod: Pod, *, planned_as: str = "") -> None:
        """Place a pod on a node; ``planned_as`` is its name where the plan put it there."""
        pod_class = self.class_of(pod)
        self._count(node, pod_class)
        if planned_as:
            if not pod_class.planned_on:
                self.planned.append(pod_class)
            if pod_class not in node.planned:
                pod_class.planned_on.append(node)
            node.planned.setdefault(pod_class, []).append(planned_as)
            if pod.spec.resource_claims:
                node.claiming.append(planned_as)

    def put_running(self, node: FinalNode, running: "Running") -> None:
        """Place all pods that run on a node, which has none yet."""
        for key in [key for key in running.alike if key not in self.classes]:
            self._class_of(key, running.alike[key])
        # At once, because a large cluster has tens of thousands of such pairs.
        node.pods = dict(zip(map(self.classes.__getitem__, running.alike), running.numbers, strict=True))

    def places(self, pod_class: EquivalenceClass) -> Mapping[FinalNode, int]:
        """How many pods of the class run on each node, once all are in place."""
        if len(self._places) >= _FEW_ASKED:
            return self._all_places.get(pod_class, {})
        if pod_class not in self._places:
            self._places[pod_class] = {node: node.pods[pod_class] for node in self.nodes if pod_class in node.pods}
        return self._places[pod_class]

    @cached_property
    def _all_places(self) -> Mapping[EquivalenceClass, Mapping[FinalNode, int]]:
        places: dict[EquivalenceClass, dict[FinalNode, int]] = defaultdict(dict)
        for node in self.nodes:
            for pod_class, number in node.pods.items():
                places[pod_class][node] = number
        return places

    def _count(self, node: FinalNode, pod_class: EquivalenceClass) -> None:
        node.pods[pod_class] = node.pods.get(pod_class, 0) + 1

    def put_daemons(self, node: FinalNode, running: Iterable[str] = (), *, is_there: bool = False) -> None:
        """Add the DaemonSets' pods that the node does not run yet;
        ``running`` names DaemonSets as ``namespace/name``.

        On a node that ``is_there`` those that are too large for it never run. None should be bought like that.
        """
        for pod_class in self.daemon_sets.missing(node, frozenset(running)):
            if not is_there or fits(pod_class.requests, node.room):
                self._count(node, pod_class)


def final_state(problem: Problem, packing: Packing) -> FinalState:
    """Put the plan in place. What cannot be placed is in ``wrong``."""
    state = FinalState(problem, packing)
    named = {pod for placement in packing.existing for pod in placement.pods}
    named |= {pod for launch in packing.launches for pod in launch.pods}
    by_name = _add_existing(state, named)
    for placement in packing.existing:
        node = by_name.get(placement.node or placement.node_claim)
        _place(state, node, placement.pods, placement.node or placement.node_claim)
    for launch in packing.launches:
        _add_launch(state, launch, taken=by_name)
    return state


def _add_existing(state: FinalState, named: set[str]) -> dict[str, FinalNode]:
    by_name: dict[str, FinalNode] = {}
    raw = {node.metadata.name: node for node in state.problem.snapshot.nodes}
    for view in state.problem.snapshot.views:
        node = existing_node(view, raw.get(view.node))
        state.nodes.append(node)
        by_name |= {name: node for name in (view.node, view.claim) if name}
        running = view.derived(running_on)
        moving = {key for key in running.may_move if key in named}
        if moving:
            running = Running.of(pod for pod in view.staying if pod.key not in moving)
        state.put_running(node, running)
        state.put_daemons(node, running.daemons, is_there=True)
    return by_name


def _add_launch(state: FinalState, launch: Launch, *, taken: dict[str, FinalNode]) -> None:
    pool = state.pools.get(launch.node_pool)
    kind = state.types_of(pool).get(launch.offering.instance_type) if pool else None
    problem = ""
    if not launch.name or launch.name in taken:
        problem = "another node has this name" if launch.name else "the launch has no name"
    elif pool is None:
        problem = f"no NodePool {launch.node_pool}"
    elif kind is None:
        problem = f"no instance type {launch.offering.instance_type} for NodePool {launch.node_pool}"
    if problem or pool is None or kind is None:
        state.wrong.append(Violation(ViolationCode.LAUNCH, problem, of_launch(launch)))
        return
    node = state.booted(launch, pool, kind)
    taken[launch.name] = node
    state.nodes.append(node)
    state.launched.append((launch, node))
    state.put_daemons(node)
    _place(state, node, launch.pods, launch.name)


def _place(state: FinalState, node: FinalNode | None, pods: Iterable[str], name: str) -> None:
    if node is None:
        message = "the plan puts pods on a node that does not exist"
        state.wrong.extend(Violation(ViolationCode.NODE_UNKNOWN, message, of_pod(pod), node=name) for pod in pods)
        return
    for key in pods:
        pod = state.pods.get(key)
        if pod is not None:
            is_moved = bool(pod.spec.node_name)
            comes = without_resize(state.problem.snapshot.successor(pod)) if is_moved else pod
            state.put(node, comes, planned_as=key)


def identity_of(pod: Pod) -> bytes:
    """A digest of everything about a pod that a rule looks at.

    It is short, because those of all pods that run are kept from one plan to the next.
    """
    spec, meta = pod.spec, pod.metadata
    claims = [v.persistent_volume_claim or v for v in spec.volumes if v.persistent_volume_claim or v.ephemeral]
    own_name = meta.name if any(v.ephemeral for v in spec.volumes) else ""
    looked_at = _ENCODE(
        (
            meta.namespace,
            meta.labels,
            meta.deletion_timestamp is not None,
            own_name,
            spec.node_selector,
            spec.affinity,
            lasting(spec.tolerations),
            spec.topology_spread_constraints,
            spec.containers,
            spec.init_containers,
            spec.overhead,
            spec.resources,
            spec.resource_claims,
            spec.host_network,
            claims,
            allocated_to(pod),
        )
    )
    return blake2b(looked_at, digest_size=_DIGEST_BYTES).digest()
