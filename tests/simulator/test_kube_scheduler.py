"""The simulated kube-scheduler binds as the real one would: by filters and scores, never by a plan."""

from typing import Any

import pytest

from joinery.objects.kubernetes.core import Pod
from simulator import builders
from simulator.actors.base import Stage
from simulator.actors.kubescheduler.scheduler import LATENCY, KubeScheduler
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.resources import with_fields

WEB = {"matchLabels": {"app": "web"}}


@pytest.fixture
def scheduler(stage: Stage) -> KubeScheduler:
    """A scheduler over the test's cluster."""
    return KubeScheduler(stage)


def web(name: str = "pod-1", **given: Any) -> Pod:
    """A pod of the application ``web``."""
    return builders.pod(name, labels={"app": "web"}, **given)


def spread(key: str = "topology.kubernetes.io/zone", when: str = "DoNotSchedule", skew: int = 1) -> dict[str, Any]:
    """A spread constraint over the application ``web``."""
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": WEB}


def near(kind: str, key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    """Required pod affinity (or anti-affinity) with the application ``web``."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": WEB}]}}


def nominated(pod: Pod, node: str) -> Pod:
    """The pod, as one for which the scheduler has pre-empted others."""
    return with_fields(pod, status=with_fields(pod.status, nominated_node_name=node))


def place(cluster: InMemoryCluster, name: str = "pod-1") -> str:
    """Where a pod was bound."""
    return cluster.pods[f"default/{name}"].spec.node_name


def why_not(cluster: InMemoryCluster, name: str = "pod-1") -> str:
    """What the scheduler says about a pod that it could not bind."""
    assert place(cluster, name) == ""
    return cluster.pods[f"default/{name}"].status.conditions[-1].message


def test_a_pod_that_fits_is_bound(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """To a node with room."""
    cluster.add(builders.node(), builders.pod())
    scheduler.schedule()
    assert place(cluster) == "node-1"


def test_a_pod_that_fits_nowhere_is_marked_and_gets_an_event(
    cluster: InMemoryCluster, scheduler: KubeScheduler
) -> None:
    """Both are how Joinery learns of it."""
    cluster.add(builders.node(cpu="1"), builders.pod(cpu="2", unschedulable=False))
    scheduler.schedule()
    condition = cluster.pods["default/pod-1"].status.conditions[-1]
    assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    assert [(e.reason, e.reporter) for e in cluster.events] == [("FailedScheduling", "default-scheduler")]
    assert why_not(cluster) == "0/1 nodes are available: 1 Insufficient cpu."


def test_the_same_failure_is_not_told_again_at_once(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """The real scheduler counts such an Event up."""
    cluster.add(builders.pod())
    scheduler.schedule()
    scheduler.schedule()
    assert len(cluster.events) == 1


def test_pods_on_a_node_take_their_room(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """Bound pods count, also those bound in the same pass, and finished ones do not."""
    cluster.add(builders.node(cpu="1"), builders.pod("done", node="node-1", cpu="1", phase="Succeeded"))
    cluster.add(builders.pod("a", cpu="600m"), builders.pod("b", cpu="600m"))
    scheduler.schedule()
    assert sorted([place(cluster, "a"), place(cluster, "b")]) == ["", "node-1"]


def test_the_more_important_pod_goes_first(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """By priority, then by age."""
    cluster.add(builders.node(cpu="1"), builders.pod("a", cpu="1"), builders.pod("b", cpu="1", priority=10))
    scheduler.schedule()
    assert (place(cluster, "a"), place(cluster, "b")) == ("", "node-1")


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        ({"node_selector": {"disk": "ssd"}}, "didn't match Pod's node affinity/selector"),
        ({"requests": {"nvidia.com/gpu": "1"}}, "Insufficient nvidia.com/gpu"),
        ({"volumes": ["nothing"]}, 'persistentvolumeclaim "default/nothing" not found'),
        ({"spread": [spread("rack")]}, "didn't match pod topology spread constraints"),
        ({"affinity": {"podAffinity": near("podAffinity")["podAffinity"]}}, "didn't match pod affinity rules"),
    ],
)
def test_the_scheduler_says_what_is_in_the_way(
    cluster: InMemoryCluster, scheduler: KubeScheduler, refused: dict[str, Any], reason: str
) -> None:
    """In kube-scheduler's words."""
    cluster.add(builders.node(), builders.pod(**refused))
    scheduler.schedule()
    assert reason in why_not(cluster)


def test_a_taint_keeps_away_all_but_those_who_tolerate_it(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """NoSchedule and NoExecute both; a booting node carries two."""
    cluster.add(builders.node(taints=[{"key": "karpenter.sh/unregistered", "effect": "NoExecute"}]))
    cluster.add(builders.pod("plain"), builders.pod("tolerant", tolerations=[{"operator": "Exists"}]))
    scheduler.schedule()
    assert "untolerated taint {karpenter.sh/unregistered: }" in why_not(cluster, "plain")
    assert place(cluster, "tolerant") == "node-1"


def test_a_cordoned_node_takes_nothing(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """``kubectl cordon`` acts like a taint."""
    cluster.add(builders.node(unschedulable=True), builders.pod())
    scheduler.schedule()
    assert place(cluster) == ""


def test_a_spread_keeps_zones_level(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """Six pods over three zones are two each."""
    for zone in "abc":
        cluster.add(builders.node(zone, zone=f"us-east-1{zone}"))
    cluster.add(*(web(f"p{n}", spread=[spread()]) for n in range(6)))
    scheduler.schedule()
    assert sorted(place(cluster, f"p{n}") for n in range(6)) == ["a", "a", "b", "b", "c", "c"]


def test_a_zone_without_room_stops_a_hard_spread(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """The empty zone holds the others down: that is when Joinery must buy there."""
    cluster.add(builders.node("a", zone="us-east-1a"), builders.node("b", zone="us-east-1b", cpu="100m"))
    cluster.add(*(web(f"p{n}", spread=[spread()]) for n in range(3)))
    scheduler.schedule()
    assert sorted(place(cluster, f"p{n}") for n in range(3)) == ["", "", "a"]


def test_pods_that_avoid_each_other_get_a_host_each(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """And the third of two hosts waits."""
    cluster.add(builders.node("a"), builders.node("b"))
    cluster.add(*(web(f"p{n}", affinity=near("podAntiAffinity")) for n in range(3)))
    scheduler.schedule()
    assert sorted(place(cluster, f"p{n}") for n in range(3)) == ["", "a", "b"]


def test_an_existing_pod_s_dislike_counts_too(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """Anti-affinity binds in both directions."""
    cluster.add(builders.node("a"), builders.pod("shy", node="a", affinity=near("podAntiAffinity")), web())
    scheduler.schedule()
    assert "existing pods anti-affinity" in why_not(cluster)


def test_the_first_of_a_group_may_go_anywhere_and_the_others_follow(
    cluster: InMemoryCluster, scheduler: KubeScheduler
) -> None:
    """Pod affinity with itself."""
    cluster.add(builders.node("a"), builders.node("b"))
    cluster.add(*(web(f"p{n}", affinity=near("podAffinity")) for n in range(3)))
    scheduler.schedule()
    assert len({place(cluster, f"p{n}") for n in range(3)} - {""}) == 1


def test_a_volume_holds_its_pod_in_its_zone(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """A bound EBS volume is reachable from one zone."""
    cluster.add(builders.node("a", zone="us-east-1a"), builders.node("b", zone="us-east-1b"))
    cluster.add(builders.volume(zone="us-east-1b"), builders.volume_claim(volume="pv-data"))
    cluster.add(builders.pod(volumes=["data"]))
    scheduler.schedule()
    assert place(cluster) == "b"


def test_an_unbound_volume_is_made_where_its_pod_goes(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """WaitForFirstConsumer: the node decides the zone."""
    cluster.add(builders.node(zone="us-east-1c"), builders.storage_class(), builders.volume_claim())
    cluster.add(builders.pod(volumes=["data"]))
    scheduler.schedule()
    claim = cluster.api.get("PersistentVolumeClaim", "default/data")
    volume = cluster.api.get("PersistentVolume", claim.spec.volume_name)
    terms = volume.spec.node_affinity.required.node_selector_terms
    assert terms[0].match_expressions[0].values == ["us-east-1c"]


def test_a_host_port_is_used_once(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """Two pods with one port do not share a host."""
    sidecar = [{"name": "p", "restartPolicy": "Always", "ports": [{"hostPort": 80}]}]
    cluster.add(builders.node(), *(builders.pod(n, init_containers=sidecar) for n in ("a", "b")))
    scheduler.schedule()
    assert sorted([place(cluster, "a"), place(cluster, "b")]) == ["", "node-1"]


def test_a_port_on_the_hosts_network_is_used_once(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """Without a hostPort, too: the API server writes one for such a pod."""
    sidecar = [{"name": "p", "restartPolicy": "Always", "ports": [{"containerPort": 80}]}]
    cluster.add(builders.node(), *(builders.pod(n, init_containers=sidecar, host_network=True) for n in ("a", "b")))
    scheduler.schedule()
    assert sorted([place(cluster, "a"), place(cluster, "b")]) == ["", "node-1"]


def test_a_nominated_pod_goes_to_its_node_although_another_scores_higher(
    cluster: InMemoryCluster, scheduler: KubeScheduler
) -> None:
    """The scheduler looks there first."""
    cluster.add(builders.node("empty", cpu="32"), builders.node("full"), builders.pod("old", node="full", cpu="3"))
    cluster.add(nominated(builders.pod(), "full"))
    scheduler.schedule()
    assert place(cluster) == "full"


def test_a_nominated_pod_s_room_is_kept_for_it(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """From pods that are not more important."""
    nominee = nominated(builders.pod("z", cpu="1"), "node-1")
    cluster.add(builders.node(cpu="1"), builders.pod("a", cpu="1"), nominee)
    scheduler.schedule()
    assert (place(cluster, "a"), place(cluster, "z")) == ("", "node-1")


def test_a_nomination_that_does_not_fit_is_only_a_wish(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """The pod goes elsewhere."""
    nominee = nominated(builders.pod(), "small")
    cluster.add(builders.node("small", cpu="100m"), builders.node("big"), nominee)
    scheduler.schedule()
    assert place(cluster) == "big"


def test_pods_are_spread_over_nodes_by_scores(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """Least allocated wins: left alone, the scheduler does not pack tightly."""
    cluster.add(builders.node("a"), builders.node("b"), *(builders.pod(f"p{n}", cpu="1") for n in range(4)))
    scheduler.schedule()
    assert sorted(place(cluster, f"p{n}") for n in range(4)) == ["a", "a", "b", "b"]


def test_a_preference_outweighs_room(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """Preferred node affinity is scored above spreading."""
    wish = {"weight": 100, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
    cluster.add(builders.node("a"), builders.node("b", labels={"disk": "ssd"}), builders.pod("old", node="b", cpu="1"))
    cluster.add(builders.pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}))
    scheduler.schedule()
    assert place(cluster) == "b"


def test_a_soft_spread_is_a_preference(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """ScheduleAnyway prefers the emptier zone and refuses none."""
    cluster.add(
        builders.node("a", zone="us-east-1a"), web("old", node="a"), web(spread=[spread(when="ScheduleAnyway")])
    )
    scheduler.schedule()
    assert place(cluster) == "a"


def test_the_scheduler_wakes_by_itself(cluster: InMemoryCluster, scheduler: KubeScheduler, stage: Stage) -> None:
    """A pod that waits is tried again as soon as a node is there."""
    cluster.add(builders.pod())
    stage.engine.run_for(LATENCY)
    cluster.add(builders.node())
    stage.engine.run_for(LATENCY)
    assert place(cluster) == "node-1"


def test_gated_and_foreign_pods_are_left_alone(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """They are not this scheduler's to bind."""
    cluster.add(builders.node(), builders.pod("gated", scheduling_gates=[{"name": "wait"}]))
    cluster.add(builders.pod("foreign", scheduler_name="another"))
    assert scheduler.schedule() == 0


def test_finished_pods_are_not_bound(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """Nor are those being deleted."""
    pod = builders.pod()
    cluster.add(builders.node(), with_fields(pod, status=with_fields(pod.status, phase="Failed")))
    assert scheduler.schedule() == 0


def _worker(number: int, **given: Any) -> Pod:
    spec: dict[str, Any] = {"cpu": "3", "unschedulable": False, **given}
    return builders.pod(f"train-{number}", scheduling_group={"podGroupName": "train"}, **spec)


def _bound(cluster: InMemoryCluster) -> list[str]:
    return sorted(pod.spec.node_name for pod in cluster.pods.values() if pod.spec.node_name)


def test_a_gang_is_not_looked_at_before_it_is_all_there(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """A lone worker is neither bound nor marked, though there is room."""
    cluster.add(builders.pod_group("train", minimum=2), builders.node(), _worker(1))
    scheduler.schedule()
    assert cluster.pods["default/train-1"].status.conditions == []
    cluster.add(builders.node("node-2"), _worker(2))
    scheduler.schedule()
    assert _bound(cluster) == ["node-1", "node-2"]


def test_of_a_gang_none_is_bound_where_not_all_can_be(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """All are marked, and another pod gets the room. One beyond the minimum may be left."""
    cluster.add(builders.pod_group("train", minimum=2), builders.node(), _worker(1), _worker(2), _worker(3))
    scheduler.schedule()
    assert _bound(cluster) == []
    assert "no room for enough pods of its group" in why_not(cluster, "train-1")
    cluster.add(builders.node("node-2"))
    scheduler.schedule()
    assert _bound(cluster) == ["node-1", "node-2"]


def test_a_worker_that_was_made_anew_joins_those_that_run(cluster: InMemoryCluster, scheduler: KubeScheduler) -> None:
    """The others count."""
    running = _worker(1, node="node-1")
    cluster.add(builders.pod_group("train", minimum=2), builders.node(), builders.node("node-2"), running, _worker(2))
    scheduler.schedule()
    assert _bound(cluster) == ["node-1", "node-2"]


def test_a_gang_that_shares_a_zone_gets_one_that_has_room_for_all(
    cluster: InMemoryCluster, scheduler: KubeScheduler
) -> None:
    """A node in each of two zones would not do."""
    zones = ("us-east-1a", "us-east-1b", "us-east-1b")
    nodes = [builders.node(f"node-{number}", zone=zone) for number, zone in enumerate(zones, 1)]
    group = builders.pod_group("train", minimum=2, topology="topology.kubernetes.io/zone")
    cluster.add(group, *nodes[:2], _worker(1), _worker(2))
    scheduler.schedule()
    assert _bound(cluster) == []
    cluster.add(nodes[2])
    scheduler.schedule()
    assert _bound(cluster) == ["node-2", "node-3"]
