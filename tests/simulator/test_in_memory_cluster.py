"""What the in-memory cluster does beyond the contract that it shares with the real one."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from joinery.gateways.kubernetes.gateway import Eviction
from joinery.objects.kubernetes.core import ObjectMeta
from simulator import builders
from simulator.clock import Clock
from simulator.kubernetes.apiserver import Change
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.resources import with_fields, with_metadata


def test_two_clusters_of_one_seed_give_out_the_same_identities() -> None:
    """UIDs and generated names are chance, and chance is the seed's."""
    made = [InMemoryCluster(Clock(), builders.pod(), seed=4).pods["default/pod-1"].metadata.uid for _ in range(2)]
    assert made[0] == made[1] != InMemoryCluster(Clock(), builders.pod(), seed=5).pods["default/pod-1"].metadata.uid


def test_a_generation_counts_changes_of_the_spec_only(cluster: InMemoryCluster) -> None:
    """Labels and status leave it as it is."""
    cluster.add(builders.node())
    node = cluster.nodes["node-1"]
    labelled = cluster.api.update(with_metadata(node, labels={"a": "b"}))
    cordoned = cluster.api.update(with_fields(labelled, spec=with_fields(node.spec, unschedulable=True)))
    assert [version.metadata.generation for version in (node, labelled, cordoned)] == [1, 1, 2]


def test_watchers_see_every_write_before_and_after(cluster: InMemoryCluster) -> None:
    """Creation, change and removal, in order; a write that changes nothing is none."""
    seen: list[Change] = []
    cluster.api.watch(seen.append)
    cluster.add(builders.node(finalizers=[]))
    node = cluster.nodes["node-1"]
    cluster.api.update(node)
    cluster.api.update(with_metadata(node, labels={}))
    cluster.delete_node(node)
    assert [(c.before is None, c.after is None) for c in seen] == [(True, False), (False, False), (False, True)]


def test_an_evicted_pod_runs_on_until_its_grace_is_over(cluster: InMemoryCluster, clock: Clock) -> None:
    """It is marked at once and gone when its kubelet has stopped it."""
    cluster.add(builders.pod(node="node-1", termination_grace_period_seconds=10))
    assert cluster.evict(cluster.pods["default/pod-1"]) is Eviction.EVICTED
    clock.advance(timedelta(seconds=9))
    cluster.end_grace()
    assert "default/pod-1" in cluster.pods
    clock.advance(timedelta(seconds=1))
    cluster.end_grace()
    assert not cluster.pods


def test_a_grace_can_be_shortened_and_not_lengthened(cluster: InMemoryCluster, clock: Clock) -> None:
    """As the API server has it: the earliest deadline stays."""
    cluster.add(builders.pod(node="node-1"))
    pod = cluster.pods["default/pod-1"]
    deadlines = []
    for grace in (60, 5, 30):
        cluster.delete_pod(pod, grace_seconds=grace)
        deadlines.append(cluster.pods["default/pod-1"].metadata.deletion_timestamp)
    now = clock.now()
    assert deadlines == [now + timedelta(seconds=60), now + timedelta(seconds=5), now + timedelta(seconds=5)]


def test_a_pending_pod_goes_at_once(cluster: InMemoryCluster) -> None:
    """No kubelet has to stop it."""
    cluster.add(builders.pod())
    cluster.delete_pod(cluster.pods["default/pod-1"], grace_seconds=60)
    assert not cluster.pods


def _covered(cluster: InMemoryCluster, number: int, **budget: Any) -> None:
    pods = [builders.pod(f"web-{n}", node="node-1", labels={"app": "web"}, owner="web") for n in range(number)]
    cluster.add(*pods, builders.pdb(labels={"app": "web"}, **budget))


def test_a_budget_follows_its_pods(cluster: InMemoryCluster) -> None:
    """Each eviction leaves one less, before the pod has even stopped."""
    _covered(cluster, 3, min_available=2)
    answers = [cluster.evict(pod) for pod in list(cluster.pods.values())]
    assert answers == [Eviction.EVICTED, Eviction.BLOCKED, Eviction.BLOCKED]


