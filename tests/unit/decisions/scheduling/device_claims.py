"""Devices, claims for them and pods with claims, in as few words as tests want to say."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import HOSTNAME, INSTANCE_TYPE, ZONE
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
    ResourceSliceSpec,
)
from joinery.objects.snapshot.offerings import InstanceType
from simulator.builders import instance_type, node, node_pool, pod
from tests.unit.decisions.verification.plans import problem

GPU, NIC = "gpu.example.com", "nic.example.com"
Document = dict[str, Any]


def _class(name: str, driver: str) -> DeviceClass:
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return msgspec.convert({"metadata": {"name": name}, "spec": {"selectors": [selector]}}, DeviceClass)


#: A class for each of two drivers.
CLASSES = (_class("gpu", GPU), _class("nic", NIC))


def slice_of(*devices: Document, driver: str = GPU, pool: str = "pool", **spec: Any) -> ResourceSliceSpec:
    """The devices of one pool, as a driver says them."""
    return msgspec.convert(
        {"driver": driver, "pool": {"name": pool}, "devices": list(devices), **spec}, ResourceSliceSpec
    )


def some_devices(count: int, **said: Any) -> list[Document]:
    """So many devices that are alike but for their names."""
    return [{"name": f"device-{number}", **said} for number in range(count)]


def type_with(*slices: ResourceSliceSpec, name: str = "m7a.2xlarge", **more: Any) -> InstanceType:
    """An instance type whose nodes have these devices."""
    return replace(instance_type(name, spot=None, **more), slices=slices)


def type_with_gpus(count: int, **more: Any) -> InstanceType:
    """An instance type whose nodes have so many devices of the first driver."""
    return type_with(slice_of(*some_devices(count)), **more)


#: Without devices.
PLAIN = type_with()
#: A device that several claims may have.
SHARED = {"capacity": {"memory": {"value": "16Gi"}}, "allowMultipleAllocations": True}


def exactly_asked(name: str = "req", of: str = "gpu", count: int = 1, **more: Any) -> Document:
    """A request for so many devices of a class."""
    return {"name": name, "exactly": {"deviceClassName": of, "count": count, **more}}


def spec_of(*requests: Document, constraints: tuple[Document, ...] = ()) -> Document:
    """What a claim or a template asks for: one device, unless it is said."""
    return {"devices": {"requests": list(requests or [exactly_asked()]), "constraints": list(constraints)}}


def claim_for(name: str, *requests: Document, status: Document | None = None, **devices: Any) -> ResourceClaim:
    """A claim with these requests, in the namespace of the pods."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec_of(*requests, **devices),
            "status": status or {},
        },
        ResourceClaim,
    )


def allocated_claim(name: str, pool: str, device: str, by: str, **more: Any) -> ResourceClaim:
    """A claim that has a device, and the pod that uses it."""
    node_selector = more.pop("nodeSelector", None)
    result = {"request": "req", "driver": GPU, "pool": pool, "device": device, **more}
    allocation = {"devices": {"results": [result]}, **({"nodeSelector": node_selector} if node_selector else {})}
    return claim_for(name, status={"allocation": allocation, "reservedFor": [{"resource": "pods", "name": by}]})


def published_slice(name: str, spec: ResourceSliceSpec, owner: str = "") -> ResourceSlice:
    """The slice as an object of the API; ``owner``: the node that it goes with."""
    owners = [{"kind": "Node", "name": owner}] if owner else []
    return msgspec.convert(
        {"metadata": {"name": name, "ownerReferences": owners}, "spec": msgspec.to_builtins(spec)}, ResourceSlice
    )


def slice_of_zone(driver: str, zone: str) -> ResourceSlice:
    """One device that the nodes of a zone can use."""
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    selector = {"nodeSelectorTerms": terms}
    return published_slice(
        f"{driver}-{zone}", slice_of(*some_devices(1), driver=driver, pool=f"{driver}-{zone}", nodeSelector=selector)
    )


def slice_of_all(count: int, **said: Any) -> ResourceSlice:
    """So many devices that all nodes can use."""
    return published_slice("everywhere", slice_of(*some_devices(count, **said), pool="shared", allNodes=True))


def slice_of_node(name: str, count: int = 1) -> ResourceSlice:
    """What a driver publishes that selects its node by a label, and owns the slice to it."""
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [name]}]}]
    spec = slice_of(*some_devices(count), pool=f"of-{name}", nodeSelector={"nodeSelectorTerms": terms})
    return published_slice(f"of-{name}", spec, owner=name)


def claiming_pod(name: str, *claims: str, **more: Any) -> Pod:
    """A pod with claims: those that are there by their names, and templates by theirs with a star before."""
    references = [
        {"name": f"c{number}", "resourceClaimTemplateName": claim[1:]}
        if claim.startswith("*")
        else {"name": f"c{number}", "resourceClaimName": claim}
        for number, claim in enumerate(claims)
    ]
    return pod(name, resource_claims=references, **more)


def node_of_pool(name: str, *, initialized: bool = True, **more: Any) -> Node:
    """A node of the NodePool, which publishes no devices by itself."""
    labels = {INSTANCE_TYPE: "m7a.2xlarge", HOSTNAME: name}
    return node(name, node_pool="default", initialized=initialized, labels=labels, **more)


def problem_of(*objects: Any, types: tuple[InstanceType, ...] = (PLAIN,)) -> Problem:
    """The objects with a NodePool and both classes."""
    return problem(node_pool(), *CLASSES, *objects, types=types)


def plan_of(*objects: Any, types: tuple[InstanceType, ...] = (PLAIN,)) -> Packing:
    """A plan that verification lets through."""
    asked = problem_of(*objects, types=types)
    plan = solve(asked)
    assert verify(asked, plan) == ()
    return plan


def pods_together(plan: Packing) -> list[list[str]]:
    """The pods of each launch."""
    return sorted(sorted(name.removeprefix("default/") for name in launch.pods) for launch in plan.launches)


def why_left(plan: Packing) -> Mapping[str, str]:
    """By pod that has no place, the first reason."""
    return {left.pod.removeprefix("default/"): left.reasons[0].message for left in plan.unplaced}
