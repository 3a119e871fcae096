"""The pods that stand for a buffer."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from joinery.decisions.headroom import resolve
from joinery.decisions.headroom.sizes import MOST_OF_BUFFER, MOST_OF_CLUSTER
from joinery.objects.karpenter.labels import BUFFER_CAPACITY_TYPES, CAPACITY_TYPE
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.decoding import decode
from joinery.objects.kubernetes.shapes import BufferSources, Shape
from joinery.objects.snapshot.pods import buffer_of, is_pending, is_virtual
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders

NOW = datetime(2026, 8, 24, 9, tzinfo=UTC)


def resolved(*pods: Pod, shape: Shape | None = None, **buffer: Any) -> tuple[Pod, ...]:
    """The virtual pods of one buffer."""
    given = builders.capacity_buffer("spare", template="chunk", **{"replicas": 2, **buffer})
    snapshot = Snapshot(now=NOW, pods=pods, capacity_buffers=(given,))
    shapes = {given.key: shape or Shape(template=builders.pod_template().template)}
    (one,) = resolve.resolve(snapshot, BufferSources(shapes=shapes))
    return one.pods


def template(**pod: Any) -> Shape:
    """A PodTemplate of such pods."""
    return Shape(template=builders.pod_template(**pod).template)


def test_they_are_named_after_their_buffer() -> None:
    """As Karpenter names them: name, UID, annotations, priority. They wait."""
    first, second = resolved(shape=template(labels={"app": "web"}))
    assert (first.key, first.metadata.uid) == ("default/capacity-buffer-spare-1", "uid-default-spare-1")
    assert second.key == "default/capacity-buffer-spare-2"
    assert first.metadata.annotations == {
        "karpenter.sh/capacity-buffer-fake-pod": "true",
        "karpenter.sh/capacity-buffer-name": "spare",
        "karpenter.sh/capacity-buffer-namespace": "default",
    }
    assert first.metadata.labels == {"app": "web"}
    assert (first.spec.priority, buffer_of(first)) == (-2147483648, "default/spare")
    assert is_virtual(first)
    assert is_pending(first, only_marked=True)


def test_no_other_pod_is_taken_for_one() -> None:
    """Nor has one without both annotations a buffer."""
    lone = builders.pod(annotations={"karpenter.sh/capacity-buffer-name": "spare"})
    assert (is_virtual(lone), buffer_of(lone), buffer_of(builders.pod())) == (False, "", "")


def test_what_only_a_real_pod_could_have_is_left_out() -> None:
    """Volumes of claims that nobody makes, a node, a gate, a priority."""
    ephemeral = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    shape = template(
        node="node-1",
        volumes=["data", ephemeral, {"name": "config"}],
        priority=1000,
        priority_class_name="high",
        scheduling_gates=[{"name": "wait"}],
    )
    spec = resolved(shape=shape)[0].spec
    assert [volume.name for volume in spec.volumes] == ["config"]
    assert (spec.node_name, spec.priority_class_name, spec.scheduling_gates) == ("", "", [])


def test_room_for_a_pod_is_no_member_of_its_gang() -> None:
    """A gang of four is not whole with three pods and a chunk."""
    gang = {"scheduling.x-k8s.io/pod-group": "train", "kueue.x-k8s.io/pod-group-name": "train", "app": "train"}
    pod = resolved(shape=template(labels=gang, scheduling_group={"podGroupName": "train"}))[0]
    assert (pod.metadata.labels, pod.spec.scheduling_group) == ({"app": "train"}, None)


def test_what_admission_adds_is_seen_on_a_pod_that_runs() -> None:
    """A sidecar takes its room beside the container, and a sandbox its overhead."""
    shape = Shape(template=builders.pod_template(cpu="1").template, replicas=1, selector={"app": "web"})
    running = decode(
        msgspec.json.encode(
            {
                "metadata": {"name": "web-1", "namespace": "default", "labels": {"app": "web"}},
                "spec": {
                    "nodeName": "node-1",
                    "overhead": {"cpu": "250m"},
                    "containers": [
                        {"name": "main", "resources": {"requests": {"cpu": "7"}}},
                        {"name": "istio-proxy", "resources": {"requests": {"cpu": "100m"}}},
                    ],
                },
            }
        ),
        Pod,
    )
    spec = resolved(running, builders.pod("other", labels={"app": "db"}), shape=shape)[0].spec
    assert [container.name for container in spec.containers] == ["main", "istio-proxy"]
    assert (spec.containers[0].resources.requests["cpu"], spec.overhead) == ("1", {"cpu": "250m"})


def test_a_kind_that_nobody_knows_looks_like_its_newest_pod() -> None:
    """Its scale subresource says which pods are its own."""
    shape = Shape(replicas=4, selector={"app": "web"})
    old = builders.pod("a", cpu="1", labels={"app": "web"}, node="n", created=datetime(2026, 8, 1, tzinfo=UTC))
    new = builders.pod("b", cpu="2", labels={"app": "web"}, node="n", created=datetime(2026, 8, 2, tzinfo=UTC))
    pods = resolved(new, old, shape=shape, percentage=75)
    assert len(pods) == 3
    assert (pods[0].spec.containers[0].resources.requests["cpu"], pods[0].spec.node_name) == ("2", "")
    assert resolved(shape=shape) == ()


@pytest.mark.parametrize("types", [("spot",), ("on-demand", "spot")])
def test_capacity_types_take_the_place_of_what_the_template_says(types: tuple[str, ...]) -> None:
    """Selected, required or preferred; what it says of anything else stays."""
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}
    on_demand = {"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [zone, on_demand]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [on_demand]}},
                {"weight": 2, "preference": {"matchExpressions": [zone]}},
            ],
        }
    }
    shape = template(affinity=affinity, node_selector={CAPACITY_TYPE: "on-demand", "team": "web"})
    spec = resolved(shape=shape, annotations={BUFFER_CAPACITY_TYPES: ",".join(types)})[0].spec
    assert spec.node_selector == {"team": "web"}
    required = spec.required_node_affinity
    assert required is not None
    ((first, second),) = [term.match_expressions for term in required.node_selector_terms]
    assert (first.key, second.key, second.values) == ("topology.kubernetes.io/zone", CAPACITY_TYPE, list(types))
    assert spec.affinity is not None
    assert spec.affinity.node_affinity is not None
    preferred = spec.affinity.node_affinity.preferred_during_scheduling_ignored_during_execution
    assert [one.weight for one in preferred] == [2]


def test_there_are_so_many_at_most() -> None:
    """Whoever may create a buffer decides how many pods a plan has."""
    buffers = [
        builders.capacity_buffer(f"b-{number:02}", template="chunk", replicas=10**9)
        for number in range(MOST_OF_CLUSTER // MOST_OF_BUFFER + 2)
    ]
    shapes = {one.key: template() for one in buffers}
    found = resolve.resolve(Snapshot(now=NOW, capacity_buffers=tuple(buffers)), BufferSources(shapes=shapes))
    assert [len(one.pods) for one in found] == [MOST_OF_BUFFER] * (MOST_OF_CLUSTER // MOST_OF_BUFFER) + [0, 0]
    assert found[0].message == "room for 1,000 of 1,000,000,000 is kept: so many are the most"


def test_namespaces_take_turns_at_what_a_cluster_has_at_most() -> None:
    """Who has many buffers, and the first name, leaves room for who has one."""
    many = [
        builders.capacity_buffer(f"b-{number:02}", namespace="aaa", template="chunk", replicas=10**9)
        for number in range(MOST_OF_CLUSTER // MOST_OF_BUFFER)
    ]
    one = builders.capacity_buffer("spare", namespace="zzz", template="chunk", replicas=1)
    shapes = {buffer.key: template() for buffer in (*many, one)}
    found = resolve.resolve(Snapshot(now=NOW, capacity_buffers=(*many, one)), BufferSources(shapes=shapes))
    assert [buffer.buffer.key for buffer in found] == [*(buffer.key for buffer in many), one.key]
    assert [len(buffer.pods) for buffer in found] == [*[MOST_OF_BUFFER] * (len(many) - 1), MOST_OF_BUFFER - 1, 1]
