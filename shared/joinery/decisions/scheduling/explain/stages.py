"""The rules that decide which instance types of a NodePool could hold a pod, one after another, with what each of them
leaves.

A reason and an explanation are two readings of the same stages: the reason is the stage that leaves nothing, the
explanation is all of them. Only rules that do not depend on the other pods of a plan are here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.constraints.resources import ports_clash
from joinery.decisions.scheduling.constraints.taints import shown
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.explain.devices import short_of_devices
from joinery.decisions.scheduling.explain.shortfall import counted, shortages
from joinery.decisions.scheduling.firstfit.workspace import Usage, Workspace
from joinery.decisions.scheduling.pools.market import OFFERING_KEYS, Mask
from joinery.decisions.scheduling.pools.pool import Fit, Pool, there_are
from joinery.decisions.scheduling.pools.reserved import used_up
from joinery.decisions.scheduling.pools.type_choice import can_meet
from joinery.decisions.scheduling.reason import Reason, ReasonCode, Subject
from joinery.objects.karpenter.labels import GPU_FRACTIONAL, INSTANCE_FAMILY, WELL_KNOWN, is_restricted

_ALLOWED = "instance type that it allows"


@dataclass(frozen=True, eq=False)
class TermInPool:
    """One way in which a pod may use a pool: a term of its node affinity, with one of the places its volumes may be.

    ``wanted``: what the two ask of the pool's nodes, with the pool's defaults; ``fit``: what that leaves of its
    template; ``types``: the instance types that are left by now.
    """

    term: Requirements
    volume: Requirements
    wanted: Requirements
    fit: Fit
    types: Mask

    @property
    def is_contradictory(self) -> bool:
        """Whether the term and the volume leave no value for some label, whatever the pool."""
        return any(allowed.is_impossible for allowed in self.term.intersect(self.volume).sets.values())


@dataclass(frozen=True, eq=False)
class RuleStage:
    """One rule, the ways that it leaves, and the reason if it leaves none."""

    code: ReasonCode
    ways: Sequence[TermInPool]
    reason: Reason | None = None

    @property
    def types(self) -> int:
        """How many instance types some way still allows."""
        return int(np.logical_or.reduce([way.types for way in self.ways]).sum()) if self.ways else 0


@dataclass(frozen=True, eq=False)
class Asked:
    """One class of pods and one pool that it asks for a node. ``usage``: what the packing takes."""

    work: Workspace
    usage: Usage
    pod_class: PodClass
    pool: Pool

    @property
    def subject(self) -> Subject:
        return Subject.node_pool(self.pool.name)

    def ways(self) -> list[TermInPool]:
        """All ways to use the pool, before any rule but the pool's own. Types that DaemonSets fill alone are among
        them, so that a reason can say so.
        """
        pairs = [
            (term.canonical(), v.canonical())
            for term in self.pod_class.terms
            for v in self.pod_class.volumes.alternatives
        ]
        asked = [self.pool.asked(term.intersect(volume)) for term, volume in pairs]
        fits = map(self.pool.whole.fit, asked)
        return [TermInPool(*pair, wanted, fit, fit.types) for pair, wanted, fit in zip(pairs, asked, fits, strict=True)]

    def hard_rules(self) -> list[TopologyRule]:
        """The pod's own rules about other pods that must hold."""
        return [rule for rule in self.work.topology.rules[self.pod_class] if rule.weight is None]


def stages(asked: Asked) -> Iterator[RuleStage]:
    """RuleStage after stage; the first that leaves nothing is the last."""
    ways: Sequence[TermInPool] = asked.ways()
    for rule in _RULES:
        stage = rule(asked, ways)
        yield stage
        if stage.reason is not None:
            return
        ways = stage.ways


# --- taints and labels ---


def _taints(asked: Asked, ways: Sequence[TermInPool]) -> RuleStage:
    taint = asked.pod_class.untolerated(asked.pool.taints)
    if taint is None:
        return RuleStage(ReasonCode.TAINTS, ways)
    template = "the pod does not tolerate its taint {taint}"
    return RuleStage(ReasonCode.TAINTS, (), Reason.of(ReasonCode.TAINTS, template, asked.subject, taint=shown(taint)))


def _requirements(asked: Asked, ways: Sequence[TermInPool]) -> RuleStage:
    possible = [way for way in ways if not way.fit.conflict]
    if possible:
        return RuleStage(ReasonCode.REQUIREMENTS, possible)
    # A way that contradicts itself says nothing about this pool.
    message = _conflict(next(way for way in ways if not way.is_contradictory), asked.pool)
    return RuleStage(ReasonCode.REQUIREMENTS, (), Reason(ReasonCode.REQUIREMENTS, message, asked.subject))


