"""What users reported about devices, of other autoscalers and of kube-scheduler."""

from typing import Any

import msgspec
import pytest

from joinery.objects.kubernetes.core import ObjectMeta
from joinery.objects.kubernetes.dynamic_resources import (
    ResourceClaim,
    ResourcePool,
    ResourceSliceSpec,
)
from simulator.builders import EPOCH, node, pod
from tests.unit.decisions.scheduling.device_claims import (
    GPU,
    NIC,
    SHARED,
    Document,
    allocated_claim,
    claim_for,
    claiming_pod,
    exactly_asked,
    node_of_pool,
    plan_of,
    pods_together,
    published_slice,
    slice_of,
    slice_of_all,
    some_devices,
    type_with,
    type_with_gpus,
    why_left,
)


def _share(name: str, **result: Any) -> ResourceClaim:
    """A claim that has a share of the device for everybody, or as the result says."""
    got = {"request": "req", "driver": GPU, "pool": "shared", "device": "device-0", **result}
    users = [{"resource": "pods", "name": "live"}]
    return claim_for(name, status={"allocation": {"devices": {"results": [got]}}, "reservedFor": users})


@pytest.mark.parametrize(
    ("said", "result", "is_free"),
    [
        (SHARED, {"consumedCapacity": {"memory": "8Gi"}, "shareID": "s"}, True),
        (SHARED, {}, False),
        (SHARED, {"consumedCapacity": {"memory": "-8Gi"}, "shareID": "s"}, False),
        ({}, {"shareID": "s"}, False),
        ({"allowMultipleAllocations": True}, {"shareID": "s"}, True),
        ({}, {"adminAccess": True}, True),
    ],
    ids=["a share", "all of it once", "a wrong amount", "a share once", "a share of no amount", "a look"],
)
def test_a_device_is_taken_as_it_was_when_it_was_given(said: Document, result: Document, is_free: bool) -> None:
    """Whatever its driver says of sharing by now (kubernetes-sigs/karpenter #3210, #3212, #3213, #3221)."""
    asked: Document = {"capacity": {"requests": {"memory": "8Gi"}}} if "capacity" in said else {}
    objects = claim_for("a", exactly_asked(**asked)), claiming_pod("a", "a"), _share("served", **result)
    assert bool(pods_together(plan_of(*objects, slice_of_all(1, **said)))) == is_free


@pytest.mark.parametrize("others", [[], [{"resource": "compositions", "name": "other"}]])
def test_what_somebody_else_than_pods_uses_is_not_free_when_its_pods_leave(others: list[Document]) -> None:
    """(kubernetes-sigs/karpenter #3212)"""
    got = {"request": "req", "driver": GPU, "pool": "shared", "device": "device-0"}
    users = [{"resource": "pods", "name": "live"}, *others]
    served = claim_for("served", status={"allocation": {"devices": {"results": [got]}}, "reservedFor": users})
    there = pod("live", node="n1", owner="rs"), node("n1", node_pool="default", deleted=EPOCH)
    plan = plan_of(claim_for("a"), claiming_pod("a", "a"), *there, served, slice_of_all(1))
    assert ("default/a" in {left.pod for left in plan.unplaced}) == bool(others)


def test_counters_of_a_device_that_claims_share_are_not_taken_again() -> None:
    """(kubernetes-sigs/karpenter #3213, kubernetes/kubernetes #140450)"""
    counters = {"slots": {"value": "1"}}
    consumes = [{"counterSet": "set", "counters": counters}]
    of_pool = {"driver": GPU, "pool": {"name": "shared", "resourceSliceCount": 2}, "allNodes": True}
    said = [
        published_slice(name, msgspec.convert({**of_pool, **more}, ResourceSliceSpec))
        for name, more in {
            "a": {"sharedCounters": [{"name": "set", "counters": counters}]},
            "b": {"devices": some_devices(1, **SHARED, consumesCounters=consumes)},
        }.items()
    ]
    served = _share("served", consumedCapacity={"memory": "8Gi"}, shareID="s")
    asked: Document = {"capacity": {"requests": {"memory": "8Gi"}}}
    assert "a" not in why_left(plan_of(claim_for("a", exactly_asked(**asked)), claiming_pod("a", "a"), served, *said))


