"""Caps: what fits under them is bought, replacements first; and nobody is drained for what they leave out."""

from typing import Any

import pytest

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import RefusedError, UnavailableError
from joinery.objects.karpenter.labels import REPLACEMENT_LAUNCHED
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.pods import is_active
from simulator import builders
from simulator.world import World
from tests.functional.stand import APART, Stand

DAY = 24 * 3600


def _running_apart(world: World, count: int, **settings: Any) -> Stand:
    """So many pods, each on a node of its own, under caps that they did not have when they came."""
    stand = Stand(world).with_defaults()
    stand.pods(count, labels={"app": "web"}, affinity=APART)
    stand.settle()
    assert len(stand.alive) == count
    return _capped(stand, **settings)


def _capped(stand: Stand, **settings: Any) -> Stand:
    capped = Stand(stand.world, gateways=stand.gateways, **settings)
    capped.engine, capped.kubelets = stand.engine, stand.kubelets
    stand.rung()
    return capped


def _provision_refused(stand: Stand, cap: str) -> None:
    with pytest.raises(RefusedError, match=cap):
        stand.provision()


def _bound(stand: Stand) -> set[str]:
    return {pod.metadata.name for pod in stand.world.cluster.pods.values() if pod.spec.node_name and is_active(pod)}


def _runaway(number: int, **given: Any) -> Pod:
    return builders.pod(f"runaway-{number}", cpu="900m", labels={"app": "runaway"}, **given)


def test_expired_nodes_keep_their_pods_until_the_caps_let_their_replacements_in(world: World) -> None:
    """Three nodes expire at once, and a run may launch two: two are replaced now, the third by the next run."""
    stand = _running_apart(world, 3, max_launches=2)
    stand.wait(30 * DAY)
    assert stand.expire() == {"expired": 3}
    _provision_refused(stand, "MaxLaunches")
    stand.wait(60)
    stand.live()
    assert len([claim for claim in stand.claims if REPLACEMENT_LAUNCHED in claim.metadata.annotations]) == 2
    assert len(stand.messages("Evicted")) == 2
    (kept,) = _bound(stand)
    assert set(stand.messages("FailedScheduling")) == {kept}
    assert "MaxLaunches" in stand.messages("FailedScheduling")[kept]
    stand.provision()
    stand.live()
    assert len(stand.messages("Evicted")) == 3


@pytest.mark.parametrize("seconds", [16, 3600, 3 * DAY])
def test_an_expired_node_without_a_replacement_is_not_drained(world: World, seconds: float) -> None:
    """Its pods run well where they are. It does not tick either: the schedule and the mark look after it."""
    stand = _running_apart(world, 3, max_launches=0)
    stand.wait(30 * DAY)
    stand.expire()
    for _ in range(2):
        _provision_refused(stand, "MaxLaunches")
        stand.live()
        stand.wait(seconds)
    stand.rung()
    stand.live()
    assert len(_bound(stand)) == len(stand.alive) == 3
    assert "Evicted" not in stand.event_reasons()
    assert "AwaitingReplacement" in stand.event_reasons("Node")
    assert Bell.LIFECYCLE not in stand.rung()


def test_a_deadline_drains_an_expired_node_all_the_same(world: World) -> None:
    """A terminationGracePeriod is a promise that the node is gone by then: the pods get two minutes and their grace."""
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], termination_grace_period="1h")
    world.cluster.add(builders.node_class(), pool)
    stand = Stand(world)
    stand.live()
    stand.pods(3)
    stand.settle()
    stand = _capped(stand, max_launches=0)
    stand.wait(30 * DAY)
    stand.expire()
    stand.live()
    stand.wait(3600 - 151)
    stand.live()
    assert "Evicted" not in stand.event_reasons()
    stand.wait(2)
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")


def test_a_warning_for_an_expired_node_that_waits_drains_it(world: World) -> None:
    """Now EC2 takes it, and a pod that is moved late is better than one that is killed."""
    stand = _running_apart(world, 1, max_launches=0)
    stand.wait(30 * DAY)
    stand.expire()
    stand.wait(60)
    stand.receive("interruption_spot_warning", stand.alive[0])
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")


def test_a_runaway_deployment_does_not_keep_an_interrupted_node_from_its_replacement(world: World) -> None:
    """Sixty pods that each want a node, a cap of twenty, and one node that EC2 takes."""
    stand = _running_apart(world, 1, max_launches=20)
    apart = builders.pod("x", labels={"app": "runaway"}).metadata.labels
    affinity = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": apart}}
            ]
        }
    }
    stand.world.cluster.add(*(_runaway(number, affinity=affinity, priority=1000) for number in range(60)))
    stand.receive("interruption_spot_warning", stand.alive[0])
    _provision_refused(stand, "MaxLaunches")
    (old,) = [claim for claim in stand.claims if claim.is_deleting]
    assert REPLACEMENT_LAUNCHED in old.metadata.annotations
    assert len(stand.alive) == 1 + 20
    told = stand.messages("FailedScheduling")
    assert len(told) == 60 - 20
    assert all("MaxLaunches (20 a run)" in message for message in told.values())


def test_a_replacement_does_not_wait_for_a_large_node_that_it_would_share(world: World) -> None:
    """A plan puts pods of all kinds on one node, whose price no cap lets in; alone, the replacement is cheap."""
    sizes = "karpenter.k8s.aws/instance-size=large,16xlarge"
    world.cluster.add(builders.node_class(), builders.node_pool(requirements=[sizes]))
    stand = Stand(world)
    stand.live()
    stand.pods(1)
    stand.settle()
    stand = _capped(stand, max_hourly=0.1, node_size="cheapest")
    stand.world.cluster.add(*(_runaway(number) for number in range(60)))
    stand.receive("interruption_spot_warning", stand.alive[0])
    _provision_refused(stand, "MaxHourly")
    (old,) = [claim for claim in stand.claims if claim.is_deleting]
    assert REPLACEMENT_LAUNCHED in old.metadata.annotations
    assert all(name.startswith("runaway-") for name in stand.messages("FailedScheduling"))


