"""Static NodePools: which nodes they lack, and what is launched for them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.decisions.scheduling.reason import ReasonCode
from joinery.decisions.scheduling.replicas import replenish
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import AWS_GROUP, CAPACITY_TYPE, INTERRUPTED_AT, RESERVED, ZONE
from joinery.objects.snapshot.offerings import InstanceType, Offering, OfferingKey, Reservation, without
from joinery.objects.snapshot.snapshot import Invalid
from simulator.builders import EPOCH, daemon_set, foreign, instance_type, node, node_claim, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.verification.plans import LARGE, SMALL, A, B, C, launch, packing, problem, violated


def _launches(*objects: Any, types: Sequence[InstanceType] = (SMALL, LARGE), **options: Any) -> tuple[Launch, ...]:
    return _right(problem(*objects, types=types, options=Options(**options))).launches


def _right(asked: Problem) -> Packing:
    """The packing, which verification agrees with."""
    plan = replenish(asked)
    assert verify(replace(asked, snapshot=replace(asked.snapshot, pods=())), plan) == ()
    return plan


def _zones(launches: Sequence[Launch]) -> dict[str, int]:
    return dict(Counter(new.offering.zone for new in launches))


def _reasons(plan: Packing) -> list[str]:
    return [f"{reason.code} | {reason}" for reason in plan.pool_reasons]


def test_a_static_pool_gets_the_nodes_that_it_lacks_over_all_zones() -> None:
    """The cheapest type first, and one zone a launch."""
    launches = _launches(node_pool(replicas=5))
    assert [new.instance_types for new in launches] == [("m7a.large", "m7a.xlarge")] * 5
    assert _zones(launches) == {A: 2, B: 2, C: 1}
    for new in launches:
        (zones,) = (rule.values for rule in new.requirements if rule.key == ZONE)
        assert zones == [new.offering.zone]
        assert new.pods == ()


def test_nodes_and_claims_count_where_they_are_and_those_that_go_do_not() -> None:
    """A claim that waits for its launch counts, and one that cannot be read: its instance is there."""
    claims = [
        node_claim("c-1", node="n-1", zone=A),
        node_claim("c-2", conditions=(), requirements=[f"{ZONE}={B}"]),
        node_claim("c-3", node="n-3", zone=C, deleted=EPOCH),
        node_claim("c-4", node="n-4", zone=C, annotations={INTERRUPTED_AT: EPOCH.isoformat()}),
        node_claim("c-5", node="n-5", zone=C, node_pool="other"),
    ]
    asked = problem(node_pool(replicas=5), node_pool("other"), *claims, node("n-1", zone=A))
    unreadable = (Invalid("NodeClaim", "c-6", "spoiled", node_pool="default"),)
    launches = _right(replace(asked, snapshot=replace(asked.snapshot, invalid=unreadable))).launches
    assert _zones(launches) == {C: 1, A: 1}


@pytest.mark.parametrize("replicas", [0, 1, 2])
def test_a_pool_that_has_enough_nodes_gets_none(replicas: int) -> None:
    """Too many are another matter."""
    claims = [node_claim(f"c-{number}", node=f"n-{number}") for number in range(2)]
    assert _launches(node_pool(replicas=replicas), *claims) == ()


def test_dynamic_pools_and_those_of_others_get_nothing() -> None:
    """Nor does one that is being deleted."""
    going = node_pool("going", replicas=3)
    going = going.model_copy(update={"metadata": going.metadata.model_copy(update={"deletion_timestamp": EPOCH})})
    assert _launches(node_pool(), foreign(node_pool("auto", replicas=3)), going) == ()


def test_pools_are_served_independently() -> None:
    """One that cannot be served says why, and the others get their nodes."""
    pools = [
        node_pool("broken", replicas=1, requirements=["node.kubernetes.io/instance-type=m9z.large"]),
        node_pool("fine", replicas=1),
        node_pool("unready", replicas=1, node_class="missing"),
    ]
    plan = _right(problem(*pools))
    assert [new.node_pool for new in plan.launches] == ["fine"]
    assert _reasons(plan) == [
        "Requirements | NodePool broken: no instance type of EC2NodeClass default has "
        "node.kubernetes.io/instance-type In [m9z.large]",
        "NodeClass | NodePool unready: EC2NodeClass missing does not exist",
    ]


def test_the_limit_of_nodes_binds() -> None:
    """What is left out is said."""
    plan = _right(problem(node_pool(replicas=5, limits={"nodes": "3"}), node_claim("c-1", node="n-1")))
    assert len(plan.launches) == 2
    assert _reasons(plan) == ["Limits | NodePool default: it lacks 4 nodes, and its limit leaves room for 2"]


def test_a_zone_where_nothing_is_for_sale_is_passed_over() -> None:
    """EC2 was out of it lately. The others share its nodes."""
    sold_out = frozenset(OfferingKey(kind.name, A, "on-demand") for kind in (SMALL, LARGE))
    assert _zones(_launches(node_pool(replicas=4), types=without((SMALL, LARGE), sold_out))) == {B: 2, C: 2}


def test_where_every_zone_has_as_many_nodes_the_cheapest_comes_first() -> None:
    """Then the others, so that the spread stays even."""
    cheap = replace(SMALL, offerings=tuple(with_fields(o, price=0.09) if o.zone == B else o for o in SMALL.offerings))
    assert [new.offering.zone for new in _launches(node_pool(replicas=4), types=[cheap])] == [B, A, C, B]


def test_nodes_must_hold_the_pods_of_daemon_sets() -> None:
    """Types that are too small for them are left out, and the claim asks for what they need."""
    (new,) = _launches(node_pool(replicas=1), daemon_set("agent", cpu="2"))
    assert new.instance_types == ("m7a.xlarge",)
    assert new.requests["cpu"] == 2000


def test_min_values_are_met_and_may_leave_the_zone_to_ec2() -> None:
    """A launch that is to allow two zones is for no single one."""
    rules = [
        {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2},
        {"key": ZONE, "operator": "Exists", "minValues": 2},
    ]
    of_types, of_zones = (node_pool(replicas=2, requirements=[rule]) for rule in rules)
    assert _zones(_launches(of_types)) == {A: 1, B: 1}
    for new in _launches(of_zones):
        (zones,) = (rule.values for rule in new.requirements if rule.key == ZONE)
        assert zones == [A, B, C]


def test_min_values_that_cannot_be_met_keep_a_pool_from_launching_unless_they_may_be_relaxed() -> None:
    """As for pods."""
    rule = {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 3}
    pool = node_pool(replicas=1, requirements=[rule])
    assert [reason.code for reason in _right(problem(pool)).pool_reasons] == [ReasonCode.MIN_VALUES]
    (new,) = _launches(pool, best_effort_min_values=True)
    assert new.min_values_relaxed


def test_spot_and_on_demand_are_left_to_the_price() -> None:
    """A launch allows what the pool allows."""
    (new,) = _launches(node_pool(replicas=1), types=[instance_type("m7a.large", price=0.1, spot=0.4)])
    assert new.offering.capacity_type == "spot"
    (types,) = (rule.values for rule in new.requirements if rule.key == CAPACITY_TYPE)
    assert types == ["on-demand", "spot"]


def test_capacity_reservations_come_first_whatever_their_zone() -> None:
    """They are paid for. What does not fit into them is bought, in the zones that have the fewest nodes then."""
    reserved = Offering(A, RESERVED, 0.1 / 1e7, True, "", Reservation("cr-1", remaining=2))
    kind = replace(SMALL, offerings=(*SMALL.offerings, reserved))
    launches = _launches(node_pool("one", replicas=3), node_pool("two", replicas=1), types=[kind])
    expected = [("cr-1", A), ("cr-1", A), ("", B), ("", A)]
    assert [(new.offering.reservation, new.offering.zone) for new in launches] == expected


@pytest.mark.parametrize(
    ("replicas", "pods", "codes"),
    [(1, (), set()), (0, (), {"Replicas"}), (1, ("default/web",), {"NodePool"}), (None, (), {"Launch"})],
)
def test_verification_knows_for_what_a_pool_may_launch(
    replicas: int | None, pods: tuple[str, ...], codes: set[str]
) -> None:
    """A static pool for its replicas and no pods, a dynamic one for pods."""
    asked = problem(node_pool(replicas=replicas), *(pod("web") for _ in pods))
    assert violated(asked, packing(launch(asked, *pods))) == codes


def test_pods_get_no_node_from_a_static_pool_and_go_to_those_that_it_has() -> None:
    """The reason says so."""
    asked = problem(node_pool(replicas=3), pod("web"))
    (unplaced,) = solve(asked).unplaced
    assert [reason.code for reason in unplaced.reasons] == [ReasonCode.STATIC]
    served = solve(problem(node_pool(replicas=3), pod("web"), node("n-1"), node_claim("c-1", node="n-1")))
    assert [placement.node for placement in served.existing] == ["n-1"]


@given(
    replicas=st.integers(0, 12),
    limit=st.none() | st.integers(0, 12),
    there=st.lists(st.sampled_from([A, B, C]), max_size=8),
    sold_out=st.sets(st.sampled_from([A, B, C]), max_size=3),
)
@examples(50)
def test_as_many_nodes_as_possible_spread_as_evenly_as_possible(
    replicas: int, limit: int | None, there: list[str], sold_out: set[str]
) -> None:
    """Never more than replicas and the limit; no zone gets a node while one with fewer could."""
    pool = node_pool(replicas=replicas, limits={} if limit is None else {"nodes": str(limit)})
    claims = [node_claim(f"c-{number}", node=f"n-{number}", zone=zone) for number, zone in enumerate(there)]
    types = without((SMALL,), frozenset(OfferingKey("m7a.large", zone, "on-demand") for zone in sold_out))
    launches = _right(problem(pool, *claims, types=types)).launches
    most = min(replicas, replicas if limit is None else limit)
    can_buy = len(sold_out) < 3
    assert len(launches) == (max(0, most - len(there)) if can_buy else 0)
    after = Counter(there)
    for new in launches:
        zone = new.offering.zone
        assert zone not in sold_out
        assert after[zone] == min(after[other] for other in (A, B, C) if other not in sold_out)
        after[zone] += 1


def test_a_static_pool_that_says_nothing_of_kinds_of_types_gets_ordinary_ones() -> None:
    """Nobody asks for a burstable one; where there is no other it is bought all the same."""
    cheap = instance_type("t3.large", price=0.001, labels={f"{AWS_GROUP}/instance-category": ["t"]})
    assert {new.instance_types for new in _launches(node_pool(replicas=2), types=(cheap, LARGE))} == {("m7a.xlarge",)}
    assert {new.instance_types for new in _launches(node_pool(replicas=2), types=(cheap,))} == {("t3.large",)}
