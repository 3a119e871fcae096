"""The spine on a real Kubernetes: a pod that fits nowhere becomes a node, a node that goes is replaced first.

Every test looks at one run, told once: twelve web pods spread over zones under a disruption budget, three caches that
keep apart, two billing pods on a dedicated pool whose nodes expire. A spot node is interrupted, and a billing node
grows old.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.kubernetes.gateway import Eviction
from joinery.gateways.kubernetes.transport import MERGE_PATCH
from joinery.objects.annotations.plans import planned_pods
from joinery.objects.errors import ConfigurationError, JoineryError
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from tests.controlplane import objects
from tests.controlplane.story import DEPLOYMENTS, Asked, Cluster, living
from tools.controlplane.plane import ControlPlane

OLD = timedelta(seconds=20)
DEDICATED = {"key": "team", "value": "billing", "effect": "NoSchedule"}
PODS = 17


@dataclass
class Story:
    """What was seen: the cluster when all pods ran first, after the interruption, and at the end."""

    cluster: Cluster
    interrupted: NodeClaim
    expired: NodeClaim
    first: Snapshot
    second: Snapshot
    last: Snapshot
    nominations: list[dict[str, Any]]
    refusal: str

    @property
    def drain(self) -> list[Asked]:
        """What the eviction API was asked about the pods of the interrupted node."""
        node = self.interrupted.status.node_name
        there = {pod.key for pod in self.first.pods if pod.spec.node_name == node}
        return [asked for asked in self.cluster.world.real.evictions if asked.pod in there]

    @property
    def evicted(self) -> list[Asked]:
        """Those that it allowed."""
        return [asked for asked in self.drain if asked.answer is Eviction.EVICTED]


@pytest.fixture(scope="module")
def story(joinery_control_plane: ControlPlane) -> Story:
    """The run. The control plane is empty again before the first test looks at it."""
    with living(joinery_control_plane) as cluster:
        return tell(cluster)


def tell(cluster: Cluster) -> Story:
    """Pods arrive; EC2 takes a spot node back; a node grows old."""
    configure(cluster)
    first = cluster.until(all_run)
    cluster.least_spare.clear()
    interrupted = fullest_spot(first)
    cluster.interrupt(interrupted)
    second = cluster.until(lambda seen: is_gone(seen, interrupted) and all_run(seen))
    refusal = refused(cluster, fullest_spot(second))
    (expired,) = [claim for claim in second.node_claims if claim.metadata.labels[keys.NODE_POOL] == "dedicated"]
    change = {"spec": {"template": {"spec": {"expireAfter": "Never"}}}}
    cluster.admin.request("PATCH", "/apis/karpenter.sh/v1/nodepools/dedicated", change, content_type=MERGE_PATCH)
    cluster.expire(expired, OLD)
    last = cluster.until(lambda seen: is_gone(seen, expired) and is_open(seen) and all_run(seen))
    return Story(cluster, interrupted, expired, first, second, last, cluster.events("Nominated"), refusal)


def refused(cluster: Cluster, claim: NodeClaim) -> str:
    """What the API server says to somebody who would change a claim's spec."""
    place = f"/apis/karpenter.sh/v1/nodeclaims/{claim.metadata.name}"
    with pytest.raises(ConfigurationError) as refusal:
        cluster.admin.request("PATCH", place, {"spec": {"expireAfter": "1h"}}, content_type=MERGE_PATCH)
    return str(refusal.value)


def configure(cluster: Cluster) -> None:
    """An administrator's work: class, pools, budget, workloads."""
    spot = builders.node_pool("default", requirements=[SPOT, XLARGE], ready=False)
    dedicated = builders.node_pool(
        "dedicated", requirements=[ON_DEMAND, "karpenter.k8s.aws/instance-size=large"], taints=[DEDICATED],
        expire_after="20s", ready=False,
    )  # fmt: skip
    budget = builders.pdb("web", labels={"app": "web"}, max_unavailable=1)
    objects.put(cluster.admin, builders.node_class(ready=False), spot, dedicated, budget)
    for name, replicas, spec in WORKLOADS:
        cluster.admin.request("POST", DEPLOYMENTS, deployment(name, replicas, spec))


