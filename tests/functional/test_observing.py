"""In observe mode everything is read and decided, and nothing but Events and records is written."""

from joinery.observing import read_only
from simulator import builders
from simulator.world import World
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

TOLD_AND_KEPT = {"recorder.emit", "store.record", "store.put_catalog"}


def _observed(stand: Stand) -> tuple[Stand, Fuse]:
    """The same world as an observing process sees it, and a witness of what that process writes."""
    fuse = Fuse()
    return Stand(stand.world, gateways=read_only(fuse.protect(stand.world.gateways))), fuse


def test_no_door_writes_anything_but_events_and_records(stand: Stand) -> None:
    """Pods that wait, a node that registers, one that EC2 takes away, one that is too old, an instance that nobody knows."""
    stand.pods(3)
    stand.settle()
    stand.pods(6)
    stand.provision()
    stand.boot()
    stand.world.cluster.add(*(builders.pod(f"late-{number}", cpu="900m") for number in range(4)))
    watching, fuse = _observed(stand)
    watching.receive("interruption_spot_warning", stand.alive[0])
    watching.provision()
    stand.wait(3600 * 24 * 365)
    watching.expire()
    stand.world.cluster.remove(stand.claims[1])
    watching.live()
    watching.refresh()
    assert set(fuse.writes) == TOLD_AND_KEPT


def test_a_claim_that_nobody_launches_is_left_alone(world: World) -> None:
    """It may be another controller's, beside which Joinery is tried: nothing is asked of EC2, and nothing is said of the claim."""
    stand = Stand(world).with_defaults()
    world.cluster.add(builders.node_claim("theirs", conditions=(), created=world.clock.now()))
    stand.wait(90)
    before = len(world.cluster.events)
    watching, fuse = _observed(stand)
    watching.live()
    watching.provision()
    assert set(fuse.writes) <= TOLD_AND_KEPT
    assert [event.name for event in world.cluster.events[before:]] == []
