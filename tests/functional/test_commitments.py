"""What is paid for already, in the functions: asked once an hour, kept in the bucket, counted by who decides."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.controllers.catalog import CatalogController
from joinery.objects.commitments import Bought, PaidFor, ReservedInstances, SavingsPlan
from joinery.objects.errors import ConfigurationError, UnavailableError
from joinery.objects.karpenter.labels import INSTANCE_TYPE, ON_DEMAND
from simulator import builders
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

DENIED = ConfigurationError("asking Savings Plans: AccessDenied")


def stand_with(share: str, *kinds: str, **settings: Any) -> Stand:
    """Functions that count commitments, and a NodePool of these types, with a price for each."""
    stand = Stand(World(), commitments=share, **settings)
    pool = builders.node_pool(requirements=[f"{INSTANCE_TYPE}={','.join(kinds)}"], budgets=[{"nodes": "100%"}])
    stand.world.cluster.add(builders.node_class(), pool)
    stand.live()
    return stand


def on_demand(stand: Stand) -> list[str]:
    """Types that the market sells on demand in its first zone, the dearest last."""
    offerings = stand.world.store.catalog().offerings
    first = min(one.zone for one in offerings)
    sold = [one for one in offerings if one.capacity_type == ON_DEMAND and one.zone == first]
    return [
        one.instance_type for one in sorted(sold, key=lambda one: one.price) if one.instance_type.endswith("2xlarge")
    ]


@pytest.fixture
def kinds() -> list[str]:
    """Three types, the dearest last."""
    found = on_demand(Stand(World()))
    return [found[0], found[1], found[-1]]


def owning(kind: str, count: float = 1) -> PaidFor:
    """So many Reserved Instances of the region."""
    return PaidFor(
        reserved_instances=(ReservedInstances(name="ri", instance_type=kind, count=count, size_flexible=False),)
    )


def test_an_idle_reserved_instance_gets_the_pods_and_the_record_says_both_prices(kinds: list[str]) -> None:
    """Of a dearer type. The record can be given to ``--commitments``."""
    stand = stand_with("file", *kinds)
    stand.world.store.put_paid_for(owning(kinds[1]))
    stand.pods(1)
    outcome = stand.provision()
    (request,) = stand.world.cloud.requests
    assert {one.instance_type for one in request.overrides} == {kinds[1]}
    assert outcome["hourly_paid"] == 0.0 < outcome["hourly_cost"]
    (record,) = map(stand.world.store.read, stand.world.store.documents)
    assert record["joinery"]["commitments"]["reservedInstances"][0]["instanceType"] == kinds[1]
    assert record["joinery"]["result"]["covered"] == pytest.approx(outcome["hourly_cost"], abs=1e-4)


@pytest.mark.parametrize(("share", "is_stored"), [("off", True), ("100%", False)])
def test_without_a_setting_or_a_document_nothing_changes(share: str, is_stored: bool, kinds: list[str]) -> None:
    """The cheaper type is bought, and nothing says a paid price."""
    stand = stand_with(share, *kinds)
    if is_stored:
        stand.world.store.put_paid_for(owning(kinds[1]))
    stand.pods(1)
    outcome = stand.provision()
    assert stand.claims[0].status.capacity
    assert "hourly_paid" not in outcome
    (record,) = map(stand.world.store.read, stand.world.store.documents)
    assert "commitments" not in record["joinery"]


def aged(stand: Stand, kind: str) -> None:
    """A node of that type that may be consolidated, with a pod that needs little of it."""
    created = stand.world.clock.now() - timedelta(days=1)
    settled = ("Launched", "Registered", "Initialized", "Consolidatable")
    stand.world.cluster.add(
        builders.node_claim("n", node="n", instance_type=kind, conditions=settled, created=created),
        builders.node("n", instance_type=kind, created=created),
        builders.pod("p", node="n", cpu="1", owner="web"),
    )


@pytest.mark.parametrize(("share", "bought"), [("off", 0), ("file", 1)])
def test_a_node_is_replaced_by_what_lies_idle(share: str, bought: int, kinds: list[str]) -> None:
    """By list prices the cheapest type takes its place. The command is still right when it begins."""
    stand = stand_with(share, *kinds)
    stand.world.store.put_paid_for(owning(kinds[1]))
    aged(stand, kinds[2])
    outcome = stand.consolidate()
    assert (outcome["commands"], outcome["launches"]) == (1, 1)
    (claim,) = (one for one in stand.claims if one.metadata.name != "n")
    (types,) = (one.values for one in claim.spec.requirements if one.key == INSTANCE_TYPE)
    assert set(types) == {kinds[bought]} if bought else kinds[0] in types
    assert (outcome["after"] < 0.001) is bool(bought)


@pytest.mark.parametrize("count", [0, 1])
def test_a_node_that_is_paid_for_stays(count: int, kinds: list[str]) -> None:
    """To leave it would add the price of another to the bill."""
    stand = stand_with("file", *kinds)
    stand.world.store.put_paid_for(owning(kinds[2], count))
    aged(stand, kinds[2])
    assert stand.consolidate()["commands"] == 1 - count


def test_a_document_that_cannot_be_read_keeps_pods_from_nothing_and_nodes_from_going(kinds: list[str]) -> None:
    """A plan without it is better than none. To leave a node that is paid for would cost more than to wait."""
    stand = stand_with("file", *kinds)

    def unread() -> Stand:
        fuse = Fuse(failing="store.paid_for", error=UnavailableError("SlowDown"))
        return Stand(stand.world, gateways=fuse.protect(stand.gateways), commitments="file")

    with pytest.raises(UnavailableError, match="SlowDown"):
        unread().consolidate()
    stand.pods(1)
    assert unread().provision()["launches"] == 1


def read(stand: Stand, share: float = 1.0) -> Callable[[], Any]:
    """The catalogue's function."""
    return CatalogController(stand.gateways, stand.world.clock.now, share).reconcile