SPOT, ON_DEMAND = "karpenter.sh/capacity-type=spot", "karpenter.sh/capacity-type=on-demand"
XLARGE = "karpenter.k8s.aws/instance-size=xlarge"
SPREAD = {"maxSkew": 1, "topologyKey": keys.ZONE, "whenUnsatisfiable": "DoNotSchedule"}
APART = {"topologyKey": keys.HOSTNAME, "labelSelector": {"matchLabels": {"app": "cache"}}}
WORKLOADS: list[tuple[str, int, dict[str, Any]]] = [
    ("web", 12, {"topologySpreadConstraints": [{**SPREAD, "labelSelector": {"matchLabels": {"app": "web"}}}]}),
    ("cache", 3, {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}}),
    (
        "billing", 2,
        {"tolerations": [{**DEDICATED, "operator": "Equal"}], "nodeSelector": {keys.NODE_POOL: "dedicated"}},
    ),
]  # fmt: skip


def deployment(name: str, replicas: int, spec: dict[str, Any]) -> dict[str, Any]:
    """A Deployment as a user writes it: the real controllers make its pods, and make them again."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "700m", "memory": "1Gi"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    selector = {"matchLabels": {"app": name}}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, "selector": selector, "template": template}}


def all_run(seen: Snapshot) -> Snapshot | None:
    """The snapshot, once every pod that should be there runs and none is on its way out."""
    ready = [pod for pod in seen.pods if pod.status.phase == "Running" and pod.metadata.deletion_timestamp is None]
    return seen if len(ready) == len(seen.pods) == PODS else None


def is_gone(seen: Snapshot, claim: NodeClaim) -> bool:
    """Whether neither the claim nor its node is left."""
    claims = {node_claim.metadata.name for node_claim in seen.node_claims}
    nodes = {node.metadata.name for node in seen.nodes}
    return claim.metadata.name not in claims and claim.status.node_name not in nodes


def is_open(seen: Snapshot) -> bool:
    """Whether no node is kept for anybody."""
    return not any(taint.key == keys.PLANNED_TAINT for node in seen.nodes for taint in node.spec.taints)


def fullest_spot(seen: Snapshot) -> NodeClaim:
    """The spot claim with the most web pods."""
    web = Counter(pod.spec.node_name for pod in seen.pods if pod.metadata.labels["app"] == "web")
    spot = [claim for claim in seen.node_claims if claim.metadata.labels[keys.CAPACITY_TYPE] == keys.SPOT]
    return max(spot, key=lambda claim: web[claim.status.node_name])


def zones(seen: Snapshot, app: str) -> Counter[str]:
    """How many pods of a workload each zone has."""
    nodes = {node.metadata.name: node.metadata.labels[keys.ZONE] for node in seen.nodes}
    return Counter(nodes[pod.spec.node_name] for pod in of(seen, app))


def of(seen: Snapshot, app: str) -> list[Pod]:
    """The workload's pods."""
    return [pod for pod in seen.pods if pod.metadata.labels["app"] == app]


def test_the_real_scheduler_says_failed_scheduling_and_that_rings_provisioning(story: Story) -> None:
    """Its Event reaches the webhook door over HTTPS; the first launch follows from that, for no schedule rang."""
    rung = [review for review in story.cluster.reviews if review.reason == "FailedScheduling"]
    assert rung
    assert {review.bells for review in rung} == {(Bell.PROVISIONING,)}
    assert {review.reporter for review in rung} == {"default-scheduler"}


def test_no_event_of_ours_reached_the_webhook(story: Story) -> None:
    """We told where pods were expected, and the API server kept that to itself."""
    assert story.nominations
    assert {review.reporter for review in story.cluster.reviews} <= {"", "default-scheduler"}


def test_claims_are_custom_resources_that_the_api_server_guards(story: Story) -> None:
    """It gave each a UID of its own; what our CRD forbids it refuses, naming the field."""
    assert len({claim.metadata.uid for claim in story.first.node_claims}) == len(story.first.node_claims)
    assert all(claim.metadata.generation == 1 for claim in story.first.node_claims)
    assert story.first.invalid == ()
    assert "spec: Invalid value" in story.refusal
    assert "spec is immutable" in story.refusal


