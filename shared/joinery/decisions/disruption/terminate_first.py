"""Terminate-first: drifted nodes that end before their replacements are launched, where there is no room for both.

A node in a full capacity reservation, or of a type that is not to be had, cannot be replaced first: its replacement
needs the place that it holds. Where a user asks for it (``objects.policies.TerminateFirst``), it ends, and the same
instance type is bought in the same place. Its pods wait meanwhile, so:

- Only drift is a reason. What saves money is never worth that pods wait.
- All pods must go at once: if a budget let one go and kept the other, the first would wait for a node that never ends.
- The packing core says what is bought, and verification agrees, in the cluster as it is once the node is gone. No pod
  is planned onto another node: whether one has room by then is not known yet.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

import msgspec

from joinery.decisions.disruption.candidates import Candidate
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.state.drift import by_drift
from joinery.decisions.scheduling.constraints.budgets import Coverage
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import Stopwatch, solve_unproven
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    RESERVATION_ID,
    RESERVED,
    TERMINATE_FIRST,
    ZONE,
)
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Condition, Pod
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.policies import CHEAPEST, TerminateFirst, terminate_first_of
from joinery.objects.snapshot.nodes import NodeView, cordoned
from joinery.objects.snapshot.offerings import InstanceType, Offering, own_key
from joinery.objects.snapshot.pods import bound_to
from joinery.objects.snapshot.snapshot import Snapshot

IsLate = Callable[[], bool]

_UNSCHEDULABLE = Condition(type="PodScheduled", status="False", reason="Unschedulable")


def terminate_first_for(pool: NodePool, default: frozenset[TerminateFirst]) -> frozenset[TerminateFirst]:
    """Where the NodePool's drifted nodes end first. ``default``: for a pool that does not say.

    An annotation that cannot be read asks for nothing: pods are not to wait by a slip.
    """
    text = pool.metadata.annotations.get(TERMINATE_FIRST)
    if text is None:
        return default
    try:
        return terminate_first_of(text)
    except ValueError:
        return frozenset()


def needs_its_place(candidate: Candidate, problem: Problem) -> bool:
    """Whether the drifted node is in a capacity reservation that has no room for a node more."""
    if DisruptionReason.DRIFTED not in candidate.reasons or candidate.capacity_type != RESERVED:
        return False
    own = _own_offering(candidate.view, problem)
    return own is not None and not own[1].available


def in_its_place(candidate: Candidate, problem: Problem, stopwatch: Stopwatch = lambda: 0.0) -> DecidedCommand | None:
    """The command that ends the node and buys the same type in its place; None where its pods could not go there, or
    not all at once.
    """
    if not candidate.pods or not Coverage(problem.snapshot.disruption_budgets).grants_all(candidate.pods):
        return None
    after = once_gone(candidate.view, candidate.pods, problem)
    if after is None:
        return None
    packing = solve_unproven(after, stopwatch=stopwatch).packing
    pods = {pod.key for pod in candidate.pods}
    launches = tuple(launch for launch in packing.launches if pods.intersection(launch.pods))
    if {pod for launch in launches for pod in launch.pods} != pods or len(launches) != 1:
        return None
    if verify(after, Packing(launches=launches)):
        return None
    savings = candidate.price - launches[0].offering.price
    return DecidedCommand(
        reason=DisruptionReason.DRIFTED,
        message=_message(candidate, savings),
        retire=(candidate.claim.metadata.name,),
        launches=launches,
        pods=tuple(sorted(pods)),
        savings=savings,
        move_price=candidate.move_price,
        terminates_first=True,
    )


def once_gone(view: NodeView, pods: Iterable[Pod], problem: Problem) -> Problem | None:
    """The problem of the node's ``pods`` alone, as it is when the node is gone: its own type is sold in its own place,
    and nothing else. None where that is not known.
    """
    own = _own_offering(view, problem)
    if own is None:
        return None
    kind, offering = own
    reservation = offering.reservation
    freed = msgspec.structs.replace(
        offering,
        available=True,
        reservation=replace(reservation, remaining=max(0, reservation.remaining) + 1) if reservation else None,
    )
    return replace(
        problem,
        snapshot=_without(view, {pod.key for pod in pods}, problem.snapshot),
        instance_types=dict.fromkeys(_keys_of(view, problem), (replace(kind, offerings=(freed,)),)),
        options=replace(problem.options, node_size=CHEAPEST),
    )


def violation(command: DecidedCommand, problem: Problem) -> Objection | None:
    """What verification holds against the command, in the problem's cluster without its node."""
    views_by_claim = {view.claim: view for view in problem.snapshot.views if view.claim in command.retire}
    view = views_by_claim.get(command.retire[0])
    if view is None:
        return Objection(ObjectionCode.NO_PLACE, f"{command.retire[0]} is gone")
    moving = [pod for pod in view.pods if pod.key in command.pods]
    if not Coverage(problem.snapshot.disruption_budgets).grants_all(moving):
        return Objection(ObjectionCode.NO_PLACE, "the budgets of its pods do not let all of them go at once")
    after = once_gone(view, moving, problem)
    if after is None:
        return Objection(ObjectionCode.NO_PLACE, "its own instance type is not sold any more")
    violations = verify(after, Packing(launches=command.launches))
    return Objection(ObjectionCode.NO_PLACE, str(violations[0])) if violations else None


