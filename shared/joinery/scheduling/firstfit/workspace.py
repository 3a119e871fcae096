"""A problem compiled for packing: pod classes, pools, nodes with their room, and topology counts.

Built once for each attempt from the frozen problem. The packing changes what is in here and nothing else.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from joinery.apis.core import Pod, PriorityClass
from joinery.apis.labels import PREFER_NO_SCHEDULE
from joinery.apis.quantity import total
from joinery.scheduling.constraints.podclasses import Classifier, PodClass
from joinery.scheduling.constraints.resources import host_ports_of, requests_of
from joinery.scheduling.constraints.selectors import read
from joinery.scheduling.constraints.topology_rules import selector_keys
from joinery.scheduling.constraints.volumes import Volumes
from joinery.scheduling.firstfit.groups import UnforeseenDomain
from joinery.scheduling.firstfit.manners import Manner
from joinery.scheduling.firstfit.targets import ExistingNode, NewNode
from joinery.scheduling.firstfit.topology import Topology
from joinery.scheduling.pools.builder import PoolBuilder, axis_of, daemons
from joinery.scheduling.pools.daemons import residents
from joinery.scheduling.pools.holdoff import Fit as FitNode
from joinery.scheduling.pools.holdoff import fit_since, held
from joinery.scheduling.pools.pool import Amounts, Fit, Mask, Pool
from joinery.scheduling.pools.reserved import stock
from joinery.scheduling.problem import Problem
from joinery.scheduling.reason import Reason
from joinery.state.nodes import NodeView, views
from joinery.state.plans import needs_of
from joinery.state.pods import is_daemon, is_fully_blocking, is_pending, is_protected, is_reschedulable
from joinery.state.snapshot import Snapshot


class Workspace:
    """Everything a packing needs, in the shape it needs it.

    What earlier packings taught: ``unforeseen``, domains that they opened without having counted them (``unforeseen``);
    ``staying``, pods that stay on a node that is going because they have no other place, and count there.
    ``reservations``: how many nodes each capacity reservation takes before the packing. ``fair_prices``: the fair price
    of a pod of a class in a pool ($/h), as far as anyone asked (``NewNodes``).
    """

    def __init__(
        self, problem: Problem, unforeseen: Iterable[UnforeseenDomain] = (), staying: Container[str] = frozenset()
    ) -> None:
        snapshot = problem.snapshot
        self.problem = problem
        known = views(snapshot)
        self.volumes = Volumes(snapshot)
        self.pending = tuple(pod for pod in pending(problem, known) if pod.key not in staying)
        self.waiting = frozenset(pod.key for pod in self.pending if not pod.spec.node_name)
        self.views = _without(known, frozenset(pod.key for pod in self.pending))
        self._daemons = daemons(snapshot.daemon_sets, snapshot.pods)
        priorities = _priorities(snapshot.priority_classes)
        bound = [pod for view in self.views for pod in view.pods]
        keys = selector_keys((*self.pending, *bound))
        in_use = frozenset(name for pod in bound for name in self.volumes.needs(pod).claims)
        self.classes = Classifier(self.volumes, priorities, keys, in_use).classes(self.pending)
        self.axis = axis_of((pods.requests for pods in self.classes), self._daemons)
        builder = PoolBuilder(problem, self.axis, self._daemons, self.views, len(self.pending))
        self.pools = builder.pools()
        self.rejected_pools: tuple[Reason, ...] = tuple(builder.rejected)
        self.nodes = [self._existing(view) for view in self.views if not view.is_leaving]
        self.bought: dict[str, int] = {}
        # Classes for which there was a domain to buy in when they were last tried, limits apart.
        self.dealt: set[PodClass] = set()
        self.charged: dict[str, Amounts] = {}
        self.reservations: Mapping[str, int] = stock(self.pools, snapshot.managed_claims)
        self.fair_prices: dict[tuple[PodClass, str], float] = {}
        self.left_reserved: Mapping[str, int] = self.reservations
        self.topology = Topology(
            self.possible,
            [self._settled(view) for view in self.views],
            snapshot.namespaces,
            self.universe,
            unforeseen,
            residents(self.pools, snapshot.namespaces),
        )

    @cached_property
    def possible(self) -> tuple[PodClass, ...]:
        """The classes without a problem of their own."""
        return tuple(pods for pods in self.classes if not pods.problems)

    @cached_property
    def held(self) -> Mapping[PodClass, Reason]:
        """The classes for which nothing is bought now, because nodes came that cannot take them."""
        nodes = {view.claim: view for view in self.views if view.claim and view.is_initialized and not view.is_leaving}
        snapshot = self.problem.snapshot
        fit = [
            FitNode(nodes[claim.metadata.name], since, needs_of(claim), self._room(nodes[claim.metadata.name]))
            for claim, since in fit_since(snapshot.node_claims)
            if claim.metadata.name in nodes
        ]
        waiting = {pod.key: pod for pod in self.pending if not pod.spec.node_name}
        return held(self.possible, waiting, fit, self.axis, snapshot.now)

    def _room(self, view: NodeView) -> Amounts:
        """What an empty node has beside its DaemonSets."""
        expected = total(daemon.requests for daemon in self._daemons if daemon.runs_on(view))
        room: Amounts = self.axis.vector(view.allocatable) - self.axis.vector(expected)
        return room

    @cached_property
    def prefers_taints(self) -> bool:
        """Whether some pool has a PreferNoSchedule taint, so that accepting it can help at all."""
        taints = (t for pool in self.pools for t in pool.taints)
        return any(taint.effect == PREFER_NO_SCHEDULE for taint in taints) or any(
            taint.effect == PREFER_NO_SCHEDULE for view in self.views for taint in view.taints
        )

    def ordered(self, manner: Manner) -> list[PodClass]:
        """Classes in the order of packing: priority, then usually those that others' affinity waits for, then size."""
        depth = self._depths()
        return sorted(self.possible, key=lambda c: (-c.priority, *manner.place(c.name, depth[c], _sizes(c)), c.name))

    def _depths(self) -> Mapping[PodClass, int]:
        """How long a chain of pod affinity a class hangs on; circles end where they began."""
        waits: dict[PodClass, list[PodClass]] = {}
        for pods in self.possible:
            groups = [self.topology.group(r) for r in self.topology.rules[pods] if r.kind == "affinity"]
            waits[pods] = [
                other for other in self.possible if other is not pods and any(g.selects(other) for g in groups)
            ] if groups else []  # fmt: skip

        def depth(pods: PodClass, seen: frozenset[PodClass]) -> int:
            ahead = [other for other in waits[pods] if other not in seen and len(seen) < 8]
            return 1 + max(depth(other, seen | {other}) for other in ahead) if ahead else 0

        return {pods: depth(pods, frozenset({pods})) for pods in self.possible}

    def universe(self, pods: PodClass, key: str) -> frozenset[str]:
        """The domains in which some pool that the class may use could add a node that holds one of its pods."""
        found: set[str] = set()
        for pool in self.pools:
            if pods.untolerated(pool.taints) is None:
                found |= self._reachable(pool, pods, key, pool.within_limits())
        return frozenset(found)

    def offered(self, pool: Pool, pods: PodClass, key: str) -> set[str]:
        """The domains in which the pool has an available offering that holds one of the pods;
        neither taints nor limits matter.
        """
        return self._reachable(pool, pods, key, pool.types)

    def _reachable(self, pool: Pool, pods: PodClass, key: str, types: Mask) -> set[str]:
        row = self.axis.vector(pods.requests)
        return {domain for term in pods.terms for domain in _values_of(key, pool, pool.fit(term), row, types)}

    def _existing(self, view: NodeView) -> ExistingNode:
        free = self.axis.vector(view.allocatable)
        used = [requests_of(pod) for pod in view.pods]
        free -= self.axis.vector(total(used))
        free -= self._missing_daemons(view)
        ports = {port for pod in view.pods for port in host_ports_of(pod)}
        ports |= {port for daemon in self._daemons if daemon.runs_on(view) for port in host_ports_of(daemon.pod)}
        attached = {name for pod in view.pods for name in self.volumes.needs(pod).claims}
        return ExistingNode(view, free, self._attachments(view), attached, ports)

    def _settled(self, view: NodeView) -> NodeView:
        """The node with the DaemonSets' pods that will come to it."""
        running = {
            f"{p.metadata.namespace}/{o.name}" for p in view.pods if is_daemon(p) for o in p.metadata.owner_references
        }
        missing = tuple(d.pod for d in self._daemons if d.name not in running and d.runs_on(view))
        return replace(view, pods=(*view.pods, *missing)) if missing else view

    def _missing_daemons(self, view: NodeView) -> Amounts:
        """What DaemonSets will still take: all that belong there, less those that already run."""
        expected = total(d.requests for d in self._daemons if d.runs_on(view))
        present = total(requests_of(pod) for pod in view.pods if is_daemon(pod))
        missing: Amounts = np.maximum(self.axis.vector(expected) - self.axis.vector(present), 0)
        return missing

    def _attachments(self, view: NodeView) -> dict[str, int]:
        """Free volume attachments by CSI driver, where the node reports a limit."""
        csi = next((c for c in self.problem.snapshot.csi_nodes if c.metadata.name == view.node), None)
        if csi is None:
            return {}
        limits = {
            driver.name: driver.allocatable.count
            for driver in csi.spec.drivers
            if driver.allocatable is not None and driver.allocatable.count is not None
        }
        used: dict[str, set[str]] = {driver: set() for driver in limits}
        for pod in view.pods:
            for driver, claims in self.volumes.by_driver(pod).items():
                if driver in used:
                    used[driver] |= claims
        return {driver: limit - len(used[driver]) for driver, limit in limits.items()}