def _conflict(way: TermInPool, pool: Pool) -> str:
    """What the pod wants, by this way's term, or its volume, that the pool's nodes do not have."""
    wanted, key = way.wanted, way.fit.conflict
    if key not in way.term.sets and key not in way.volume.sets:
        return f"no {_ALLOWED} has {key} {wanted.sets[key]}, its default"
    who = "the pod wants" if key in way.term.sets else "its volume demands"
    own = pool.requirements.sets.get(key)
    if own is not None and own.intersect(wanted.sets[key]).is_impossible:
        return f"{who} {key} {wanted.sets[key]}, the NodePool has {key} {own}"
    if is_restricted(key):
        return f"{who} {key} {wanted.sets[key]}, and no new node can be promised that label"
    if key not in WELL_KNOWN and key not in pool.market.type_keys and key not in OFFERING_KEYS:
        return f"{who} {key} {wanted.sets[key]}, and no node of it has the label {key}"
    other = _partner(pool, wanted, key)
    if other:
        return f"no {_ALLOWED} has {other} {wanted.sets[other]} and {key} {wanted.sets[key]} together"
    return f"no {_ALLOWED} has {key} {wanted.sets[key]}{there_are(pool, key)}"


def _partner(pool: Pool, wanted: Requirements, key: str) -> str | None:
    """Another key without which this one could be met; None if it cannot be met at all."""
    if pool.fit(Requirements({key: wanted.sets[key]})).conflict:
        return None
    # A pod may name thousands of labels that nothing is known of: they stand in nobody's way.
    known = {*pool.market.type_keys, *OFFERING_KEYS, *pool.requirements.sets}
    others = (other for other in wanted if other != key and other in known)
    pairs = (Requirements({other: wanted.sets[other], key: wanted.sets[key]}) for other in others)
    return next((other for pair in pairs if pool.fit(pair).conflict for other in pair if other != key), None)


# --- what is sold, and how large it is ---


def _offerings(asked: Asked, ways: Sequence[TermInPool]) -> RuleStage:
    sold = [left for way in ways if (left := replace(way, types=_sold(asked.pool, way.fit))).types.any()]
    if sold:
        return RuleStage(ReasonCode.OFFERINGS, sold)
    if used := _used_up(asked, ways, np.logical_or.reduce([way.fit.columns for way in ways])):
        return RuleStage(ReasonCode.RESERVED, (), Reason(ReasonCode.RESERVED, used, asked.subject))
    wanted = (way.wanted for way in ways)
    if short := short_of_devices(asked.pool, asked.subject, asked.pod_class.devices, wanted):
        return RuleStage(ReasonCode.DEVICES, (), short)
    message = _only_parts(asked, ways) or "no instance type that it allows is on offer where the pod may run"
    return RuleStage(ReasonCode.OFFERINGS, (), Reason(ReasonCode.OFFERINGS, message, asked.subject))


def _only_parts(asked: Asked, ways: Sequence[TermInPool]) -> str | None:
    """That all types that would do have parts of GPUs, and nobody asks for those; None where it is not so."""
    pool = asked.pool
    fits = [pool.fit(replace(way.wanted, whole_gpus=False)) for way in ways if way.wanted.whole_gpus]
    types = np.logical_or.reduce([_sold(pool, fit) for fit in fits]) if fits else np.zeros_like(pool.types)
    holding = np.flatnonzero(types & pool.has_room(asked.work.axis.vector(asked.pod_class.requests)))
    families = sorted({name for row in holding for name in pool.market.types[row].labels.get(INSTANCE_FAMILY, ())})
    if not families:
        return None
    named = " and ".join(families)
    return f"only {named} would do, which have parts of GPUs: ask for them by {INSTANCE_FAMILY} or {GPU_FRACTIONAL}"


def _sold(pool: Pool, joint: Fit) -> Mask:
    sold: Mask = joint.types & np.isfinite(pool.market.prices[:, joint.columns]).any(axis=1)
    return sold


