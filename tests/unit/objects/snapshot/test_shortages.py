"""How long and how widely EC2 is left alone with what it is out of."""

from datetime import UTC, datetime, timedelta

import pytest

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.snapshot.offerings import ALL_SPOT, InstanceType, Offering, OfferingKey, class_scope, without
from joinery.objects.snapshot.quotas import quota_of
from joinery.objects.snapshot.shortages import LONGEST, MARKED_FOR, Shortage, as_met_by, refuted, renewed, unavailable
from simulator import builders

NOW = datetime(2026, 8, 24, 9, 0, tzinfo=UTC)
POOL = OfferingKey("m5.large", "us-east-1a", "spot")


def node_class(name: str, *subnets: tuple[str, str]) -> EC2NodeClass:
    """A class with these subnets, by id and zone."""
    document = builders.node_class(name).to_wire()
    document["status"]["subnets"] = [{"id": subnet, "zone": zone} for subnet, zone in subnets]
    return EC2NodeClass.model_validate(document)


def _type(name: str) -> InstanceType:
    """A type that is sold in both ways in one zone."""
    offerings = (Offering("us-east-1a", "spot", 0.1), Offering("us-east-1a", "on-demand", 0.2))
    return InstanceType(name, {}, {}, {}, offerings)


def test_a_pool_that_stays_out_is_left_alone_ever_longer() -> None:
    """Twice as long each time, up to an hour; from the beginning once nobody remembers."""
    shortage, lasts, now = renewed(POOL, None, NOW), [], NOW
    for _ in range(6):
        lasts.append(shortage.lasts)
        now = shortage.until + timedelta(seconds=20)
        shortage = renewed(POOL, shortage, now)
    assert [each.total_seconds() / 60 for each in lasts] == [3, 6, 12, 24, 48, 60]
    assert renewed(POOL, shortage, shortage.until + timedelta(hours=1)).lasts == MARKED_FOR


def test_two_runs_that_find_the_same_at_once_find_one_shortage() -> None:
    """The time is extended and not doubled."""
    first = renewed(POOL, None, NOW)
    second = renewed(POOL, first, NOW + timedelta(minutes=1))
    assert second == Shortage(NOW + timedelta(minutes=4), MARKED_FOR)


@pytest.mark.parametrize("scope", ["subnet-1", quota_of("m5.large")])
def test_what_comes_back_when_something_ends_is_never_left_alone_for_longer(scope: str) -> None:
    """Nobody who raises a quota, or whose pods have ended, should wait for an hour."""
    pool = OfferingKey("", "", "spot", scope=scope)
    assert renewed(pool, Shortage(NOW, LONGEST), NOW + timedelta(seconds=1)).lasts == MARKED_FOR


def test_a_zone_that_is_out_of_one_type_after_the_other_is_left_alone() -> None:
    """For that capacity type, and only if the types were out again after their time."""
    pools = [OfferingKey(f"m5.{number}", "us-east-1a", "spot") for number in range(10)]
    first, again = Shortage(NOW + MARKED_FOR), Shortage(NOW + LONGEST, LONGEST)
    assert unavailable(dict.fromkeys(pools, first), NOW) == set(pools)
    assert unavailable(dict.fromkeys(pools, again), NOW) == {*pools, OfferingKey("", "us-east-1a", "spot")}
    assert unavailable(dict.fromkeys(pools[1:], again), NOW) == set(pools[1:])
    assert unavailable(dict.fromkeys(pools, again), NOW + LONGEST) == frozenset()


def test_a_type_that_is_out_in_three_zones_again_and_again_is_left_alone_everywhere() -> None:
    """What a reservation or a placement group lacks says nothing of that."""
    pools = [OfferingKey("p5.48xlarge", f"us-east-1{zone}", "on-demand") for zone in "abc"]
    scoped = [OfferingKey("p5.48xlarge", f"us-east-1{zone}", "on-demand", scope="pg-1") for zone in "abc"]
    again = Shortage(NOW + LONGEST, LONGEST)
    assert unavailable(dict.fromkeys(pools, again), NOW) - set(pools) == {OfferingKey("p5.48xlarge", "", "on-demand")}
    assert unavailable(dict.fromkeys(scoped, again), NOW) == set(scoped)


def test_a_launch_refutes_what_covers_its_pool() -> None:
    """Not what others lack, nor what is known of a placement group that it was not in."""
    over = {POOL, ALL_SPOT, OfferingKey("m5.large", "", "spot")}
    others = {
        OfferingKey("m5.large", "us-east-1b", "spot"),
        OfferingKey("m5.large", "us-east-1a", "on-demand"),
        OfferingKey("m5.large", "us-east-1a", "spot", scope="pg-1"),
        OfferingKey("", "us-east-1a", "", scope="subnet-1"),
    }
    assert refuted(dict.fromkeys(over | others, Shortage(NOW)), [POOL]) == over


def test_a_full_subnet_closes_a_zone_for_classes_that_have_no_other_there() -> None:
    """One with another subnet of the zone goes on (Karpenter for AWS, ``IsUnavailable``)."""
    full = OfferingKey("", "us-east-1a", "", scope="subnet-1")
    one = node_class("one", ("subnet-1", "us-east-1a"), ("subnet-3", "us-east-1b"))
    two = node_class("two", ("subnet-1", "us-east-1a"), ("subnet-2", "us-east-1a"))
    assert as_met_by(one, [full, POOL]) == {OfferingKey("", "us-east-1a", ""), POOL}
    assert as_met_by(two, [full, POOL]) == {POOL}


def test_what_one_class_cannot_have_is_there_for_others() -> None:
    """A zone without disks of its volume type, for instance."""
    lacking = OfferingKey("", "us-east-1a", "", scope=class_scope(node_class("one")))
    assert as_met_by(node_class("one"), [lacking]) == {OfferingKey("", "us-east-1a", "")}
    assert as_met_by(node_class("two"), [lacking]) == frozenset()


def test_a_quota_that_is_used_up_keeps_no_other_family_from_being_bought() -> None:
    """Each counts some families, spot apart (EC2 User Guide, "Spot Instance quotas")."""
    types = [_type(name) for name in ("m5.large", "c7g.large", "g5.xlarge")]
    used_up = OfferingKey("", "", "spot", scope=quota_of("m5.large"))
    left = {
        (each.name, offering.capacity_type)
        for each in without(types, frozenset({used_up}))
        for offering in each.offerings
        if offering.available
    }
    on_demand = {(name, "on-demand") for name in ("m5.large", "c7g.large", "g5.xlarge")}
    assert left == {*on_demand, ("g5.xlarge", "spot")}


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("m5.large", "im4gn.large", True),
        ("m5.large", "is4gen.large", True),
        ("g5.xlarge", "vt1.3xlarge", True),
        ("m5.large", "g5.xlarge", False),
        ("inf2.xlarge", "i4i.large", False),
        ("trn1.2xlarge", "t3.large", False),
        ("hpc7g.16xlarge", "h1.2xlarge", False),
        ("u-6tb1.112xlarge", "u7i-12tb.224xlarge", True),
    ],
)
def test_families_share_a_quota_as_ec2_says(one: str, other: str, is_shared: bool) -> None:
    """EC2 User Guide, "On-Demand Instance quotas"."""
    assert (quota_of(one) == quota_of(other)) is is_shared
