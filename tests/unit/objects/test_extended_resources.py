"""Resources that devices serve (KEP-5004): what pods ask for by a number, and get as a claim."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import HOSTNAME, INSTANCE_TYPE
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.dynamic_resources import DeviceClass, ResourceClaim, ResourceSlice, ResourceSliceSpec
from joinery.objects.snapshot.extended_resources import read_as_claims
from simulator.builders import daemon_set, instance_type, node, node_pool, owner, pod
from tests.unit.decisions.verification.plans import problem

GPU, RESOURCE = "gpu.example.com", "example.com/gpu"


def _class(name: str, resource: str = "") -> DeviceClass:
    spec = {"selectors": [{"cel": {"expression": f"device.driver == '{GPU}'"}}], "extendedResourceName": resource}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, DeviceClass)


def _devices(count: int, **spec: Any) -> dict[str, Any]:
    return {"driver": GPU, "pool": {"name": "pool"}, "devices": [{"name": f"d{n}"} for n in range(count)], **spec}


def _asking(name: str, count: int = 1, resource: str = RESOURCE, **more: Any) -> Pod:
    return pod(name, requests={resource: str(count)}, **more)


def _plan(*objects: Any, count: int = 2) -> Packing:
    """A plan that verification lets through, with nodes of so many devices to be bought."""
    slices = (msgspec.convert(_devices(count), ResourceSliceSpec),)
    asked = problem(node_pool(), *objects, types=(replace(instance_type("m7a.2xlarge", spot=None), slices=slices),))
    asked = replace(asked, snapshot=read_as_claims(asked.snapshot))
    plan = solve(asked)
    assert verify(asked, plan) == ()
    return plan


@pytest.mark.parametrize("resource", [RESOURCE, "deviceclass.resource.kubernetes.io/gpu"])
def test_a_node_with_the_devices_is_bought(resource: str) -> None:
    """By the name that the class bears, or by that of the class. Nobody waits for a device plugin to advertise it."""
    plan = _plan(_class("gpu", RESOURCE), _asking("a", 2, resource), _asking("b", 1, resource))
    assert sorted(len(launch.pods) for launch in plan.launches) == [1, 1]
    assert {launch.drivers for launch in plan.launches} == {(GPU,)}
    assert not any(resource in launch.requests for launch in plan.launches)


def test_containers_that_run_first_use_the_devices_of_the_others() -> None:
    """Two of them after one another need no more than the larger."""
    requests = {"resources": {"requests": {RESOURCE: "2"}}}
    first = _asking("a", 1, init_containers=[{"name": "one", **requests}, {"name": "two", **requests}])
    assert [launch.pods for launch in _plan(_class("gpu", RESOURCE), first).launches] == [("default/a",)]


def _there(*, advertised: str = "") -> tuple[Any, ...]:
    """A node with two devices, one of which a pod has that asked for it by the number."""
    labels = {INSTANCE_TYPE: "m7a.2xlarge", HOSTNAME: "n1"}
    there = node("n1", cpu="8", labels=labels, resources={RESOURCE: advertised} if advertised else {})
    got = {"request": "container-0-request-0", "driver": GPU, "pool": "pool", "device": "d0"}
    status = {"allocation": {"devices": {"results": [got]}}, "reservedFor": [{"resource": "pods", "name": "running"}]}
    held = msgspec.convert({"metadata": {"name": "h", "namespace": "default"}, "status": status}, ResourceClaim)
    said = msgspec.convert({"metadata": {"name": "s"}, "spec": _devices(2, nodeName="n1")}, ResourceSlice)
    return there, _asking("running", node="n1"), held, said


def test_a_node_s_devices_are_used_though_it_advertises_nothing() -> None:
    """But those that claims have, which the scheduler makes of the number."""
    objects = *_there(), _class("gpu", RESOURCE), _asking("a"), _asking("b")
    plan = _plan(*objects, count=1)
    assert (len(plan.existing), len(plan.launches)) == (1, 1)


def test_what_a_device_plugin_advertises_is_a_number() -> None:
    """As it is everywhere without a class of that name."""
    plan = _plan(*_there(advertised="3"), _class("gpu", RESOURCE), _asking("a", 2))
    assert [placed.node for placed in plan.existing] == ["n1"]
    assert not _plan(_class("gpu"), _asking("a")).launches


def test_a_snapshot_without_such_resources_is_the_same() -> None:
    """Nothing is worked out anew."""
    for objects in ((_asking("a"),), (pod("a"), _class("gpu", RESOURCE))):
        snapshot = problem(*objects).snapshot
        assert read_as_claims(snapshot) is snapshot


@pytest.mark.parametrize("running", [False, True])
def test_a_daemon_set_that_asks_by_number_claims_too(running: bool) -> None:
    """On a node to be bought; what its newest pod asks for counts, as with other resources."""
    agent = daemon_set("agent", namespace="default", requests={RESOURCE: "1"})
    there = [_asking("agent-1", node="elsewhere", owner=owner("DaemonSet", "agent")), node("elsewhere")]
    plan = _plan(_class("gpu", RESOURCE), agent, *(there if running else ()), _asking("a"), _asking("b"))
    assert [len(launch.pods) for launch in plan.launches] == [1, 1]
