"""What replaces nodes is worth it whichever type EC2 gives, and spot is replaced by spot with care."""

from dataclasses import replace
from typing import Any

from msgspec.structs import replace as with_fields

from joinery.decisions.disruption.candidates import candidates
from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.disruption.validation.replacements import Replacements
from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import CAPACITY_TYPE, POD_DELETION_COST, SPOT, ZONE
from joinery.objects.snapshot.offerings import Offering
from simulator import builders
from tests.unit.decisions.disruption.clusters import Cluster, on

#: On demand only, unless a test says otherwise.
TYPES = tuple(
    builders.instance_type(name, price=price, spot=None)
    for name, price in (("m7a.large", 0.10), ("m7a.xlarge", 0.20), ("m7a.2xlarge", 0.40), ("m7a.4xlarge", 0.80))
)
#: The same on spot, at two fifths of the price.
ON_SPOT = tuple(
    builders.instance_type(name, price=price, spot=0.4)
    for name, price in (("m7a.large", 0.10), ("m7a.xlarge", 0.20), ("m7a.2xlarge", 0.40))
)
SPOT_ONLY = [{"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]}]


def _decided(problem: DisruptionProblem) -> tuple[DecidedCommand, ...]:
    return decide(problem).commands


def _one_large(instance_type: str = "m7a.2xlarge") -> Cluster:
    """A large node with a small pod."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])], types=TYPES)
    cluster.machine("n", [on("p", cpu="1")], instance_type=instance_type)
    return cluster


def test_no_type_is_allowed_that_costs_as_much_as_what_it_replaces() -> None:
    """EC2 may be out of the cheapest one."""
    (command,) = _decided(_one_large().problem())
    (launch,) = command.launches
    assert launch.instance_types[0] == "m7a.large"
    assert "m7a.4xlarge" not in launch.instance_types


def test_nor_is_one_where_moves_cost_nothing() -> None:
    """It would be replaced by its like again and again, while EC2 is out of the cheaper ones."""
    (command,) = _decided(_one_large().problem(move_price=0))
    assert command.launches[0].instance_types == ("m7a.large", "m7a.xlarge")


def test_where_several_are_bought_each_may_cost_its_part_of_the_savings() -> None:
    """Or all of them together would cost more than is saved."""
    problem = _one_large().problem()
    (command,) = _decided(problem)
    (launch,) = command.launches
    loose = replace(launch, instance_types=tuple(kind.name for kind in TYPES))
    chosen = candidates(problem).candidates
    (one,) = Replacements(problem).affordable(replace(command, savings=0.31, launches=(loose,)), chosen).launches
    two = Replacements(problem).affordable(replace(command, savings=0.31, launches=(loose, loose)), chosen).launches
    # Of $0.31/h, $0.01/h repays the move. So one launch may cost $0.30/h more than $0.10/h, each of two $0.15/h more.
    assert one.instance_types == ("m7a.large", "m7a.xlarge", "m7a.2xlarge")
    assert [launch.instance_types for launch in two] == [("m7a.large", "m7a.xlarge")] * 2


def test_a_type_that_saves_too_little_to_repay_the_moves_is_not_allowed() -> None:
    """It is cheaper than what it replaces, by a quarter of what the moves demand. EC2 may give it all the same."""
    near = builders.instance_type("m7i.2xlarge", price=0.40 - 0.0025, spot=None)
    cluster = _one_large()
    cluster.types = (*TYPES, near)
    (command,) = _decided(cluster.problem())
    (launch,) = command.launches
    assert launch.instance_types == ("m7a.large", "m7a.xlarge")


def _dear_elsewhere(*names: str) -> Cluster:
    """Spot of these types costs three times as much outside of the first zone."""
    cluster = _one_large()
    cluster.types = tuple(
        replace(kind, offerings=tuple(_dearer(it) if kind.name in names else it for it in kind.offerings))
        for kind in ON_SPOT
    )
    return cluster


def _dearer(offering: Offering) -> Offering:
    is_dear = offering.capacity_type == SPOT and offering.zone != builders.ZONES[0]
    return with_fields(offering, price=3 * offering.price) if is_dear else offering


def _values(launch: Launch, key: str) -> list[str]:
    return next(rule.values for rule in launch.requirements if rule.key == key)


def test_a_type_that_is_too_dear_in_any_zone_of_the_launch_is_not_allowed() -> None:
    """EC2 chooses the zone too, and need not take the cheapest (Karpenter ``WorstLaunchPrice``)."""
    (command,) = _decided(_dear_elsewhere("m7a.2xlarge").problem())
    (launch,) = command.launches
    assert _values(launch, ZONE) == [*builders.ZONES]
    assert launch.instance_types == ("m7a.large", "m7a.xlarge")


def test_a_type_that_is_out_of_spot_is_not_allowed_on_spot() -> None:
    """It is to be had on demand only, which the launch does not ask for. The check would refuse the command."""
    cluster = _one_large()
    out = tuple(with_fields(it, available=it.capacity_type != SPOT) for it in ON_SPOT[1].offerings)
    cluster.types = (ON_SPOT[0], replace(ON_SPOT[1], offerings=out), ON_SPOT[2])
    decision = decide(cluster.problem())
    assert not decision.mistakes
    (command,) = decision.commands
    (launch,) = command.launches
    assert launch.instance_types == ("m7a.large", "m7a.2xlarge")


def test_a_zone_where_the_expected_type_is_too_dear_is_not_allowed() -> None:
    """Elsewhere it would cost $0.12/h, which is more than what it replaces."""
    cluster = _dear_elsewhere("m7a.large", "m7a.xlarge", "m7a.2xlarge")
    cluster.claims.clear()
    cluster.nodes.clear()
    cluster.pods.clear()
    cluster.machine("n", [on("p", cpu="1")], instance_type="m7a.large", zone=builders.ZONES[0])
    (command,) = _decided(cluster.problem())
    (launch,) = command.launches
    assert (launch.offering.zone, launch.offering.capacity_type) == (builders.ZONES[0], SPOT)
    assert _values(launch, ZONE) == [builders.ZONES[0]]
    assert launch.instance_types == ("m7a.large", "m7a.xlarge")


def test_what_is_to_be_on_spot_is_not_bought_on_demand() -> None:
    """Where EC2 has no spot just then, the launch fails, rather than to cost more than was said (Karpenter)."""
    cluster = _one_large()
    cluster.types = ON_SPOT
    (command,) = _decided(cluster.problem())
    assert [_values(launch, CAPACITY_TYPE) for launch in command.launches] == [[SPOT]]


def _on_spot() -> Cluster:
    pool = builders.node_pool(budgets=[{"nodes": "100%"}], requirements=SPOT_ONLY)
    cluster = Cluster(pools=[pool], types=ON_SPOT)
    cluster.machine("n", [on("p", cpu="1")], instance_type="m7a.2xlarge", capacity_type="spot")
    return cluster


def test_a_spot_node_needs_a_choice_of_cheaper_types() -> None:
    """Two are not fifteen; with two wanted it goes."""
    assert not _decided(_on_spot().problem())
    assert _decided(_on_spot().problem(spot_types=2))


def test_spot_to_spot_can_be_off() -> None:
    """However many types there are."""
    assert not _decided(_on_spot().problem(spot_types=1, spot_to_spot=False))


def test_spot_nodes_that_have_room_elsewhere_go_whatever_is_set() -> None:
    """Nothing is bought for their pods."""
    cluster = _on_spot()
    cluster.machine("m", [on("q", "m", cpu="1")], instance_type="m7a.2xlarge", capacity_type="spot")
    commands = _decided(cluster.problem(spot_to_spot=False))
    assert [command.launches for command in commands] == [()]


def test_candidates_that_are_not_on_spot_may_go_there() -> None:
    """From on-demand to spot the rule says nothing."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])], types=ON_SPOT)
    cluster.machine("n", [on("p", cpu="1")], instance_type="m7a.2xlarge")
    problem = cluster.problem()
    (command,) = _decided(problem)
    assert command.launches[0].offering.capacity_type == "spot"
    assert not Replacements(problem).objection(command, candidates(problem).candidates)


def _weightless(**pool: Any) -> Cluster:
    """A large node whose only pod asks to be evicted before all others: it counts as empty."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}], **pool)], types=TYPES)
    pod = on("p", cpu="1", annotations={POD_DELETION_COST: "-200000000"})
    cluster.machine("n", [pod], instance_type="m7a.2xlarge")
    return cluster


def test_a_node_that_is_replaced_for_pods_of_no_weight_does_not_go_because_it_is_empty() -> None:
    """A smaller node is bought for the pod, so budgets for consolidation are asked, and not those for empty nodes."""
    (command,) = _decided(_weightless().problem())
    assert len(command.launches) == 1
    assert command.reason is DisruptionReason.UNDERUTILIZED


def test_a_node_pool_that_gives_up_empty_nodes_buys_none_for_it() -> None:
    """``WhenEmpty`` lets nodes go, and replaces none."""
    assert not _decided(_weightless(consolidationPolicy="WhenEmpty").problem())
