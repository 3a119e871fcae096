"""The cluster as a plan would have it: every node booted and initialised, every pod in place.

Verification looks at this final state only, as the scheduler would if each pod in turn were taken out and asked again.
Pods that no rule can tell apart are one class, and a node holds classes with counts, so that 10,000 pods in 50 classes
cost as much to check as there are different (class, node) pairs, not pairs of pods.
"""

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import msgspec

from joinery.apis import labels as keys
from joinery.apis.core import DaemonSet, NodeSelectorTerm, Pod, Toleration
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import Resources, total
from joinery.scheduling.packing import Launch, Packing
from joinery.scheduling.problem import Problem
from joinery.state.nodes import views
from joinery.state.offerings import InstanceType, Offering
from joinery.state.pods import is_daemon, is_terminal, lasting
from joinery.verification.nodes import DECIDED_BY_OFFERING, FinalNode, PodClass, existing_node, launched_node, sold
from joinery.verification.predicates import (
    held_by,
    ports_of,
    refused_taint,
    requests_of,
    selects_node,
)
from joinery.verification.violation import Violation, ViolationCode, of_launch, of_pod

_ENCODE = msgspec.json.Encoder().encode
_DAEMON_TOLERATIONS = [
    Toleration(key=f"node.kubernetes.io/{condition}", operator="Exists", effect=effect)
    for condition, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("network-unavailable", "NoSchedule"),
    )
]


