"""Why a pod went nowhere, pool by pool, in words that its owner understands.

Every reason must be true by itself: what is named here would keep the pod pending even if all else were well.
"""

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.explain.blockers import blocking_rules, is_unbegun
from joinery.decisions.scheduling.explain.devices import failure
from joinery.decisions.scheduling.explain.exhaustion import exhausted
from joinery.decisions.scheduling.explain.shortfall import counted, shortages
from joinery.decisions.scheduling.explain.stages import Asked, RuleStage, TermInPool, stages
from joinery.decisions.scheduling.firstfit.existing_node import ExistingNode
from joinery.decisions.scheduling.firstfit.workspace import Usage, Workspace
from joinery.decisions.scheduling.reason import Reason, ReasonCode


def reasons_for(work: Workspace, usage: Usage, pod_class: PodClass) -> tuple[Reason, ...]:
    """Every pool's reason for refusing the class; the pod's own problem where it has one. ``usage``: of the packing."""
    own = own_problem(work, pod_class) or _of_volumes(work, pod_class)
    if own:
        return own
    reasons = [reason for pool in work.pools for reason in reasons_of_pool(Asked(work, usage, pod_class, pool))]
    reasons += work.rejected_pools
    if not reasons:
        message = "there is no NodePool that could launch a node for it"
        return (Reason(ReasonCode.NO_NODE_POOL, message), *_of_nodes(work, pod_class))
    return tuple(reasons)


def own_problem(work: Workspace, pod_class: PodClass) -> tuple[Reason, ...]:
    """What keeps the class from every node, whichever it is; empty where nothing does."""
    if pod_class.problems:
        return pod_class.problems
    if pod_class in work.held_off:
        return (work.held_off[pod_class],)
    contradiction = _contradiction(pod_class)
    return (contradiction,) if contradiction else ()


def _of_volumes(work: Workspace, pod_class: PodClass) -> tuple[Reason, ...]:
    """What its unbound claims keep it to, where that has no place for it: a node, or volumes that others take."""
    volumes = pod_class.volumes
    if volumes.made_for:
        template = "the volume of its claim {claim} is being made for node {node}, so it may go nowhere else"
        said = (Reason.of(ReasonCode.VOLUME, template, claim=claim, node=node) for claim, node in volumes.made_for)
        return (*said, *_of_nodes(work, pod_class))
    if volumes.choices and not any(work.free_volumes.left(choices, 1) for choices in volumes.choices):
        return (Reason(ReasonCode.VOLUME, "the free volumes that match its claims are taken by other claims"),)
    return ()


def _contradiction(pod_class: PodClass) -> Reason | None:
    """The label of which the pod's own rules, or its volumes', leave no value."""
    wanted = [term.intersect(v).canonical() for term in pod_class.terms for v in pod_class.volumes.alternatives]
    empty = [next((key for key in sorted(one) if one.sets[key].is_impossible), None) for one in wanted]
    if not empty or not all(empty):
        return None
    key = empty[0] or ""
    if all(term.canonical().get(key).is_impossible for term in pod_class.terms):
        whose = "its node selector and affinity"
    elif all(volume.canonical().get(key).is_impossible for volume in pod_class.volumes.alternatives):
        whose = "its volumes"
    else:
        whose = "its volumes, node selector and affinity together"
    return Reason.of(ReasonCode.REQUIREMENTS, "{whose} leave no value for {label}", whose=whose, label=key)


def reasons_of_pool(asked: Asked) -> tuple[Reason, ...]:
    """The stage that leaves no instance type; where all leave some, what stands in the way beyond size."""
    last: RuleStage | None = None
    for last in stages(asked):
        if last.reason is not None:
            return (last.reason,)
    return _beyond_size(asked, last.ways if last else ())


def _beyond_size(asked: Asked, ways: Sequence[TermInPool]) -> tuple[Reason, ...]:
    """Rules about other pods, or limits: one pod alone would fit.

    Limits are named where one more node would help: alone if no rule closes the pool, else after the rule. They are not
    named where rules and minValues together leave no domain to buy in.
    """
    work, pod_class, pool = asked.work, asked.pod_class, asked.pool
    offered = partial(work.offered, pool, pod_class)
    blocking = blocking_rules(work.topology, pod_class, offered)
    if not blocking.are_total and (tied := _tied(asked)):
        return (tied,)
    rules = Reason(ReasonCode.TOPOLOGY, blocking.words, asked.subject)
    limits = exhausted(
        asked.usage,
        pool,
        [(way.fit, way.types) for way in ways],
        lowers_min_values=work.problem.options.best_effort_min_values,
    )
    if limits and not blocking.are_total and is_unbegun(work.topology, pod_class, offered):
        return (Reason(ReasonCode.LIMITS, limits, asked.subject),)
    if not limits or not (blocking.are_total or pod_class in asked.usage.found_domains):
        return (rules,)
    return (*((rules,) if blocking.are_total else ()), Reason(ReasonCode.LIMITS, limits, asked.subject))


def _tied(asked: Asked) -> Reason | None:
    """Why none of its nodes would keep minValues: a rule ties each node to one domain of a label that needs several."""
    if asked.work.problem.options.best_effort_min_values:
        return None
    least = asked.pool.min_values
    rule = next((rule for rule in asked.hard_rules() if least.get(rule.key, 0) > 1), None)
    if rule is None:
        return None
    return Reason.of(
        ReasonCode.MIN_VALUES,
        "minValues of {label} is {min_values}, and a node that keeps {rule} has only one of its values",
        asked.subject,
        label=rule.key,
        min_values=least[rule.key],
        rule=str(rule),
    )


# --- clusters that buy nothing ---


def _of_nodes(work: Workspace, pod_class: PodClass) -> Iterable[Reason]:
    """Why no existing node takes the pod, for clusters in which nothing else could."""
    nodes = [node for node in work.nodes if not node.view.is_unlaunched]
    if not nodes:
        return
    tolerated = [n for n in nodes if not pod_class.untolerated(n.view.taints)]
    rest = [n for n in tolerated if _selects(pod_class, n)]
    parts = [
        (len(nodes) - len(tolerated), "a taint that the pod does not tolerate"),
        (len(tolerated) - len(rest), "other labels than it wants"),
    ]
    asked = work.axis.asked(pod_class.requests)
    small = [n for n in rest if (n.free < asked).any()]
    large = [n for n in rest if not (n.free < asked).any()]
    if small:
        short = shortages(work.axis, pod_class, np.array([n.free for n in small]))
        parts += [(one.number, one.words) for one in short]
    without = [n for n in large if pod_class.devices and not n.serves(pod_class.devices, 1)]
    why = failure(pod_class.devices, (n.stock for n in without))
    parts.append((len(without), f"too few devices for its claims{f' ({why})' if why else ''}"))
    parts.append((len(large) - len(without), "rules about other pods, host ports or volumes against it"))
    yield Reason(ReasonCode.EXISTING_NODES, counted(len(nodes), "existing node", parts))


def _selects(pod_class: PodClass, node: ExistingNode) -> bool:
    return any(
        term.intersect(v).matches(node.view.labels) for term in pod_class.terms for v in pod_class.volumes.alternatives
    )
