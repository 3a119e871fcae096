"""Surge before evict: the successor of a pod that asks for it is Ready before the pod ends."""

from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from joinery.objects.errors import ConfigurationError, DeniedError, UnavailableError
from joinery.objects.karpenter.labels import SURGE_BEFORE_EVICTION, SURGED_PODS, TERMINATION_TIMESTAMP
from joinery.objects.wording import rfc3339
from simulator import builders
from simulator.actors.workloads import workload
from simulator.kubernetes.resources import with_metadata
from tests.functional.fuse import Fuse, crashes
from tests.functional.surging import Shop

#: A rollout whose new pods never start: there is no such device.
STUCK = {"containers": [{"name": "web", "resources": {"requests": {"example.com/none": "1"}}}]}


def _after_warning(**given: Any) -> Shop:
    """Everything runs, one node is warned of, and everything runs again."""
    shop = Shop(**given).open().watch().warn()
    shop.until(shop.moved)
    return shop


def test_without_asking_the_only_pod_is_missed() -> None:
    """What an eviction costs: the successor begins after its predecessor has ended."""
    shop = _after_warning(annotations={})
    assert (shop.fewest, shop.restarts) == (0, 0)


def test_the_successor_is_ready_before_the_pod_ends() -> None:
    """The Deployment is restarted once, and one node is bought, for the successor alone."""
    shop = _after_warning()
    assert (shop.fewest, shop.restarts, shop.rollouts) == (1, 1, 2)
    assert len(shop.launched) == 2
    assert "Evicted" not in shop.stand.event_reasons("Pod")


def test_the_pod_is_told_what_is_waited_for_and_until_when() -> None:
    """EC2 leaves two minutes, of which the pod needs thirty seconds to end."""
    shop = Shop().open().watch()
    until = shop.world.clock.now() + timedelta(seconds=80)
    (pod,) = shop.pods
    shop.warn().turn()
    assert shop.stand.messages("AwaitingSuccessor")[pod.metadata.name] == (
        "a rollout of Deployment web brings its successor, and it stays until that is Ready, "
        f"at the latest until {rfc3339(until)}"
    )


def test_several_pods_of_one_deployment_on_one_node_cause_one_restart() -> None:
    """Three pods share the node; each has its successor first."""
    shop = _after_warning(replicas=3)
    assert (shop.fewest, shop.restarts, shop.rollouts) == (3, 1, 2)


def test_pods_on_several_nodes_that_go_at_once_cause_one_restart() -> None:
    """Six pods on two nodes: one rollout moves them all."""
    shop = Shop(replicas=6, strategy={"rollingUpdate": {"maxUnavailable": 0}}).open().watch().retire()
    shop.until(shop.moved, 120)
    assert (shop.fewest, shop.restarts, shop.rollouts) == (6, 1, 2)


def test_a_single_replica_whose_budget_allows_no_eviction_surges_by_a_setting() -> None:
    """It has not asked, but without this its node would stay until EC2 takes it, with the pod."""
    budget = builders.pdb(labels={"app": "web"}, min_available=1)
    shop = Shop(annotations={}, settings={"surge_single_replicas": True})
    shop.world.cluster.add(budget)
    shop.open().watch().warn()
    shop.until(shop.moved)
    assert (shop.fewest, shop.restarts) == (1, 1)


@pytest.mark.parametrize(
    "given",
    [
        {"annotations": {SURGE_BEFORE_EVICTION: "false"}, "settings": {"surge_single_replicas": True}},
        {"annotations": {}, "settings": {"surge_single_replicas": True}, "replicas": 2},
        {"annotations": {}},
    ],
    ids=["it says no", "two replicas", "no setting"],
)
def test_others_behind_a_budget_do_not_surge(given: dict[str, Any]) -> None:
    """A restart moves pods that nobody asked to move, so it needs a reason."""
    shop = Shop(**given)
    shop.world.cluster.add(builders.pdb(labels={"app": "web"}, allowed=0))
    shop.open().watch().warn()
    shop.turn(10)
    assert shop.restarts == 0
    assert "AwaitingSuccessor" not in shop.stand.event_reasons("Pod")


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"strategy": {"type": "Recreate"}}, "its Deployment's strategy is Recreate"),
        ({"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}, "its Deployment's maxSurge is 0"),
        ({"strategy": {"rollingUpdate": {"maxUnavailable": "100%"}}}, "maxUnavailable lets a rollout end all"),
        ({"paused": True}, "its Deployment is paused"),
    ],
)
def test_a_deployment_that_cannot_surge_says_so_and_waits_for_its_next_node(spec: dict[str, Any], why: str) -> None:
    """The pod is evicted when the node that was bought for it is ready, and not earlier."""
    shop = Shop(**spec).open().watch().warn()
    (pod,) = shop.pods
    shop.until(lambda: "Evicted" in shop.stand.event_reasons("Pod"))
    assert why in shop.stand.messages("CannotSurge")[pod.metadata.name]
    ready = [claim for claim in shop.stand.claims if not claim.is_deleting and claim.is_true("Ready")]
    assert (len(ready), shop.restarts) == (1, 0)


