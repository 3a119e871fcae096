"""What a claim asks EC2 for."""

from dataclasses import replace
from typing import Any

import pytest

from joinery.decisions.lifecycle.launching.instance_filters import LARGEST_REQUEST, FilteredTypes, filtered
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ON_DEMAND,
    RESERVATION_ID,
    RESERVED,
    SPOT,
    ZONE,
)
from joinery.objects.snapshot.offerings import InstanceType, Offering, OfferingKey, Reservation, without
from simulator import builders

LARGE = builders.instance_type("m7a.large", price=0.10)
XLARGE = builders.instance_type("m7a.xlarge", price=0.20)
GPU = builders.instance_type("g5.xlarge", price=0.05, resources={"nvidia.com/gpu": "1"})
METAL = builders.instance_type("m7a.metal-48xl", price=0.04, cpu=192)


def _choose(
    *types: InstanceType, requests: dict[str, str] | None = None, requirements: Any = (), **given: Any
) -> FilteredTypes | None:
    claim = builders.node_claim(conditions=(), requirements=requirements, requests=requests or {"cpu": "1"}, **given)
    return filtered(claim, types)


def _names(filtered_types: FilteredTypes | None) -> list[str]:
    return [kind.name for kind in filtered_types.types] if filtered_types else []


def test_the_cheapest_types_come_first() -> None:
    """EC2 reads a request in any order, people from the top."""
    assert _names(_choose(XLARGE, LARGE)) == ["m7a.large", "m7a.xlarge"]


def test_a_type_that_is_too_small_is_not_asked_for() -> None:
    """The pods of the claim must fit on whatever EC2 gives."""
    assert _names(_choose(LARGE, XLARGE, requests={"cpu": "3"})) == ["m7a.xlarge"]


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (f"{INSTANCE_TYPE}=m7a.xlarge", ["m7a.xlarge"]),
        ("kubernetes.io/arch=arm64", []),
        (f"{ZONE}=us-east-1b", ["m7a.large", "m7a.xlarge"]),
        (f"{ZONE}=eu-central-1a", []),
        ("example.com/team=a", []),
        ({"key": "example.com/team", "operator": "NotIn", "values": ["a"]}, ["m7a.large", "m7a.xlarge"]),
        ({"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gt", "values": ["2"]}, ["m7a.xlarge"]),
    ],
)
def test_only_what_the_claim_allows_is_asked_for(requirement: Any, expected: list[str]) -> None:
    """Each requirement holds for the type, or for the offering where and how it is bought."""
    assert _names(_choose(LARGE, XLARGE, requirements=[requirement])) == expected


def test_a_label_that_the_claim_gives_satisfies_its_own_requirement() -> None:
    """A custom label is the template's to set, not the instance type's."""
    found = _choose(LARGE, requirements=["example.com/team=a"], labels={"example.com/team": "a"})
    assert _names(found) == ["m7a.large"]


def test_the_zone_holds_for_every_offering() -> None:
    """A spread decided the zone; EC2 must not undo it."""
    found = _choose(LARGE, requirements=[f"{ZONE}=us-east-1b"])
    assert found is not None
    assert {offering.zone for kind in found.types for offering in kind.offerings} == {"us-east-1b"}


def test_spot_is_preferred_where_the_claim_allows_it() -> None:
    """One call has one capacity type, and spot is the cheaper one."""
    both = _choose(LARGE)
    assert both is not None
    assert both.capacity_type == SPOT
    demand = _choose(LARGE, requirements=[f"{CAPACITY_TYPE}={ON_DEMAND}"])
    assert demand is not None
    assert demand.capacity_type == ON_DEMAND


def test_on_demand_is_asked_for_when_spot_is_known_to_be_out() -> None:
    """EC2 does not fall back within a call; what was learnt of the pools decides before it."""
    out = frozenset(OfferingKey("m7a.large", zone, SPOT) for zone in builders.ZONES)
    found = _choose(*without([LARGE], out))
    assert found is not None
    assert found.capacity_type == ON_DEMAND


def test_nothing_on_sale_is_nothing_to_ask_for() -> None:
    """The claim is given up and its pods are planned anew."""
    out = frozenset(OfferingKey("m7a.large", zone, kind) for zone in builders.ZONES for kind in (SPOT, ON_DEMAND))
    assert _choose(*without([LARGE], out)) is None


def test_exotic_types_are_for_those_who_need_them() -> None:
    """A cheap GPU is still a GPU that somebody else needs, and bare metal boots for ten minutes."""
    assert _names(_choose(LARGE, GPU, METAL)) == ["m7a.large"]
    assert _names(_choose(GPU, METAL)) == ["m7a.metal-48xl", "g5.xlarge"]
    assert _names(_choose(LARGE, GPU, requests={"nvidia.com/gpu": "1"})) == ["g5.xlarge"]


