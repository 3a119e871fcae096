"""From a NodePool to a ``Pool``: what it may buy, what DaemonSets take of it, and what its limits leave."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from joinery.decisions.scheduling.constraints.requirements import (
    Requirements,
    UnknownOperatorError,
    of_labels,
    one_of,
    read,
)
from joinery.decisions.scheduling.constraints.resources import host_ports_of
from joinery.decisions.scheduling.pools.daemonsets import Daemon
from joinery.decisions.scheduling.pools.deaths import closed_images, launch_holds
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Amounts, Axis, Market, Mask, market_of
from joinery.decisions.scheduling.pools.node_size import most_pods
from joinery.decisions.scheduling.pools.ordinary import peculiar, says_kinds
from joinery.decisions.scheduling.pools.pool import Fit, HostPorts, Pool, Resident
from joinery.decisions.scheduling.pools.rejections import STATIC, nothing_for_sale, unmet_min_values, unusable
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode, Subject
from joinery.objects.karpenter.labels import NODE_POOL, canonical
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.quantity import amount, total
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.offerings import InstanceType

#: The daemons that some node of a pool runs, each with what its terms leave of the pool's types and columns.
_Running = Sequence[tuple[Daemon, Sequence[Fit]]]


def build_pools(
    problem: Problem, axis: Axis, daemons: Sequence[Daemon], nodes: Sequence[NodeView], pending: int = 0
) -> tuple[tuple[Pool, ...], tuple[Reason, ...]]:
    """The NodePools that may launch for pods, and a reason for each of the others.

    ``nodes``: those that exist or are on their way; they count against limits. ``pending``: how many pods wait.
    Pools come heaviest first; among equal weights the last by name comes first (Karpenter `OrderByWeight`).
    """
    snapshot = problem.snapshot
    builder = _Builder(problem, axis, daemons, nodes, pending)
    pools = []
    rejections = [
        Reason(ReasonCode.INVALID, document.reason, Subject.node_pool(document.name))
        for document in snapshot.invalid
        if document.kind == "NodePool"
    ]
    by_name = sorted(snapshot.node_pools, key=lambda node_pool: node_pool.metadata.name, reverse=True)
    for node_pool in sorted(by_name, key=lambda node_pool: -(node_pool.spec.weight or 0)):
        outcome = STATIC if node_pool.is_static else builder.build(node_pool)
        if isinstance(outcome, Pool):
            pools.append(outcome)
        else:
            rejections.append(replace(outcome, subject=Subject.node_pool(node_pool.metadata.name)))
    return tuple(pools), tuple(rejections)


def build_static_pools(
    problem: Problem, axis: Axis, daemons: Sequence[Daemon], nodes: Sequence[NodeView], *, names: Iterable[str]
) -> tuple[tuple[Pool, ...], tuple[Reason, ...]]:
    """Of the static NodePools of these names those that may launch, by name, and a reason for each of the others."""
    builder = _Builder(problem, axis, daemons, nodes, pending=0)
    node_pools = problem.snapshot.pools_by_name
    outcomes = {name: builder.build(node_pools[name]) for name in sorted(names)}
    pools = tuple(_of_ordinary_types(outcome) for outcome in outcomes.values() if isinstance(outcome, Pool))
    rejections = tuple(
        replace(outcome, subject=Subject.node_pool(name))
        for name, outcome in outcomes.items()
        if isinstance(outcome, Reason)
    )
    return pools, rejections


class _Builder:
    """What all pools of a problem are built from. Pools of the same instance types share their market."""

    def __init__(
        self, problem: Problem, axis: Axis, daemons: Sequence[Daemon], nodes: Sequence[NodeView], pending: int
    ) -> None:
        self._problem = problem
        self._axis = axis
        self._daemons = daemons
        self._nodes = nodes
        self._most_pods = most_pods(problem.snapshot.node_pools, nodes, pending)
        self._markets: dict[tuple[str, int], Market] = {}
        self._holds = launch_holds(problem.snapshot)

    def build(self, node_pool: NodePool) -> Pool | Reason:
        if reason := unusable(node_pool, self._problem.snapshot):
            return reason
        try:
            requirements = _template_requirements(node_pool)
        except UnknownOperatorError as error:
            return Reason(ReasonCode.INVALID, str(error))
        impossible = next((key for key in sorted(requirements) if requirements.sets[key].is_impossible), None)
        if impossible is not None:
            return Reason(ReasonCode.REQUIREMENTS, f"its own requirements and labels leave no value for {impossible}")
        template = _template_pool(node_pool, self._market(node_pool), requirements)
        admitted = template.fit(_about_types(template))
        if admitted.conflict or not admitted.sold.any():
            closed = closed_images(self._holds, node_pool.spec.template.spec.node_class_ref.name)
            return next(iter(closed.values()), None) or nothing_for_sale(admitted, template)
        pool = self._pool(template, admitted)
        if self._problem.options.best_effort_min_values:
            return pool
        return unmet_min_values(pool) or pool

    def _market(self, node_pool: NodePool) -> Market:
        node_class, types = node_pool.spec.template.spec.node_class_ref.name, self._problem.types_of(node_pool)
        key = node_class, id(types)
        if key not in self._markets:
            self._markets[key] = market_of(self._launchable(node_class, types), self._axis)
        return self._markets[key]

    def _launchable(self, node_class: str, types: Sequence[InstanceType]) -> Sequence[InstanceType]:
        """These types of a class without those whose instances would die at launch."""
        closed = closed_images(self._holds, node_class)
        if not closed:
            return types
        image_for = self._problem.snapshot.classes_by_name[node_class].image_for
        return [instance_type for instance_type in types if image_for(instance_type.labels) not in closed]

    def _pool(self, template: Pool, admitted: Fit) -> Pool:
        node_pool, market = template.node_pool, template.market
        running = self._running(template, admitted)
        overhead, ports = self._daemon_overhead(market, running)
        crowded = admitted.sold & (market.allocatable < overhead).any(axis=1)
        types = admitted.sold & ~crowded
        return Pool(
            node_pool=node_pool,
            market=market,
            requirements=template.requirements,
            min_values=_min_values(node_pool.spec.template.spec.requirements),
            overhead=overhead,
            room=self._capped(node_pool, market.allocatable - overhead),
            ports=ports,
            types=types,
            crowded=crowded,
            columns=admitted.columns,
            limits=self._left_of_limits(node_pool),
            launch_types=self._problem.options.launch_types,
            residents=_residents(running, types, admitted.columns),
            peculiar=self._peculiar(template, types),
            defaults=template.defaults,
        )

    def _peculiar(self, template: Pool, types: Mask) -> Mask | None:
        if not self._problem.options.ordinary_types or says_kinds(template.requirements):
            return None
        found: Mask = peculiar(template.market) & types
        return found if found.any() else None

    def _running(self, template: Pool, admitted: Fit) -> _Running:
        """Without daemons that are too large for whatever the pool may buy: kube-scheduler leaves them pending."""
        running = []
        sold = np.isfinite(template.market.prices) & admitted.types[:, None] & admitted.columns
        # Startup taints do not matter: the node loses them, and its daemons come (Karpenter `isDaemonPodCompatible`).
        for daemon in self._daemons:
            if daemon.tolerates(template.taints):
                fits = [fit for term in daemon.new_node_terms if not (fit := template.fit(term)).conflict]
                holding = sold & template.has_room(self._axis.asked(daemon.requests))[:, None]
                if any((holding & fit.types[:, None] & fit.columns).any() for fit in fits):
                    running.append((daemon, fits))
        return running

    def _daemon_overhead(self, market: Market, running: _Running) -> tuple[Amounts, tuple[HostPorts, ...]]:
        """int64[types, resources] that the DaemonSets' pods take on a node of each type, and their host ports by type.

        Some DaemonSets run in some zones only, or only on spot nodes. A node's zone is not known until late, so the
        most that they take in any column counts for all nodes of the type.
        """
        sold = np.isfinite(market.prices)
        taken = np.zeros((len(market.columns), *market.allocatable.shape), dtype=np.int64)
        ports: list[HostPorts] = [frozenset()] * len(market.types)
        for daemon, fits in running:
            runs = np.logical_or.reduce([sold & fit.types[:, None] & fit.columns for fit in fits])
            taken[runs.T] += self._axis.asked(daemon.requests)
            if daemon_ports := host_ports_of(daemon.pod):
                ports = [used | daemon_ports if runs[row].any() else used for row, used in enumerate(ports)]
        return taken.max(axis=0, initial=0), tuple(ports)

    def _capped(self, node_pool: NodePool, room: Amounts) -> Amounts:
        """The room, with no more pods on a node than ``joinery.dev/max-node-share`` allows."""
        most = self._most_pods.get(node_pool.metadata.name)
        if most is not None:
            column = self._axis.index["pods"]
            room[:, column] = np.minimum(room[:, column], most)
        return room

    def _left_of_limits(self, node_pool: NodePool) -> Mapping[str, int]:
        """The NodePool's limits less the capacity of its nodes. Nodes that are being deleted no longer count."""
        limits = {name: amount(name, text) for name, text in node_pool.spec.limits.items()}
        if not limits:
            return limits
        used = total(
            {**self._problem.charged(view), "nodes": 1}
            for view in self._nodes
            if view.pool == node_pool.metadata.name and not view.is_leaving
        )
        return {name: limit - used.get(name, 0) for name, limit in limits.items()}