def test_pods_that_share_a_claim_of_several_nodes_have_claims_of_their_own() -> None:
    """(kubernetes/kubernetes #139017: they waited for ever)"""
    shared = _share("fabric", driver=NIC)
    pods = [claiming_pod(f"p{n}", "fabric", f"own{n}") for n in range(2)]
    plan = plan_of(shared, *pods, claim_for("own0"), claim_for("own1"), types=(type_with_gpus(1),))
    assert pods_together(plan) == [["p0"], ["p1"]]


def test_all_devices_that_take_of_counters_are_given_together() -> None:
    """If there is enough for all of them (kubernetes/kubernetes #138885: the scheduler panicked)."""
    for budget, is_placed in (("2", True), ("1", False)):
        counters = {"slots": {"value": budget}}
        consumes = [{"counterSet": "set", "counters": {"slots": {"value": "1"}}}]
        kind = type_with(
            slice_of(sharedCounters=[{"name": "set", "counters": counters}]),
            slice_of(*some_devices(2, consumesCounters=consumes)),
        )
        every = {"name": "req", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
        assert bool(plan_of(claim_for("a", every), claiming_pod("a", "a"), types=(kind,)).launches) == is_placed


def test_a_way_that_was_given_up_takes_nothing() -> None:
    """Of a shared device whose counters suffice once (kubernetes/kubernetes #140431: what a search had taken and given
    back stayed taken)."""
    counters = {"slots": {"value": "1"}}
    consumes = [{"counterSet": "set", "counters": counters}]
    small = {"attributes": {"size": {"string": "small"}}, "consumesCounters": consumes}
    kind = type_with(
        slice_of(sharedCounters=[{"name": "set", "counters": counters}]),
        slice_of(
            {"name": "shared", **SHARED, "consumesCounters": consumes, "attributes": {"size": {"string": "large"}}},
            {"name": "own", **small},
        ),
    )
    wants_small = [{"cel": {"expression": f"device.attributes['{GPU}'].size == 'small'"}}]
    two = exactly_asked("any"), exactly_asked("small", selectors=wants_small)
    assert not plan_of(claim_for("a", *two), claiming_pod("a", "a"), types=(kind,)).launches
    assert plan_of(
        claim_for("a", exactly_asked("small", selectors=wants_small)), claiming_pod("a", "a"), types=(kind,)
    ).launches


def test_a_template_of_slices_need_not_say_how_many_there_are() -> None:
    """(kubernetes/autoscaler #10199: pools made for nodes to come were never complete)"""
    slices = (msgspec.structs.replace(slice_of(*some_devices(1)), pool=ResourcePool(name="p", resource_slice_count=0)),)
    assert plan_of(claim_for("a"), claiming_pod("a", "a"), types=(type_with(*slices),)).launches


def test_a_shared_device_that_is_full_gives_way_to_the_next() -> None:
    """(kubernetes/kubernetes #133705: the scheduler went no further)"""
    asked: Document = {"capacity": {"requests": {"memory": "12Gi"}}}
    there = (
        claim_for("a", exactly_asked(**asked)),
        claiming_pod("a", "a"),
        _share("s", consumedCapacity={"memory": "8Gi"}, shareID="s"),
    )
    assert not plan_of(*there, slice_of_all(1, **SHARED)).launches
    assert plan_of(*there, slice_of_all(2, **SHARED)).launches


def test_a_share_of_a_device_keeps_others_from_its_counters() -> None:
    """(kubernetes/kubernetes #139034: counters of a share that a claim had were free for partitions beside it)"""
    counters = {"slots": {"value": "1"}}
    consumes = [{"counterSet": "set", "counters": counters}]
    of_pool = {"driver": GPU, "pool": {"name": "shared", "resourceSliceCount": 2}, "allNodes": True}
    devices = [
        {**some_devices(1, **SHARED)[0], "consumesCounters": consumes},
        {"name": "own", "consumesCounters": consumes},
    ]
    said = [
        published_slice(name, msgspec.convert({**of_pool, **more}, ResourceSliceSpec))
        for name, more in {
            "a": {"sharedCounters": [{"name": "set", "counters": counters}]},
            "b": {"devices": devices},
        }.items()
    ]
    served = _share("served", consumedCapacity={"memory": "16Gi"}, shareID="s")
    assert plan_of(claim_for("a"), claiming_pod("a", "a"), *said).launches
    assert not plan_of(claim_for("a"), claiming_pod("a", "a"), served, *said).launches


@pytest.mark.parametrize(("numas", "is_placed"), [("121", False), ("1213", True)])
def test_all_values_of_one_request_differ(numas: str, is_placed: bool) -> None:
    """(kubernetes/kubernetes #140438, kubernetes-sigs/dra-driver-cpu #62: only the last one counted)"""
    devices = [{"name": f"d{n}", "attributes": {"numa": {"string": numa}}} for n, numa in enumerate(numas)]
    apart = ({"distinctAttribute": f"{GPU}/numa"},)
    plan = plan_of(
        claim_for("a", exactly_asked(count=3), constraints=apart),
        claiming_pod("a", "a"),
        types=(type_with(slice_of(*devices)),),
    )
    assert bool(plan.launches) == is_placed


def test_all_devices_are_one_at_least() -> None:
    """Also as an alternative (kubernetes/kubernetes #129310: pods were bound to nodes without devices)."""
    every = {"deviceClassName": "gpu", "allocationMode": "All"}
    nics = {"name": "nics", "deviceClassName": "nic"}
    either = {"name": "req", "firstAvailable": [{"name": "gpus", **every}, nics]}
    plain, fabric = type_with(name="m7a.large"), type_with(slice_of(*some_devices(1), driver=NIC), name="m7a.4xlarge")
    assert not plan_of(
        claim_for("a", {"name": "req", "exactly": every}), claiming_pod("a", "a"), types=(plain, fabric)
    ).launches
    plan = plan_of(claim_for("a", either), claiming_pod("a", "a"), types=(plain, fabric))
    assert [launch.offering.instance_type for launch in plan.launches] == ["m7a.4xlarge"]


def test_where_not_all_are_free_the_next_alternative_counts() -> None:
    """(kubernetes/kubernetes #137347: no alternative was tried)"""
    every = {"name": "all", "deviceClassName": "gpu", "allocationMode": "All"}
    either = {"name": "req", "firstAvailable": [every, {"name": "one", "deviceClassName": "gpu"}]}
    there = (
        node_of_pool("n1"),
        published_slice("n1", msgspec.structs.replace(slice_of(*some_devices(2)), node_name="n1")),
    )
    served = allocated_claim("served", "pool", "device-0", by="live")
    plan = plan_of(claim_for("a", either), claiming_pod("a", "a"), *there, served)
    assert [one.pods for one in plan.existing] == [("default/a",)]


def test_who_only_looks_needs_no_node_of_its_own() -> None:
    """(kubernetes-sigs/karpenter #3230: a node was bought though all devices that there are would do)"""
    there = (
        node_of_pool("n1"),
        published_slice("n1", msgspec.structs.replace(slice_of(*some_devices(1)), node_name="n1")),
    )
    served = allocated_claim("served", "pool", "device-0", by="live")
    looks = claim_for("looks", exactly_asked(adminAccess=True))
    plan = plan_of(
        looks,
        claiming_pod("looks", "looks"),
        claim_for("a"),
        claiming_pod("a", "a"),
        *there,
        served,
        types=(type_with_gpus(1),),
    )
    assert [one.pods for one in plan.existing] == [("default/looks",)]
    assert pods_together(plan) == [["a"]]


def test_a_claim_that_never_goes_keeps_its_device() -> None:
    """Whose pods are long gone (kubernetes-sigs/dra-driver-nvidia-gpu #725: its finalizer stays)."""
    there = (
        node_of_pool("n1"),
        published_slice("n1", msgspec.structs.replace(slice_of(*some_devices(1)), node_name="n1")),
    )
    served = allocated_claim("served", "pool", "device-0", by="gone")
    zombie = msgspec.structs.replace(served, metadata=ObjectMeta(name="served", deletion_timestamp=EPOCH))
    plan = plan_of(claim_for("a"), claiming_pod("a", "a"), *there, zombie, types=(type_with_gpus(1),))
    assert (len(plan.existing), len(plan.launches)) == (0, 1)
