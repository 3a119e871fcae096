"""NodeOverlays: which of them count for an offering, and what they make of it (Karpenter 1.15.0, nodeoverlay suite)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from joinery.decisions.scheduling.pools.overlays import Overlaid, overlaid
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODE_POOL, ON_DEMAND, SPOT, ZONE
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.offerings import InstanceType, Offering, OfferingKey, changed_types, without
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.builders import EPOCH, instance_type, node_overlay, node_pool

LARGE = instance_type("m7a.large", price=0.1, spot=0.4, zones=("us-east-1a", "us-east-1b"))
XLARGE = instance_type("m7a.xlarge", price=0.2, spot=None, zones=("us-east-1a",))


def wants(key: str, *values: str, operator: str = "In") -> Mapping[str, Any]:
    """A requirement."""
    return {"key": key, "operator": operator, "values": list(values)}


def changed(
    *overlays: NodeOverlay,
    pools: Iterable[NodePool] = (node_pool(),),
    kinds: tuple[InstanceType, ...] = (LARGE, XLARGE),
) -> Overlaid:
    """What the overlays make of the types of one node class."""
    return overlaid({"default": kinds}, Snapshot(now=EPOCH, node_pools=tuple(pools), node_overlays=overlays))


def prices(made: Overlaid, pool: str = "default", kind: str = "m7a.large") -> dict[tuple[str, str], float]:
    """By zone (its letter) and capacity type, what a type costs in a NodePool."""
    types = made.types.get(f"default/{pool}", made.types["default"])
    (found,) = (one for one in types if one.name == kind)
    return {(one.zone[-1], one.capacity_type): one.price for one in found.offerings}


def test_without_overlays_the_types_are_the_same_objects() -> None:
    """So that plans are as they were, and what is remembered of types is found again."""
    types = {"default": (LARGE,)}
    assert overlaid(types, Snapshot(now=EPOCH, node_pools=(node_pool(),))).types is types


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"price": "0.05"}, 0.05), ({"adjustment": "+0.5"}, 0.6), ({"adjustment": "-0.04"}, 0.06),
        ({"adjustment": "-10%"}, 0.09), ({"adjustment": "+50%"}, 0.15), ({"adjustment": "-100%"}, 0.0),
        ({"adjustment": "-7"}, 0.0),
    ],
)  # fmt: skip
def test_a_price_is_set_or_adjusted_and_never_below_nothing(change: Mapping[str, Any], expected: float) -> None:
    """By AWS's price, which an adjustment is about (Karpenter `AdjustedPrice`)."""
    made = changed(node_overlay(requirements=[wants(CAPACITY_TYPE, ON_DEMAND)], **change))
    assert prices(made)["a", ON_DEMAND] == pytest.approx(expected)
    assert prices(made)["a", SPOT] == 0.04


def test_an_overlay_is_for_the_offerings_and_types_that_match() -> None:
    """Offerings by zone and capacity type, types by their labels."""
    wanted = [wants(ZONE, "us-east-1b"), wants(INSTANCE_TYPE, "m7a.large")]
    made = changed(node_overlay(requirements=wanted, price="9"))
    assert prices(made) == {("a", ON_DEMAND): 0.1, ("a", SPOT): 0.04, ("b", ON_DEMAND): 9.0, ("b", SPOT): 9.0}
    assert prices(made, kind="m7a.xlarge") == {("a", ON_DEMAND): 0.2}


def test_an_overlay_may_name_nodepools_and_labels_of_their_templates() -> None:
    """A label that a template lacks is absent on its nodes: NotIn matches it, and In does not."""
    pools = [node_pool("web", labels={"team": "web"}), node_pool("batch")]
    of_pool = changed(node_overlay(requirements=[wants(NODE_POOL, "batch")], price="7"), pools=pools)
    of_team = changed(node_overlay(requirements=[wants("team", "web")], price="7"), pools=pools)
    others = changed(node_overlay(requirements=[wants("team", "web", operator="NotIn")], price="7"), pools=pools)
    touched = [
        [pool for pool in ("web", "batch") if prices(made, pool)["a", SPOT] == 7] for made in (of_pool, of_team, others)
    ]
    assert touched == [["batch"], ["web"], ["batch"]]


def test_the_heaviest_overlay_sets_the_price_and_adjustments_do_not_add_up() -> None:
    """One that weighs nothing weighs 0."""
    made = changed(
        node_overlay("light", adjustment="+1"), node_overlay("middle", adjustment="+2", weight=5),
        node_overlay("heavy", price="3", weight=10, requirements=[wants(ZONE, "us-east-1a")]),
    )  # fmt: skip
    assert not made.conflicts
    assert (prices(made)["a", ON_DEMAND], prices(made)["b", ON_DEMAND]) == (3.0, 2.1)


def test_of_two_of_one_weight_the_first_by_name_is_in_conflict_and_counts_nowhere() -> None:
    """Also where they say the same, and also in NodePools and zones in which they do not meet."""
    made = changed(
        node_overlay("a", price="5"), node_overlay("b", price="5", requirements=[wants(ZONE, "us-east-1b")]),
    )  # fmt: skip
    assert made.conflicts == {"a"}
    assert (prices(made)["a", ON_DEMAND], prices(made)["b", ON_DEMAND]) == (0.1, 5.0)


