"""How large a node may be: what users say about it, and what it costs them."""

from collections.abc import Mapping

import pytest

from joinery.decisions.scheduling.packing import Kept, Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import MAX_NODE_SHARE, NODE_SIZE
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import validate
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.builders import EPOCH, instance_type, node_class, node_pool, pod

#: From 2 to 64 cores; a core is a little cheaper the larger the type.
TYPES = tuple(
    instance_type(f"m7a.{cores}xlarge", cpu=cores, price=0.05 * cores * (1 - 0.0002 * cores), pods=110, spot=None)
    for cores in (2, 4, 8, 16, 32, 64)
)


def pool(annotations: Mapping[str, str]) -> NodePool:
    """A NodePool with annotations of its own."""
    plain = node_pool()
    return plain.model_copy(update={"metadata": plain.metadata.model_copy(update={"annotations": dict(annotations)})})


def planned(annotations: Mapping[str, str], *, default: str = "balanced") -> Packing:
    """Sixty pods of half a core."""
    snapshot = Snapshot(
        now=EPOCH,
        node_pools=(pool(annotations),),
        node_classes=(node_class(),),
        pods=tuple(pod(f"p-{number}", cpu="500m", memory="1Gi") for number in range(60)),
    )
    problem = Problem(snapshot=snapshot, instance_types={"default": TYPES}, options=Options(node_size=default))
    packing = solve(problem)
    assert verify(problem, packing) == ()
    assert not packing.unplaced
    return packing


def largest(packing: Packing) -> int:
    """How many pods the fullest node holds."""
    return max(len(launch.pods) for launch in packing.launches)


def test_a_smaller_size_loses_fewer_pods_with_a_node() -> None:
    """Cheapest, balanced, small: each puts no more of the pool on one node than the one before."""
    carried = [largest(planned({NODE_SIZE: size})) for size in ("cheapest", "balanced", "small")]
    assert carried == sorted(carried, reverse=True)
    assert carried[0] > carried[-1]


def test_the_preference_costs_what_the_plan_says_it_costs() -> None:
    """The cheapest plan pays nothing for its sizes; another says about how much of its price they are."""
    cheapest, small = planned({NODE_SIZE: "cheapest"}), planned({NODE_SIZE: "small"})
    assert cheapest.resilience_cost == 0
    assert cheapest.hourly <= small.hourly
    assert small.hourly - cheapest.hourly == pytest.approx(small.resilience_cost, abs=0.05 * cheapest.hourly)


def test_a_preference_is_no_part_of_the_bound() -> None:
    """The bound is of the cheapest possible plan, whatever size of node is preferred."""
    bounds = [planned({NODE_SIZE: size}).lower_bound for size in ("cheapest", "balanced", "small")]
    bounds.append(planned({MAX_NODE_SHARE: "10%"}).lower_bound)
    assert bounds == pytest.approx([bounds[0]] * 4)


def test_the_bound_that_keeps_sizes_says_what_they_cost() -> None:
    """Nobody is told of a gap that is what they asked for. And it is a bound: a plan that asks for nothing has none."""
    cheapest, small = planned({NODE_SIZE: "cheapest"}), planned({NODE_SIZE: "small"})
    assert small.kept_gap < 1e-6 < small.gap
    assert small.kept[Kept.SIZES] == pytest.approx(small.hourly - small.lower_bound)
    assert cheapest.kept == {}


def test_a_pool_that_says_nothing_has_the_size_of_the_settings() -> None:
    """The annotation of a NodePool comes before the preference of the installation."""
    assert largest(planned({}, default="small")) == largest(planned({NODE_SIZE: "small"}))
    assert largest(planned({NODE_SIZE: "cheapest"}, default="small")) == largest(planned({NODE_SIZE: "cheapest"}))


@pytest.mark.parametrize(("share", "most"), [("100%", 60), ("25%", 15), ("7.5%", 4), ("0.1%", 1)])
def test_no_node_holds_more_than_its_share_of_the_pool(share: str, most: int) -> None:
    """A share is a rule: of sixty pods no node holds more, and one pod is always allowed."""
    assert largest(planned({MAX_NODE_SHARE: share, NODE_SIZE: "cheapest"})) <= most


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (NODE_SIZE, "huge", "'huge' is none of cheapest, balanced, small"),
        (MAX_NODE_SHARE, "0%", "'0%' is no share: expected a percentage above 0% and up to 100%"),
        (MAX_NODE_SHARE, "0.2", "'0.2' is no share: expected a percentage above 0% and up to 100%"),
    ],
)
def test_a_wrong_size_is_named_on_the_pool(key: str, value: str, why: str) -> None:
    """The NodePool's status names the annotation; the other pools go on."""
    wrong = pool({key: value})
    assert validate(wrong) == (f"metadata.annotations[{key}]: {why}",)
    asked = Problem(
        snapshot=Snapshot(
            now=EPOCH, node_pools=(wrong, node_pool("good")), node_classes=(node_class(),), pods=(pod("web"),)
        ),
        instance_types={"default": TYPES},
    )
    assert [launch.node_pool for launch in solve(asked).launches] == ["good"]


def test_a_spot_launch_keeps_fifteen_types_to_choose_from() -> None:
    """The largest types are the cheapest per core here, but few others could stand in for them when spot runs out."""
    types = tuple(
        instance_type(f"m7a.{cores}xlarge", cpu=cores, price=0.05 * cores * (1 - 0.004 * cores), pods=110)
        for cores in range(2, 62, 2)
    )
    snapshot = Snapshot(
        now=EPOCH,
        node_pools=(pool({NODE_SIZE: "cheapest"}),),
        node_classes=(node_class(),),
        pods=tuple(pod(f"p-{number}", cpu="1900m", memory="1Gi") for number in range(60)),
    )
    packing = solve(Problem(snapshot=snapshot, instance_types={"default": types}))
    assert packing.method == "assignment"
    assert {launch.offering.capacity_type for launch in packing.launches} == {"spot"}
    assert min(len(launch.instance_types) for launch in packing.launches) >= Options().spot_types
    assert packing.resilience_cost > 0