def _keys_of(view: NodeView, problem: Problem) -> list[str]:
    """The keys of the node's types: that of its NodePool's own, and that of its node class."""
    claim = next((claim for claim in problem.snapshot.managed_claims if claim.metadata.name == view.claim), None)
    node_class = claim.spec.node_class_ref.name if claim else ""
    return [key for key in (own_key(node_class, view.pool), node_class) if key in problem.instance_types]


def _own_offering(view: NodeView, problem: Problem) -> tuple[InstanceType, Offering] | None:
    """The type and offering of the node, by its labels."""
    labels = view.labels
    capacity_type = labels.get(CAPACITY_TYPE, "")
    reservation = labels.get(RESERVATION_ID, "") if capacity_type == RESERVED else ""
    place = labels.get(ZONE, ""), capacity_type, reservation
    types = next((problem.instance_types[key] for key in _keys_of(view, problem)), ())
    kind = next((kind for kind in types if kind.name == labels.get(INSTANCE_TYPE)), None)
    for offering in kind.offerings if kind else ():
        if kind is not None and (offering.zone, offering.capacity_type, offering.reservation_id) == place:
            return kind, offering
    return None


def _without(view: NodeView, moving: Collection[str], snapshot: Snapshot) -> Snapshot:
    """The snapshot without the node. The pods ``moving`` wait, and no other node takes any."""
    pods = (_waiting(snapshot.successor(pod)) if pod.key in moving else pod for pod in snapshot.pods)
    return replace(
        snapshot,
        node_claims=tuple(claim for claim in snapshot.node_claims if claim.metadata.name != view.claim),
        nodes=tuple(cordoned(node) for node in snapshot.nodes if node.metadata.name != view.node),
        pods=tuple(pod for pod in pods if pod.key in moving or pod.spec.node_name not in ("", view.node)),
    )


def _waiting(pod: Pod) -> Pod:
    free = bound_to(pod, "")
    status = msgspec.structs.replace(free.status, phase="Pending", conditions=[_UNSCHEDULABLE])
    return msgspec.structs.replace(free, status=status)


def _message(candidate: Candidate, savings: float) -> str:
    count = len(candidate.pods)
    waits = f"{count} pod{' waits' if count == 1 else 's wait'} until its replacement is there"
    cost = f", which costs ${-savings:.4f}/h more" if savings < 0 else ""
    return f"a node ({candidate.instance_type}) ends first, because there is no room for both: {waits}{cost}"


def ended_in_full_reservations(
    candidates: Iterable[Candidate], problem: DisruptionProblem, stopwatch: Stopwatch, is_late: IsLate
) -> Sequence[DecidedCommand]:
    """Commands for drifted nodes that can only be replaced in the place that they hold in a capacity reservation.

    ``is_late``: once it says yes, no more are sought.
    """
    drifted = _ending(candidates, problem, TerminateFirst.RESERVED)
    needy = (one for one in drifted if needs_its_place(one, problem.packing))
    return _in_their_places(needy, problem, stopwatch, is_late)


def ended_where_scarce(
    stuck: Iterable[Candidate], problem: DisruptionProblem, stopwatch: Stopwatch, is_late: IsLate
) -> Sequence[DecidedCommand]:
    """The same for drifted nodes whose pods have no other place (``stuck``), because nothing like them is to be had."""
    return _in_their_places(_ending(stuck, problem, TerminateFirst.SCARCE), problem, stopwatch, is_late)


def _in_their_places(
    drifted: Iterable[Candidate], problem: DisruptionProblem, stopwatch: Stopwatch, is_late: IsLate
) -> Sequence[DecidedCommand]:
    in_time = takewhile(lambda _: not is_late(), drifted)
    commands = (in_its_place(one, problem.packing, stopwatch) for one in in_time)
    return [command for command in commands if command is not None]


def _ending(candidates: Iterable[Candidate], problem: DisruptionProblem, wish: TerminateFirst) -> Sequence[Candidate]:
    """The drifted candidates whose NodePool has that wish, the longest drifted first."""
    default = problem.options.terminate_first
    drifted = [one for one in candidates if one.is_drifted and wish in terminate_first_for(one.pool, default)]
    return sorted(drifted, key=lambda one: by_drift(one.claim))