def test_a_budget_counts_the_pods_that_their_owner_wants(cluster: InMemoryCluster) -> None:
    """A replacement that is still missing counts as unavailable."""
    _covered(cluster, 3, max_unavailable=1)
    cluster.scale("uid-replicaset-web", 4)
    assert cluster.evict(cluster.pods["default/web-0"]) is Eviction.BLOCKED


def test_a_budget_is_read_with_its_status(cluster: InMemoryCluster) -> None:
    """A snapshot has the number that kube-controller-manager would have written."""
    _covered(cluster, 4, max_unavailable="50%")
    assert cluster.snapshot().disruption_budgets[0].status.disruptions_allowed == 2


def test_a_stated_budget_is_used_up(cluster: InMemoryCluster) -> None:
    """A test may state how many disruptions are left instead of making the pods for it."""
    _covered(cluster, 3, allowed=1)
    answers = [cluster.evict(pod) for pod in list(cluster.pods.values())]
    assert answers == [Eviction.EVICTED, Eviction.BLOCKED, Eviction.BLOCKED]


def test_unhealthy_pods_may_go_where_the_budget_says_so(cluster: InMemoryCluster) -> None:
    """``AlwaysAllow`` lets a pod that is not ready be evicted, ``IfHealthyBudget`` does not with nothing to spare."""
    for policy, answer in (("AlwaysAllow", Eviction.EVICTED), ("IfHealthyBudget", Eviction.BLOCKED)):
        pod = builders.pod(node="node-1", labels={"app": "web"})
        cluster.add(with_fields(pod, status=with_fields(pod.status, conditions=[])))
        cluster.add(builders.pdb(labels={"app": "web"}, min_available=1, unhealthy=policy))
        assert cluster.evict(cluster.pods["default/pod-1"]) is answer


def test_what_does_not_fit_our_models_is_stored_and_reported(cluster: InMemoryCluster) -> None:
    """The API server may hold a custom resource that we cannot read; the others are read all the same."""
    cluster.add(builders.node_pool("good"))
    cluster.add_document({"kind": "NodePool", "metadata": {"name": "bad"}, "spec": {"template": {}}})
    snapshot = cluster.snapshot()
    assert [pool.metadata.name for pool in snapshot.node_pools] == ["good"]
    assert [(invalid.kind, invalid.name) for invalid in snapshot.invalid] == [("NodePool", "bad")]
    cluster.reject("NodePool", "bad", "spec.template.spec: required")
    assert cluster.document("NodePool", "bad")["status"]["conditions"][0]["status"] == "False"


@given(some.lists(some.sampled_from(["touch", "finish", "delete"]), max_size=12))
def test_an_object_goes_only_when_deleted_and_free_of_finalizers(steps: list[str]) -> None:
    """Whatever the order of writes: gone means deleted and released, and versions only grow."""
    cluster = InMemoryCluster(Clock(), builders.node())
    is_deleted, is_released, last = False, False, 0
    for number, step in enumerate(steps):
        if "node-1" not in cluster.nodes:
            break
        node = cluster.nodes["node-1"]
        assert int(node.metadata.resource_version) >= last
        last = int(node.metadata.resource_version)
        _take(cluster, node.metadata, step, number)
        is_deleted |= step == "delete"
        is_released |= step == "finish"
    assert ("node-1" not in cluster.nodes) == (is_deleted and is_released)


def _take(cluster: InMemoryCluster, meta: ObjectMeta, step: str, number: int) -> None:
    node = cluster.nodes[meta.name]
    match step:
        case "touch":
            cluster.update_node(node, with_metadata(node, labels={"n": str(number)}))
        case "finish":
            cluster.update_node(node, with_metadata(node, finalizers=[]))
        case "delete":
            cluster.delete_node(node)