def test_a_stateful_set_cannot_surge_and_is_evicted_like_any_other() -> None:
    """Two pods of one name cannot be there at once."""
    shop = Shop(kind="StatefulSet").open().watch().warn()
    (pod,) = shop.pods
    shop.until(lambda: "Evicted" in shop.stand.event_reasons("Pod"))
    assert "only a Deployment can surge" in shop.stand.messages("CannotSurge")[pod.metadata.name]


def test_a_successor_that_never_starts_does_not_cost_the_pod_its_own_end() -> None:
    """Before EC2 takes the instance there is time for the pod to end in its own way."""
    shop = Shop().open().watch()
    shop.document["spec"]["template"]["spec"] = STUCK
    (pod,) = shop.pods
    shop.warn()
    warned = shop.world.clock.now()
    shop.workloads.apply(workload(shop.document))
    shop.until(lambda: "Evicted" in shop.stand.event_reasons("Pod"))
    assert pod.metadata.name in shop.stand.messages("SurgeTimedOut")
    assert 78 <= (shop.world.clock.now() - warned).total_seconds() <= 84
    assert shop.restarts == 0


def test_a_warning_ends_the_waiting_on_a_node_that_somebody_has_deleted_before() -> None:
    """There was time until EC2 warned."""
    shop = Shop().open().watch()
    shop.document["spec"]["template"]["spec"] = STUCK
    shop.retire()
    shop.workloads.apply(workload(shop.document))
    shop.turn(5)
    warned = shop.warn().world.clock.now()
    shop.until(lambda: "Evicted" in shop.stand.event_reasons("Pod"))
    assert 78 <= (shop.world.clock.now() - warned).total_seconds() <= 84


def test_a_deadline_wins_always() -> None:
    """The claim's grace period is over, whatever the rollout does."""
    shop = Shop().open().watch()
    claim = shop.stand.claim
    ends = {TERMINATION_TIMESTAMP: shop.world.clock.now().replace(microsecond=0).isoformat()}
    shop.world.cluster.add(with_metadata(claim, annotations={**claim.metadata.annotations, **ends}))
    shop.retire()
    shop.turn(2)
    assert "SurgeTimedOut" in shop.stand.event_reasons("Pod")
    shop.until(lambda: not any(claim.is_deleting for claim in shop.stand.claims))


def test_a_rollout_under_way_is_not_restarted() -> None:
    """The user has just changed the template: that rollout brings the successor, or it is stuck, as this one."""
    shop = Shop().open().watch()
    shop.document["spec"]["template"]["spec"] = STUCK
    shop.workloads.apply(workload(shop.document))
    shop.turn()
    shop.warn()
    shop.turn(5)
    assert (shop.restarts, shop.rollouts) == (0, 2)
    assert "AwaitingSuccessor" in shop.stand.event_reasons("Pod")


def test_a_rollout_that_somebody_undid_is_not_started_again() -> None:
    """``kubectl rollout undo`` makes the old ReplicaSet the newest one: whoever did it had a reason."""
    shop = Shop().open().watch().retire()
    shop.turn()
    (claim,) = [claim for claim in shop.stand.claims if claim.is_deleting]
    assert SURGED_PODS in claim.metadata.annotations
    stored = shop.world.cluster.api.get("Deployment", "default/web")
    bare = with_metadata(stored.spec.template, annotations={SURGE_BEFORE_EVICTION: "true"})
    shop.world.cluster.api.update(type(stored)(metadata=stored.metadata, spec=type(stored.spec)(template=bare)))
    shop.until(lambda: "CannotSurge" in shop.stand.event_reasons("Pod"))
    shop.turn(5)
    assert shop.restarts == 1