def _resources(asked: Asked, ways: Sequence[TermInPool]) -> RuleStage:
    work, pool, pod_class = asked.work, asked.pool, asked.pod_class
    holds = pool.has_room(work.axis.asked(pod_class.requests))
    large = [left for way in ways if (left := replace(way, types=way.types & holds)).types.any()]
    if large:
        return RuleStage(ReasonCode.RESOURCES, large)
    if only := _only_parts(asked, ways):
        return RuleStage(ReasonCode.RESOURCES, (), Reason(ReasonCode.RESOURCES, only, asked.subject))
    types = ways[0].types
    short = shortages(work.axis, pod_class, pool.room[types], pool.overhead[types])
    reason = Reason(
        ReasonCode.RESOURCES,
        counted(int(types.sum()), _ALLOWED, [(one.number, one.words) for one in short]),
        asked.subject,
        (("instance types", int(types.sum())), *((one.resource, one.number) for one in short)),
    )
    return RuleStage(ReasonCode.RESOURCES, (), reason)


def _reserved(asked: Asked, ways: Sequence[TermInPool]) -> RuleStage:
    columns = np.logical_or.reduce([_selling(asked.pool, way) for way in ways])
    if used := _used_up(asked, ways, columns):
        return RuleStage(ReasonCode.RESERVED, (), Reason(ReasonCode.RESERVED, used, asked.subject))
    return RuleStage(ReasonCode.RESERVED, ways)


def _selling(pool: Pool, way: TermInPool) -> Mask:
    """The offering columns in which any of the types is sold where the pod may run."""
    selling: Mask = way.fit.columns & np.isfinite(pool.market.prices[way.types]).any(axis=0)
    return selling


def _used_up(asked: Asked, ways: Sequence[TermInPool], columns: Mask) -> str | None:
    """What to say of a pod that could be in none of the columns but capacity reservations of which nothing is left;
    else None.
    """
    work, pool = asked.work, asked.pool
    if not work.reservations or (columns & pool.unreserved).any():
        return None
    return used_up(pool, np.logical_or.reduce([way.types for way in ways]), columns, asked.usage.left_reserved)


# --- what DaemonSets and minValues leave ---


def _daemon_sets(asked: Asked, ways: Sequence[TermInPool]) -> RuleStage:
    barring = asked.work.topology.daemons.barring(asked.pod_class, asked.hard_rules(), asked.pool.name)
    if not barring:
        return RuleStage(ReasonCode.TOPOLOGY, ways)
    rules = "; ".join(dict.fromkeys(map(str, barring)))
    template = "the pod and those of DaemonSets on its nodes keep apart: {rules}"
    return RuleStage(ReasonCode.TOPOLOGY, (), Reason.of(ReasonCode.TOPOLOGY, template, asked.subject, rules=rules))


def _host_ports(asked: Asked, ways: Sequence[TermInPool]) -> RuleStage:
    ports = asked.pod_class.ports
    types = np.logical_or.reduce([way.types for way in ways])
    if not ports or not all(ports_clash(ports, asked.pool.ports[i]) for i in np.flatnonzero(types)):
        return RuleStage(ReasonCode.HOST_PORTS, ways)
    taken = ", ".join(f"{port}/{protocol}" for protocol, _, port in sorted(ports))
    template = "DaemonSets take one of its host ports ({ports}) on every node"
    return RuleStage(ReasonCode.HOST_PORTS, (), Reason.of(ReasonCode.HOST_PORTS, template, asked.subject, ports=taken))


def _min_values(asked: Asked, ways: Sequence[TermInPool]) -> RuleStage:
    pool = asked.pool
    if asked.work.problem.options.best_effort_min_values or any(
        can_meet(pool, way.types, way.fit.columns, pool.min_values) for way in ways
    ):
        return RuleStage(ReasonCode.MIN_VALUES, ways)
    return RuleStage(ReasonCode.MIN_VALUES, (), _too_few_values(asked, ways))


def _too_few_values(asked: Asked, ways: Sequence[TermInPool]) -> Reason:
    pool = asked.pool
    key, left = next((few for way in ways if (few := pool.too_few(way.types, way.fit.columns))), ("", 0))
    if key:
        return Reason.of(
            ReasonCode.MIN_VALUES,
            "minValues of {label} is {min_values}, and only {left} of its values can be had for the pod",
            asked.subject,
            label=key,
            min_values=pool.min_values[key],
            left=left,
        )
    return Reason.of(
        ReasonCode.MIN_VALUES,
        "no {types} types, which is all that a launch can carry, have the values that its minValues asks for ({least})",
        asked.subject,
        types=pool.launch_types,
        least=", ".join(f"{pool.min_values[key]} of {key}" for key in sorted(pool.min_values)),
    )


#: In the order in which they are given: what the pod's owner can change most easily comes first.
_RULES: tuple[Callable[[Asked, Sequence[TermInPool]], RuleStage], ...] = (
    _taints,
    _requirements,
    _offerings,
    _resources,
    _reserved,
    _daemon_sets,
    _host_ports,
    _min_values,
)
