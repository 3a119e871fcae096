"""Reserved capacity in a plan: no reservation is overdrawn, and each launch counts on one place in one."""

from dataclasses import replace
from typing import Any

from joinery.decisions.scheduling.packing import Launch, PlacedOffering
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import CAPACITY_TYPE, RESERVATION_ID, RESERVED
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.snapshot.offerings import InstanceType, Offering, Reservation
from simulator.builders import node_claim, node_pool, pod
from tests.unit.decisions.verification.plans import LARGE, SMALL, A, launch, packing, problem, violated

PRICE = 0.1 / 1e7


def _with(kind: InstanceType, *given: Reservation) -> InstanceType:
    """The type with these reservations in zone A."""
    return replace(kind, offerings=(*kind.offerings, *(Offering(A, RESERVED, PRICE, True, "", r) for r in given)))


def _asked(*objects: Any, first: int = 1, second: int = 1) -> Problem:
    """Two pods that need a node each; two reservations, one of which can be interrupted."""
    small = _with(SMALL, Reservation("cr-1", remaining=first), Reservation("cr-2", "default", True, second))
    pods = (pod("a", cpu="1800m"), pod("b", cpu="1800m"))
    return problem(node_pool(), *pods, *objects, types=(small, LARGE))


def _launch(asked: Problem, name: str, to: str, *, ids: tuple[str, ...] = (), ways: tuple[str, ...] = ()) -> Launch:
    """A launch in reservation ``to`` as a planner should write it, or with other ids and capacity types allowed."""
    made = launch(asked, f"default/{name}", name=f"default-{name}")
    rules = (
        Requirement(key=CAPACITY_TYPE, operator="In", values=list(ways or (RESERVED,))),
        *((Requirement(key=RESERVATION_ID, operator="In", values=list(ids or (to,))),) if ways == () else ()),
    )
    offering = PlacedOffering("m7a.large", A, RESERVED, PRICE, to)
    return replace(made, requirements=(*made.requirements, *rules), offering=offering)


def test_launches_in_two_reservations_are_right() -> None:
    """Each has one place, and each is taken once."""
    asked = _asked()
    assert violated(asked, packing(_launch(asked, "a", "cr-1"), _launch(asked, "b", "cr-2"))) == set()


def test_a_reservation_is_not_overdrawn() -> None:
    """Two launches in a reservation that takes one more are refused, and two in one that takes two are not."""
    for first, codes in ((1, {"Reservation"}), (2, set())):
        asked = _asked(first=first)
        assert violated(asked, packing(_launch(asked, "a", "cr-1"), _launch(asked, "b", "cr-1"))) == codes


def test_claims_on_their_way_have_their_places() -> None:
    """A claim that may still be launched in a reservation takes a place of it;
    one that was launched EC2 has counted.
    """
    rule = {"key": RESERVATION_ID, "operator": "In", "values": ["cr-1"]}
    for conditions, codes in (((), {"Reservation"}), (("Launched",), set())):
        claim = node_claim(
            "default-x", requirements=[rule], conditions=conditions, instance_type="m7a.large", requests={"cpu": "1"}
        )
        asked = _asked(claim)
        assert violated(asked, packing(_launch(asked, "a", "cr-1"), _launch(asked, "b", "cr-2"))) == codes  # fmt: skip


def test_a_launch_may_not_take_a_place_that_another_counts_on() -> None:
    """Whichever of several reservations EC2 picked, only one of them was counted."""
    asked = _asked()
    loose = _launch(asked, "a", "cr-1", ids=("cr-1", "cr-2"))
    assert "Reservation" in violated(asked, packing(loose, _launch(asked, "b", "cr-2")))


def test_a_launch_that_counts_on_a_reservation_allows_nothing_else() -> None:
    """A launch that may also be bought would leave its place to nobody, and cost more than the plan says."""
    asked = _asked()
    open_to_all = _launch(asked, "a", "cr-1", ways=(RESERVED, "on-demand"))
    assert "Reservation" in violated(asked, packing(open_to_all, _launch(asked, "b", "cr-2")))


def test_a_bought_launch_may_not_take_a_place() -> None:
    """What does not count on a reservation must not be able to use one."""
    asked = _asked()
    assert "Reservation" in violated(asked, packing(launch(asked, "default/a"), _launch(asked, "b", "cr-2")))


def test_a_reservation_that_nobody_has_is_no_offering() -> None:
    """A plan cannot invent one."""
    asked = _asked()
    assert "Offering" in violated(asked, packing(_launch(asked, "a", "cr-9"), _launch(asked, "b", "cr-2")))
