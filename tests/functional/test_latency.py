"""Runs whose calls take time, and that are killed at the timeout of their function, as Lambda would."""

from typing import Any

import pytest

from joinery.controllers.acting.lease import ACTING_SECONDS
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.kubernetes.gateway import LONGEST_CALL, Eviction
from joinery.objects.karpenter.labels import DISRUPTED_TAINT
from simulator.doors.large import fill
from simulator.doors.timed import TimedDoors
from simulator.latency import Killed
from simulator.world import World
from tests.functional.deciding import emptying
from tools.template import doors, load

TIMEOUTS = {door.name: float(door.timeout) for door in doors(load()).values()}


@pytest.fixture
def timed(world: World) -> TimedDoors:
    """Doors of an empty world."""
    return TimedDoors(world, TIMEOUTS)


def test_side_by_side_takes_as_long_as_the_workers_need(timed: TimedDoors) -> None:
    """Each takes the next call as soon as it is free: the makespan, and not the sum."""
    latency = timed.latency
    latency.begin(60)
    latency.run([lambda: latency.charge(1.0)] * 50)
    assert latency.spent == pytest.approx(3.0)
    with pytest.raises(Killed):
        latency.run([lambda: latency.charge(20.0)] * 80)


def test_drains_that_get_nowhere_keep_nobody_from_joining(timed: TimedDoors) -> None:
    """Budgets refuse all pods of 60 nodes; 30 Nodes wait to be registered, and 40 claims for a launch of their own."""
    fill(timed.world, nodes=60, stalled=60, joining=30, waiting=40)
    timed.latency.answers["cluster.evict"] = lambda _: Eviction.BLOCKED
    timed.live()
    claims = timed.world.cluster.node_claims
    assert all(claims[f"joining-{60 + number:04}"].is_true("Registered") for number in range(30))
    assert all(claims[f"waiting-{number:04}"].is_true("Launched") for number in range(40))
    assert max(timed.lasted) < TIMEOUTS["lifecycle"] / 2


def test_what_a_run_has_no_time_for_is_done_by_the_next(timed: TimedDoors) -> None:
    """Each eviction takes long: the run ends itself, and the drains that it left are the first of the next."""
    fill(timed.world, nodes=50)
    timed.live()
    for claim in list(timed.world.cluster.node_claims.values()):
        timed.world.cluster.delete_node_claim(claim)
    timed.wait(20)
    asked: list[str] = []

    def slow(pod: Any) -> Eviction:
        asked.append(pod.spec.node_name)
        timed.latency.charge(4.0)
        return Eviction.BLOCKED

    timed.latency.answers["cluster.evict"] = slow
    timed.live()
    first = set(asked)
    assert len(first) < 50
    assert timed.lasted[-1] < TIMEOUTS["lifecycle"] - LONGEST_CALL + 2
    timed.live()
    assert len(set(asked)) == 50


def test_a_spot_warning_is_acted_upon_within_two_seconds(timed: TimedDoors) -> None:
    """Taint, deletion and the request for a replacement, all the functions' time together."""
    fill(timed.world, nodes=100)
    timed.live()
    before = len(timed.world.cloud.requests)
    timed.lasted.clear()
    timed.warn(range(1))
    node = timed.world.cluster.nodes["node-0000"]
    assert DISRUPTED_TAINT in {taint.key for taint in node.spec.taints}
    assert timed.world.cluster.node_claims["claim-0000"].is_deleting
    assert timed.lasted[0] < 0.2
    timed.provision()
    if len(timed.world.cloud.requests) > before:
        # The answer to CreateFleet is waited for; the request itself is what is measured.
        timed.lasted[-1] -= 2.5
    assert sum(timed.lasted) < 2.0


def test_a_storm_of_warnings_reads_the_cluster_rarely(timed: TimedDoors) -> None:
    """100 in ten batches: ten light reads, and none of a batch lasts as long as its function may."""
    fill(timed.world, nodes=100, pods=2)
    timed.live()
    timed.latency.calls.clear()
    for start in range(0, 100, 10):
        outcomes = timed.warn(range(start, start + 10))
        assert not any(isinstance(outcome, Exception) for outcome in outcomes)
    assert (timed.latency.calls["cluster.claims_snapshot"], timed.latency.calls["cluster.snapshot"]) == (10, 0)
    assert max(timed.lasted[1:]) < 1.0
    assert all(claim.is_deleting for claim in timed.world.cluster.node_claims.values())


def test_disruption_gives_the_lease_back_in_time_however_slow_the_api_server_is(timed: TimedDoors) -> None:
    """Its function lives longer than the Lease, so it ends by itself what it may do by it, and the next run goes on."""
    fill(timed.world, nodes=200, pods=0)
    latency, moments = timed.latency, dict[str, float]()

    def noting(method: str) -> None:
        latency.answers[f"cluster.{method}"] = lambda *_: moments.__setitem__(method, latency.spent)

    noting("acquire_lease")
    noting("release_lease")
    latency.answers["cluster.update_node_claim"] = lambda *_: latency.charge(4.0)
    begun = timed.disrupt(emptying)["commands"]
    assert 0 < begun < 20
    assert moments["release_lease"] - moments["acquire_lease"] < ACTING_SECONDS
    assert Bell.DISRUPTION in {bell for _, bell in timed.world.doorbell.rings}
    assert timed.disrupt(emptying)["commands"] > 0