def _of_ordinary_types(pool: Pool) -> Pool:
    """A static pool, of ordinary types alone where it may have any: no pod asks its nodes for others."""
    if pool.peculiar is None or not (pool.types & ~pool.peculiar).any():
        return pool
    return replace(pool, types=pool.types & ~pool.peculiar)


def _template_requirements(node_pool: NodePool) -> Requirements:
    """What every node of the pool satisfies: requirements, labels, and the names of pool and class as labels.

    Raises ``UnknownOperatorError``.
    """
    template = node_pool.spec.template
    ref = template.spec.node_class_ref
    names = {NODE_POOL: one_of((node_pool.metadata.name,)), ref.of_kind.label: one_of((ref.name,))}
    return (
        read(node_pool.requirements)
        .intersect(of_labels(template.metadata.labels))
        .intersect(Requirements(names))
        .canonical()
    )


def _template_pool(node_pool: NodePool, market: Market, requirements: Requirements) -> Pool:
    """A pool with all types and columns, and without overhead or limits: enough to ask it which types are left."""
    return Pool(
        node_pool=node_pool,
        market=market,
        requirements=requirements,
        min_values={},
        overhead=np.zeros_like(market.allocatable),
        room=market.allocatable,
        ports=(),
        types=np.ones(len(market.types), dtype=np.bool_),
        crowded=np.zeros(len(market.types), dtype=np.bool_),
        columns=np.ones(len(market.columns), dtype=np.bool_),
        limits={},
        launch_types=0,
        defaults=read(node_pool.defaults).canonical(),
    )


def _about_types(template: Pool) -> Requirements:
    """Those of a template's requirements that instance types or offerings decide.

    The rest the node is given as labels.
    """
    sets = template.requirements.sets
    return Requirements({key: sets[key] for key in sets if key in OFFERING_KEYS or template.is_by_type(key)})


def _residents(running: _Running, types: Mask, columns: Mask) -> tuple[Resident, ...]:
    """The daemons as residents of a pool that has these types and columns."""
    residents = []
    for daemon, fits in running:
        hosting = np.logical_or.reduce([fit.types for fit in fits]) & types
        if hosting.any():
            is_on_all = any(not (columns & ~fit.columns).any() and not (types & ~fit.types).any() for fit in fits)
            residents.append(Resident(daemon.pod, is_on_all=is_on_all, types=hosting, devices=daemon.devices))
    return tuple(residents)


def _min_values(requirements: Iterable[Requirement]) -> Mapping[str, int]:
    """minValues by label. Where several requirements on a label say one, the largest counts."""
    largest: dict[str, int] = {}
    for requirement in requirements:
        if requirement.min_values is not None:
            key = canonical(requirement.key)
            largest[key] = max(largest.get(key, 0), requirement.min_values)
    return largest
