"""Commitments: whom AWS lets use them, and plans that pay least because of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace as with_fields

from joinery.decisions.planning import plan
from joinery.decisions.scheduling.commitments import Commitment, Usage, coverage
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, SPOT, ZONE
from joinery.objects.snapshot.offerings import InstanceType
from simulator.builders import instance_type, node, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.scheduling.worlds import Exhaustive, World, worlds
from tests.unit.decisions.verification.plans import A, B, problem

#: Cores for the money: the first is the cheaper one, both hold seven pods of half a core.
LIKED = instance_type("c7a.xlarge", price=0.20, spot=None, zones=(A, B), memory=16)
DEARER = instance_type("m7a.xlarge", price=0.22, spot=None, zones=(A, B))


def instances(kind: str, count: float, zone: str = "", name: str = "ri") -> Commitment:
    """Reserved Instances."""
    return Commitment(name=name, stock=count, rates={kind: 1.0}, zone=zone)


def plans(*rates: tuple[str, float], stock: float, name: str = "sp") -> Commitment:
    """A Savings Plan."""
    return Commitment(name=name, stock=stock, rates=dict(rates))


def asked(pods: int, *standing: Any, types: Sequence[InstanceType] = (LIKED, DEARER)) -> Problem:
    """Pods of half a core for a NodePool."""
    waiting = (pod(f"p-{number}", cpu="500m") for number in range(pods))
    return problem(node_pool(), *waiting, *standing, types=types)


def planned(given: Problem, *commitments: Commitment) -> Packing:
    """The plan, which verification agrees with at the first try."""
    made = plan(replace(given, commitments=commitments))
    assert (made.violations, made.warnings) == ((), ())
    assert made.packing.lower_bound <= made.packing.paid + 1e-9
    return made.packing


def bought(made: Packing) -> list[str]:
    """The types that a plan counts on, of each node."""
    return sorted(launch.offering.instance_type for launch in made.launches)


USAGES = [Usage("one", "m7a.large", A, 0.10), Usage("two", "m7a.large", B, 0.10), Usage("big", "m7a.xlarge", A, 0.22)]


@pytest.mark.parametrize(
    ("commitments", "shares", "left"),
    [
        ([instances("m7a.large", 1)], {"one": 1.0}, 0.0),
        ([instances("m7a.large", 3, zone=B)], {"two": 1.0}, 2.0),
        ([instances("m7a.large", 1.5)], {"one": 1.0, "two": 0.5}, 0.0),
        ([plans(("m7a.large", 0.06), ("m7a.xlarge", 0.12), stock=0.15)], {"big": 1.0, "one": 0.5}, 0.0),
        ([plans(("m7a.large", 0.06), stock=1.0)], {"one": 1.0, "two": 1.0}, 0.88),
        ([instances("m7a.large", 0.5), plans(("m7a.large", 0.06), stock=0.03)], {"one": 1.0}, 0.0),
    ],
)
def test_a_stock_is_used_where_it_saves_most_and_to_its_end(
    commitments: list[Commitment], shares: dict[str, float], left: float
) -> None:
    """The last node in part, and what one commitment leaves of a node the next may pay."""
    found = coverage(USAGES, commitments)
    assert {node: pytest.approx(share) for node, share in found.shares.items() if share} == shares
    assert found.left[commitments[-1].name] == pytest.approx(left)


def test_an_idle_reserved_instance_attracts_pods() -> None:
    """Of a type that is dearer by the list, in its zone, and EC2 may launch nothing else."""
    made = planned(asked(6), instances("m7a.xlarge", 1, zone=B))
    (launch,) = made.launches
    assert (launch.offering.instance_type, launch.offering.zone) == ("m7a.xlarge", B)
    assert launch.instance_types == ("m7a.xlarge",)
    assert made.hourly == pytest.approx(0.22)
    assert made.paid == 0.0


def test_beyond_the_stock_prices_count() -> None:
    """Two nodes are paid for already, and the third is of the type that is cheaper by the list."""
    made = planned(asked(21), instances("m7a.xlarge", 2))
    assert bought(made) == ["c7a.xlarge", "m7a.xlarge", "m7a.xlarge"]
    assert made.paid == pytest.approx(0.20)
    assert made.gap < 0.11


def test_a_savings_plan_pays_so_many_dollars_an_hour_and_the_last_node_in_part() -> None:
    """At 0.11 $/h for a node, 0.33 $/h cover three; one that is covered by half costs half."""
    covering = plans(("m7a.xlarge", 0.11), stock=0.33)
    assert planned(asked(21), covering).paid == pytest.approx(0.0)
    half = planned(asked(7), plans(("m7a.xlarge", 0.11), stock=0.055))
    assert bought(half) == ["m7a.xlarge"]
    assert half.paid == pytest.approx(0.11)


def test_what_nodes_use_already_attracts_nobody() -> None:
    """A node that is there has the Reserved Instance, so the plan is that of prices."""
    labels = {INSTANCE_TYPE: "m7a.xlarge", ZONE: A, CAPACITY_TYPE: ON_DEMAND}
    there = node("there", cpu="100m", labels=labels)
    made = planned(asked(6, there), instances("m7a.xlarge", 1))
    assert (bought(made), made.covered) == (["c7a.xlarge"], 0.0)
    on_spot = node("there", cpu="100m", labels={**labels, CAPACITY_TYPE: SPOT})
    assert bought(planned(asked(6, on_spot), instances("m7a.xlarge", 1))) == ["m7a.xlarge"]


def test_without_anything_left_a_plan_is_as_it_was() -> None:
    """Of types that the NodePool has not, or of none."""
    usual = planned(asked(9))
    assert planned(asked(9), instances("m7a.xlarge", 0)) == usual
    assert planned(asked(9), instances("r7a.large", 5)) == usual


def _bare(world: World) -> Problem:
    """What is asked without the reservations."""

    def bought_only(kind: InstanceType) -> InstanceType:
        return replace(kind, offerings=tuple(one for one in kind.offerings if not one.reservation))

    return replace(world, types=tuple(map(bought_only, world.types)), reserved=()).problem


@given(world=worlds(most=4, reservations=2))
@examples(40)
def test_nothing_pays_less_than_the_bound_and_no_plan_more_than_without_commitments(world: World) -> None:
    """Reserved Instances in place of capacity reservations: all ways to use those have been tried."""
    given = _bare(world)
    owned = [
        Commitment(name=f"ri-{index}", stock=count, rates={kind: 1.0}, zone=zone)
        for index, (kind, zone, count) in enumerate(world.reserved)
    ]
    made, usual = plan(replace(given, commitments=tuple(owned))).packing, plan(given).packing
    assert made.lower_bound <= Exhaustive(world, made).least() + 1e-6
    assert made.paid + made.resilience_cost <= usual.hourly + usual.resilience_cost + 1e-9


def test_what_a_commitment_pays_for_keeps_the_price_of_the_list() -> None:
    """A NodeOverlay has changed the price that counts, and not the bill that caps bound."""
    repriced = replace(LIKED, offerings=tuple(with_fields(one, price=0.50, listed=0.20) for one in LIKED.offerings))
    made = planned(asked(3, types=(repriced, DEARER)), instances(LIKED.name, 1))
    (launch,) = made.launches
    assert (launch.offering.price, launch.offering.list_price) == (0.50, 0.20)
