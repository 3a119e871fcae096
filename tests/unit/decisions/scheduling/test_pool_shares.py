"""Shares on demand of NodePools: how many of a plan's new nodes are on demand, which, and what that costs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.paid import with_paid_for
from joinery.decisions.scheduling.pool_shares import planned_shares
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.replicas import replenish
from joinery.decisions.verification.verify import verify
from joinery.objects.commitments import PaidFor, SavingsPlan
from joinery.objects.karpenter.labels import (
    CAPACITY_TYPE,
    INTERRUPTED_AT,
    ON_DEMAND,
    ON_DEMAND_SHARE,
    RESERVED,
    SPOT,
    ZONE,
)
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.snapshot.offerings import InstanceType, OfferingKey, without
from simulator.builders import ZONES, instance_type, node, node_claim, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.disruption.clusters import annotated
from tests.unit.decisions.verification.plans import problem

LARGE, XLARGE = instance_type("m7a.large", price=0.1), instance_type("m7a.xlarge", price=0.2)
APART: dict[str, Any] = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}
ON_SPOT: dict[str, Any] = {"node_selector": {CAPACITY_TYPE: SPOT}}
PREFERS_SPOT: dict[str, Any] = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "preference": {"matchExpressions": [{"key": CAPACITY_TYPE, "operator": "In", "values": [SPOT]}]},
            }
        ]
    }
}


def _pool(share: str = "2 + 30%", **fields: Any) -> NodePool:
    return annotated(node_pool(**fields), {ON_DEMAND_SHARE: share})


def _alone(count: int, first: int = 1, **fields: Any) -> list[Any]:
    """Pods each of which needs a node of its own."""
    spec = {"labels": {"app": "web"}, "affinity": APART, "cpu": "1", **fields}
    return [pod(f"web-{number}", **spec) for number in range(first, first + count)]


def _planned(*objects: Any, types: Sequence[InstanceType] = (LARGE, XLARGE)) -> tuple[Problem, Packing]:
    """The problem, and its plan, which verification agrees with at the first time of asking."""
    asked = problem(*objects, types=types)
    made = plan(asked).proven()
    assert (made.violations, made.warnings) == ((), ())
    return asked, made.packing


def _kinds(packing: Packing) -> dict[str, int]:
    return dict(Counter(launch.offering.capacity_type for launch in packing.launches))


def _there(number: int, capacity_type: str, **claim: Any) -> list[Any]:
    return [
        node_claim(f"claim-{number}", node=f"n{number}", capacity_type=capacity_type, **claim),
        node(f"n{number}", node_pool="default", capacity_type=capacity_type, cpu="100m"),
    ]


@pytest.mark.parametrize(
    ("share", "on_demand"), [("0", 0), ("2", 2), ("30%", 2), ("2 + 30%", 4), ("9", 6), ("100%", 6), ("2 + 100%", 6)]
)
def test_so_many_of_six_new_nodes_are_on_demand(share: str, on_demand: int) -> None:
    """The base first, then a percentage of those beyond it, rounded up; all others stay on spot."""
    _, packing = _planned(_pool(share), *_alone(6))
    assert _kinds(packing) == {kind: count for kind, count in ((ON_DEMAND, on_demand), (SPOT, 6 - on_demand)) if count}
    for launch in packing.launches:
        (allowed,) = (rule.values for rule in launch.requirements if rule.key == CAPACITY_TYPE)
        assert (SPOT not in allowed) is (launch.offering.capacity_type == ON_DEMAND)
    assert packing.hourly == pytest.approx(on_demand * 0.1 + (6 - on_demand) * 0.04)
    assert packing.share_cost == pytest.approx(on_demand * 0.06)
    assert packing.lower_bound == pytest.approx(6 * 0.04)
    assert packing.kept_bound == pytest.approx(packing.hourly)


def test_nodes_that_are_there_or_on_their_way_count_and_those_that_leave_do_not() -> None:
    """Two are on demand, one of them a claim that takes a pod, and one on spot, so of five nodes three have to be. A
    fourth is on demand, and EC2 takes it back.
    """
    there = [*_there(1, ON_DEMAND), *_there(2, SPOT), node_claim("claim-3", capacity_type=ON_DEMAND)]
    going = _there(4, ON_DEMAND, annotations={INTERRUPTED_AT: "2026-01-01T00:00:00Z"})
    _, packing = _planned(_pool("2 + 30%"), *there, *going, *_alone(3))
    assert _kinds(packing) == {ON_DEMAND: 1, SPOT: 1}


def test_a_claim_that_may_be_reserved_or_on_demand_counts_before_it_is_launched() -> None:
    """Its node has no label yet, and one of the two it will have."""
    either = {"key": CAPACITY_TYPE, "operator": "In", "values": [ON_DEMAND, RESERVED]}
    waiting = node_claim("claim-1", conditions=(), requirements=[either])
    _, packing = _planned(_pool("1"), waiting, *_alone(2))
    assert _kinds(packing) == {SPOT: 2}


def test_the_nodes_that_cost_least_more_are_the_ones_on_demand() -> None:
    """Of a large and a small one the small one."""
    pods = [*_alone(1, cpu="3"), *_alone(1, first=2)]
    _, packing = _planned(_pool("1"), *pods)
    assert {launch.pods: launch.offering.capacity_type for launch in packing.launches} == {
        ("default/web-1",): SPOT,
        ("default/web-2",): ON_DEMAND,
    }


def test_types_are_chosen_by_on_demand_prices_where_all_are_on_demand() -> None:
    """On spot the one large node is cheaper, on demand two small ones are."""
    types = (instance_type("m7a.large", price=0.1, spot=0.9), instance_type("m7a.xlarge", price=0.3, spot=0.5))
    pods = [pod(f"web-{number}", cpu="1500m") for number in (1, 2)]
    _, on_spot = _planned(_pool("0"), *pods, types=types)
    asked, packing = _planned(_pool("2"), *pods, types=types)
    assert [launch.offering.instance_type for launch in on_spot.launches] == ["m7a.xlarge"]
    assert [launch.offering.instance_type for launch in packing.launches] == ["m7a.large"] * 2
    assert packing.share_cost == pytest.approx(packing.hourly - on_spot.hourly)
    assert packing.lower_bound <= on_spot.hourly
    assert planned_shares(asked.snapshot.pool_shares, packing.launches)["default"].lacking == 0


def test_pods_that_require_spot_stay_there_and_the_others_make_up_for_it() -> None:
    """Half of four nodes are on demand: those of the pods that may be."""
    _, packing = _planned(_pool("50%"), *_alone(2, **ON_SPOT), *_alone(2, first=3))
    kinds = {launch.pods[0]: launch.offering.capacity_type for launch in packing.launches}
    assert kinds == {
        "default/web-1": SPOT, "default/web-2": SPOT, "default/web-3": ON_DEMAND, "default/web-4": ON_DEMAND,
    }  # fmt: skip


def test_what_cannot_be_made_up_for_keeps_no_pod_waiting() -> None:
    """Three pods require spot, and there is one other: of two that should be on demand one is."""
    asked, packing = _planned(_pool("50%"), *_alone(3, **ON_SPOT), *_alone(1, first=4))
    assert _kinds(packing) == {SPOT: 3, ON_DEMAND: 1}
    assert packing.unplaced == ()
    assert planned_shares(asked.snapshot.pool_shares, packing.launches)["default"].lacking == 1


def test_a_preference_for_spot_gives_way() -> None:
    """As many pods give it up as the share needs, and the plan says so."""
    _, packing = _planned(_pool("1"), *(pod(f"p{n}", cpu="1500m", affinity=PREFERS_SPOT) for n in (1, 2, 3)))
    assert _kinds(packing)[ON_DEMAND] == 1
    assert _kinds(packing)[SPOT] >= 1
    (given_up,) = {one.dropped for one in packing.relaxed}
    assert "karpenter.sh/capacity-type" in given_up[0]
    on_demand = [launch for launch in packing.launches if launch.offering.capacity_type == ON_DEMAND]
    assert {one.pod for one in packing.relaxed} == set(on_demand[0].pods)


def test_where_there_is_no_on_demand_capacity_spot_is_bought() -> None:
    """Pods wait for no share; the next nodes make up for it."""
    sold_out = frozenset(OfferingKey(LARGE.name, zone, ON_DEMAND) for zone in ZONES)
    asked, packing = _planned(_pool("2"), *_alone(3), types=without((LARGE,), sold_out))
    assert _kinds(packing) == {SPOT: 3}
    assert planned_shares(asked.snapshot.pool_shares, packing.launches)["default"].lacking == 2


def test_limits_are_kept() -> None:
    """On demand the larger type is the cheaper one, and the limit has no room for it."""
    types = (instance_type("m7a.large", price=0.3, spot=0.1), instance_type("m7a.xlarge", price=0.2))
    _, packing = _planned(_pool("1", limits={"cpu": "4"}), *_alone(2), types=types)
    assert sorted(launch.offering.instance_type for launch in packing.launches) == ["m7a.large"] * 2
    assert _kinds(packing) == {ON_DEMAND: 1, SPOT: 1}


def test_pools_without_a_share_are_as_they_were() -> None:
    """Only the NodePool that asks has nodes on demand."""
    other = node_pool("other", taints=[{"key": "for", "value": "other", "effect": "NoSchedule"}])
    tolerating = _alone(
        2, first=9, tolerations=[{"operator": "Exists"}], node_selector={"karpenter.sh/nodepool": "other"}
    )
    _, packing = _planned(_pool("100%"), other, *_alone(2), *tolerating)
    kinds = {(launch.node_pool, launch.offering.capacity_type) for launch in packing.launches}
    assert kinds == {("default", ON_DEMAND), ("other", SPOT)}


def test_a_pool_of_spot_alone_stays_on_spot() -> None:
    """Its requirements leave nothing else: the plan says that the share does not hold."""
    asked, packing = _planned(_pool("2", requirements=["karpenter.sh/capacity-type=spot"]), *_alone(3))
    assert _kinds(packing) == {SPOT: 3}
    assert planned_shares(asked.snapshot.pool_shares, packing.launches)["default"].lacking == 2


@pytest.mark.parametrize(("share", "lacking"), [("50%", 0), ("100%", 3)])
def test_a_spread_over_capacity_types_goes_first(share: str, lacking: int) -> None:
    """Half of the pods are on spot by a rule of their own, whatever the share says."""
    spread = {
        "topologyKey": CAPACITY_TYPE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }  # fmt: skip
    asked, packing = _planned(_pool(share), *_alone(6, spread=[spread]))
    assert _kinds(packing) == {ON_DEMAND: 3, SPOT: 3}
    assert packing.unplaced == ()
    assert planned_shares(asked.snapshot.pool_shares, packing.launches)["default"].lacking == lacking


def test_what_is_paid_for_already_is_on_demand_anyway() -> None:
    """Where on-demand capacity is paid for already, more than the share is on demand."""
    asked = problem(_pool("50%"), *_alone(4), types=(LARGE, XLARGE))
    document = PaidFor(savings_plans=(SavingsPlan(name="plan", commitment=1.0, discount=0.3),))
    paid = with_paid_for(asked, document, {kind.name: kind.offerings for kind in (LARGE, XLARGE)})
    made = plan(paid).proven()
    assert (made.violations, made.warnings) == ((), ())
    assert _kinds(made.packing) == {ON_DEMAND: 4}
    assert made.packing.paid == pytest.approx(0.0)


def test_a_static_pool_keeps_its_share() -> None:
    """Of five replicas in three zones three are on demand."""
    asked = problem(_pool("2 + 30%", replicas=5), types=(LARGE, XLARGE))
    packing = replenish(asked)
    assert verify(replace(asked, snapshot=replace(asked.snapshot, pods=())), packing) == ()
    assert _kinds(packing) == {ON_DEMAND: 3, SPOT: 2}
    zones = Counter(rule.values[0] for one in packing.launches for rule in one.requirements if rule.key == ZONE)
    assert sorted(zones.values()) == [1, 2, 2]


@given(
    base=st.integers(0, 3),
    percent=st.integers(0, 100),
    more=st.tuples(st.integers(0, 3), st.integers(0, 50)),
    sizes=st.lists(st.sampled_from(["300m", "900m", "1500m", "3"]), min_size=1, max_size=8),
    there=st.lists(st.sampled_from([SPOT, ON_DEMAND]), max_size=2),
    spot=st.sampled_from([0.02, 0.05, 0.09, 0.12]),
)
@examples(12)
def test_no_plan_that_keeps_a_share_costs_less_than_its_bound(
    base: int, percent: int, more: tuple[int, int], sizes: list[str], there: list[str], spot: float
) -> None:
    """A plan for a larger share keeps the smaller one, too."""
    types = (instance_type("m7a.large", price=0.1, spot=spot), XLARGE)
    objects = [one for number, kind in enumerate(there) for one in _there(number, kind)]
    objects += [pod(f"web-{number}", cpu=size) for number, size in enumerate(sizes)]
    _, packing = _planned(_pool(f"{base} + {percent}%"), *objects, types=types)
    larger, above = _planned(_pool(f"{base + more[0]} + {min(percent + more[1], 100)}%"), *objects, types=types)
    assert packing.kept_bound <= packing.hourly * (1 + 1e-6)
    short = planned_shares(larger.snapshot.pool_shares, above.launches).values()
    if not any(share.lacking for share in short):
        assert packing.kept_bound <= above.hourly * (1 + 1e-6)


@given(
    base=st.integers(0, 4),
    percent=st.integers(0, 100),
    pods=st.lists(st.sampled_from(["any", "any", "spot", "on-demand", "small"]), min_size=1, max_size=8),
    there=st.lists(st.sampled_from([SPOT, ON_DEMAND]), max_size=4),
    limit=st.sampled_from([None, "12"]),
)
@examples(12)
def test_a_share_holds_as_far_as_pods_let_it(
    base: int, percent: int, pods: list[str], there: list[str], limit: str | None
) -> None:
    """Whatever is there and whatever waits: where a share is short, no launch could be on demand that is not."""
    asked_of: dict[str, dict[str, Any]] = {
        "spot": ON_SPOT,
        "on-demand": {"node_selector": {CAPACITY_TYPE: ON_DEMAND}},
        "small": {"affinity": None, "cpu": "300m"},
    }
    waiting = [one for number, kind in enumerate(pods) for one in _alone(1, first=number, **asked_of.get(kind, {}))]
    standing = [one for number, kind in enumerate(there) for one in _there(number, kind)]
    limits: dict[str, Any] = {"limits": {"cpu": limit}} if limit else {}
    asked, packing = _planned(_pool(f"{base} + {percent}%", **limits), *standing, *waiting)
    without_share = problem(node_pool(**limits), *standing, *waiting, types=(LARGE, XLARGE))
    assert {one.pod for one in packing.unplaced} == {one.pod for one in plan(without_share).packing.unplaced}
    for share in planned_shares(asked.snapshot.pool_shares, packing.launches).values():
        on_spot = [launch for launch in packing.launches if launch.offering.capacity_type == SPOT]
        tied = {f"default/web-{number}" for number, kind in enumerate(pods) if kind == "spot"}
        assert not share.lacking or all(tied.intersection(launch.pods) for launch in on_spot)