def test_the_doors_work_with_the_rights_of_the_cluster_role(story: Story) -> None:
    """The user that did all this may not even read a Secret."""
    with pytest.raises(JoineryError, match="secrets is forbidden"):
        story.cluster.joinery.get("/api/v1/secrets")


def test_every_node_gets_from_the_real_scheduler_what_it_was_bought_for(story: Story) -> None:
    """Steering: as many pods of each workload as were planned, on every node;
    in the end the nodes are open to all again.
    """
    assert {pod.spec.node_name for pod in story.first.pods} == {node.metadata.name for node in story.first.nodes}
    app = {pod.key: pod.metadata.labels["app"] for pod in story.first.pods}
    for claim in story.first.node_claims:
        bound = Counter(app[pod.key] for pod in story.first.pods if pod.spec.node_name == claim.status.node_name)
        assert bound == Counter(app[key] for key in planned_pods(claim))
    assert is_open(story.last)


def test_zones_and_hosts_are_as_the_pods_demand(story: Story) -> None:
    """Web is even over three zones, caches are on three nodes, billing is on its dedicated pool."""
    for seen in (story.first, story.second, story.last):
        assert sorted(zones(seen, "web").values()) == [4, 4, 4]
        assert len({pod.spec.node_name for pod in of(seen, "cache")}) == 3
        assert len({pod.spec.node_name for pod in of(seen, "billing")}) == 1


def test_the_replacement_is_launched_before_the_drain_begins(story: Story) -> None:
    """An instance for the displaced pods was started before the first of them was asked to go."""
    before = {claim.metadata.name for claim in story.first.node_claims}
    (replacement,) = [claim for claim in story.second.node_claims if claim.metadata.name not in before]
    launched = story.cluster.world.cloud.look(replacement.status.provider_id.rpartition("/")[2])[0].launched_at
    assert launched <= story.drain[0].at


def test_the_disruption_budget_stood_in_the_way_and_was_obeyed(story: Story) -> None:
    """The real eviction API refused at least once, and no moment had more than one web pod down."""
    assert Eviction.BLOCKED in {asked.answer for asked in story.drain}
    assert story.cluster.least_spare["web"] >= 0


def test_the_interrupted_node_was_empty_before_ec2_took_it(story: Story) -> None:
    """All its pods were evicted, and its instance was terminated by us, within the two minutes."""
    node = story.interrupted.status.node_name
    assert len(story.evicted) == sum(pod.spec.node_name == node for pod in story.first.pods)
    assert ended(story, story.interrupted) < noticed(story) + timedelta(minutes=2)


def test_an_expired_node_is_replaced_and_retired(story: Story) -> None:
    """Billing moved to a younger node of the same pool."""
    (young,) = [claim for claim in story.last.node_claims if claim.metadata.labels[keys.NODE_POOL] == "dedicated"]
    assert young.metadata.uid != story.expired.metadata.uid
    assert {pod.spec.node_name for pod in of(story.last, "billing")} == {young.status.node_name}


def test_nothing_leaks(story: Story) -> None:
    """As many instances as claims as nodes, no door failed, and every Event was written."""
    alive = {instance.instance_id for instance in story.cluster.world.cloud.instances() if not instance.is_going}
    claimed = {claim.status.provider_id.rpartition("/")[2] for claim in story.last.node_claims}
    joined = {node.spec.provider_id.rpartition("/")[2] for node in story.last.nodes}
    assert alive == claimed == joined
    assert [call.error for call in story.cluster.doors.calls if call.error] == []
    assert story.cluster.world.told.failures == 0


def ended(story: Story, claim: NodeClaim) -> Any:
    """When the claim's instance began to shut down."""
    return story.cluster.world.cloud.look(claim.status.provider_id.rpartition("/")[2])[1]


def noticed(story: Story) -> Any:
    """When EC2 warned."""
    (call,) = [call for call in story.cluster.doors.calls if call.door == "interruption"]
    return call.at
