"""Spot that EC2 takes back: what is known of that is weighed against price, and reported beside it."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from joinery.decisions.planning import plan
from joinery.decisions.scheduling.interruptions import risk_of
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import EvictionPrices, Interruptions, Problem
from joinery.objects.karpenter.labels import ON_DEMAND
from joinery.objects.snapshot.offerings import InstanceType
from simulator.builders import instance_type, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.scheduling.worlds import World, worlds
from tests.unit.decisions.verification.plans import problem

#: Two types of one size: the second is one percent dearer on spot, and half as often interrupted.
CHEAP, STEADY = instance_type("m7a.xlarge", price=0.2), instance_type("m7i.xlarge", price=0.202)
RATES = {"m7a.xlarge": 0.2, "m7i.xlarge": 0.1}


def asked(*types: InstanceType, requirements: tuple[str, ...] = (), pods: int = 6) -> Problem:
    """Pods of half a core for a NodePool."""
    waiting = (pod(f"p-{number}", cpu="500m") for number in range(pods))
    return problem(node_pool(requirements=requirements), *waiting, types=types)


def known(rates: Mapping[str, float] = RATES, *, weight: float = 1.0, eviction: float = 0.01) -> Interruptions:
    """What is known of spot, with one price for all evictions."""
    evictions = EvictionPrices(ordinary={"default": eviction})
    return Interruptions(rates=rates, unrated=0.15, evictions=evictions, weight=weight)


def planned(given: Problem, interruptions: Interruptions | None = None) -> Packing:
    """The plan, which verification agrees with at the first try."""
    made = plan(replace(given, interruptions=interruptions))
    assert (made.violations, made.warnings) == ((), ())
    assert made.packing.lower_bound <= made.packing.hourly + 1e-9
    return made.packing


def test_without_a_weight_the_plan_is_the_same() -> None:
    """Rates that only are reported decide nothing."""
    given = asked(CHEAP, STEADY)
    assert planned(given, known(weight=0.0)) == planned(given)


def test_of_two_types_at_about_one_price_the_steadier_is_bought() -> None:
    """A cent for an eviction is 0.01 cents an hour less risk for six pods: that buys a little, and no more."""
    given = asked(
        CHEAP, replace(STEADY, offerings=tuple(with_fields(o, price=o.price / 1.0099) for o in STEADY.offerings))
    )
    (usual,), (careful,) = planned(given).launches, planned(given, known(weight=3.0)).launches
    assert usual.offering.instance_type == "m7a.xlarge"
    assert careful.offering.instance_type == "m7i.xlarge"
    assert careful.offering.price > usual.offering.price


def test_a_price_difference_beyond_the_risk_is_not_paid() -> None:
    """At the price of an ordinary eviction one percent of a node is more than the risk is worth."""
    given = asked(CHEAP, STEADY)
    assert planned(given, known()).launches[0].offering.instance_type == "m7a.xlarge"


def test_what_is_cheaper_and_riskier_is_not_left_to_ec2() -> None:
    """EC2 would take the cheapest of what a launch allows."""
    (launch,) = planned(asked(CHEAP, STEADY), known(weight=100.0)).launches
    assert launch.instance_types == ("m7i.xlarge",)


def test_on_demand_is_bought_where_spot_counts_as_dearer() -> None:
    """A weight may be so high that nothing on spot is worth its risk; then the launch allows no spot either."""
    (launch,) = planned(asked(CHEAP, STEADY), known(weight=1e6)).launches
    assert (launch.offering.capacity_type, launch.offering.price) == (ON_DEMAND, 0.2)
    (capacity_types,) = (one.values for one in launch.requirements if one.key == "karpenter.sh/capacity-type")
    assert capacity_types == [ON_DEMAND]


def test_min_values_leave_the_choice_to_ec2() -> None:
    """A launch that must carry several types carries the risky one too, and the plan counts on what EC2 may take."""
    several = {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}
    given = problem(node_pool(requirements=[several]), pod(cpu="500m"), types=(CHEAP, STEADY))
    (launch,) = planned(given, known(weight=3000.0)).launches
    assert launch.instance_types == ("m7a.xlarge", "m7i.xlarge")
    assert launch.offering.instance_type == "m7a.xlarge"


def test_a_type_without_a_rate_counts_as_the_others() -> None:
    """Nobody is to prefer a type because nothing is known of it."""
    (launch,) = planned(asked(CHEAP, STEADY), known({"m7i.xlarge": 0.1}, weight=300.0)).launches
    assert launch.offering.instance_type == "m7i.xlarge"


def test_risk_is_what_spot_nodes_and_their_pods_come_to_in_a_month() -> None:
    """Nodes that are interrupted, pods that are evicted by that, and $/h for these evictions."""
    interruptions = known()
    packing = planned(asked(CHEAP, requirements=("karpenter.sh/capacity-type=spot",)), interruptions)
    risk = risk_of(packing.launches, interruptions)
    assert (risk.nodes, risk.interrupted) == (1, 0.2)
    assert risk.evicted == pytest.approx(1.2)
    assert risk.hourly * 730 == pytest.approx(1.2 * 0.01)


def test_nodes_on_demand_are_no_risk() -> None:
    """Nobody takes them back."""
    interruptions = known()
    packing = planned(asked(CHEAP, requirements=("karpenter.sh/capacity-type=on-demand",)), interruptions)
    assert risk_of(packing.launches, interruptions).hourly == 0


def test_a_pod_with_a_price_of_its_own_counts_as_that() -> None:
    """And others count as many ordinary evictions as their weight says, at the price of their NodePool."""
    prices = EvictionPrices(own={"a/own": 3.0}, weights={"a/own": 2.0, "a/heavy": 2.0}, ordinary={"one": 0.5})
    assert [prices.of(name, "one") for name in ("a/own", "a/heavy", "a/plain")] == [3.0, 1.0, 0.5]


def test_the_bound_is_of_the_price_alone() -> None:
    """What interruptions count as is nothing that anybody pays for."""
    given = asked(CHEAP, STEADY)
    assert planned(given, known(weight=1e6)).lower_bound == pytest.approx(planned(given).lower_bound)


def test_the_plan_says_what_it_pays_to_spare_interruptions() -> None:
    """Its price and its risk beside those of the plan without rates: no more than the weight for each dollar."""
    given, interruptions = asked(CHEAP, STEADY), known(weight=1000.0)
    usual, careful = planned(given), planned(given, interruptions)
    spared = risk_of(usual.launches, interruptions).hourly - risk_of(careful.launches, interruptions).hourly
    assert careful.risk_premium == pytest.approx(careful.hourly - usual.hourly)
    assert 0 < careful.risk_spared == pytest.approx(spared)
    assert careful.risk_premium <= 1000.0 * careful.risk_spared


def test_once_time_is_up_nodes_are_not_chosen_anew() -> None:
    """A plan obeys its limit first."""
    given = replace(asked(CHEAP, STEADY), interruptions=known(weight=1000.0))
    limited = replace(given, options=replace(given.options, time_limit=1.0))
    made = plan(limited, stopwatch=lambda: 2.0)
    assert made.violations == ()
    assert made.packing.launches[0].offering.instance_type == "m7a.xlarge"


@given(weights=st.lists(st.floats(0, 1000), min_size=2, max_size=2), rates=st.tuples(st.floats(0, 1), st.floats(0, 1)))
@examples(30)
def test_one_node_is_no_riskier_at_a_higher_weight(weights: list[float], rates: tuple[float, float]) -> None:
    """Where a node holds all pods the choice is exact: more weight never buys more risk, nor a lower price."""
    risks, prices = [], []
    for weight in sorted(weights):
        interruptions = known(dict(zip(RATES, rates, strict=True)), weight=weight)
        packing = planned(asked(CHEAP, STEADY), interruptions)
        risks.append(risk_of(packing.launches, interruptions).hourly)
        prices.append(packing.hourly)
    assert risks[1] <= risks[0] + 1e-9
    assert prices[1] >= prices[0] - 1e-9


@given(world=worlds(), rate=st.floats(0, 0.3), weight=st.sampled_from([0.0, 1.0, 50.0, 1e5]))
@examples(30)
def test_whatever_the_rates_a_plan_is_right(world: World, rate: float, weight: float) -> None:
    """Verified at the catalogue's prices, with pools that have limits, minValues and reservations. With its risk it
    never costs more than the plan without rates, and at weight 0 it is that plan."""
    given = world.problem
    evictions = EvictionPrices(ordinary={pool.metadata.name: 0.01 for pool in given.snapshot.node_pools})
    names = [kind.name for kind in given.kinds]
    interruptions = Interruptions(
        rates={name: rate * index for index, name in enumerate(names)}, unrated=rate, evictions=evictions, weight=weight
    )
    careful, usual = planned(given, interruptions), planned(given)
    assert weight or careful == usual
    costs = [
        packing.hourly + packing.resilience_cost + weight * risk_of(packing.launches, interruptions).hourly
        for packing in (careful, usual)
    ]
    assert costs[0] <= costs[1] + 1e-9
    assert careful.hourly == pytest.approx(usual.hourly + careful.risk_premium)