def test_pods_are_bought_for_by_priority(world: World) -> None:
    """Where one node may be launched, the pods that matter most get it."""
    stand = Stand(world, max_launches=1).with_defaults()
    stand.pods(1, cpu="3", priority=10)
    stand.world.cluster.add(builders.pod("first", cpu="3", priority=1000), builders.pod("last", cpu="3"))
    _provision_refused(stand, "MaxLaunches")
    assert set(stand.messages("Nominated")) == {"first"}
    assert set(stand.messages("FailedScheduling")) == {"pod-0", "last"}
    _provision_refused(stand, "MaxLaunches")
    assert set(stand.messages("Nominated")) == {"first", "pod-0"}


@pytest.mark.parametrize(("most", "runs"), [(5, 1), (1, 2)])
def test_a_crowd_of_one_namespace_does_not_go_before_a_pod_of_another(most: int, runs: int, world: World) -> None:
    """Namespaces take turns under a cap, also from run to run: sixty pods that came first have their turn, no more."""
    stand = Stand(world, max_launches=most).with_defaults()
    stand.pods(60, namespace="crowd", cpu="3")
    stand.wait(60)
    stand.world.cluster.add(builders.pod("victim", namespace="victim", cpu="3"))
    for _ in range(runs):
        _provision_refused(stand, "MaxLaunches")
        stand.boot()
        stand.live()
        stand.bind()
        stand.live()
    assert "victim" in _bound(stand)
    assert len(_bound(stand)) == most * runs


def test_observe_mode_leaves_the_same_pods_out(world: World) -> None:
    """What is seen there is what would be done."""
    stand = Stand(world, max_launches=1).with_defaults()
    stand.pods(6)
    _provision_refused(stand.observing(), "MaxLaunches")
    left_out, observed = set(stand.messages("FailedScheduling")), set(stand.messages("Observed"))
    assert left_out
    assert (len(left_out | observed), left_out & observed) == (6, set())
    _provision_refused(stand, "MaxLaunches")
    assert set(stand.messages("Nominated")) == observed


def test_claims_that_a_killed_run_left_are_launched_under_the_caps_too(world: World) -> None:
    """By lifecycle as by provisioning. Those that do not fit now say so, and are launched by a later run."""
    stand = Stand(world).with_defaults()
    stand.pods(2, labels={"app": "web"}, affinity=APART, node_selector={"topology.kubernetes.io/zone": "us-east-1a"})
    stand.world.cluster.add(_runaway(0, priority=1000, node_selector={"topology.kubernetes.io/zone": "us-east-1b"}))
    for _ in range(2):
        stand.world.cloud.fail_next("launch", UnavailableError("throttled"))
    with pytest.raises(UnavailableError):
        stand.provision()
    assert (len(stand.claims), stand.alive) == (3, [])
    capped = _capped(stand, max_launches=2)
    capped.live()
    assert len(stand.alive) == 1
    held = stand.messages("LaunchHeldBack")
    assert len(held) == 2
    assert all("MaxLaunches" in message for message in held.values())
    assert set(stand.messages("FailedScheduling")) == {"pod-0", "pod-1"}
    capped.live()
    assert len(stand.alive) == 3


def test_a_run_counts_the_launches_that_it_finishes(world: World) -> None:
    """A killed run's claim and the plan of this one share the caps."""
    stand = Stand(world).with_defaults()
    stand.pods(1)
    stand.world.cloud.fail_next("launch", UnavailableError("throttled"))
    with pytest.raises(UnavailableError):
        stand.provision()
    stand.world.cluster.add(*(_runaway(number) for number in range(6)))
    capped = _capped(stand, max_launches=1)
    _provision_refused(capped, "MaxLaunches")
    assert len(stand.alive) == 1
    assert len(stand.claims) == 1


def test_the_caps_of_a_decision_are_recorded(world: World) -> None:
    """``joinery plan`` on the record, with these caps, shows what was left out."""
    stand = Stand(world, max_launches=1).with_defaults()
    stand.pods(6)
    _provision_refused(stand, "MaxLaunches")
    (key,) = world.store.documents
    document = world.store.read(key)["joinery"]
    assert document["options"]["caps"]["max_launches"] == 1
    (launch,) = document["result"]["launches"]
    assert len(launch["pods"]) + len(document["result"]["unplaced"]) == 6
    assert {reason["code"] for pod in document["result"]["unplaced"] for reason in pod["reasons"]} == {"Caps"}


def test_a_replacement_that_waits_for_its_launch_replaces_nothing_yet(world: World) -> None:
    """Its claim was written by a run that EC2 refused; until it is launched, the expired node keeps its pods."""
    stand = _running_apart(world, 1)
    stand.wait(30 * DAY)
    stand.expire()
    stand.world.cloud.fail_next("launch", UnavailableError("throttled"))
    with pytest.raises(UnavailableError):
        stand.provision()
    held = _capped(stand, max_launches=0)
    held.provision()
    held.live()
    assert "LaunchHeldBack" in stand.event_reasons("NodeClaim")
    assert "Evicted" not in stand.event_reasons()
    stand.provision()
    stand.live()
    assert "Evicted" in stand.event_reasons("Pod")
