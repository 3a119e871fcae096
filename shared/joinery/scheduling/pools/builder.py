"""From NodePools to ``Pool``: requirements, daemon overhead by instance type, limits, and why a pool is left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from joinery.apis.core import DaemonSet, Pod, PodSpec
from joinery.apis.labels import INITIALIZED, NODE_POOL, REGISTERED, canonical
from joinery.apis.meta import Requirement
from joinery.apis.nodeclass import NodeClass
from joinery.apis.nodepool import NodePool
from joinery.apis.quantity import Resources, amount, total
from joinery.apis.validation import validate
from joinery.scheduling.constraints.nodeterms import alternatives, selector
from joinery.scheduling.constraints.requirements import Requirements, UnknownOperatorError, of_labels, one_of, read
from joinery.scheduling.constraints.resources import host_ports_of, requests_of
from joinery.scheduling.constraints.taints import TOLERATE_PREFERRED, TaintLike, first_untolerated
from joinery.scheduling.pools.node_size import most_pods
from joinery.scheduling.pools.pool import (
    OFFERING_KEYS,
    Amounts,
    Axis,
    Fit,
    Market,
    Mask,
    Pool,
    Resident,
    market,
    there_are,
)
from joinery.scheduling.pools.reserved import spent
from joinery.scheduling.problem import Problem
from joinery.scheduling.reason import Reason, ReasonCode, Subject
from joinery.state.nodes import NodeView
from joinery.state.pods import is_active, is_daemon


@dataclass(frozen=True, eq=False)
class Daemon:
    """One DaemonSet's pod as it would run on a node: requests, ports, tolerations, and any one of ``terms``."""

    name: str
    pod: Pod
    requests: Resources
    terms: tuple[Requirements, ...]

    def tolerates(self, taints: Iterable[TaintLike]) -> bool:
        """Whether no taint keeps the pod away; a PreferNoSchedule taint never does."""
        return first_untolerated((*self.pod.spec.tolerations, TOLERATE_PREFERRED), taints) is None

    def runs_on(self, view: NodeView) -> bool:
        """Whether the DaemonSet controller puts a pod on an existing node: its labels and taints decide."""
        if not self.tolerates(view.taints):
            return False
        labels = {**view.labels, REGISTERED: "true", INITIALIZED: "true"} if view.claim else view.labels
        return any(term.matches(labels) for term in self.terms)


def daemons(sets: Iterable[DaemonSet], pods: Iterable[Pod]) -> tuple[Daemon, ...]:
    """The pods of all DaemonSets: where their templates let them run, taking what the newest of ``pods`` takes.

    Admission may give pods other requests than their template has. A DaemonSet that cannot be read is left
    out of the overhead.
    """
    found = []
    newest = _newest_pods(pods)
    for owner in sorted(sets, key=lambda d: (d.metadata.namespace, d.metadata.name)):
        spec = _as_live(
            owner.spec.template.spec, newest.get((owner.metadata.namespace or "default", owner.metadata.name))
        )
        namespace = owner.metadata.namespace or "default"
        pod = Pod(metadata=msgspec.structs.replace(owner.spec.template.metadata, namespace=namespace), spec=spec)
        try:
            terms = _daemon_terms(pod.spec)
            found.append(Daemon(f"{owner.metadata.namespace}/{owner.metadata.name}", pod, requests_of(pod), terms))
        except (ValueError, UnknownOperatorError):
            continue
    return tuple(found)


def _newest_pods(pods: Iterable[Pod]) -> Mapping[tuple[str, str], Pod]:
    """By namespace and name of their DaemonSet."""
    listed = sorted(
        (pod for pod in pods if is_daemon(pod) and is_active(pod)),
        key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.metadata.name),
    )
    return {(p.metadata.namespace or "default", o.name): p for p in listed for o in p.metadata.owner_references}


def _as_live(template: PodSpec, pod: Pod | None) -> PodSpec:
    if pod is None:
        return template
    live = pod.spec
    return msgspec.structs.replace(
        template,
        containers=live.containers,
        init_containers=live.init_containers,
        overhead=live.overhead,
        resources=live.resources,
    )


