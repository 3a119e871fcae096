"""Plans that promise devices which there are not."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from joinery.decisions.scheduling.problem import Problem
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceSliceSpec,
)
from simulator.builders import EPOCH, daemon_set, node, node_pool, pod
from tests.unit.decisions.verification.plans import LARGE, SMALL, launch, packing, problem, violated

_DEVICE = {"name": "d", "attributes": {"model": {"string": "a"}}}
_SLICE = {"driver": "gpu", "pool": {"name": "p"}, "devices": [_DEVICE]}
_ALLOCATED = {
    "allocation": {"devices": {"results": [{"driver": "gpu", "pool": "p", "device": "d"}]}},
    "reservedFor": [{"resource": "pods", "name": "another"}],
}


def _claim(name: str, count: int = 1, status: Any = None) -> ResourceClaim:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}]
    said = {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}, "status": status or {}}
    return msgspec.convert(said, ResourceClaim)


def _asked(*objects: Any, of_types: Iterable[Any] = (SMALL, LARGE)) -> Problem:
    """Types of one device each, and the pods a and b with claims of these names."""
    expression = {"cel": {"expression": "device.attributes['gpu'].model == 'a'"}}
    device_class = msgspec.convert({"metadata": {"name": "gpu"}, "spec": {"selectors": [expression]}}, DeviceClass)
    slices = (msgspec.convert(_SLICE, ResourceSliceSpec),)
    types = [replace(kind, slices=slices) for kind in of_types]
    pods = [pod(name, cpu="100m", resource_claims=[{"name": "c", "resourceClaimName": name}]) for name in "ab"]
    return problem(node_pool(), device_class, *pods, *objects, types=types)


def test_a_device_is_one_pod_s() -> None:
    """Two pods on a node with one device are one too many."""
    asked = _asked(_claim("a"), _claim("b"))
    assert violated(asked, packing(launch(asked, "default/a", "default/b"))) == {"Devices"}
    apart = packing(launch(asked, "default/a"), launch(asked, "default/b", name="default-2"))
    assert violated(asked, apart) == set()


def _deleted(claim: ResourceClaim) -> ResourceClaim:
    return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, deletion_timestamp=EPOCH))


@pytest.mark.parametrize("claim", [_claim("a", 2), _claim("other"), _deleted(_claim("a"))])
def test_a_claim_is_served_whole_and_is_there(claim: ResourceClaim) -> None:
    """Two devices of one, a claim that nobody has made, and one that goes."""
    asked = _asked(claim, _claim("b"))
    assert "Devices" in violated(asked, packing(launch(asked, "default/a"), left=("default/b",)))


def test_every_type_of_a_launch_has_the_devices() -> None:
    """EC2 may choose any of them."""
    asked = _asked(_claim("a"), _claim("b"))
    asked = replace(asked, instance_types={"default": (asked.instance_types["default"][0], LARGE)})
    both = launch(asked, "default/a", types=("m7a.large", "m7a.xlarge"))
    assert violated(asked, packing(both, left=("default/b",))) == {"Devices"}


@pytest.mark.parametrize(("more", "code"), [((), set()), ((_claim("served", status=_ALLOCATED),), {"Devices"})])
def test_what_a_claim_has_is_taken(more: tuple[ResourceClaim, ...], code: set[str]) -> None:
    """A device on a node that exists, free or had by another claim."""
    published = msgspec.convert({"metadata": {"name": "s"}, "spec": {**_SLICE, "nodeName": "n1"}}, ResourceSlice)
    asked = _asked(_claim("a"), _claim("b"), *more, published, node("n1"))
    assert violated(asked, packing(on={"n1": ("default/a",)}, left=("default/b",))) == code


def test_pods_that_share_a_node_s_device_are_together() -> None:
    """One device serves both of them, on its node."""
    asked = _asked(_claim("a"))
    shared = [pod(name, cpu="100m", resource_claims=[{"name": "c", "resourceClaimName": "a"}]) for name in "ab"]
    asked = replace(asked, snapshot=replace(asked.snapshot, pods=tuple(shared)))
    assert violated(asked, packing(launch(asked, "default/a", "default/b"))) == set()
    apart = packing(launch(asked, "default/a"), launch(asked, "default/b", name="default-2"))
    assert violated(asked, apart) == {"Devices"}


def test_a_daemon_set_s_pod_has_its_device_before_others() -> None:
    """On each node to be bought, and on one where it does not run yet."""
    template = msgspec.convert({"metadata": {"name": "one"}, "spec": {"spec": _claim("a").spec}}, ResourceClaimTemplate)
    agent = daemon_set(
        "agent", namespace="default", resource_claims=[{"name": "c", "resourceClaimTemplateName": "one"}]
    )
    published = msgspec.convert({"metadata": {"name": "s"}, "spec": {**_SLICE, "nodeName": "n1"}}, ResourceSlice)
    asked = _asked(_claim("a"), _claim("b"), template, agent, published, node("n1"))
    bought = launch(asked, "default/a", daemons={"cpu": 100, "memory": 128 * 2**20, "pods": 1})
    assert violated(asked, packing(bought, left=("default/b",))) == {"Devices"}
    assert violated(asked, packing(on={"n1": ("default/a",)}, left=("default/b",))) == {"Devices"}


@pytest.mark.parametrize(("size", "code"), [("18Gi", set[str]()), ("16Gi", {"Devices"})])
def test_what_a_claim_gets_is_rounded_up_to_a_step(size: str, code: set[str]) -> None:
    """Steps of 4Gi from 1Gi on: who asks for 6Gi takes 9Gi, and two take 18Gi."""
    steps = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "4Gi"}}
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": size, "requestPolicy": steps}}}
    asking = {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "6Gi"}}}
    claims = [
        msgspec.convert(
            {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "r", "exactly": asking}]}}},
            ResourceClaim,
        )
        for name in "ab"
    ]
    slices = (msgspec.convert({**_SLICE, "devices": [{**_DEVICE, **shared}]}, ResourceSliceSpec),)
    asked = _asked(*claims)
    asked = replace(asked, instance_types={"default": tuple(replace(one, slices=slices) for one in asked.kinds)})
    assert violated(asked, packing(launch(asked, "default/a", "default/b"))) == code


@pytest.mark.parametrize(
    ("devices", "code"),
    [
        ([{**_DEVICE}, {**_DEVICE, "name": "e", "taints": [{"key": "broken", "effect": "NoSchedule"}]}], {"Devices"}),
        ([{**_DEVICE}, {**_DEVICE, "name": "e"}], set()),
    ],
)
def test_who_wants_all_devices_tolerates_all(devices: list[Any], code: set[str]) -> None:
    """One of two is tainted."""
    every = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    claim = msgspec.convert({"metadata": {"name": "a"}, "spec": {"devices": {"requests": [every]}}}, ResourceClaim)
    slices = (msgspec.convert({**_SLICE, "devices": devices}, ResourceSliceSpec),)
    asked = _asked(claim, _claim("b"))
    asked = replace(asked, instance_types={"default": tuple(replace(one, slices=slices) for one in asked.kinds)})
    assert violated(asked, packing(launch(asked, "default/a"), left=("default/b",))) == code
