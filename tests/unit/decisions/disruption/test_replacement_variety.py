"""How many types a replacement may be of: enough for minValues and for spot, and none that is too dear."""

from dataclasses import replace

import pytest
from msgspec.structs import replace as with_fields

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.labels import AWS_GROUP, CAPACITY_TYPE, INSTANCE_TYPE, ZONE, ZONE_ID
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.objections import ObjectionCode
from joinery.objects.snapshot.offerings import InstanceType, Offering
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

INSTANCE_SIZE = f"{AWS_GROUP}/instance-size"
#: On demand only. Two of them are cheaper than the node that goes, which is the third.
TYPES = tuple(
    builders.instance_type(name, price=price, spot=None)
    for name, price in (("m7a.large", 0.10), ("m7a.xlarge", 0.20), ("m7a.2xlarge", 0.40), ("m7a.4xlarge", 0.80))
)
#: On spot as well, at two fifths of the price: one for each size, then two dearer ones of the smallest.
ON_SPOT = tuple(
    builders.instance_type(name, price=price, spot=0.4)
    for name, price in (("m7a.large", 0.10), ("m6a.large", 0.11), ("m5a.large", 0.12), ("m7a.xlarge", 0.20),
                        ("m7a.2xlarge", 0.40))
)  # fmt: skip


def _decided(problem: DisruptionProblem) -> tuple[DecidedCommand, ...]:
    return decide(problem).commands


def _cluster(
    key: str,
    least: int | None = None,
    *,
    values: list[str] | None = None,
    types: tuple[InstanceType, ...] = TYPES,
    capacity_type: str = "on-demand",
) -> Cluster:
    """A large node with a small pod, in a NodePool that asks for so many values of a label."""
    asked = {"key": key, "operator": "In" if values else "Exists", "values": values or [], "minValues": least}
    pool = builders.node_pool(budgets=[{"nodes": "100%"}], requirements=[asked])
    cluster = Cluster(pools=[pool], types=types)
    cluster.machine("n", [on("p", cpu="1")], instance_type="m7a.2xlarge", capacity_type=capacity_type)
    return cluster


def _rule(launch: Launch, key: str) -> Requirement:
    return next(rule for rule in launch.requirements if rule.key == key)


def test_min_values_keep_no_type_that_does_not_repay_the_moves() -> None:
    """EC2 may give any of them (Karpenter ``RemoveInstanceTypeOptionsByPriceAndMinValues``)."""
    (command,) = _decided(_cluster(INSTANCE_TYPE, 2).problem())
    (launch,) = command.launches
    assert launch.instance_types == ("m7a.large", "m7a.xlarge")
    assert _rule(launch, INSTANCE_TYPE).min_values == 2


@pytest.mark.parametrize("key", [INSTANCE_TYPE, INSTANCE_SIZE])
def test_a_node_stays_where_min_values_ask_for_more_than_is_cheaper(key: str) -> None:
    """It says so. Otherwise the third type would be the one that it is of."""
    decision = decide(_cluster(key, 3).problem())
    assert not decision.commands
    assert [(held.objection.code, held.objection.message) for held in decision.staying] == [
        (
            ObjectionCode.POLICY,
            f"minValues of NodePool default want 3 values of {key} to replace it, and 2 are cheap enough",
        )
    ]


@pytest.mark.parametrize("key", [ZONE, ZONE_ID])
def test_min_values_of_zones_count_the_zones_that_are_cheap_enough(key: str) -> None:
    """Where the cheapest type costs more than the node outside of one zone, that one is all that may be had."""
    zones = len(builders.ZONES)
    (command,) = _decided(_cluster(key, zones).problem())
    assert len(_rule(command.launches[0], ZONE).values) == zones
    dear = tuple(replace(kind, offerings=tuple(map(_dearer, kind.offerings))) for kind in TYPES)
    assert _decided(_cluster(key, 1, types=dear).problem())
    assert not _decided(_cluster(key, 2, types=dear).problem())


def _dearer(offering: Offering) -> Offering:
    return offering if offering.zone == builders.ZONES[0] else with_fields(offering, price=8 * offering.price)