def _daemon_terms(spec: PodSpec) -> tuple[Requirements, ...]:
    chosen = selector(spec.node_selector.items())
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return (chosen,)
    return tuple(chosen.intersect(term) for term in alternatives(required.node_selector_terms))


def axis_of(pods: Iterable[Resources], sets: Iterable[Daemon]) -> Axis:
    """Every resource that a pod or a daemon asks for."""
    names = {name for requests in pods for name in requests} | {n for d in sets for n in d.requests}
    return Axis(tuple(sorted(names | {"cpu", "memory", "pods"})))


class PoolBuilder:
    """Builds the pools of a problem; ``rejected`` collects why others take no part."""

    def __init__(
        self, problem: Problem, axis: Axis, sets: Sequence[Daemon], nodes: Sequence[NodeView], pending: int = 0
    ) -> None:
        self._pending = pending
        self._problem = problem
        self._axis = axis
        self._daemons = sets
        self._nodes = nodes
        self._markets: dict[str, Market] = {}
        self.rejected: list[Reason] = []

    def pools(self) -> tuple[Pool, ...]:
        """Usable pools, heaviest first, equal weights by name, last first (Karpenter `OrderByWeight`)."""
        listed = sorted(self._problem.snapshot.node_pools, key=lambda p: p.metadata.name, reverse=True)
        listed.sort(key=lambda p: -(p.spec.weight or 0))
        for invalid in self._problem.snapshot.invalid:
            if invalid.kind == "NodePool":
                self.rejected.append(Reason(ReasonCode.INVALID, invalid.reason, Subject.node_pool(invalid.name)))
        return tuple(pool for node_pool in listed if (pool := self._pool(node_pool)) is not None)

    def _pool(self, node_pool: NodePool) -> Pool | None:
        problem = self._unusable(node_pool)
        if problem is None:
            try:
                built = self._build(node_pool)
            except UnknownOperatorError as error:
                problem = Reason(ReasonCode.INVALID, str(error))
            else:
                if isinstance(built, Pool):
                    return built
                problem = built
        self.rejected.append(replace(problem, subject=Subject.node_pool(node_pool.metadata.name)))
        return None

    def _unusable(self, node_pool: NodePool) -> Reason | None:
        if node_pool.is_static:
            return Reason(ReasonCode.STATIC, "it has a fixed number of replicas and takes no pending pods")
        if node_pool.metadata.deletion_timestamp is not None:
            return Reason(ReasonCode.DELETING, "it is being deleted")
        if reasons := validate(node_pool):
            return Reason(ReasonCode.INVALID, "; ".join(reasons))
        ready = next((c for c in node_pool.status.conditions if c.type == "Ready"), None)
        if ready is not None and ready.status == "False":
            return Reason(ReasonCode.NOT_READY, f"it is not ready: {ready.message or ready.reason}")
        return self._class_problem(node_pool)

    def _class_problem(self, node_pool: NodePool) -> Reason | None:
        ref = node_pool.spec.template.spec.node_class_ref
        if not self._problem.snapshot.serves(node_pool):
            return Reason(
                ReasonCode.NODE_CLASS, f"its node class is a {ref.kind}.{ref.group}, which Joinery does not serve"
            )
        found = next((c for c in self._problem.snapshot.node_classes if c.metadata.name == ref.name), None)
        if found is None:
            invalid = next((i for i in self._problem.snapshot.invalid if i.name == ref.name), None)
            if invalid is not None and invalid.kind == ref.kind:
                return Reason(ReasonCode.NODE_CLASS, f"{ref.kind} {ref.name} is invalid: {invalid.reason}")
            return Reason(ReasonCode.NODE_CLASS, f"{ref.kind} {ref.name} does not exist")
        return _class_readiness(found)

    def _build(self, node_pool: NodePool) -> Pool | Reason:
        spec = node_pool.spec.template.spec
        if spec.node_class_ref.name not in self._markets:
            types = self._problem.instance_types.get(spec.node_class_ref.name, ())
            self._markets[spec.node_class_ref.name] = market(types, self._axis)
        known = self._markets[spec.node_class_ref.name]
        own = {
            NODE_POOL: one_of((node_pool.metadata.name,)),
            spec.node_class_ref.of_kind.label: one_of((spec.node_class_ref.name,)),
        }
        requirements = (
            read(spec.requirements)
            .intersect(of_labels(node_pool.spec.template.metadata.labels))
            .intersect(Requirements(own))
            .canonical()
        )
        empty = next((key for key in sorted(requirements) if requirements.sets[key].is_impossible), None)
        if empty is not None:
            return Reason(ReasonCode.REQUIREMENTS, f"its own requirements and labels leave no value for {empty}")
        everything = np.ones(len(known.types), dtype=np.bool_), np.ones(len(known.columns), dtype=np.bool_)
        bare = _bare(node_pool, known, requirements, everything)
        admitted = bare.fit(_on_types(requirements, known))
        sold = admitted.types & np.isfinite(known.prices[:, admitted.columns]).any(axis=1)
        if admitted.conflict or not sold.any():
            return _nothing_left(admitted, bare)
        overhead, ports = self._overhead(known, bare)
        crowded = sold & (known.allocatable < overhead).any(axis=1)
        pool = Pool(
            node_pool=node_pool,
            market=known,
            requirements=requirements,
            min_values=_min_values(spec.requirements),
            overhead=overhead,
            room=self._capped(node_pool, known.allocatable - overhead),
            ports=ports,
            types=sold & ~crowded,
            crowded=crowded,
            columns=admitted.columns,
            limits=self._remaining(node_pool),
            launch_types=self._problem.options.launch_types,
            residents=tuple(self._residents(bare, admitted, sold & ~crowded)),
        )
        return pool if self._problem.options.best_effort_min_values else _too_uniform(pool) or pool

    def _capped(self, node_pool: NodePool, room: Amounts) -> Amounts:
        """No more pods than the pool's max-node-share of those that run there or wait."""
        own = (view for view in self._nodes if view.pool == node_pool.metadata.name)
        most = most_pods(node_pool, self._pending + sum(not is_daemon(pod) for view in own for pod in view.pods))
        if most is not None:
            column = self._axis.index["pods"]
            room[:, column] = np.minimum(room[:, column], most)
        return room

    def _overhead(self, known: Market, bare: Pool) -> tuple[Amounts, tuple[frozenset[tuple[str, str, int]], ...]]:
        """What the DaemonSets' pods take on a node of each type; startup taints do not keep them away (3.17).

        Where DaemonSets are for some zones, or for spot, the most that they take anywhere is counted for all nodes of
        the type.
        """
        sold = np.isfinite(known.prices)
        taken = np.zeros((len(known.columns), *known.allocatable.shape), dtype=np.int64)
        ports: list[frozenset[tuple[str, str, int]]] = [frozenset()] * len(known.types)
        for daemon, fits in self._running(bare):
            runs = np.logical_or.reduce([sold & found.types[:, None] & found.columns for found in fits])
            taken[runs.T] += self._axis.vector(daemon.requests)
            if needed := host_ports_of(daemon.pod):
                ports = [p | needed if runs[i].any() else p for i, p in enumerate(ports)]
        return taken.max(axis=0, initial=0), tuple(ports)

    def _running(self, bare: Pool) -> Iterator[tuple[Daemon, list[Fit]]]:
        """The DaemonSets whose pods some node of the pool runs,
        with what each of their terms leaves of the template.
        """
        for daemon in self._daemons:
            if daemon.tolerates(bare.taints):
                fits = [found for term in daemon.terms if not (found := bare.fit(_daemon_term(term))).conflict]
                if fits:
                    yield daemon, fits

    def _residents(self, bare: Pool, admitted: Fit, sold: Mask) -> Iterator[Resident]:
        for daemon, fits in self._running(bare):
            everywhere = (f for f in fits if not (admitted.columns & ~f.columns).any() and not (sold & ~f.types).any())
            types = np.logical_or.reduce([found.types for found in fits]) & sold
            if types.any():
                yield Resident(daemon.pod, is_on_all=next(everywhere, None) is not None, types=types)

    def _remaining(self, node_pool: NodePool) -> Mapping[str, int]:
        limits = {name: amount(name, text) for name, text in node_pool.spec.limits.items()}
        if not limits:
            return limits
        used = total(
            {**view.capacity, "nodes": 1}
            for view in self._nodes
            if view.pool == node_pool.metadata.name and not view.is_leaving
        )
        return {name: limit - used.get(name, 0) for name, limit in limits.items()}


