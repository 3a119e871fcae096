"""What people reported of headroom, off-hours and ratios elsewhere, as plans of files. Each test names its reports."""

from collections import Counter
from typing import Any

import pytest

from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, SPOT
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW, Run, Write

Document = dict[str, Any]
NOON, FRIDAY_NIGHT, SUNDAY_NIGHT = "2026-01-02T12:00:00Z", "2026-01-02T22:00:00Z", "2026-01-04T20:00:00Z"


def _node_class() -> Document:
    selector = [{"tags": {"a": "b"}}]
    spec = {"role": "nodes", "subnetSelectorTerms": selector, "securityGroupSelectorTerms": selector}
    return _object("karpenter.k8s.aws/v1", "EC2NodeClass", "default", {"amiSelectorTerms": [_AL2023], **spec})


_AL2023 = {"alias": "al2023@latest"}


def _object(version: str, kind: str, name: str, spec: Any, **annotations: str) -> Document:
    own = {f"joinery.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "annotations": own}, "spec": spec}


def _pool(name: str = "default", *kinds: str, spread: tuple[str, ...] = (), **annotations: str) -> Document:
    rules = [
        {"key": CAPACITY_TYPE, "operator": "In", "values": list(kinds or (SPOT, ON_DEMAND))},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m7a.large", "m7a.xlarge"]},
    ]
    if spread:
        rules.append({"key": "capacity-spread", "operator": "In", "values": list(spread)})
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    spec = {"template": {"spec": {"nodeClassRef": reference, "requirements": rules}}}
    return _object("karpenter.sh/v1", "NodePool", name, spec, **annotations)


def _deployment(replicas: int, name: str = "web", cpu: str = "1500m", **pod: Any) -> Document:
    annotations = pod.pop("annotations", {})
    requests = {"cpu": cpu, "memory": "1Gi"}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": requests}}], **pod},
    }
    selector = {"matchLabels": {"app": name}}
    return _object("apps/v1", "Deployment", name, {"replicas": replicas, "selector": selector, "template": template})


def _spread(key: str, app: str = "web") -> list[Document]:
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**rule, "labelSelector": {"matchLabels": {"app": app}}}]


def _buffer(**spec: Any) -> Document:
    reference = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}
    return _object("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer", "spare", {"scalableRef": reference, **spec})


@pytest.fixture
def planned(run: Run, write: Write) -> Any:
    """``planned(*objects)``: the plan as JSON, and what was said beside it."""

    def call(*objects: Document, now: str = NOW) -> tuple[Any, str]:
        path = write("all.json", {"apiVersion": "v1", "kind": "List", "items": [_node_class(), *objects]})
        done = run("plan", "-f", path, "--now", now, "--catalog", str(SAMPLE), "-o", "json")
        assert done.status == 0, done.err
        return done.document, done.err

    return call


def _kinds(document: Any, key: str = "capacityType") -> Counter[str]:
    """How many pods are on new nodes of each capacity type, or NodePool."""
    counts = Counter[str]()
    for one in document["launch"]:
        counts[one["nodePool"] if key == "nodePool" else one["offering"][key]] += len(one["pods"])
    return counts


def _room(document: Any) -> int:
    return sum(one["chunks"] for one in document["cost"].get("headroom", ()))


@pytest.mark.parametrize(
    ("spec", "chunks"),
    [
        # kubernetes/autoscaler #9948, #9959; kubernetes-sigs/karpenter #3125: the larger of both, within the limits.
        ({"replicas": 5, "percentage": 20}, 5),
        ({"replicas": 1, "percentage": 20}, 2),
        ({"replicas": 5, "percentage": 20, "limits": {"cpu": "4500m"}}, 3),
        # kubernetes/autoscaler #9959: a part of a chunk is one.
        ({"percentage": 11}, 2),
        # kubernetes/autoscaler #9369: limits alone say how many.
        ({"limits": {"cpu": "6"}}, 4),
        # aws/karpenter-provider-aws #3240: a share of what runs.
        ({"percentage": 100}, 10),
    ],
)
def test_a_buffer_is_as_large_as_its_fields_say(planned: Any, spec: Document, chunks: int) -> None:
    """Of a Deployment of ten replicas."""
    document, _ = planned(_pool(), _deployment(10), _buffer(**spec))
    assert _room(document) == chunks


def test_a_quota_on_the_number_of_pods_makes_a_buffer_smaller(planned: Any) -> None:
    """kubernetes-sigs/cluster-autoscaler #123: it was left out, so buffers bought past it."""
    quota = _object("v1", "ResourceQuota", "few", {"hard": {"pods": "12"}})
    document, said = planned(_pool(), _deployment(10), _buffer(replicas=5), quota)
    assert _room(document) == 2
    assert "few" in said


@pytest.mark.parametrize(
    ("schedule", "is_open"),
    [("from 30 7 * * mon-fri for 11h", True), ("from 0 20 * * * for 2h", False)],
)
def test_a_buffer_counts_at_its_hours(planned: Any, schedule: str, is_open: bool) -> None:
    """kubernetes/autoscaler #10320, aws/karpenter-provider-aws #2050: room by day costs nothing at night."""
    buffer = _buffer(replicas=3)
    buffer["metadata"]["annotations"] = {"joinery.dev/buffer-schedule": schedule}
    document, _ = planned(_pool(), _deployment(1), buffer, now="2026-01-02T10:00:00Z")
    assert _room(document) == (3 if is_open else 0)


