"""Pods that claim devices: nodes are bought for them, and are fit once their drivers have published some."""

from typing import Any

import msgspec

from joinery.objects.karpenter.labels import DEVICE_DRIVERS
from joinery.objects.kubernetes.dynamic_resources import DeviceClass, ResourceClaimTemplate, ResourceSlice
from simulator import builders
from simulator.cloud.market import market
from simulator.cloud.network import Image
from simulator.world import World
from tests.functional.stand import Stand

GPU, EFA = "gpu.nvidia.com", "dra.net"


def _stand(*asked: tuple[str, int]) -> Stand:
    """Nodes with GPUs, and a template for claims to so many devices of drivers."""
    stand = Stand(World(catalog=market(("g6",))))
    # An image of one's own: those of the simulated account are for nodes without GPUs.
    stand.world.cloud.network.images.append(Image("ami-gpu", "gpu", "amd64"))
    node_class = builders.node_class(amiFamily="AL2023", amiSelectorTerms=[{"id": "ami-gpu"}])
    stand.world.cluster.add(node_class, builders.node_pool())
    requests = [{"name": f"r{n}", "exactly": {"deviceClassName": of, "count": c}} for n, (of, c) in enumerate(asked)]
    for driver in (GPU, EFA):
        selector = {"cel": {"expression": f"device.driver == '{driver}'"}}
        stand.world.cluster.add(
            msgspec.convert({"metadata": {"name": driver}, "spec": {"selectors": [selector]}}, DeviceClass)
        )
    template = {
        "metadata": {"name": "devices", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
    stand.world.cluster.add(msgspec.convert(template, ResourceClaimTemplate))
    stand.live()
    return stand


def _pods(stand: Stand, count: int, **more: Any) -> None:
    stand.pods(count, resource_claims=[{"name": "gpu", "resourceClaimTemplateName": "devices"}], **more)


def test_a_node_is_fit_once_its_driver_has_published_devices() -> None:
    """Until then a plan counts on what its instance type says, so no second node is bought for pods that wait."""
    stand = _stand((GPU, 1))
    _pods(stand, 1)
    stand.provision()
    (claim,) = stand.claims
    assert claim.metadata.annotations[DEVICE_DRIVERS] == GPU
    stand.boot()
    stand.live()
    condition = stand.claim.condition("Initialized")
    assert condition is not None
    assert condition.reason == "DRADriverPoolsNotPublished"
    stand.provision()
    assert len(stand.claims) == 1
    spec = {"driver": GPU, "nodeName": stand.claim.status.node_name, "pool": {"name": "p"}, "devices": [{"name": "d"}]}
    stand.world.cluster.add(msgspec.convert({"metadata": {"name": "s"}, "spec": spec}, ResourceSlice))
    stand.live()
    assert stand.claim.is_true("Initialized")
    stand.provision()
    assert len(stand.claims) == 1


def test_who_claims_adapters_gets_an_instance_with_them() -> None:
    """Elastic Fabric Adapters are there only on request, and only larger types have some."""
    stand = _stand((GPU, 1), (EFA, 1))
    _pods(stand, 1)
    stand.provision()
    assert stand.claim.metadata.annotations[DEVICE_DRIVERS] == f"{EFA},{GPU}"
    (request,) = stand.world.cloud.requests
    assert {override.efa for override in request.overrides} == {1}


def test_without_claims_no_adapters_are_asked_for() -> None:
    """Though the type has some."""
    stand = _stand((GPU, 1))
    _pods(stand, 1, cpu="30")
    stand.provision()
    (request,) = stand.world.cloud.requests
    assert {override.efa for override in request.overrides} == {0}


def test_devices_serve_what_pods_ask_for_by_a_number() -> None:
    """Where a DeviceClass bears the resource's name, its driver is awaited, and no device plugin."""
    stand = _stand((GPU, 1))
    spec = {
        "selectors": [{"cel": {"expression": f"device.driver == '{GPU}'"}}],
        "extendedResourceName": "nvidia.com/gpu",
    }
    stand.world.cluster.add(msgspec.convert({"metadata": {"name": "by-number"}, "spec": spec}, DeviceClass))
    stand.pods(1, requests={"nvidia.com/gpu": "1"})
    stand.provision()
    assert stand.claim.metadata.annotations[DEVICE_DRIVERS] == GPU
    assert "nvidia.com/gpu" not in stand.claim.spec.resources.requests