@dataclass
class World:
    """The final state, and what was wrong with putting it together. Pods are named ``namespace/name``."""

    problem: Problem
    packing: Packing
    nodes: list[FinalNode] = field(default_factory=list)
    launched: list[tuple[Launch, FinalNode]] = field(default_factory=list)
    wrong: list[Violation] = field(default_factory=list)
    classes: dict[bytes, PodClass] = field(default_factory=dict)

    @cached_property
    def pods(self) -> Mapping[str, Pod]:
        return {pod.key: pod for pod in self.problem.snapshot.pods}

    @cached_property
    def pools(self) -> Mapping[str, NodePool]:
        return {pool.metadata.name: pool for pool in self.problem.snapshot.node_pools}

    @cached_property
    def _types(self) -> Mapping[str, Mapping[str, InstanceType]]:
        """Instance types by name, by node class."""
        return {name: {t.name: t for t in types} for name, types in self.problem.instance_types.items()}

    def types_of(self, pool: NodePool) -> Mapping[str, InstanceType]:
        """The instance types a pool's nodes may be of, by name."""
        return self._types.get(pool.spec.template.spec.node_class_ref.name, {})

    @cached_property
    def daemon_sets(self) -> list[tuple[DaemonSet, PodClass]]:
        """Live DaemonSets with the class of the pods they make."""
        found = []
        live = _newest_daemons(self.problem.snapshot.pods)
        for daemon_set in self.problem.snapshot.daemon_sets:
            if daemon_set.metadata.deletion_timestamp is None:
                with suppress(ValueError):  # a quantity that is none: its pods run nowhere
                    found.append((daemon_set, self.class_of(_daemon_pod(daemon_set, live.get(_key(daemon_set))))))
        return found

    @cached_property
    def every_daemon(self) -> Resources:
        """What the pods of all DaemonSets take, which is more than any node runs."""
        return total(daemon.requests for _, daemon in self.daemon_sets)

    @cached_property
    def _daemon_keys(self) -> list[str]:
        """The labels that decide which daemons run on a node."""
        return sorted({key for _, daemon in self.daemon_sets for key in _selected_keys(daemon.pod)})

    @cached_property
    def _daemons_pick_names(self) -> bool:
        return keys.HOSTNAME in self._daemon_keys or any(_has_fields(daemon.pod) for _, daemon in self.daemon_sets)

    @cached_property
    def daemons_pick_offerings(self) -> bool:
        """Whether which daemons run on a node may depend on more than its instance type: on zone, capacity type, reservation."""
        return any(keys.canonical(key) in DECIDED_BY_OFFERING for key in self._daemon_keys)

    @cached_property
    def _daemons_by_kind(self) -> dict[object, list[PodClass]]:
        return {}

    def daemons_on(self, node: FinalNode) -> list[PodClass]:
        """The classes of the DaemonSet pods that the node will run, by the DaemonSet controller's own rule."""
        kind = (
            tuple(node.labels.get(key) for key in self._daemon_keys),
            node.taints,
            node.name if self._daemons_pick_names else "",
        )
        known = self._daemons_by_kind.get(kind)
        if known is None:
            known = [daemon for _, daemon in self.daemon_sets if _runs(daemon.pod, node)]
            self._daemons_by_kind[kind] = known
        return known

    def daemon_requests(self, node: FinalNode) -> Resources:
        """What the node's DaemonSet pods take; one object for nodes that run the same ones."""
        found = self.daemons_on(node)
        return self._requests_of_daemons.setdefault(id(found), total(daemon.requests for daemon in found))

    def booted(self, launch: Launch, pool: NodePool, kind: InstanceType) -> FinalNode:
        """The node that the launch's offering gives. Launches that share their rules and labels give nodes alike but for the name."""
        offering = launch.offering
        shared = (launch.requirements, launch.labels, launch.taints)
        likeness = launch.node_pool, offering, *map(id, shared)
        known = self._booted.get(likeness)
        if known is None:
            found = sold(kind, offering) or Offering(offering.zone, offering.capacity_type, offering.price)
            known = launched_node(launch, pool, kind, found)
            self._booted[likeness] = known
        return replace(
            known, name=launch.name, labels={**known.labels, keys.HOSTNAME: launch.name}, held={}, planned={}
        )

    @cached_property
    def _booted(self) -> dict[Hashable, FinalNode]:
        return {}

    @cached_property
    def _requests_of_daemons(self) -> dict[int, Resources]:
        return {}

    def class_of(self, pod: Pod) -> PodClass:
        """The class the pod belongs to; pods differ in nothing that a rule looks at."""
        key = _identity(pod)
        known = self.classes.get(key)
        if known is None:
            known = PodClass(
                pod=pod,
                namespace=pod.metadata.namespace or "default",
                labels=pod.metadata.labels,
                requests=requests_of(pod),
                ports=ports_of(pod.spec),
                is_terminating=pod.metadata.deletion_timestamp is not None,
            )
            self.classes[key] = known
        return known

    def put(self, node: FinalNode, pod: Pod, *, planned_as: str = "") -> None:
        """Place a pod on a node; ``planned_as`` is its name where the plan put it there."""
        found = self.class_of(pod)
        self._count(node, found)
        if planned_as:
            node.planned.setdefault(found, []).append(planned_as)

    def _count(self, node: FinalNode, found: PodClass) -> None:
        found.places[node] = found.places.get(node, 0) + 1
        node.held[found] = node.held.get(found, 0) + 1

    def put_daemons(self, node: FinalNode, running: Iterable[str] = ()) -> None:
        """Add the DaemonSet pods that the node does not run yet; ``running`` names sets as ``namespace/name``."""
        there = set(running)
        wanted = self.daemons_on(node)
        for daemon_set, daemon in self.daemon_sets:
            if daemon in wanted and _key(daemon_set) not in there:
                self._count(node, daemon)


def final_state(problem: Problem, packing: Packing) -> World:
    """Put the plan in place. What cannot be placed is in ``wrong``."""
    world = World(problem, packing)
    named = {pod for e in packing.existing for pod in e.pods} | {pod for one in packing.launches for pod in one.pods}
    by_name = _add_existing(world, named)
    for placement in packing.existing:
        node = by_name.get(placement.node or placement.node_claim)
        _place(world, node, placement.pods, placement.node or placement.node_claim)
    for launch in packing.launches:
        _add_launch(world, launch, taken=by_name)
    return world


def _add_existing(world: World, named: set[str]) -> dict[str, FinalNode]:
    by_name: dict[str, FinalNode] = {}
    raw = {node.metadata.name: node for node in world.problem.snapshot.nodes}
    for view in views(world.problem.snapshot):
        node = existing_node(view, raw.get(view.node))
        world.nodes.append(node)
        by_name |= {name: node for name in (view.node, view.claim) if name}
        running = []
        for pod in view.pods:
            moves = pod.key in named and (view.is_leaving or not pod.spec.node_name)
            if moves or is_terminal(pod):
                continue
            world.put(node, pod)
            if is_daemon(pod):
                running += [f"{pod.metadata.namespace}/{o.name}" for o in pod.metadata.owner_references]
        world.put_daemons(node, running)
    return by_name


