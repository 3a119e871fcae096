"""Selectors that fail on a device: kube-scheduler then binds the pod nowhere, so nothing is bought for it.

As its allocator has it (Kubernetes 1.36 `allocateOne`, `validateDeviceRequest`): devices are looked at in their order
until there are enough, without those that claims have, and the first on which a selector has no value ends it all.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.solve import solve
from joinery.objects.kubernetes.dynamic_resources import DeviceClass, ResourceClaim, ResourceSlice, ResourceSliceSpec
from simulator.builders import instance_type, node, node_pool, pod
from tests.unit.decisions.verification.plans import problem

GPU = "gpu.example.com"
MODEL = f"device.attributes['{GPU}'].model == 'a'"
#: Four times as long with each letter, a text is soon too long.
COSTLY = (
    "cel.bind(a, 'xxxxxxxxxxxxxxxx', {}size(g) > 0)".format(
        "".join(f"cel.bind({new}, {old} + {old} + {old} + {old}, " for old, new in pairwise("abcdefg"))
    )
    + ")" * 6
)
Document = dict[str, Any]


def _device(name: str, **attributes: str) -> Document:
    return {"name": name, "attributes": {key: {"string": value} for key, value in attributes.items()}}


OLD, NEW = _device("old"), _device("new", model="a")


def _spec(*devices: Document) -> Document:
    return {"driver": GPU, "pool": {"name": "pool"}, "devices": list(devices)}


def _class(*selectors: str) -> DeviceClass:
    said = [{"cel": {"expression": selector}} for selector in selectors]
    return msgspec.convert({"metadata": {"name": "gpu"}, "spec": {"selectors": said}}, DeviceClass)


def _way(selector: str = MODEL, **more: Any) -> Document:
    return {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": selector}}], **more}


def _plan(*devices: Document, request: Document | None = None, of_class: DeviceClass | None = None) -> Packing:
    """For a pod with one claim, where nodes to be bought have these devices."""
    requests = [{"name": "gpus", **(request or {"exactly": _way()})}]
    claim = msgspec.convert({"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}, ResourceClaim)
    kind = replace(
        instance_type("m7a.2xlarge", spot=None), slices=(msgspec.convert(_spec(*devices), ResourceSliceSpec),)
    )
    claiming = pod("p", resource_claims=[{"name": "mine", "resourceClaimName": "c"}])
    return solve(problem(node_pool(), of_class or _class(), claim, claiming, types=[kind]))


@pytest.mark.parametrize(
    ("devices", "request_", "is_bought"),
    [
        ((NEW, OLD), {"exactly": _way()}, True),
        ((OLD, NEW), {"exactly": _way()}, False),
        ((NEW, OLD), {"exactly": _way(count=2)}, False),
        ((NEW, OLD), {"exactly": _way(allocationMode="All")}, False),
        ((OLD, NEW), {"firstAvailable": [{"name": "a", **_way()}, {"name": "b", **_way("true")}]}, False),
        ((OLD, NEW), {"firstAvailable": [{"name": "b", **_way("true")}, {"name": "a", **_way()}]}, True),
        ((OLD, NEW), {"exactly": _way(f"'model' in device.attributes['{GPU}'] && {MODEL}")}, True),
    ],
    ids=["after enough", "before", "not enough", "all", "first of two", "second of two", "asked for first"],
)
def test_a_selector_that_fails_ends_the_search(
    devices: tuple[Document, ...], request_: Document, is_bought: bool
) -> None:
    """The old device has no model."""
    assert bool(_plan(*devices, request=request_).launches) == is_bought


def test_a_value_that_only_the_node_knows_is_missing_before() -> None:
    """A request for it is served by its next alternative, and with none it selects nothing."""
    unknown = {"name": "device", "attributes": {"version": {"onNode": ""}}}
    newer = _way(f"device.attributes['{GPU}'].version.isGreaterThan(semver('1.0.0'))")
    either = {"firstAvailable": [{"name": "newer", **newer}, {"name": "any", **_way("true")}]}
    assert _plan(unknown, request=either).launches
    (left,) = _plan(unknown, request={"exactly": newer}).unplaced
    assert "meets the selector" in left.reasons[0].message


@pytest.mark.parametrize(
    ("of_class", "of_claim", "said"),
    [
        ("true", MODEL, f"selector {MODEL} of the claim fails on the device old of {GPU}: the device has no model"),
        (MODEL, "true", f"selector {MODEL} of DeviceClass gpu fails on the device old of {GPU}: the device has no"),
        ("true", COSTLY, f"of the claim fails on the device old of {GPU}: it costs too much, more than 20000 steps"),
    ],
    ids=["a claim's", "a class's", "costly"],
)
def test_a_pod_is_told_which_selector_fails_on_what(of_class: str, of_claim: str, said: str) -> None:
    """And whose it is."""
    (left,) = _plan(OLD, of_class=_class(of_class), request={"exactly": _way(of_claim)}).unplaced
    assert left.reasons[0].message.startswith("claim mine, request gpus: the selector ")
    assert said in left.reasons[0].message


def test_a_device_that_a_claim_has_is_not_looked_at() -> None:
    """On a node of which another claim has the old device; where it is free, the pod is told what fails."""
    requests = [{"name": "gpus", "exactly": _way()}]
    spec = {"devices": {"requests": requests}}
    claim = msgspec.convert({"metadata": {"name": "c"}, "spec": spec}, ResourceClaim)
    result = {"request": "gpus", "driver": GPU, "pool": "pool", "device": "old"}
    allocation = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [{"resource": "pods", "name": "o"}]}
    served = msgspec.convert({"metadata": {"name": "o"}, "spec": spec, "status": allocation}, ResourceClaim)
    published = msgspec.convert(
        {"metadata": {"name": "s"}, "spec": {**_spec(OLD, NEW), "nodeName": "n1"}}, ResourceSlice
    )
    claiming = pod("p", resource_claims=[{"name": "mine", "resourceClaimName": "c"}])
    there = (_class(), claim, claiming, published, node("n1"))
    assert solve(problem(*there, served, types=[])).existing
    (left,) = solve(problem(*there, types=[])).unplaced
    assert "too few devices for its claims (claim mine, request gpus: the selector" in str(left.reasons)