def _sizes(pods: PodClass) -> tuple[int, int, int]:
    """What makes a class hard to place: special resources, then CPU, then memory."""
    special = set(pods.requests) - {"cpu", "memory", "pods", "ephemeral-storage"}
    return len(special), pods.requests.get("cpu", 0), pods.requests.get("memory", 0)


def _priorities(classes: Sequence[PriorityClass]) -> dict[str, int]:
    """The values by name; by the empty name, that of the class for pods that name none."""
    values = {c.metadata.name: c.value for c in classes}
    defaults = sorted(c.metadata.name for c in classes if c.global_default)
    return values | {"": values[defaults[0]]} if defaults else values


def _without(known: Iterable[NodeView], planned: frozenset[str]) -> tuple[NodeView, ...]:
    """Nodes without the pods that are planned anew: those that must move, and those that files nominate for a node.

    What stays on a node that is going runs and counts until it is gone, as the scheduler counts it.
    """
    return tuple(
        replace(view, pods=tuple(pod for pod in view.pods if pod.key not in planned))
        if any(pod.key in planned for pod in view.pods)
        else view
        for view in known
    )


def _values_of(key: str, pool: Pool, found: Fit, row: Amounts, types: Mask) -> set[str]:
    """The values of a key over those of the types that hold one such pod, where they are sold."""
    if found.conflict:
        return set()
    holding = found.types & types & (pool.room >= row).all(axis=1)
    node = NewNode("", pool, found.requirements, holding, found.columns, row, {})
    return set(node.values(key)) if holding.any() else set()


def pending(problem: Problem, known: Iterable[NodeView]) -> tuple[Pod, ...]:
    """The pods to place: those that wait, and those whose node is about to go (Karpenter `Provisioner.Schedule`)."""
    only_marked = problem.options.only_marked_unschedulable
    waiting = [pod for pod in problem.snapshot.pods if is_pending(pod, only_marked=only_marked)]
    moving = [
        pod
        for view in known
        if view.is_leaving
        for pod in view.pods
        if pod.spec.node_name and _must_move(pod, problem.snapshot)
    ]
    return tuple(sorted((*waiting, *moving), key=lambda pod: pod.key))


def _must_move(pod: Pod, snapshot: Snapshot) -> bool:
    """Currently reschedulable: alive, not protected, and not behind a budget that never lets go."""
    return is_reschedulable(pod) and not is_protected(pod, snapshot.now) and not _is_blocked(pod, snapshot)


def _is_blocked(pod: Pod, snapshot: Snapshot) -> bool:
    matching = [
        budget
        for budget in snapshot.disruption_budgets
        if budget.metadata.namespace == pod.metadata.namespace
        and read(budget.spec.selector).matches(pod.metadata.labels)
    ]
    return len(matching) > 1 or any(is_fully_blocking(budget) for budget in matching)