def _add_launch(world: World, launch: Launch, *, taken: dict[str, FinalNode]) -> None:
    pool = world.pools.get(launch.node_pool)
    kind = world.types_of(pool).get(launch.offering.instance_type) if pool else None
    problem = ""
    if not launch.name or launch.name in taken:
        problem = "another node has this name" if launch.name else "the launch has no name"
    elif pool is None:
        problem = f"no NodePool {launch.node_pool}"
    elif kind is None:
        problem = f"no instance type {launch.offering.instance_type} for NodePool {launch.node_pool}"
    if problem or pool is None or kind is None:
        world.wrong.append(Violation(ViolationCode.LAUNCH, problem, of_launch(launch)))
        return
    node = world.booted(launch, pool, kind)
    taken[launch.name] = node
    world.nodes.append(node)
    world.launched.append((launch, node))
    world.put_daemons(node)
    _place(world, node, launch.pods, launch.name)


def _place(world: World, node: FinalNode | None, pods: Iterable[str], name: str) -> None:
    if node is None:
        message = "the plan puts pods on a node that does not exist"
        world.wrong.extend(Violation(ViolationCode.NODE_UNKNOWN, message, of_pod(pod), node=name) for pod in pods)
        return
    for key in pods:
        pod = world.pods.get(key)
        if pod is not None:
            world.put(node, pod, planned_as=key)


def _identity(pod: Pod) -> bytes:
    """Everything about a pod that a rule looks at, as bytes."""
    spec, meta = pod.spec, pod.metadata
    claims = [v.persistent_volume_claim or v for v in spec.volumes if v.persistent_volume_claim or v.ephemeral]
    own_name = meta.name if any(v.ephemeral for v in spec.volumes) else ""
    return _ENCODE(
        (
            meta.namespace, meta.labels, meta.deletion_timestamp is not None, own_name, spec.node_selector,
            spec.affinity, lasting(spec.tolerations), spec.topology_spread_constraints, spec.containers, spec.init_containers,
            spec.overhead, spec.resources, spec.resource_claims, spec.host_network, claims, held_by(pod),
        )
    )  # fmt: skip


def _newest_daemons(pods: Iterable[Pod]) -> dict[str, Pod]:
    """The youngest living pod of every DaemonSet, by ``namespace/name``."""
    living = [p for p in pods if is_daemon(p) and not is_terminal(p) and p.metadata.deletion_timestamp is None]
    living.sort(key=lambda p: (str(p.metadata.creation_timestamp or ""), p.metadata.name))
    return {
        f"{pod.metadata.namespace or 'default'}/{owner.name}": pod
        for pod in living
        for owner in pod.metadata.owner_references
    }


def _daemon_pod(daemon_set: DaemonSet, live: Pod | None) -> Pod:
    """The pod that the DaemonSet controller makes, before it is pinned to a node; it takes what the newest one takes."""
    template = daemon_set.spec.template
    meta = msgspec.structs.replace(
        template.metadata,
        namespace=daemon_set.metadata.namespace or "default",
        name=f"daemon-{daemon_set.metadata.name}",
    )
    tolerations = [*template.spec.tolerations, *_DAEMON_TOLERATIONS]
    spec = msgspec.structs.replace(template.spec, tolerations=tolerations)
    if live is not None:
        took = {name: getattr(live.spec, name) for name in ("containers", "init_containers", "overhead", "resources")}
        spec = msgspec.structs.replace(spec, **took)
    return Pod(metadata=meta, spec=spec)


def _key(daemon_set: DaemonSet) -> str:
    return f"{daemon_set.metadata.namespace or 'default'}/{daemon_set.metadata.name}"


def _runs(daemon: Pod, node: FinalNode) -> bool:
    return (
        selects_node(daemon.spec, node.labels, node.name)
        and refused_taint(node.taints, daemon.spec.tolerations) is None
    )


def _has_fields(pod: Pod) -> bool:
    return any(term.match_fields for term in _terms(pod))


def _terms(pod: Pod) -> list[NodeSelectorTerm]:
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    return list(required.node_selector_terms) if required else []


def _selected_keys(pod: Pod) -> set[str]:
    return set(pod.spec.node_selector) | {e.key for term in _terms(pod) for e in term.match_expressions}