def test_aws_is_asked_once_in_each_hour_and_what_is_left_is_stored(kinds: list[str]) -> None:
    """As AWS bills. The share of others is used elsewhere."""
    stand, bought = Stand(World()), owning(kinds[1], 4).reserved_instances
    stand.world.cloud.owned = Bought(reserved_instances=bought)
    read(stand, 0.25)()
    (first,) = stand.world.store.paid_for().reserved_instances
    assert (first.count, first.used_elsewhere) == (4, 3)
    stand.world.cloud.owned = Bought(reserved_instances=(replace(bought[0], count=8),))
    counts = []
    for _ in range(2):
        stand.world.clock.advance(timedelta(minutes=30))
        read(stand, 0.25)()
        counts.append(stand.world.store.paid_for().reserved_instances[0].count)
    assert sorted(counts) == [4, 8]


def test_a_source_that_is_missing_is_said_and_the_rest_is_stored(kinds: list[str]) -> None:
    """The alarm rings for whoever has to give the right; until then what was read before stands in."""
    stand = Stand(World())
    plan = SavingsPlan(name="sp", commitment=1.0, rates={kinds[0]: 0.1})
    stand.world.cloud.owned = Bought(savings_plans=(plan,))
    read(stand)()
    stand.world.clock.advance(timedelta(hours=1))
    stand.world.cloud.owned = Bought(savings_plans=DENIED, reserved_instances=owning(kinds[1]).reserved_instances)
    with pytest.raises(UnavailableError, match="lacks: Savings Plans could not be read: those of .* stand in"):
        read(stand)()
    stored = stand.world.store.paid_for()
    assert ([one.name for one in stored.savings_plans], len(stored.reserved_instances)) == (["sp"], 1)


def test_nobody_is_asked_where_a_person_writes_the_document() -> None:
    """What they have written stays."""
    stand = Stand(World())
    stand.world.store.put_paid_for(PaidFor(discount=0.1))
    stand.world.cloud.owned = Bought(savings_plans=DENIED)
    read(stand, 0.0)()
    assert stand.world.store.paid_for() == PaidFor(discount=0.1)