def test_pods_get_their_nodes_before_room_that_a_limit_has_no_more_place_for(planned: Any) -> None:
    """aws/karpenter-provider-aws #4452: placeholders of a low priority took what pods needed, and were bought for
    again and again.
    """
    pool = _pool()
    pool["spec"]["limits"] = {"cpu": "8"}
    document, _ = planned(pool, _deployment(4), _buffer(replicas=4))
    placed = {pod for one in document["launch"] for pod in one["pods"]}
    assert placed >= {f"default/web-{number}" for number in range(1, 5)}
    assert len(placed) < 8


@pytest.mark.parametrize(("now", "is_paused"), [(FRIDAY_NIGHT, True), (SUNDAY_NIGHT, False), (NOW, False)])
def test_a_weekend_is_one_window(planned: Any, now: str, is_paused: bool) -> None:
    """aws/karpenter-provider-aws #5200, #6279, #753 of kubernetes-sigs/karpenter: from Friday 18:00 to Sunday 18:00."""
    document, _ = planned(_pool(pause="from 0 18 * * fri for 48h"), _deployment(2), now=now)
    assert bool(document["unschedulable"]) is is_paused
    if is_paused:
        (why,) = {reason for one in document["unschedulable"] for reason in one["reasons"]}
        assert "it is paused until 2026-01-04T18:00:00Z" in why


def test_burst_nodes_wait_for_the_morning_and_base_nodes_do_not(planned: Any) -> None:
    """kubernetes-sigs/karpenter #2711: jobs queue at night for what the base has, and the burst NodePool buys nothing;
    nobody patches limits.
    """
    base, burst = _pool("base", ON_DEMAND), _pool("burst", SPOT, pause="from 0 20 * * * for 11h")
    base["spec"]["limits"] = {"cpu": "4"}
    night, _ = planned(base, burst, _deployment(6), now=FRIDAY_NIGHT)
    assert set(_kinds(night, "nodePool")) == {"base"}
    assert night["unschedulable"]
    day, _ = planned(base, burst, _deployment(6), now=NOON)
    assert not day["unschedulable"]


def test_a_pause_of_all_leaves_out_who_says_never(planned: Any) -> None:
    """kubernetes-sigs/karpenter #1177, #2590: a whole environment sleeps, and what must not is opted out."""
    asleep, awake = _pool("asleep", SPOT, pause="all from 0 20 * * * for 11h"), _pool("awake", ON_DEMAND, pause="never")
    document, _ = planned(asleep, awake, _deployment(2), now=FRIDAY_NIGHT)
    assert set(_kinds(document, "nodePool")) == {"awake"}


@pytest.mark.parametrize(("replicas", "on_demand"), [(5, 1), (10, 2), (50, 10)])
def test_a_spread_over_a_label_of_two_node_pools_is_a_ratio(planned: Any, replicas: int, on_demand: int) -> None:
    """aws/karpenter-provider-aws #5489, #5973, #5171: one value on demand and four on spot, however many replicas."""
    pools = _pool("on-demand", ON_DEMAND, spread=("1",)), _pool("spot", SPOT, spread=("2", "3", "4", "5"))
    document, _ = planned(*pools, _deployment(replicas, topologySpreadConstraints=_spread("capacity-spread")))
    assert _kinds(document) == {ON_DEMAND: on_demand, SPOT: replicas - on_demand}


def test_pods_without_the_spread_run_where_it_is_cheapest(planned: Any) -> None:
    """aws/karpenter-provider-aws #5973: they join neither side by default."""
    pools = _pool("on-demand", ON_DEMAND, spread=("1",)), _pool("spot", SPOT, spread=("2", "3", "4", "5"))
    document, _ = planned(*pools, _deployment(4))
    assert _kinds(document) == {SPOT: 4}


def test_two_node_pools_of_one_capacity_type_share_by_their_values_all_the_same(planned: Any) -> None:
    """aws/karpenter-provider-aws #6023: one and four values are one and four fifths of the pods, not a half each."""
    pools = _pool("one", SPOT, spread=("1",)), _pool("four", SPOT, spread=("2", "3", "4", "5"))
    document, _ = planned(*pools, _deployment(10, topologySpreadConstraints=_spread("capacity-spread")))
    assert _kinds(document, "nodePool") == {"one": 2, "four": 8}


def test_a_spread_over_capacity_types_is_half_and_half(planned: Any) -> None:
    """aws/karpenter-provider-aws #1582: with one NodePool of both."""
    document, _ = planned(_pool(), _deployment(6, topologySpreadConstraints=_spread(CAPACITY_TYPE)))
    assert _kinds(document) == {ON_DEMAND: 3, SPOT: 3}


@pytest.mark.parametrize(("share", "at_least"), [("40%", 4), ("10%", 1), ("2 + 30%", 5)])
def test_a_workload_s_own_ratio(planned: Any, share: str, at_least: int) -> None:
    """aws/karpenter-provider-aws #331, #2508; kubernetes-sigs/karpenter #757: 40 % of ten pods of a Deployment on
    demand. Others may use what is left on these nodes, so there may be more.
    """
    gate = [{"name": "joinery.dev/on-demand"}]
    annotated: Document = {"annotations": {"joinery.dev/on-demand": share}, "schedulingGates": gate}
    document, _ = planned(_pool(), _deployment(10, cpu="1500m", **annotated))
    on_demand = _kinds(document)[ON_DEMAND]
    assert at_least <= on_demand <= at_least + 1