def _min_values(requirements: Iterable[Requirement]) -> Mapping[str, int]:
    """How many values of each label must stay possible: the most that any requirement on it says."""
    found: dict[str, int] = {}
    for requirement in requirements:
        if requirement.min_values is not None:
            key = canonical(requirement.key)
            found[key] = max(found.get(key, 0), requirement.min_values)
    return found


def _too_uniform(pool: Pool) -> Reason | None:
    """A pool whose minValues not even a node without DaemonSets could meet."""
    lacking = pool.too_few(pool.types | pool.crowded, pool.columns)
    if lacking is None:
        return None
    key, possible = lacking
    return Reason.of(
        ReasonCode.MIN_VALUES,
        "minValues of {label} is {min_values}, and only {possible} of its values can be had",
        label=key,
        min_values=pool.min_values[key],
        possible=possible,
    )


def _bare(node_pool: NodePool, known: Market, requirements: Requirements, everything: tuple[Mask, Mask]) -> Pool:
    """A pool without overhead or limits: enough to ask which types a requirement leaves."""
    types, columns = everything
    nothing = np.zeros_like(known.allocatable)
    return Pool(
        node_pool=node_pool, market=known, requirements=requirements, min_values={}, overhead=nothing,
        room=known.allocatable, ports=(), types=types, crowded=np.zeros_like(types), columns=columns, limits={},
        launch_types=0,
    )  # fmt: skip