def test_a_pool_that_wants_two_capacity_types_keeps_both_and_pays_for_the_dearer() -> None:
    """So only types are left that are cheap enough on demand."""
    problem = _cluster(CAPACITY_TYPE, 2, types=ON_SPOT).problem()
    (command,) = _decided(problem)
    (launch,) = command.launches
    assert _rule(launch, CAPACITY_TYPE).values == ["on-demand", "spot"]
    assert launch.instance_types == ("m7a.large", "m6a.large", "m5a.large", "m7a.xlarge")


def test_min_values_are_not_lowered_to_save_money() -> None:
    """BestEffort lowers them where pods would have no node; these have one (Karpenter)."""
    problem = _cluster(INSTANCE_TYPE, 5).problem()
    options = replace(problem.packing.options, best_effort_min_values=True)
    assert not _decided(replace(problem, packing=replace(problem.packing, options=options)))


def test_a_spot_node_is_replaced_by_one_of_the_cheapest_types() -> None:
    """As many as there have to be. So not as many are cheaper than what comes, and that is not replaced again."""
    problem = _cluster(CAPACITY_TYPE, values=["spot"], types=ON_SPOT, capacity_type="spot").problem(spot_types=2)
    (command,) = _decided(problem)
    assert command.launches[0].instance_types == ("m7a.large", "m6a.large")


def test_it_is_of_as_many_as_min_values_ask_for() -> None:
    """Which takes the cheapest types until they are enough: here until there is a second size."""
    cluster = _cluster(INSTANCE_SIZE, types=ON_SPOT, capacity_type="spot")
    spot = {"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]}
    sizes = {"key": INSTANCE_SIZE, "operator": "Exists", "minValues": 2}
    cluster.pools = [builders.node_pool(budgets=[{"nodes": "100%"}], requirements=[spot, sizes])]
    (command,) = _decided(cluster.problem(spot_types=2))
    assert command.launches[0].instance_types == ("m7a.large", "m6a.large", "m5a.large", "m7a.xlarge")


def test_spot_nodes_that_go_together_may_be_replaced_by_any_that_is_cheaper() -> None:
    """There is one node less each time, so no chain of them can go on (Karpenter)."""
    cluster = _cluster(CAPACITY_TYPE, values=["spot"], types=ON_SPOT, capacity_type="spot")
    cluster.pods = [on("p", cpu="800m")]
    cluster.machine("m", [on("q", "m", cpu="800m")], instance_type="m7a.2xlarge", capacity_type="spot")
    (command,) = _decided(cluster.problem(spot_types=2))
    assert len(command.retire) == 2
    assert len(command.launches[0].instance_types) > 2


@pytest.mark.parametrize("capacity_type", ["on-demand", "spot"])
def test_nodes_that_go_together_are_replaced_by_none_that_costs_as_much_as_one_of_them(capacity_type: str) -> None:
    """It may be of the type of either node. To give up the other one alone would save as much, for fewer evictions
    (Karpenter ``filterOutSameInstanceType``).
    """
    cluster = _cluster(CAPACITY_TYPE, values=[capacity_type], types=ON_SPOT, capacity_type=capacity_type)
    cluster.types = tuple(
        builders.instance_type(name, price=price, spot=0.4)
        for name, price in (("m7i.2xlarge", 0.39), ("m7a.2xlarge", 0.40), ("m7a.4xlarge", 0.60))
    )
    cluster.machine("m", [on("q", "m", cpu="1")], instance_type="m7a.2xlarge", capacity_type=capacity_type)
    (command,) = _decided(cluster.problem(move_price=0.001, spot_types=1))
    assert (command.retire, command.launches[0].instance_types) == (("claim-m", "claim-n"), ("m7i.2xlarge",))


def test_one_of_them_goes_alone_where_min_values_ask_for_more_types_than_are_cheaper_than_the_other() -> None:
    """What would be bought might be what went."""
    cluster = _cluster(INSTANCE_TYPE, 2)
    near = builders.instance_type("m7i.2xlarge", price=0.39, spot=None)
    cluster.types = (near, builders.instance_type("m7a.2xlarge", price=0.40, spot=None))
    cluster.machine("m", [on("q", "m", cpu="1")], instance_type="m7a.2xlarge")
    (command,) = _decided(cluster.problem(move_price=0.001))
    assert (len(command.retire), command.launches) == (1, ())
