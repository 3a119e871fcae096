"""A ProvisioningRequest on a real control plane: nodes before there are pods, and the conditions that Kueue reads."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from joinery.gateways.kubernetes.transport import Transport
from simulator import builders
from simulator.world import World
from tests.controlplane import objects
from tests.functional.stand import Stand
from tests.gateways.clusters import Real
from tools.controlplane.plane import ControlPlane

GROUP = "autoscaling.x-k8s.io"
PLACE = f"/apis/{GROUP}/v1/namespaces/default/provisioningrequests"
#: As the cluster autoscaler ships it, without the validation of its fields.
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"provisioningrequests.{GROUP}",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/autoscaler/pull/5848"},
    },
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "ProvisioningRequest", "plural": "provisioningrequests", "singular": "provisioningrequest"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def _request(name: str, count: int) -> dict[str, Any]:
    spec = {
        "provisioningClassName": f"best-effort-atomic-scale-up.{GROUP}",
        "podSets": [{"podTemplateRef": {"name": "worker"}, "count": count}],
    }
    return {"apiVersion": f"{GROUP}/v1", "kind": "ProvisioningRequest", "metadata": {"name": name}, "spec": spec}


def _conditions(transport: Transport, name: str) -> dict[str, tuple[str, str]]:
    stored = msgspec.json.decode(transport.get(f"{PLACE}/{name}"))
    return {one["type"]: (one["status"], one["reason"]) for one in stored.get("status", {}).get("conditions", ())}


@pytest.mark.usefixtures("joinery_api_server")
def test_all_nodes_of_a_request_are_bought_and_it_says_so(api_server: ControlPlane, world: World) -> None:
    """By the functions' own rights. One that can never be whole buys nothing, and says what is missing."""
    form = Real(api_server)
    form.sweep()
    transport = objects.connect(api_server)
    transport.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    api_server.kubectl("wait", "--for=condition=Established", "crd", DEFINITION["metadata"]["name"], "--timeout=20s")
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"], limits={"nodes": "2"})
    form.put(builders.node_class(), pool, builders.pod_template("worker", cpu="3"))
    try:
        for name, count in (("fits", 2), ("huge", 9)):
            transport.request("POST", PLACE, _request(name, count))
        stand = Stand(world, gateways=replace(world.gateways, cluster=form.cluster))
        stand.live()
        stand.provision()
        assert len(form.cluster.snapshot().node_claims) == 2
        assert _conditions(transport, "fits") == {
            "Accepted": ("True", "Accepted"),
            "Provisioned": ("False", "CapacityIsNotFound"),
        }
        assert _conditions(transport, "huge")["Provisioned"] == ("False", "CapacityIsNotFound")
    finally:
        form.sweep()
        objects.uninstall(transport, DEFINITION)
