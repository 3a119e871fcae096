"""A gang's nodes come together, or go back."""

from joinery.decisions.lifecycle.launching.incomplete_gangs import TIME_TO_BE_WHOLE
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.karpenter.labels import GANGS, UNSERVED_NEEDS, ZONE
from joinery.objects.snapshot.claims import INITIALIZED
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from simulator.world import World
from tests.functional.stand import Stand

GROUP = {"podGroupName": "train"}


def _pools(stand: Stand, zone: str = "") -> list[OfferingKey]:
    sold = stand.world.cloud.catalog().offerings
    return [OfferingKey(o.instance_type, o.zone, o.capacity_type) for o in sold if zone in ("", o.zone)]


def _gang(stand: Stand, count: int = 4, topology: str = "") -> None:
    """Of so many pods, each of which fills a node."""
    stand.world.cluster.add(builders.pod_group("train", minimum=count, topology=topology))
    stand.pods(count, cpu="3", scheduling_group=GROUP)


def _usual(topology: str = "") -> OfferingKey:
    """What a gang would be bought if EC2 had enough."""
    stand = Stand(World()).with_defaults()
    _gang(stand, topology=topology)
    stand.provision()
    (pool,) = {OfferingKey(one.instance_type, one.zone, one.capacity_type) for one in stand.world.cloud.instances()}
    return pool


def test_a_zone_with_too_few_launches_none_of_a_gang(stand: Stand) -> None:
    """EC2 is asked for all or none, and the next run finds another zone for all of them."""
    pool = _usual(ZONE)
    stand.world.cloud.run_out(*_pools(stand, pool.zone))
    stand.world.cloud.run_out(pool, left=3)
    _gang(stand, topology=ZONE)
    stand.provision()
    assert (stand.alive, stand.rung()) == ([], {Bell.PROVISIONING, Bell.LIFECYCLE})
    stand.live()
    stand.provision()
    assert len(stand.alive) == 4
    assert pool.zone not in {instance.zone for instance in stand.world.cloud.instances()}


def test_what_was_bought_for_half_a_gang_goes_back(stand: Stand) -> None:
    """Two of four have come from several zones, and nobody sells the others."""
    pool = _usual()
    stand.world.cloud.run_out(*_pools(stand))
    stand.world.cloud.run_out(pool, left=2)
    _gang(stand)
    for _ in range(3):
        stand.provision()
        stand.live()
    assert len(stand.alive) == 2
    assert {claim.metadata.annotations[GANGS] for claim in stand.claims} == {"PodGroup default/train"}
    stand.boot()
    stand.live()
    stand.wait(TIME_TO_BE_WHOLE.total_seconds() - 60)
    stand.provision()
    assert len(stand.alive) == 2
    stand.wait(60)
    # What EC2 was out of long ago is tried once more, spot and on demand, before what has come is given up.
    for _ in range(4):
        stand.provision()
    for _ in range(4):
        stand.live()
        stand.wait(30)
    assert stand.alive == []
    assert "GangIncomplete" in stand.event_reasons("NodeClaim")


def test_a_node_that_waits_for_its_gang_has_broken_no_promise(stand: Stand) -> None:
    """kube-scheduler binds nobody there before the others have nodes: that says nothing against the node."""
    _gang(stand, 2)
    stand.provision()
    stand.boot()
    late = stand.claims[0]
    (node,) = [one for one in stand.world.cluster.nodes.values() if one.spec.provider_id == late.status.provider_id]
    stand.world.cluster.remove(node)
    for _ in range(8):
        stand.live()
        stand.wait(60)
    kept = [claim for claim in stand.claims if claim.is_true(INITIALIZED)]
    assert len(kept) == 1
    assert all(UNSERVED_NEEDS not in claim.metadata.annotations for claim in kept)
