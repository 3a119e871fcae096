"""Shares on demand, on a real API server: the gate that a policy adds, and what a door may do to a pod that waits."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from joinery.decisions.scheduling.on_demand_shares import on_demand_shares
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.transport import JSON_PATCH, Transport
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.labels import ON_DEMAND_SHARE
from joinery.objects.kubernetes.core import Pod
from simulator import builders
from tests.controlplane.objects import MANIFEST_FILES, MANIFESTS, connect, install, put, sweep
from tools.controlplane.plane import DOORS, JOINERY, ControlPlane

PODS = "/api/v1/namespaces/default/pods"
AFFINITY = "/spec/affinity"
ZONE = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1a"]}


@pytest.fixture(scope="module")
def admin(api_server: ControlPlane, until: Callable[[Callable[[], Any]], Any]) -> Iterator[Transport]:
    """An API server with the rights, their fences and the policy, once it heeds the policy."""
    install(api_server, *MANIFEST_FILES)
    api_server.kubectl("apply", "-f", str(MANIFESTS / "on-demand.yaml"))
    transport = connect(api_server)
    probes = (f"probe-{number}" for number in range(10_000))
    until(lambda: created(transport, next(probes)).spec.scheduling_gates)
    yield transport
    api_server.kubectl("delete", "-f", str(MANIFESTS / "on-demand.yaml"))
    sweep(transport)


def created(admin: Transport, name: str, **given: Any) -> Pod:
    """A pod with a share, as the API server stores it."""
    put(admin, builders.pod(name, annotations={ON_DEMAND_SHARE: "1"}, unschedulable=False, **given))
    return stored(admin, name)


def stored(admin: Transport, name: str) -> Pod:
    """The pod as it is now."""
    return msgspec.convert(msgspec.json.decode(admin.get(f"{PODS}/{name}")), Pod)


def terms(*expressions: dict[str, Any]) -> dict[str, Any]:
    """An affinity of one required term."""
    required = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


@pytest.mark.parametrize("affinity", [None, terms(ZONE)])
def test_a_pod_gets_the_gate_and_is_let_through_as_decided(
    affinity: Any, admin: Transport, api_server: ControlPlane
) -> None:
    """The annotation alone is enough, and lifecycle's right and the fence let the decision pass."""
    name = f"let-through-{'own' if affinity else 'no'}-affinity"
    pod = created(admin, name, affinity=affinity)
    (update,) = on_demand_shares([pod]).let_through
    lifecycle = connect(api_server, DOORS["lifecycle"])
    cluster = KubernetesCluster(lifecycle, now=lambda: datetime(2026, 11, 28, tzinfo=UTC), node_class=EC2NodeClass)
    cluster.update_pod(update.before, update.after)
    after = stored(admin, name)
    assert after.spec.scheduling_gates == []
    assert after.spec.affinity == update.after.spec.affinity


FORBIDDEN: list[dict[str, Any]] = [
    {"op": "add", "path": AFFINITY, "value": terms(ZONE)},
    {
        "op": "add",
        "path": AFFINITY,
        "value": terms({"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}),
    },
    {"op": "add", "path": "/spec/nodeSelector", "value": {"kubernetes.io/hostname": "mine"}},
    {"op": "remove", "path": "/spec/schedulingGates/0"},
    {"op": "remove", "path": "/spec/schedulingGates"},
]


@pytest.mark.parametrize("operation", FORBIDDEN, ids=lambda operation: f"{operation['op']} {operation['path']}")
def test_a_stolen_role_can_steer_no_pod_to_a_node(
    operation: dict[str, Any], admin: Transport, api_server: ControlPlane
) -> None:
    """Nor take the gate of somebody else off: Kueue's comes first here."""
    name = f"gated-{FORBIDDEN.index(operation)}"
    created(admin, name, scheduling_gates=[{"name": "kueue.x-k8s.io/admission"}])
    ours = connect(api_server, JOINERY)
    answer = ours.ask("PATCH", f"{PODS}/{name}?dryRun=All", [operation], content_type=JSON_PATCH)
    assert answer.code >= 400
    assert "ValidatingAdmissionPolicy 'joinery-pods'" in answer.status.message