def test_spot_dearer_than_on_demand_is_left_out() -> None:
    """Nobody should pay more for an instance that can be taken away."""
    dear = builders.instance_type("m7a.8xlarge", price=2.0, spot=0.6)
    assert _names(_choose(LARGE, dear)) == ["m7a.large"]
    assert _names(_choose(LARGE, dear, requirements=[f"{CAPACITY_TYPE}={SPOT}"])) == ["m7a.large", "m7a.8xlarge"]


def test_a_request_carries_sixty_types_at_most() -> None:
    """EC2 refuses longer ones; the cheapest are kept."""
    many = [builders.instance_type(f"m7a.{n}xlarge", price=float(n)) for n in range(1, 100)]
    assert _names(_choose(*many, requirements=[f"{CAPACITY_TYPE}={SPOT}"])) == [
        f"m7a.{n}xlarge" for n in range(1, LARGEST_REQUEST + 1)
    ]


def test_min_values_keep_variety_or_refuse() -> None:
    """A user who wants two families gets both or nothing, exotic ones included."""
    family = {"key": "karpenter.k8s.aws/instance-family", "operator": "Exists", "minValues": 2}
    assert _names(_choose(LARGE, GPU, requirements=[family])) == ["g5.xlarge", "m7a.large"]
    assert _choose(LARGE, XLARGE, requirements=[family]) is None


def _with(kind: InstanceType, *given: Reservation, zone: str = builders.ZONES[0]) -> InstanceType:
    """The type with what is reserved of it."""
    found = tuple(Offering(zone, RESERVED, 1e-8, each.remaining > 0, "", each) for each in given)
    return replace(kind, offerings=(*kind.offerings, *found))


def _reservations(filtered_types: FilteredTypes | None) -> list[str]:
    return [o.reservation_id for kind in filtered_types.types for o in kind.offerings] if filtered_types else []


def test_what_is_reserved_comes_before_what_is_bought() -> None:
    """It is paid for; a claim that may have both gets it, and one that may not is never launched into it."""
    kind = _with(LARGE, Reservation("cr-1", remaining=1))
    both, bought = _choose(kind), _choose(kind, requirements=[f"{CAPACITY_TYPE}=spot,on-demand"])
    assert both is not None
    assert (both.capacity_type, _reservations(both)) == (RESERVED, ["cr-1"])
    assert bought is not None
    assert (bought.capacity_type, set(_reservations(bought))) == (SPOT, {""})


def test_a_claim_is_launched_in_the_reservation_that_it_names() -> None:
    """The plan counted on that one; with nothing left of it there is nothing to ask for."""
    rules = [f"{CAPACITY_TYPE}=reserved", f"{RESERVATION_ID}=cr-2"]
    full = _with(LARGE, Reservation("cr-1", remaining=5), Reservation("cr-2", remaining=1))
    spent = _with(LARGE, Reservation("cr-1", remaining=5), Reservation("cr-2", remaining=0))
    assert _reservations(_choose(full, requirements=rules)) == ["cr-2"]
    assert _choose(spent, requirements=rules) is None


def test_of_several_reservations_the_fullest_of_each_zone_is_asked_for() -> None:
    """EC2 refuses one pool twice in a request (EC2 API CreateFleet)."""
    kind = _with(LARGE, Reservation("cr-1", remaining=1), Reservation("cr-2", remaining=3))
    kind = _with(kind, Reservation("cr-3", remaining=1), zone=builders.ZONES[1])
    assert _reservations(_choose(kind)) == ["cr-2", "cr-3"]


def test_one_request_is_for_one_sort_of_reservation() -> None:
    """Ordinary ones before capacity blocks, and these before any that EC2 interrupts; of capacity blocks one, alone."""
    block, fickle, plain = (
        Reservation("cr-1", "capacity-block", remaining=9),
        Reservation("cr-2", "default", True, 9),
        Reservation("cr-3", remaining=1),
    )
    assert _reservations(_choose(_with(LARGE, block, fickle, plain))) == ["cr-3"]
    assert _reservations(_choose(_with(LARGE, fickle, block))) == ["cr-1"]
    assert _reservations(_choose(_with(LARGE, fickle, replace(fickle, id="cr-4", remaining=2)))) == ["cr-2"]
    assert _reservations(_choose(_with(LARGE, block), _with(XLARGE, replace(block, id="cr-5")))) == ["cr-1"]