def test_overlays_of_one_weight_that_never_meet_are_in_no_conflict() -> None:
    """Apart by zone, or one about prices and the other about capacity."""
    made = changed(
        node_overlay("a", price="5", requirements=[wants(ZONE, "us-east-1a")]),
        node_overlay("b", price="6", requirements=[wants(ZONE, "us-east-1b")]),
        node_overlay("c", capacity={"smarter-devices/fuse": "1"}),
    )  # fmt: skip
    assert not made.conflicts


def test_capacity_adds_resources_for_pods_by_weight_and_resource() -> None:
    """Of one resource the heaviest counts; of one weight and resource the first by name is in conflict."""
    made = changed(
        node_overlay("a", capacity={"x.io/fuse": "4", "x.io/tun": "2"}),
        node_overlay("b", capacity={"x.io/fuse": "7"}, weight=3),
        node_overlay("c", capacity={"x.io/fuse": "9"}, weight=3),
    )  # fmt: skip
    (large, _) = made.types["default/default"]
    assert made.conflicts == {"b"}
    assert (large.capacity["x.io/fuse"], large.allocatable["x.io/fuse"], large.allocatable["x.io/tun"]) == (9, 9, 2)
    assert large.allocatable["cpu"] == LARGE.allocatable["cpu"]


def test_huge_pages_are_memory_that_nothing_else_has() -> None:
    """Karpenter takes them off what is allocatable, and never leaves less than nothing."""
    made = changed(node_overlay(capacity={"hugepages-2Mi": "1Gi", "hugepages-1Gi": "2Gi"}))
    (large, _) = made.types["default/default"]
    assert large.allocatable["memory"] == LARGE.allocatable["memory"] - (3 << 30)
    assert (
        changed(node_overlay(capacity={"hugepages-2Mi": "1Ti"})).types["default/default"][0].allocatable["memory"] == 0
    )


@pytest.mark.parametrize(
    ("overlay", "reason"),
    [
        (node_overlay(requirements=[wants("karpenter.sh/nodepool", "a b")]), "is not a label value"),
        (node_overlay(capacity={"a b": "1"}), "spec.capacity[a b]: 'a b' is not a qualified name"),
        (node_overlay(capacity={"x.io/a": "-1"}), "spec.capacity[x.io/a]: '-1' is less than 0"),
        (node_overlay(price="9" * 400), "is more than 1,000,000"),
        (node_overlay(requirements=[wants("team", "x", operator="Exists")]), "is not a valid requirement"),
    ],
)  # fmt: skip
def test_an_overlay_that_cannot_be_used_changes_nothing_and_says_why(overlay: NodeOverlay, reason: str) -> None:
    """The others go on."""
    made = changed(overlay, node_overlay("good", adjustment="+1"))
    assert reason in made.invalid["overlay"]
    assert prices(made)["a", ON_DEMAND] == 1.1


def test_nodepools_that_are_changed_alike_share_their_types() -> None:
    """And so their market."""
    made = changed(node_overlay(price="1"), pools=[node_pool("a"), node_pool("b")])
    assert made.types["default/a"] is made.types["default/b"]


def test_what_changes_types_further_leaves_shared_ones_shared() -> None:
    """What EC2 is out of and what interruptions cost are counted once for all of them; another class's apart."""
    made = {**changed(node_overlay(price="1"), pools=[node_pool("a"), node_pool("b")]).types, "other": (LARGE, XLARGE)}
    out_of = frozenset({OfferingKey("m7a.large", "us-east-1a", SPOT)})
    found = changed_types(made, lambda name, kinds: without(kinds, out_of) if name == "default" else kinds)
    assert found["default/a"] is found["default/b"]
    assert [one.available for one in found["default/a"][0].offerings] == [True, False, True, True]
    assert found["other"] is made["other"]


PREVIEW = replace(
    instance_type("x9.large", zones=("us-east-1a",)),
    offerings=(),
    unpriced=tuple(Offering("us-east-1a", way, 0.0, zone_id="use1-az1") for way in (ON_DEMAND, SPOT)),
)


def test_a_type_without_a_price_is_sold_where_an_overlay_of_it_alone_says_one() -> None:
    """Karpenter for AWS `GetOverlayPrice`; a heavier adjustment is about that price."""
    alone = node_overlay(requirements=[wants(INSTANCE_TYPE, "x9.large")], price="2")
    dearer = node_overlay("dearer", adjustment="+10%", weight=9)
    made = changed(alone, dearer, kinds=(PREVIEW,))
    assert prices(made, kind="x9.large") == {("a", ON_DEMAND): 2.2, ("a", SPOT): 2.2}


@pytest.mark.parametrize(
    "overlay",
    [
        node_overlay(price="2"),
        node_overlay(requirements=[wants(INSTANCE_TYPE, "x9.large")], adjustment="+2"),
        node_overlay(requirements=[wants(INSTANCE_TYPE, "x9.large"), wants(ZONE, "us-east-1a")], price="2"),
    ],
)
def test_any_other_overlay_sells_no_type_without_a_price(overlay: NodeOverlay) -> None:
    """Otherwise one for all types would buy what AWS has only announced."""
    assert prices(changed(overlay, kinds=(PREVIEW,)), kind="x9.large") == {}