@pytest.mark.parametrize("method", ["cluster.replica_set", "cluster.deployment"])
def test_owners_that_may_not_be_read_are_no_reason_to_wait_for_ever(method: str) -> None:
    """The role lacks the right: the pod waits for its next node, and is told why."""
    fuse = Fuse(failing=method, error=DeniedError("may not get"))
    shop = Shop(fuse=fuse).open().watch().warn()
    shop.until(lambda: "Evicted" in shop.stand.event_reasons("Pod"))
    assert "its Deployment may not be read" in next(iter(shop.stand.messages("CannotSurge").values()))


@pytest.mark.parametrize("method", ["cluster.replica_set", "cluster.deployment"])
def test_an_api_server_that_does_not_answer_is_no_reason_to_evict(method: str) -> None:
    """It is asked again in the next run."""
    fuse = Fuse(failing=method, error=UnavailableError("timed out"))
    shop = Shop(fuse=fuse).open().watch().retire()
    shop.turn(20)
    assert "Evicted" not in shop.stand.event_reasons("Pod")


def test_a_restart_that_is_refused_is_told_and_keeps_nobody_else() -> None:
    """A policy of the cluster is against it: the pod's Event says so, and the neighbour is evicted all the same."""
    fuse = Fuse(failing="cluster.restart", error=ConfigurationError("denied", cause="ask the platform team"))
    shop = Shop(fuse=fuse).open().watch()
    (node,) = shop.world.cluster.nodes
    shop.world.cluster.add(builders.pod("neighbour", cpu="100m", node=node))
    shop.retire()
    shop.until(lambda: "Evicted" in shop.stand.event_reasons("Pod"))
    assert "neighbour" in shop.stand.messages("Evicted")
    assert "ask the platform team" in next(iter(shop.stand.messages("FailedSurge").values()))


def test_observing_restarts_nothing() -> None:
    """The decision is made and told."""
    shop = Shop().open().watch().retire()
    shop.stand.observing().live()
    assert shop.rollouts == 1
    assert "AwaitingSuccessor" in shop.stand.event_reasons("Pod")


@cache
def _undisturbed() -> tuple[str, ...]:
    shop = Shop().open().watch().retire()
    shop.until(shop.moved)
    return tuple(shop.fuse.writes)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_a_crash_after_any_write_restarts_nothing_twice(part: int, pytestconfig: pytest.Config) -> None:
    """One rollout, one node more, and the pod is never missed."""
    for number in crashes(_undisturbed(), pytestconfig)[part::4]:
        shop = Shop().open().watch()
        shop.retire().fuse.kill_after(number)
        shop.until(shop.moved)
        told = f"killed after write {number}: {_undisturbed()[number - 1]}"
        assert (shop.fewest, shop.rollouts, len(shop.launched)) == (1, 2, 2), told


@pytest.mark.parametrize(
    "given",
    [{}, {"annotations": {}, "settings": {"surge_single_replicas": True}}],
    ids=["it asks", "its budget keeps it"],
)
def test_a_crash_right_after_the_restart_buys_no_second_node(given: dict[str, Any]) -> None:
    """The claim does not say yet whom the rollout replaces. The new pod says it, whose node was bought for the old one.

    A node has room for one of them, so both could not share it.
    """
    shop = Shop(size="medium", **given)
    shop.world.cluster.add(builders.pdb(labels={"app": "web"}, min_available=1))
    shop.open().watch().warn()
    shop.fuse.outlives(shop.stand.provision)
    assert len(shop.launched) == 2
    shop.fuse.kill_after(1, of="cluster.restart")
    while shop.fuse.outlives(shop.stand.live):
        shop.stand.wait(5)
    (leaving,) = [claim for claim in shop.stand.claims if claim.is_deleting]
    assert SURGED_PODS not in leaving.metadata.annotations
    shop.until(shop.moved)
    assert (shop.fewest, shop.rollouts, len(shop.launched)) == (1, 2, 2)
