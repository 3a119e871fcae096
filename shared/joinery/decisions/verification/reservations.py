"""Capacity reservations: none gets more nodes than it has instances left, and no launch may take another's."""

from collections import Counter
from collections.abc import Iterator

from joinery.decisions.scheduling.reason import Subject, SubjectKind
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.launch_options import LaunchOptions
from joinery.decisions.verification.violation import Violation, ViolationCode, of_launch
from joinery.objects.karpenter.labels import RESERVATION_ID
from joinery.objects.snapshot.claims import awaits_launch


def check_reservations(state: FinalState, options: LaunchOptions) -> Iterator[Violation]:
    """Each launch allows the reservation that it counts on and nothing else,
    or none at all; and all launches together.
    """
    for launch, _ in state.launched:
        allowed = {place[2] for option in options.usable(launch) for place in option.places}
        others = sorted(allowed - {launch.offering.reservation})
        if others:
            message = f"the launch may take a place in capacity reservation {others[0]} that it does not count on"
            if others == [""]:
                message = f"the launch need not go into {launch.offering.reservation}, on which it counts"
            yield Violation(ViolationCode.RESERVATION, message, of_launch(launch))
    counted = Counter(launch.offering.reservation for launch, _ in state.launched if launch.offering.reservation)
    for name, number in sorted(counted.items()):
        left = _left(state, name)
        if number > left:
            template = "{launches} launches in it with this plan, and it takes {left} more"
            subject = Subject(SubjectKind.CAPACITY_RESERVATION, name)
            yield Violation.of(ViolationCode.RESERVATION, template, subject, launches=number, left=left)


def _left(state: FinalState, name: str) -> int:
    """The least that any node class says of it, without the claims that may yet be launched in it."""
    remaining = [
        offering.reservation.remaining
        for types in state.problem.instance_types.values()
        for kind in types
        for offering in kind.offerings
        if offering.reservation and offering.reservation.id == name
    ]
    waiting = [
        claim
        for claim in state.problem.snapshot.managed_claims
        if awaits_launch(claim)
        and any(r.key == RESERVATION_ID and r.operator == "In" and name in r.values for r in claim.spec.requirements)
    ]
    return max(min(remaining, default=0) - len(waiting), 0)
