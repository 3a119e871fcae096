"""What reading and writing CapacityBuffers promises, in every form of the ``Cluster`` gateway."""

from typing import Any

from joinery.gateways.kubernetes.buffers import buffer_sources
from joinery.gateways.kubernetes.connection import connection
from joinery.gateways.kubernetes.lists import CAPACITY_BUFFERS, ObjectList
from joinery.gateways.kubernetes.mirrors import ABSENT_SECONDS, CustomKind, Mirror
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.kubernetes.shapes import Shape
from simulator import builders
from tests.gateways.clusters import Form
from tests.gateways.scripted import refuses, says, scripted


def read_buffers(form: Form) -> tuple[CapacityBuffer, ...]:
    """As a snapshot has them."""
    return form.cluster.snapshot().capacity_buffers


def shape(form: Form, name: str) -> Shape:
    """What the buffer of that name refers to."""
    buffers = read_buffers(form)
    return form.cluster.buffer_sources(buffers).shapes[f"default/{name}"]


def test_a_buffer_is_read_and_its_status_written(form: Form) -> None:
    """In its namespace; what is stored is what was sent."""
    form.put(builders.pod_template(), builders.capacity_buffer("spare", template="chunk", replicas=3))
    (before,) = read_buffers(form)
    status = before.status.model_copy(
        update={"replicas": 3, "provisioning_strategy": "buffer.x-k8s.io/active-capacity"}
    )
    form.cluster.update_capacity_buffer(before, before.model_copy(update={"status": status}))
    (after,) = read_buffers(form)
    assert (after.status.replicas, after.spec) == (3, before.spec)


def test_what_buffers_refer_to_is_asked_for(form: Form) -> None:
    """A template with its generation; a workload with its replicas and the labels of its pods; what is not there."""
    form.put(
        builders.pod_template(cpu="2"),
        builders.deployment("web", replicas=5),
        builders.capacity_buffer("a", template="chunk", replicas=1),
        builders.capacity_buffer("b", workload="web", replicas=1),
        builders.capacity_buffer("c", template="lacking", replicas=1),
        builders.capacity_buffer("d", workload="lacking", replicas=1),
        builders.capacity_buffer("e", workload="web", kind="DaemonSet", replicas=1),
    )
    template, workload = shape(form, "a"), shape(form, "b")
    assert template.template is not None
    assert template.template.spec.containers[0].resources.requests["cpu"] == "2"
    assert template.replicas is None
    assert workload.replicas == 5
    assert workload.template is not None
    for name in ("c", "d"):
        assert "not found" in shape(form, name).missing
        assert not shape(form, name).is_unread
    assert "unsupported" in shape(form, "e").missing
    assert shape(form, "e").is_unread


#: Parts of four answers in one: each reader takes what it knows.
ROLLOUTS = {
    "preferredVersion": {"groupVersion": "argoproj.io/v1alpha1"},
    "resources": [{"name": "rollouts", "kind": "Rollout"}, {"name": "rollouts/scale", "kind": "Scale"}],
    "spec": {"replicas": 7},
    "status": {"replicas": 6, "selector": "app=web,track=stable"},
    "items": [],
}


def test_a_kind_that_nobody_knows_is_asked_by_its_scale() -> None:
    """The version that the API server prefers, and the name that it has there."""
    spec: dict[str, Any] = {"scalableRef": {"apiGroup": "argoproj.io", "kind": "Rollout", "name": "web"}, "replicas": 1}
    buffer = builders.capacity_buffer("a", **spec)
    with scripted(says(200, ROLLOUTS)) as script:
        (found,) = buffer_sources(script.transport, [buffer]).shapes.values()
        asked = {line.partition("?")[0] for line in script.asked}
    assert found == Shape(replicas=7, selector={"app": "web", "track": "stable"})
    assert asked == {
        "GET /api/v1/resourcequotas",
        "GET /apis/argoproj.io",
        "GET /apis/argoproj.io/v1alpha1",
        "GET /apis/argoproj.io/v1alpha1/namespaces/default/rollouts/web/scale",
    }


def test_without_the_right_to_read_it_a_reference_says_so() -> None:
    """Others are read all the same, and quotas count as none."""
    with scripted(refuses(403, "no")) as script:
        found = buffer_sources(script.transport, [builders.capacity_buffer("a", workload="web", replicas=1)])
    assert found.quotas == ()
    assert found.shapes["default/a"].missing == (
        "the right to read Deployment 'web' is missing: deploy again, or grant it (no)"
    )


def test_a_cluster_without_the_kind_is_asked_once_in_ten_minutes() -> None:
    """A warm function looks many times an hour."""
    seconds = [0.0]
    with scripted(refuses(404, "no such kind")) as script:
        transport = Transport(connection(script.url), clock=lambda: seconds[0])
        mirror = Mirror(transport, CustomKind(CAPACITY_BUFFERS, "karpenter.k8s.aws"))
        for moment in (0.0, 5.0, ABSENT_SECONDS - 1, ABSENT_SECONDS + 1, ABSENT_SECONDS + 2):
            seconds[0] = moment
            assert mirror.read() == ObjectList(())
        assert len(script.asked) == 2
