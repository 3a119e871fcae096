"""A plan within the caps: of what verification agrees with, as much as a run may buy.

Launches are admitted by urgency (``joinery.scheduling.admission``), and the pods of the others are unplaced with the
cap as their reason. Two things make that more than a choice among launches:

- A plan puts pods of all kinds on one node. So a pod whose node is lost may share a large node with pods of a
  Deployment that runs away, and be left out with them. Then the less urgent pods give way, and the plan is made again
  without them. They are served by a later run, when the more urgent ones have their nodes.
- A part of a right plan may be wrong: a pod whose affinity looks for one that is left out. So the part is verified as
  the whole was, and if it is wrong the plan is made again without the pods that are left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from joinery import planning
from joinery.planning import Plan
from joinery.scheduling.admission import Admission, admit_launches, fits
from joinery.scheduling.packing import Launch, Unplaced
from joinery.scheduling.problem import Problem
from joinery.scheduling.solve import Stopwatch
from joinery.state.urgency import LEAST_URGENT, Urgency, urgencies
from joinery.verification.verify import verify

#: How many plans are made at most: a large one takes seconds.
_ROUNDS = 4

Planner = Callable[[Mapping[str, Unplaced]], Plan]
"""Plans a problem without the pods that are left out, by name (namespace/name); those are unplaced in the plan."""


def plan_within_caps(
    problem: Problem, *, stopwatch: Stopwatch = lambda: 0.0, refused: Mapping[str, Unplaced] = MappingProxyType({})
) -> Plan:
    """``joinery.planning.plan``, within the caps of the problem's options. Costs the same if no cap is in the way."""
    return within_caps(
        problem,
        lambda left_out: planning.plan(problem, stopwatch=stopwatch, refused={**refused, **left_out}),
    )


def within_caps(problem: Problem, planner: Planner) -> Plan:
    """A plan that exceeds no cap. Every pod that is left out for one is unplaced, with the cap as its reason."""
    left_out: dict[str, Unplaced] = {}
    gave_way: dict[str, Unplaced] = {}
    urgency_of: Mapping[str, Urgency] = {}
    for rounds_left in reversed(range(_ROUNDS)):
        plan = planner({**left_out, **gave_way})
        if plan.violations or fits(plan.packing.launches, problem.options.caps):
            return plan
        urgency_of = urgency_of or urgencies(problem.snapshot)
        admission = admit_launches(plan.packing.launches, problem.options.caps, urgency_of)
        if not admission.left_out:
            return plan
        if rounds_left and (crowd := _crowd(plan.packing.launches, admission, urgency_of)):
            gave_way |= crowd
        elif rounds_left and gave_way and not admission.launches:
            # What the others gave way to cannot be bought at all. They must not wait for it.
            left_out |= _by_name(admission.unplaced)
            gave_way = {}
        else:
            part = _part(plan, admission)
            if not verify(problem, part.packing):
                return part
            left_out |= _by_name(admission.unplaced)
    return _part(plan, admission.without_launches())


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


def _part(plan: Plan, admission: Admission) -> Plan:
    """The plan with the admitted launches alone. It has no bounds: those of the plan were for all of its pods."""
    names = {pod.pod for pod in admission.unplaced}
    part = replace(
        plan.packing.without_bounds(),
        launches=admission.launches,
        unplaced=tuple(sorted((*plan.packing.unplaced, *admission.unplaced), key=lambda pod: pod.pod)),
        relaxed=tuple(relaxed for relaxed in plan.packing.relaxed if relaxed.pod not in names),
    )
    return replace(plan, packing=part)
