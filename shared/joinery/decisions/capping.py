"""A plan within the caps: of what verification agrees with, as much as a run may buy.

Launches are admitted by urgency (``joinery.decisions.scheduling.launch_caps``), and the pods of the others are unplaced
with the cap as their reason. Four things make that more than a choice among launches:

- A plan puts pods of all kinds on one node. So a pod whose node is lost may share a large node with pods of a
  Deployment that runs away, and be left out with them. Then the less urgent pods give way, and the plan is made again
  without them. They are served by a later run, when the more urgent ones have their nodes.
- A pod may ask for a node that no cap ever lets in, and others are put beside it, because it has room for them. So the
  plan is made again without what is too dear.
- A gang's nodes are bought together or not at all (``objects.snapshot.gangs``). One that no run may ever buy is left
  out of the plan, so that pods beside it get nodes of their own.
- A part of a right plan may be wrong: a pod whose affinity looks for one that is left out. So the part is verified as
  the whole was, and if it is wrong the plan is made again without the pods that are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from joinery.decisions import planning
from joinery.decisions.planning import Plan
from joinery.decisions.scheduling.launch_caps import (
    Admission,
    Cap,
    admit_launches,
    cap_alone,
    fits,
    is_too_dear,
    over,
    over_alone,
    purchase_of,
)
from joinery.decisions.scheduling.ledger import with_offerings
from joinery.decisions.scheduling.packing import Launch, Packing, Unplaced
from joinery.decisions.scheduling.paid import recounted
from joinery.decisions.scheduling.pools.deaths import holds_tried
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import Stopwatch
from joinery.decisions.verification.verify import verify
from joinery.objects.snapshot.offerings import InstanceType, Offering
from joinery.objects.snapshot.urgency import LEAST_URGENT, Urgency, lately_served, urgencies

#: How many plans are made at most: a large one takes seconds.
_ROUNDS = 4

#: Plans a problem without the pods that are left out, by name (namespace/name); those are unplaced in the plan.
Planner = Callable[[Problem, Mapping[str, Unplaced]], Plan]


def plan_within_caps(
    problem: Problem, *, stopwatch: Stopwatch = lambda: 0.0, refused: Mapping[str, Unplaced] = MappingProxyType({})
) -> Plan:
    """``joinery.decisions.planning.plan``, within the caps of the problem's options. Costs the same if no cap is in the
    way."""
    return within_caps(
        problem,
        lambda asked, left_out: planning.plan(asked, stopwatch=stopwatch, refused={**refused, **left_out}),
        is_late=planning.lateness(problem, stopwatch),
    )


def within_caps(problem: Problem, planner: Planner, *, is_late: Callable[[], bool] = lambda: False) -> Plan:
    """A plan that exceeds no cap. Every pod that is left out for one is unplaced, with the cap as its reason.

    Once it ``is_late`` nothing is planned again: as much of the plan is admitted as is right by itself.
    """
    plan, caps = planner(problem, {}), problem.options.caps
    on_dear_nodes = [pod for launch in plan.packing.launches if is_too_dear(launch, caps) for pod in launch.pods]
    if plan.violations or not on_dear_nodes or is_late():
        return _admitted(problem, planner, plan, is_late)
    affordable = _affordable(problem)
    rest = _admitted(affordable, planner, planner(affordable, {}), is_late)
    reasons = (over(Cap.HOURLY, caps),)
    packing = replace(
        rest.packing.without_bounds(),
        unplaced=tuple(
            replace(one, reasons=reasons) if one.pod in on_dear_nodes else one for one in rest.packing.unplaced
        ),
        pool_reasons=plan.packing.pool_reasons,
    )
    return replace(rest, packing=packing, proof=None)


def _affordable(problem: Problem) -> Problem:
    """The problem without offerings of which not even one fits under the caps."""
    most = problem.options.caps.max_hourly or 0.0

    def bearable(kind: InstanceType) -> tuple[Offering, ...]:
        return tuple(offering for offering in kind.offerings if offering.list_price <= most)

    return with_offerings(problem, bearable)


def _admitted(problem: Problem, planner: Planner, plan: Plan, is_late: Callable[[], bool]) -> Plan:
    """As much of a plan as the caps allow, or of another one that is made for that."""
    left_out: dict[str, Unplaced] = {}
    gave_way: dict[str, Unplaced] = {}
    urgency_of: Mapping[str, Urgency] = {}
    for rounds_left in reversed(range(_ROUNDS)):
        if left_out or gave_way:
            plan = planner(problem, {**left_out, **gave_way})
        trials = holds_tried(problem, plan.packing.launches)
        if plan.violations or fits(plan.packing.launches, problem.options.caps, trials):
            return plan
        urgency_of = urgency_of or urgencies(problem.snapshot)
        served, bundles = lately_served(problem.snapshot), bundled(problem, plan.packing)
        admission = admit_launches(plan.packing.launches, problem.options.caps, urgency_of, served, trials, bundles)
        if not admission.left_out:
            return plan
        may_plan = rounds_left and not is_late()
        if may_plan and (too_large := _too_large(problem, plan.packing, bundles, urgency_of)):
            left_out |= too_large
        elif may_plan and (crowd := _crowd(plan.packing.launches, admission, urgency_of)):
            gave_way |= crowd
        elif may_plan and gave_way and not admission.launches:
            # What the others gave way to cannot be bought at all. They must not wait for it.
            left_out |= _by_name(admission.unplaced)
            gave_way = {}
        else:
            part = _part(problem, plan, admission)
            if not verify(problem, part.packing):
                return part
            if not may_plan:
                break
            left_out |= _by_name(admission.unplaced)
    return _part(problem, plan, admission.without_launches())


def bundled(problem: Problem, packing: Packing) -> Sequence[Sequence[int]]:
    """Which launches are made together or not at all, by their numbers: those of a gang that needs them, and each other
    one by itself.
    """
    of_launch = {index: {index} for index in range(len(packing.launches))}
    at = {pod: index for index, launch in enumerate(packing.launches) for pod in launch.pods}
    for gang in problem.snapshot.gangs.values():
        there = {at[pod] for pod in gang.members if pod in at}
        if len(there) > 1 and (gang.minimum or 0) > 1:
            joined = set().union(*(of_launch[index] for index in there))
            of_launch |= dict.fromkeys(joined, joined)
    return [sorted(bundle) for index, bundle in of_launch.items() if index == min(bundle)]


def _too_large(
    problem: Problem, packing: Packing, bundles: Sequence[Sequence[int]], urgency_of: Mapping[str, Urgency]
) -> dict[str, Unplaced]:
    """The pods of the least urgent gang of launches that no run may ever make together, with the reason."""
    for bundle in (one for one in bundles if len(one) > 1):
        launches = [packing.launches[index] for index in bundle]
        pods = {pod for launch in launches for pod in launch.pods}
        gangs = [gang for gang in problem.snapshot.gangs.values() if not pods.isdisjoint(gang.members)]
        last = max(gangs, key=lambda gang: (min(urgency_of[pod] for pod in gang.members), gang.key))
        purchase, caps = purchase_of(launches, urgency_of), problem.options.caps
        if cap := cap_alone(purchase, caps):
            # Of gangs that share nodes one may fit by itself, beside those that the others have by then.
            reason = over_alone(cap, purchase, caps, str(last)) if len(gangs) == 1 else over(cap, caps)
            return {pod: Unplaced(pod, (reason,)) for pod in pods.intersection(last.members)}
    return {}


def _by_name(unplaced: Sequence[Unplaced]) -> dict[str, Unplaced]:
    return {pod.pod: pod for pod in unplaced}


def _crowd(launches: Sequence[Launch], admission: Admission, urgency_of: Mapping[str, Urgency]) -> dict[str, Unplaced]:
    """The pods that are less urgent than one that is left out, if any of them shares a node with more urgent ones.

    By name (namespace/name), each with the cap that is in the way.
    """

    def urgency(pod: str) -> Urgency:
        return urgency_of.get(pod, LEAST_URGENT)

    first = min(admission.unplaced, key=lambda unplaced: urgency(unplaced.pod))
    limit = urgency(first.pod)
    crowd = [pod for launch in launches for pod in launch.pods if urgency(pod) > limit]
    # Where they have nodes of their own, these come last anyway.
    is_shared = any(
        min(map(urgency, launch.pods)) <= limit < max(map(urgency, launch.pods)) for launch in launches if launch.pods
    )
    return {pod: Unplaced(pod, first.reasons) for pod in crowd} if is_shared else {}


def _part(problem: Problem, plan: Plan, admission: Admission) -> Plan:
    """The plan with the admitted launches alone. It has no bounds: those of the plan were for all of its pods."""
    names = {pod.pod for pod in admission.unplaced}
    part = replace(
        plan.packing.without_bounds(),
        launches=admission.launches,
        unplaced=tuple(sorted((*plan.packing.unplaced, *admission.unplaced), key=lambda pod: pod.pod)),
        relaxed=tuple(relaxed for relaxed in plan.packing.relaxed if relaxed.pod not in names),
    )
    return replace(plan, packing=recounted(problem, part), proof=None)
