"""The ends of nodes on a real Kubernetes: drained by budgets, whatever happens to the API server meanwhile.

Every test looks at one run: four web pods under a disruption budget and two caches that keep apart. A claim is deleted,
and in the middle of its drain the API server is restarted and etcd compacted; a Node is deleted; another vanishes.

The run is told in `make soak`: kubelets, garbage collection and leases take it minutes by the clock, whatever machine.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.kubernetes.gateway import Eviction
from joinery.gateways.kubernetes.transport import MERGE_PATCH
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from tests.controlplane import objects
from tests.controlplane.story import DEPLOYMENTS, Asked, Cluster, living
from tests.controlplane.test_story import APART, SPOT, XLARGE, deployment, is_gone, is_open
from tools.controlplane.plane import ControlPlane

pytestmark = pytest.mark.soak
WORKLOADS: list[tuple[str, int, dict[str, Any]]] = [
    ("web", 4, {}),
    ("cache", 2, {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}}),
]
PODS = 6
#: How far the doors' clock jumps where only a schedule would ring.
_JUMP = timedelta(seconds=10)


@dataclass
class Ends:
    """What was seen. ``drain``: what the eviction API was asked until the deleted claim was gone. ``spare``: how many
    more pods of each budget were ready than it asks for, at the least of all drains.
    """

    cluster: Cluster
    first: Snapshot
    drain: list[Asked] = field(default_factory=list)
    down: list[dict[str, Any]] = field(default_factory=list)
    spare: dict[str, int] = field(default_factory=dict)
    last: Snapshot | None = None


@pytest.fixture(scope="module")
def ends(joinery_control_plane: ControlPlane, pytestconfig: pytest.Config) -> Ends:
    """The run."""
    if not pytestconfig.getoption("soak"):
        pytest.skip("three minutes by the clock: `make soak` runs it")
    with living(joinery_control_plane) as cluster:
        return tell(cluster, joinery_control_plane)


def tell(cluster: Cluster, plane: ControlPlane) -> Ends:
    """Three nodes end, each in its own way."""
    pool = builders.node_pool("default", requirements=[SPOT, XLARGE], ready=False)
    budget = builders.pdb("web", labels={"app": "web"}, max_unavailable=1)
    objects.put(cluster.admin, builders.node_class(ready=False), pool, budget)
    for name, replicas, spec in WORKLOADS:
        cluster.admin.request("POST", DEPLOYMENTS, deployment(name, replicas, spec))
    seen = Ends(cluster, cluster.until(all_run))
    cluster.least_spare.clear()
    deleted = fullest(seen.first)
    delete_claim(cluster, plane, deleted, seen)
    seen.drain = list(cluster.world.real.evictions)
    delete_node(cluster, fullest(cluster.look()))
    # Before the Node vanishes: its pods are collected as garbage, and no budget is asked.
    seen.spare = dict(cluster.least_spare)
    lose_node(cluster, fullest(cluster.look()))
    seen.last = cluster.until(lambda now: is_open(now) and all_run(now))
    return seen


def delete_claim(cluster: Cluster, plane: ControlPlane, claim: NodeClaim, seen: Ends) -> None:
    """``kubectl delete nodeclaim``. Once the first pod is evicted nobody can reach the API server for a while."""
    cluster.admin.request("DELETE", f"/apis/karpenter.sh/v1/nodeclaims/{claim.metadata.name}")
    cluster.until(lambda _: [asked for asked in cluster.world.real.evictions if asked.answer is Eviction.EVICTED])
    with plane.without_api_server():
        for bell in (Bell.LIFECYCLE, Bell.PROVISIONING):
            cluster.send(bell.value, f"joinery-{bell.value}.fifo", {"bell": bell.value}, "real")
            seen.down.append(cluster.doors.calls[-1].result)
    plane.compact()
    cluster.until(lambda now: is_gone(now, claim) and all_run(now))


def delete_node(cluster: Cluster, claim: NodeClaim) -> None:
    """``kubectl delete node``."""
    cluster.admin.request("DELETE", f"/api/v1/nodes/{claim.status.node_name}")
    cluster.until(lambda now: is_gone(now, claim) and all_run(now))


def lose_node(cluster: Cluster, claim: NodeClaim) -> None:
    """Somebody removes the Node's finalizers and deletes it. Nothing of ours is called for that."""
    node = f"/api/v1/nodes/{claim.status.node_name}"
    cluster.admin.request("PATCH", node, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
    cluster.admin.request("DELETE", node)

    def is_over(now: Snapshot) -> bool:
        if is_gone(now, claim) and all_run(now):
            return True
        cluster.world.doorbell.ring(Bell.LIFECYCLE)
        cluster.world.clock.advance(_JUMP)
        return False

    cluster.until(is_over)


def all_run(seen: Snapshot) -> Snapshot | None:
    """The snapshot, once every pod that should be there runs and none is on its way out."""
    nodes = {node.metadata.name for node in seen.nodes}
    ready = [pod for pod in seen.pods if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None]
    return seen if len(ready) == len(seen.pods) == PODS and all(pod.spec.node_name in nodes for pod in ready) else None


def fullest(seen: Snapshot) -> NodeClaim:
    """The claim whose node has the most pods."""
    placed = [pod.spec.node_name for pod in seen.pods]
    return max(seen.node_claims, key=lambda claim: placed.count(claim.status.node_name))


def test_while_the_api_server_is_down_doors_fail_and_ring_again(ends: Ends) -> None:
    """Nothing else is theirs to do."""
    assert [answer["outcome"] for answer in ends.down] == ["rung again"] * 2


def test_a_drain_goes_on_after_a_restart_and_asks_nobody_twice(ends: Ends) -> None:
    """What was evicted before is known from the pods that are left."""
    evicted = [asked.pod for asked in ends.drain if asked.answer is Eviction.EVICTED]
    assert len(evicted) == len(set(evicted)) > 2


def test_the_budget_was_obeyed_by_every_drain(ends: Ends) -> None:
    """The real controllers count, and the real API server refuses."""
    assert Eviction.BLOCKED in {asked.answer for asked in ends.cluster.world.real.evictions}
    assert ends.spare["web"] >= 0


def test_nothing_is_left_of_nodes_that_ended(ends: Ends) -> None:
    """No Node, no claim with a finalizer, no instance; deleted, drained, or vanished."""
    assert ends.last is not None
    claims = {claim.status.provider_id for claim in ends.last.node_claims}
    alive = {found.provider_id for found in ends.cluster.world.cloud.instances() if not found.is_going}
    assert {node.spec.provider_id for node in ends.last.nodes} == claims == alive
    assert not any(claim.is_deleting for claim in ends.last.node_claims)