def _on_types(requirements: Requirements, known: Market) -> Requirements:
    """The part of a template's requirements that instance types and offerings can satisfy or break."""
    keys = known.type_keys | set(OFFERING_KEYS)
    return Requirements({key: allowed for key, allowed in requirements.sets.items() if key in keys})


def _daemon_term(term: Requirements) -> Requirements:
    """A daemon may select nodes that are registered or initialised: every node will be."""
    skipped = {REGISTERED, INITIALIZED}
    return Requirements({key: allowed for key, allowed in term.sets.items() if key not in skipped})


def _nothing_left(admitted: Fit, pool: Pool) -> Reason:
    ref = pool.node_pool.spec.template.spec.node_class_ref
    if admitted.conflict:
        allowed = admitted.requirements.get(admitted.conflict)
        return Reason(
            ReasonCode.REQUIREMENTS,
            (
                f"no instance type of {ref.kind} {ref.name} has {admitted.conflict} "
                f"{allowed}{there_are(pool, admitted.conflict)}"
            ),
        )
    used = spent(pool, admitted.columns, {}) if not (admitted.columns & pool.bought).any() else ""
    return (
        Reason(ReasonCode.RESERVED, used)
        if used
        else Reason(ReasonCode.OFFERINGS, "no instance type that it allows has an available offering")
    )


def _class_readiness(node_class: NodeClass) -> Reason | None:
    subject = f"{node_class.kind} {node_class.metadata.name}"
    if node_class.is_deleting:
        return Reason(ReasonCode.NODE_CLASS, f"{subject} is being deleted")
    for lacking in node_class.unsupported:
        return Reason(ReasonCode.NOT_SUPPORTED, f"not supported yet: {subject}: {lacking.field}: {lacking.problem}")
    ready = node_class.ready
    if ready is not None and ready.status == "False":
        return Reason(ReasonCode.NODE_CLASS, f"{subject} is not ready: {ready.message or ready.reason}")
    return None
