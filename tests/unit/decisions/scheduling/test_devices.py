"""Pods that claim devices (dynamic resource allocation), as Karpenter's own specs ask for them.

The names in parentheses are those of its specs (`provisioning/dra_test.go`, `disruption/consolidation_dra_test.go`,
core 1.15.0).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import ARCH, HOSTNAME, INSTANCE_TYPE, OVERRIDES, ZONE
from joinery.objects.kubernetes.core import DaemonSet, Node, ObjectMeta, Pod, PodResourceClaimStatus
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceClass,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from joinery.objects.snapshot.offerings import InstanceType
from simulator.builders import EPOCH, daemon_set, instance_type, node, node_claim, node_pool, owner, pod
from tests.unit.decisions.verification.plans import A, B, problem

GPU, NIC = "gpu.example.com", "nic.example.com"
Document = dict[str, Any]


def _class(name: str, driver: str) -> DeviceClass:
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return msgspec.convert({"metadata": {"name": name}, "spec": {"selectors": [selector]}}, DeviceClass)


CLASSES = (_class("gpu", GPU), _class("nic", NIC))


def _slice(*devices: Document, driver: str = GPU, pool: str = "pool", **spec: Any) -> ResourceSliceSpec:
    return msgspec.convert(
        {"driver": driver, "pool": {"name": pool}, "devices": list(devices), **spec}, ResourceSliceSpec
    )


def _devices(count: int, **said: Any) -> list[Document]:
    return [{"name": f"device-{number}", **said} for number in range(count)]


def _type(*slices: ResourceSliceSpec, name: str = "m7a.2xlarge", **more: Any) -> InstanceType:
    return replace(instance_type(name, spot=None, **more), slices=slices)


def _gpus(count: int, **more: Any) -> InstanceType:
    return _type(_slice(*_devices(count)), **more)


PLAIN = _type()


def _exactly(name: str = "req", of: str = "gpu", count: int = 1, **more: Any) -> Document:
    return {"name": name, "exactly": {"deviceClassName": of, "count": count, **more}}


def _asks(*requests: Document, constraints: tuple[Document, ...] = ()) -> Document:
    return {"devices": {"requests": list(requests or [_exactly()]), "constraints": list(constraints)}}


def _claim(name: str, *requests: Document, status: Document | None = None, **devices: Any) -> ResourceClaim:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": _asks(*requests, **devices),
            "status": status or {},
        },
        ResourceClaim,
    )


def _allocated(name: str, pool: str, device: str, by: str, **more: Any) -> ResourceClaim:
    """A claim that has a device, and the pod that uses it."""
    node_selector = more.pop("nodeSelector", None)
    result = {"request": "req", "driver": GPU, "pool": pool, "device": device, **more}
    allocation = {"devices": {"results": [result]}, **({"nodeSelector": node_selector} if node_selector else {})}
    return _claim(name, status={"allocation": allocation, "reservedFor": [{"resource": "pods", "name": by}]})


def _published(name: str, spec: ResourceSliceSpec, owner: str = "") -> ResourceSlice:
    owners = [{"kind": "Node", "name": owner}] if owner else []
    return msgspec.convert(
        {"metadata": {"name": name, "ownerReferences": owners}, "spec": msgspec.to_builtins(spec)}, ResourceSlice
    )


def _in_zone(driver: str, zone: str) -> ResourceSlice:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    selector = {"nodeSelectorTerms": terms}
    return _published(
        f"{driver}-{zone}", _slice(*_devices(1), driver=driver, pool=f"{driver}-{zone}", nodeSelector=selector)
    )


def _everywhere(count: int, **said: Any) -> ResourceSlice:
    return _published("everywhere", _slice(*_devices(count, **said), pool="shared", allNodes=True))


def _of_node(name: str, count: int = 1) -> ResourceSlice:
    """What a driver publishes that selects its node by a label, and owns the slice to it."""
    terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [name]}]}]
    spec = _slice(*_devices(count), pool=f"of-{name}", nodeSelector={"nodeSelectorTerms": terms})
    return _published(f"of-{name}", spec, owner=name)


def _pod(name: str, *claims: str, **more: Any) -> Pod:
    """A pod with claims: those that are there by their names, and templates by theirs with a star before."""
    references = [
        {"name": f"c{number}", "resourceClaimTemplateName": claim[1:]}
        if claim.startswith("*")
        else {"name": f"c{number}", "resourceClaimName": claim}
        for number, claim in enumerate(claims)
    ]
    return pod(name, resource_claims=references, **more)


def _node(name: str, *, initialized: bool = True, **more: Any) -> Node:
    labels = {INSTANCE_TYPE: "m7a.2xlarge", HOSTNAME: name}
    return node(name, node_pool="default", initialized=initialized, labels=labels, **more)


def _asked(*objects: Any, types: tuple[InstanceType, ...] = (PLAIN,)) -> Problem:
    return problem(node_pool(), *CLASSES, *objects, types=types)


def _plan(*objects: Any, types: tuple[InstanceType, ...] = (PLAIN,)) -> Packing:
    """A plan that verification lets through."""
    asked = _asked(*objects, types=types)
    plan = solve(asked)
    assert verify(asked, plan) == ()
    return plan


def _together(plan: Packing) -> list[list[str]]:
    """The pods of each launch."""
    return sorted(sorted(name.removeprefix("default/") for name in launch.pods) for launch in plan.launches)


def _why(plan: Packing) -> Mapping[str, str]:
    return {left.pod.removeprefix("default/"): left.reasons[0].message for left in plan.unplaced}


# --- nodes to be bought ---


def test_only_types_with_the_devices_are_bought() -> None:
    """(A1, A2) Though others are cheaper."""
    plan = _plan(_claim("a"), _pod("a", "a"), types=(_gpus(1), _type(name="m7a.large")))
    assert [launch.instance_types for launch in plan.launches] == [("m7a.2xlarge",)]


def test_a_claim_made_from_a_template_counts_before_it_is_made() -> None:
    """(A4) In a file there is nobody who makes it."""
    template = msgspec.convert(
        {"metadata": {"name": "one", "namespace": "default"}, "spec": {"spec": _asks()}}, ResourceClaimTemplate
    )
    plan = _plan(template, _pod("a", "*one"), _pod("b", "*one"), _pod("c", "*one"), types=(_gpus(2),))
    assert sorted(map(len, _together(plan))) == [1, 2]


def test_pods_share_a_node_while_it_has_devices() -> None:
    """(B1, B2)"""
    three = [_claim("a"), _claim("b"), _claim("c"), _pod("a", "a"), _pod("b", "b"), _pod("c", "c")]
    assert sorted(map(len, _together(_plan(*three, types=(_gpus(2),))))) == [1, 2]
    assert len(_plan(*three, types=(_gpus(3),)).launches) == 1
    assert len(_plan(*three, types=(_gpus(1),)).launches) == 3


def test_all_devices_of_a_node_are_one_pod_s() -> None:
    """(F1)"""
    all_of_them = {"name": "req", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    plan = _plan(_claim("a", all_of_them), _claim("b"), _pod("a", "a"), _pod("b", "b"), types=(_gpus(3),))
    assert _together(plan) == [["a"], ["b"]]


@pytest.mark.parametrize(("roots", "is_placed"), [(("x", "x"), True), (("x", "y"), False)])
def test_devices_match_where_a_constraint_says_so(roots: tuple[str, str], is_placed: bool) -> None:
    """(F2) Two requests for devices behind one root, which there may be or not."""
    devices = [{"name": root + str(n), "attributes": {"root": {"string": root}}} for n, root in enumerate(roots)]
    wanted = _claim("a", _exactly("one"), _exactly("two"), constraints=({"matchAttribute": f"{GPU}/root"},))
    plan = _plan(wanted, _pod("a", "a"), types=(_type(_slice(*devices)),))
    assert bool(plan.launches) == is_placed


def test_each_type_of_a_launch_has_roots_of_its_own() -> None:
    """EC2 may choose any of them, and each is asked by itself."""

    def rooted(name: str) -> InstanceType:
        return _type(_slice(*_devices(2, attributes={"root": {"string": name}})), name=name)

    wanted = _claim("a", _exactly(count=2), constraints=({"matchAttribute": f"{GPU}/root"},))
    (launch,) = _plan(wanted, _pod("a", "a"), types=(rooted("m7a.xlarge"), rooted("m7i.xlarge"))).launches
    assert len(launch.instance_types) == 2


def test_a_value_that_only_the_node_knows_is_one_for_all_of_its_devices() -> None:
    """Karpenter's AttributeBindings: the version of the driver is not known, and matches itself."""
    wanted = _claim("a", _exactly(count=2), constraints=({"matchAttribute": f"{GPU}/driver"},))
    bound = _type(_slice(*_devices(2, attributes={"driver": {"onNode": ""}})))
    assert _plan(wanted, _pod("a", "a"), types=(bound,)).launches
    assert not _plan(wanted, _pod("a", "a"), types=(_gpus(2),)).launches


@pytest.mark.parametrize(("there", "launches"), [(2, 2), (4, 2), (6, 1)])
def test_the_first_alternative_that_there_is_is_taken(there: int, launches: int) -> None:
    """(H1, H2) Four devices, or else two."""
    first = {
        "name": "req",
        "firstAvailable": [
            {"name": "four", "deviceClassName": "gpu", "count": 4},
            {"name": "two", "deviceClassName": "gpu", "count": 2},
        ],
    }
    objects = [_claim("a", first), _claim("b", first), _pod("a", "a"), _pod("b", "b")]
    assert len(_plan(*objects, types=(_gpus(there),)).launches) == launches


def test_claims_of_two_drivers_are_served_together() -> None:
    """(G1)"""
    both = _type(_slice(*_devices(1)), _slice(*_devices(1), driver=NIC))
    claims = _claim("a"), _claim("b", _exactly(of="nic"))
    assert _plan(*claims, _pod("a", "a", "b"), types=(both,)).launches
    assert not _plan(*claims, _pod("a", "a", "b"), types=(_gpus(1),)).launches


# --- pods that wait ---


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ((_pod("a", "gone"),), "its resource claim c0: there is no ResourceClaim default/gone"),
        ((_pod("a", "*gone"),), "its resource claim c0: there is no ResourceClaimTemplate default/gone"),
        (
            (_claim("a", _exactly(of="other")), _pod("a", "a")),
            "its resource claim c0: request req: there is no DeviceClass other",
        ),
        (
            (_claim("a", _exactly(selectors=[{"cel": {"expression": "device.x("}}])), _pod("a", "a")),
            "its resource claim c0: request req: the selector device.x(: it ends too early",
        ),
        (
            (
                _claim("a", _exactly(selectors=[{"cel": {"expression": f"device.driver == '{'x' * 5000}' &&"}}])),
                _pod("a", "a"),
            ),
            f"its resource claim c0: request req: the selector device.driver == '{'x' * 142}...: it ends too early",
        ),
        (
            (_claim("a", _exactly(count=33)), _pod("a", "a")),
            "its resource claim c0: it asks for 33 devices, and a claim may have 32",
        ),
        (
            (_claim("a", _exactly(count=3)), _pod("a", "a")),
            "claim c0, request req: it asks for 3 devices, and no instance type that it allows has more than 2",
        ),
        (
            (_claim("a", _exactly(of="nic")), _pod("a", "a")),
            "claim c0, request req: no device of the instance types that it allows meets the selector "
            'device.driver == "nic.example.com"',
        ),
    ],
)
def test_a_pod_that_waits_is_told_why(objects: tuple[Any, ...], message: str) -> None:
    """(U1, U2, U3)"""
    plan = _plan(*objects, types=(_gpus(2),))
    assert not plan.launches
    assert _why(plan) == {"a": message}


def test_who_has_no_devices_to_offer_says_so() -> None:
    """(U2)"""
    why = "none of the 1 instance types that it allows has devices for the pod's claims"
    assert _why(_plan(_claim("a"), _pod("a", "a"))) == {"a": why}


def test_devices_of_types_that_a_default_leaves_out_are_none_to_offer() -> None:
    """What the NodePool lists holds for a pod that chooses nothing else, and for the reason too."""
    pool = node_pool(requirements=[f"{ARCH}=amd64"])
    pool.metadata.annotations[OVERRIDES] = "true"
    types = (PLAIN, _gpus(1, name="m7g.2xlarge", arch="arm64"))
    waiting = solve(problem(pool, *CLASSES, _claim("a"), _pod("a", "a"), types=types))
    assert _why(waiting) == {"a": "none of the 1 instance types that it allows has devices for the pod's claims"}


def test_a_claim_that_was_not_needed_asks_for_nothing() -> None:
    """(U4) Its status says that no claim was made."""
    bare = _pod("a", "*gone")
    status = msgspec.structs.replace(bare.status, resource_claim_statuses=[PodResourceClaimStatus(name="c0")])
    assert _plan(msgspec.structs.replace(bare, status=status)).launches


def test_a_claim_that_is_being_deleted_serves_nobody() -> None:
    """Not even with devices: kube-scheduler binds no pod that uses it (`foreachPodResourceClaim`)."""
    leaving = _claim("a")
    leaving = msgspec.structs.replace(
        leaving, metadata=msgspec.structs.replace(leaving.metadata, deletion_timestamp=EPOCH)
    )
    why = {"a": "its resource claim c0: the ResourceClaim default/a is being deleted"}
    assert _why(_plan(leaving, _pod("a", "a"), types=(_gpus(1),))) == why
    has = _allocated("a", "of-n1", "device-0", by="a")
    has = msgspec.structs.replace(has, metadata=leaving.metadata)
    assert _why(_plan(has, _pod("a", "a"), _node("n1"), _of_node("n1"))) == why


@pytest.mark.parametrize(
    ("owners", "left"),
    [
        ([{"kind": "Pod", "name": "a", "controller": True}], {}),
        (
            [{"kind": "Pod", "name": "a"}],
            {"a": "its resource claim c0: the ResourceClaim default/made was not made for it"},
        ),
        ([], {"a": "its resource claim c0: the ResourceClaim default/made was not made for it"}),
        (
            [{"kind": "Pod", "name": "b", "controller": True}],
            {"a": "its resource claim c0: the ResourceClaim default/made was not made for it"},
        ),
    ],
)
def test_a_claim_from_a_template_is_of_the_pod_that_controls_it(
    owners: list[Document], left: Mapping[str, str]
) -> None:
    """kube-scheduler gives it to nobody else (`IsForPod`), and a node that is bought for the other would stay empty."""
    made = _claim("made")
    owned = msgspec.convert({"name": "made", "namespace": "default", "ownerReferences": owners}, ObjectMeta)
    asks = _pod("a", "*template", uid="")
    status = [PodResourceClaimStatus(name="c0", resource_claim_name="made")]
    asks = msgspec.structs.replace(asks, status=msgspec.structs.replace(asks.status, resource_claim_statuses=status))
    assert _why(_plan(msgspec.structs.replace(made, metadata=owned), asks, types=(_gpus(1),))) == left


@pytest.mark.parametrize(
    ("count", "left"), [(0, {}), (-1, {"a": "its resource claim c0: request req: it asks for -1 devices"})]
)
def test_a_count_of_none_is_the_api_server_s_default(count: int, left: Mapping[str, str]) -> None:
    """Files may have what no API server has let in."""
    assert _why(_plan(_claim("a", _exactly(count=count)), _pod("a", "a"), types=(_gpus(1),))) == left


def test_devices_of_another_architecture_are_none() -> None:
    """(X3)"""
    types = (_gpus(1, arch="arm64"), _type(name="m7a.large"))
    assert not _plan(_claim("a"), _pod("a", "a", node_selector={ARCH: "amd64"}), types=types).launches


def test_pods_without_claims_are_planned_beside_those_with_some() -> None:
    """(R1)"""
    assert len(_plan(_claim("a"), _pod("a", "a"), pod("b"), types=(_gpus(1),)).unplaced) == 0


# --- nodes that exist ---


def test_a_node_s_devices_are_used_before_one_is_bought() -> None:
    """(C1, C2)"""
    plan = _plan(_claim("a"), _pod("a", "a"), _node("n1"), _of_node("n1"), types=(_gpus(1),))
    assert [(one.node, one.pods) for one in plan.existing] == [("n1", ("default/a",))]


def test_a_device_that_a_claim_has_is_no_other_s() -> None:
    """(H1 of several runs)"""
    served = _allocated("served", "of-n1", "device-0", by="web")
    plan = _plan(_claim("a"), _pod("a", "a"), served, _node("n1"), _of_node("n1"), types=(_gpus(1),))
    assert _together(plan) == [["a"]]


def test_a_claim_with_its_device_binds_its_pods_to_where_that_is() -> None:
    """(H2 of several runs) The allocation names the node by its name, not by a label."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    served = _allocated("served", "of-n2", "device-0", by="web", nodeSelector={"nodeSelectorTerms": terms})
    nodes = [_node("n1"), _node("n2"), _of_node("n1"), _of_node("n2")]
    assert [one.node for one in _plan(served, _pod("b", "served"), *nodes, types=(_gpus(1),)).existing] == ["n2"]


@pytest.mark.parametrize("slices", [(), (_of_node("n1"),)])
def test_a_node_that_is_not_initialized_has_what_its_type_says(slices: tuple[ResourceSlice, ...]) -> None:
    """(S1, I1) What it publishes by now is not counted beside that."""
    claims = [_claim("a"), _claim("b"), _pod("a", "a"), _pod("b", "b")]
    claim = node_claim("c1", conditions=("Launched",), instance_type="m7a.2xlarge")
    plan = _plan(*claims, claim, *slices, types=(_gpus(1),))
    assert [len(one.pods) for one in plan.existing] == [1]
    assert len(plan.launches) == 1


def test_slices_of_a_node_that_is_not_there_are_nobody_s() -> None:
    """(S2)"""
    plan = _plan(_claim("a"), _pod("a", "a"), _of_node("gone"), types=(_gpus(1),))
    assert _together(plan) == [["a"]]


def test_a_pool_that_is_not_complete_or_outdated_counts_for_nothing() -> None:
    """Of several generations the newest, and that once all of it is there (API, ``ResourcePool``)."""
    half = msgspec.convert({"name": "p", "resourceSliceCount": 2}, ResourcePool)
    of_two = _published("half", msgspec.structs.replace(_slice(*_devices(1), nodeName="n1"), pool=half))
    assert _plan(_claim("a"), _pod("a", "a"), _node("n1"), of_two, types=(_gpus(1),)).launches


# --- devices of several nodes ---


def test_devices_of_a_zone_bind_a_node_to_it() -> None:
    """(D1, D2)"""
    claims = _claim("a"), _claim("b", _exactly(of="nic"))
    plan = _plan(*claims, _pod("a", "a", "b"), _in_zone(GPU, B), _in_zone(NIC, B))
    assert [launch.offering.zone for launch in plan.launches] == [B]


def test_a_free_device_of_a_node_is_as_good_as_one_of_a_zone() -> None:
    """No node is bought in a zone with a device while one elsewhere has room and a device of its own."""
    there = _node("n1", zone=A), _published("n1", msgspec.structs.replace(_slice(*_devices(1)), node_name="n1"))
    plan = _plan(_claim("a"), _pod("a", "a"), _in_zone(GPU, B), *there)
    assert (len(plan.existing), len(plan.launches)) == (1, 0)
    both = _plan(_claim("a"), _claim("b"), _pod("a", "a"), _pod("b", "b"), _in_zone(GPU, B), *there)
    assert not both.unplaced


def test_a_device_of_a_zone_spares_a_dear_type() -> None:
    """A node without devices costs less there than one with a device of its own."""
    dear = _gpus(1, price=9.0)
    plan = _plan(_claim("a"), _pod("a", "a"), _in_zone(GPU, B), types=(dear, _type(name="m7a.large")))
    assert [(launch.offering.instance_type, launch.offering.zone) for launch in plan.launches] == [("m7a.large", B)]
    cheap = _type(_slice(*_devices(1)), name="m7a.large", price=0.01)
    plan = _plan(_claim("a"), _pod("a", "a"), _in_zone(GPU, B), types=(_type(price=9.0), cheap))
    assert [launch.offering.instance_type for launch in plan.launches] == ["m7a.large"]


def test_devices_of_two_zones_are_no_pod_s() -> None:
    """(X1)"""
    claims = _claim("a"), _claim("b", _exactly(of="nic"))
    assert not _plan(*claims, _pod("a", "a", "b"), _in_zone(GPU, A), _in_zone(NIC, B)).launches


def test_a_claim_that_pods_share_takes_one_device() -> None:
    """(E1) One that all nodes can use, so that its pods need not be together."""
    claims = _claim("shared"), _claim("own")
    plan = _plan(*claims, _pod("a", "shared"), _pod("b", "shared"), _pod("c", "own"), _everywhere(2))
    assert not plan.unplaced
    assert len(_plan(*claims, _pod("a", "shared"), _pod("c", "own"), _everywhere(1)).unplaced) == 1


def test_pods_that_share_a_claim_for_a_node_s_device_share_the_node() -> None:
    """(E2) Also where they would be cheaper apart, and where they are of different sizes."""
    pods = _pod("a", "shared", cpu="3"), _pod("b", "shared", cpu="4"), _pod("c", "own")
    types = (_gpus(1, name="m7a.xlarge"), _gpus(1))
    plan = _plan(_claim("shared"), _claim("own"), *pods, types=types)
    assert _together(plan) == [["a", "b"], ["c"]]


@pytest.mark.parametrize("is_going", [True, False])
def test_a_device_whose_pods_all_move_is_free(is_going: bool) -> None:
    """(V1, V2)"""
    live = pod("live", node="n1", owner="rs")
    there = node("n1", node_pool="default", deleted=EPOCH if is_going else None)
    plan = _plan(
        _claim("a"), _pod("a", "a"), live, there, _everywhere(1), _allocated("served", "shared", "device-0", by="live")
    )
    assert (("default/a") in {left.pod for left in plan.unplaced}) != is_going


# --- parts of devices ---

_SHARED = {"capacity": {"memory": {"value": "16Gi"}}, "allowMultipleAllocations": True}


def _parts(*amounts: str, policy: Document | None = None, dimension: str = "memory") -> Packing:
    """A pod for each amount of a device with 16Gi; an empty one asks for none."""
    capacity = {"memory": {"value": "16Gi", "requestPolicy": policy}} if policy else _SHARED["capacity"]
    kind = _type(_slice(*_devices(1, capacity=capacity, allowMultipleAllocations=True)))
    objects = list[Any]()
    for number, amount in enumerate(amounts):
        asked: Document = {"capacity": {"requests": {dimension: amount}}} if amount else {}
        objects += [_claim(f"c{number}", _exactly(**asked)), _pod(f"p{number}", f"c{number}")]
    return _plan(*objects, types=(kind,))


def test_claims_share_a_device_by_its_capacity() -> None:
    """(P1, P2, P3)"""
    assert len(_parts("4Gi", "4Gi", "4Gi").launches) == 1
    assert len(_parts("4Gi", "4Gi", "4Gi", "8Gi").launches) == 2
    assert len(_parts("", "").launches) == 2  # who asks for no amount takes all


@pytest.mark.parametrize(
    ("amount", "policy", "dimension"),
    [
        ("32Gi", None, "memory"),
        ("4Gi", None, "bandwidth"),
        ("12Gi", {"default": "4Gi", "validValues": ["4Gi", "8Gi"]}, "memory"),
        ("12Gi", {"default": "1Gi", "validRange": {"min": "1Gi", "max": "8Gi"}}, "memory"),
    ],
)
def test_an_amount_that_may_not_be_asked_for_is_not_given(amount: str, policy: Document | None, dimension: str) -> None:
    """(P6, P8, P9)"""
    assert not _parts(amount, policy=policy, dimension=dimension).launches


def test_amounts_are_rounded_up_to_valid_ones() -> None:
    """(P10) Three of a default of 4Gi share 16Gi; of 5Gi in steps of 4Gi from 1Gi on each takes 5Gi, of 6Gi 9Gi."""
    assert len(_parts("", "", "", policy={"default": "4Gi"}).launches) == 1
    steps = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "4Gi"}}
    assert len(_parts("5Gi", "5Gi", "5Gi", policy=steps).launches) == 1
    assert len(_parts("6Gi", "6Gi", policy=steps).launches) == 2


def test_a_share_whose_pod_moves_is_free_again() -> None:
    """(P4, partial) Of 16Gi a pod that stays has 4Gi, and one that goes 10Gi."""
    shares = [
        _allocated("live", "shared", "device-0", by="live", consumedCapacity={"memory": "4Gi"}),
        _allocated("going", "shared", "device-0", by="going", consumedCapacity={"memory": "10Gi"}),
        pod("live", node="n1", owner="rs"),
        pod("going", node="n2", owner="rs"),
        node("n1", node_pool="default", cpu="1"),
        node("n2", node_pool="default", deleted=EPOCH),
    ]
    wanted = _claim("a", _exactly(capacity={"requests": {"memory": "10Gi"}}))
    plan = _plan(wanted, _pod("a", "a"), *shares, _everywhere(1, **_SHARED))
    assert "a" not in _why(plan)


def _partitions(budget: Document, profiles: int, each: Document, of: int, counter_set: str = "set") -> Packing:
    def counters(amounts: Document) -> Document:
        return {name: {"value": value} for name, value in amounts.items()}

    consumes = [{"counterSet": counter_set, "counters": counters(each)}]
    kind = _type(
        _slice(sharedCounters=[{"name": "set", "counters": counters(budget)}]),
        _slice(*_devices(profiles, consumesCounters=consumes)),
    )
    objects = [one for n in range(of) for one in (_claim(f"c{n}"), _pod(f"p{n}", f"c{n}"))]
    return _plan(*objects, types=(kind,))


def test_partitions_share_the_counters_of_their_pool() -> None:
    """(K1, K2, K3, K5, K6, K7)"""
    assert len(_partitions({"memory": "80Gi"}, 2, {"memory": "40Gi"}, of=2).launches) == 1
    assert len(_partitions({"memory": "80Gi"}, 3, {"memory": "40Gi"}, of=3).launches) == 2
    two = {"memory": "40Gi", "compute": "50"}
    assert len(_partitions({"memory": "80Gi", "compute": "100"}, 2, two, of=2).launches) == 1
    assert len(_partitions({"memory": "80Gi", "compute": "60"}, 2, two, of=2).launches) == 2
    assert not _partitions({"memory": "40Gi"}, 1, {"memory": "80Gi"}, of=1).launches
    assert not _partitions({"memory": "80Gi"}, 1, {"memory": "40Gi"}, of=1, counter_set="other").launches


def test_who_only_looks_at_devices_takes_none() -> None:
    """adminAccess: a device that another claim has will do (API, ``DeviceRequest``)."""
    looking = _claim("a", _exactly(adminAccess=True)), _claim("b")
    assert len(_plan(*looking, _pod("a", "a"), _pod("b", "b"), types=(_gpus(1),)).launches) == 1


def test_a_tainted_device_is_for_who_tolerates_it() -> None:
    """(API, ``DeviceTaint``)"""
    kind = _type(_slice(*_devices(1, taints=[{"key": "broken", "effect": "NoSchedule"}])))
    tolerating = _exactly(tolerations=[{"key": "broken", "operator": "Exists"}])
    assert not _plan(_claim("a"), _pod("a", "a"), types=(kind,)).launches
    assert _plan(_claim("a", tolerating), _pod("a", "a"), types=(kind,)).launches


def test_a_pod_with_very_many_claims_is_refused_alone() -> None:
    """A search goes deeper by each claim, and Python's stack ends; others are planned all the same."""
    claims = [_claim(f"c{number}", _exactly(adminAccess=True)) for number in range(400)]
    greedy = _pod("greedy", *(claim.metadata.name for claim in claims))
    packing = _plan(*claims, greedy, _claim("a"), _pod("a", "a"), types=(_gpus(1),))
    assert [launch.pods for launch in packing.launches] == [("default/a",)]


@pytest.mark.parametrize(
    "said",
    [
        {"attributes": {"model": {}}},
        {"capacity": {"memory": {"value": "1Gi", "requestPolicy": {"default": "zz"}}}},
        {"capacity": {"memory": {"value": "1Gi", "requestPolicy": {"validRange": {"min": "zz"}}}}},
    ],
)
def test_what_no_api_server_lets_in_ends_no_plan(said: Document) -> None:
    """A file may say anything. A device whose amounts are none is left out; other pods go on."""
    plan = _plan(
        _claim("mine", _exactly()), _pod("claims", "mine"), _pod("other"),
        _everywhere(1, allowMultipleAllocations=True, **said),
    )  # fmt: skip
    assert "other" in [name for names in _together(plan) for name in names]


def test_an_amount_that_is_none_counts_for_nothing_where_it_is_used() -> None:
    """Of a claim that has its device."""
    served = _allocated("theirs", "pool", "device-0", "their-pod", consumedCapacity={"memory": "??"})
    plan = _plan(served, _claim("mine", _exactly()), _pod("claims", "mine"), _pod("other"), _everywhere(2))
    assert "other" in [name for names in _together(plan) for name in names]


# --- as kube-scheduler reads slices and requests (Kubernetes 1.36 `structured/internal/experimental`) ---


def test_a_request_for_several_devices_gets_several() -> None:
    """Not two shares of one; two requests may share it (Karpenter: "should deduct capacity within a single DFS")."""
    half: Document = {"capacity": {"requests": {"memory": "8Gi"}}}
    kind = _type(_slice(*_devices(1, **_SHARED)))
    assert not _plan(_claim("a", _exactly(count=2, **half)), _pod("a", "a"), types=(kind,)).launches
    two = _exactly("one", **half), _exactly("other", **half)
    assert _plan(_claim("a", *two), _pod("a", "a"), types=(kind,)).launches


def test_a_claim_has_a_device_once() -> None:
    """Also who only looks at devices."""
    both = _exactly("one", adminAccess=True), _exactly("other", adminAccess=True)
    assert not _plan(_claim("a", *both), _pod("a", "a"), types=(_gpus(1),)).launches
    assert _plan(_claim("a", *both), _pod("a", "a"), types=(_gpus(2),)).launches


def test_an_amount_is_asked_for_by_the_name_that_the_driver_gives_it() -> None:
    """With its domain only where the driver says that too."""
    asked: Document = {"capacity": {"requests": {f"{GPU}/memory": "8Gi"}}}
    short, full = ({"capacity": {name: {"value": "16Gi"}}} for name in ("memory", f"{GPU}/memory"))
    for said, is_placed in ((short, False), (full, True)):
        kind = _type(_slice(*_devices(1, allowMultipleAllocations=True, **said)))
        assert bool(_plan(_claim("a", _exactly(**asked)), _pod("a", "a"), types=(kind,)).launches) == is_placed


def test_what_claims_share_takes_of_a_counter_once() -> None:
    """(Karpenter: "should track both capacity and counters independently for multi-alloc devices")"""
    counters = {"slots": {"value": "1"}}
    consumes = [{"counterSet": "set", "counters": counters}]
    kind = _type(
        _slice(sharedCounters=[{"name": "set", "counters": counters}]),
        _slice(*_devices(1, **_SHARED, consumesCounters=consumes)),
    )
    asked: Document = {"capacity": {"requests": {"memory": "8Gi"}}}
    objects = [one for n in range(2) for one in (_claim(f"c{n}", _exactly(**asked)), _pod(f"p{n}", f"c{n}"))]
    assert len(_plan(*objects, types=(kind,)).launches) == 1


@pytest.mark.parametrize(
    "slices",
    [
        [_slice(*_devices(1)), _slice(*_devices(1))],
        [_slice({"name": "a"}), _slice({"name": "b"}), _slice({"name": "c"})],
        [
            _slice({"name": "a"}),
            _slice({"name": "b", "consumesCounters": [{"counterSet": "set", "counters": {"slots": {"value": "1"}}}]}),
        ],
        [
            _slice({"name": "a"}, sharedCounters=[{"name": "set"}]),
            _slice({"name": "b"}, sharedCounters=[{"name": "set"}]),
        ],
    ],
    ids=["a name twice", "more slices than it says", "no such counters", "counters twice"],
)
def test_a_pool_that_contradicts_itself_counts_for_nothing(slices: list[ResourceSliceSpec]) -> None:
    """(Karpenter: "should mark a pool as invalid …", "… as incomplete when more slices than ResourceSliceCount")"""
    whole = ResourcePool(name="pool", resource_slice_count=2)
    said = [
        _published(f"s{n}", msgspec.structs.replace(one, pool=whole, node_name="n1")) for n, one in enumerate(slices)
    ]
    plan = _plan(_node("n1"), _claim("a"), _pod("a", "a"), *said)
    assert "a" in _why(plan)
    right = [one for one in said if one.spec.devices[0].name == "a" and not one.spec.shared_counters][:1]
    alone = [msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, pool=ResourcePool())) for one in right]
    assert not alone or "a" not in _why(_plan(_node("n1"), _claim("a"), _pod("a", "a"), *alone))


def test_a_device_that_is_one_node_s_is_no_other_s() -> None:
    """Where a slice says of each device whose it is (perDeviceNodeSelection)."""
    listed: list[Document] = [
        {"name": "mine", "nodeName": "n1"},
        {"name": "other", "nodeName": "n2"},
        {"name": "all", "allNodes": True},
    ]
    said = _published("fabric", _slice(*listed, perDeviceNodeSelection=True))
    for count, is_placed in ((1, True), (2, False)):
        claim = _claim("a", _exactly(count=count))
        assert ("a" not in _why(_plan(_node("n1"), claim, _pod("a", "a"), said))) == is_placed


def test_counters_may_be_in_a_slice_for_all_nodes() -> None:
    """Where devices of one node alone take of them."""
    counters = {"slots": {"value": "1"}}
    takes = [{"counterSet": "set", "counters": counters}]
    of_pool = {"driver": GPU, "pool": {"name": "pool", "resourceSliceCount": 2}}
    shared = {**of_pool, "allNodes": True, "sharedCounters": [{"name": "set", "counters": counters}]}
    own = {**of_pool, "nodeName": "n1", "devices": _devices(2, consumesCounters=takes)}
    said = [_published(f"s{n}", msgspec.convert(one, ResourceSliceSpec)) for n, one in enumerate((shared, own))]
    objects = [one for n in range(2) for one in (_claim(f"c{n}"), _pod(f"p{n}", f"c{n}"))]
    assert len(_why(_plan(_node("n1"), *objects, *said))) == 1


@pytest.mark.parametrize("are_apart", [True, False], ids=["in a slice of their own", "beside the devices"])
def test_counters_may_be_in_a_slice_that_says_of_each_device_whose_it_is(*, are_apart: bool) -> None:
    """Where devices of one node alone take of them, whatever other nodes have in the slice."""
    counters = {"slots": {"value": "1"}}
    takes = [{"counterSet": "set", "counters": counters}]
    mine = [{**one, "nodeName": "n1"} for one in _devices(2, consumesCounters=takes)]
    of_pool = {
        "driver": GPU,
        "pool": {"name": "pool", "resourceSliceCount": 1 + are_apart},
        "perDeviceNodeSelection": True,
    }
    sets = {"sharedCounters": [{"name": "set", "counters": counters}]}
    listed = {**of_pool, "devices": [*mine, {"name": "other", "nodeName": "n2"}]}
    slices = [listed, {**of_pool, **sets}] if are_apart else [{**listed, **sets}]
    said = [_published(f"s{n}", msgspec.convert(one, ResourceSliceSpec)) for n, one in enumerate(slices)]
    objects = [one for n in range(2) for one in (_claim(f"c{n}"), _pod(f"p{n}", f"c{n}"))]
    assert len(_why(_plan(_node("n1"), *objects, *said))) == 1


# --- what users reported of other autoscalers and of kube-scheduler ---


def _share(name: str, **result: Any) -> ResourceClaim:
    """A claim that has a share of the device for everybody, or as the result says."""
    got = {"request": "req", "driver": GPU, "pool": "shared", "device": "device-0", **result}
    users = [{"resource": "pods", "name": "live"}]
    return _claim(name, status={"allocation": {"devices": {"results": [got]}}, "reservedFor": users})


@pytest.mark.parametrize(
    ("said", "result", "is_free"),
    [
        (_SHARED, {"consumedCapacity": {"memory": "8Gi"}, "shareID": "s"}, True),
        (_SHARED, {}, False),
        (_SHARED, {"consumedCapacity": {"memory": "-8Gi"}, "shareID": "s"}, False),
        ({}, {"shareID": "s"}, False),
        ({"allowMultipleAllocations": True}, {"shareID": "s"}, True),
        ({}, {"adminAccess": True}, True),
    ],
    ids=["a share", "all of it once", "a wrong amount", "a share once", "a share of no amount", "a look"],
)
def test_a_device_is_taken_as_it_was_when_it_was_given(said: Document, result: Document, is_free: bool) -> None:
    """Whatever its driver says of sharing by now (kubernetes-sigs/karpenter #3210, #3212, #3213, #3221)."""
    asked: Document = {"capacity": {"requests": {"memory": "8Gi"}}} if "capacity" in said else {}
    objects = _claim("a", _exactly(**asked)), _pod("a", "a"), _share("served", **result)
    assert bool(_together(_plan(*objects, _everywhere(1, **said)))) == is_free


@pytest.mark.parametrize("others", [[], [{"resource": "compositions", "name": "other"}]])
def test_what_somebody_else_than_pods_uses_is_not_free_when_its_pods_leave(others: list[Document]) -> None:
    """(kubernetes-sigs/karpenter #3212)"""
    got = {"request": "req", "driver": GPU, "pool": "shared", "device": "device-0"}
    users = [{"resource": "pods", "name": "live"}, *others]
    served = _claim("served", status={"allocation": {"devices": {"results": [got]}}, "reservedFor": users})
    there = pod("live", node="n1", owner="rs"), node("n1", node_pool="default", deleted=EPOCH)
    plan = _plan(_claim("a"), _pod("a", "a"), *there, served, _everywhere(1))
    assert ("default/a" in {left.pod for left in plan.unplaced}) == bool(others)


def test_counters_of_a_device_that_claims_share_are_not_taken_again() -> None:
    """(kubernetes-sigs/karpenter #3213, kubernetes/kubernetes #140450)"""
    counters = {"slots": {"value": "1"}}
    consumes = [{"counterSet": "set", "counters": counters}]
    of_pool = {"driver": GPU, "pool": {"name": "shared", "resourceSliceCount": 2}, "allNodes": True}
    said = [
        _published(name, msgspec.convert({**of_pool, **more}, ResourceSliceSpec))
        for name, more in {
            "a": {"sharedCounters": [{"name": "set", "counters": counters}]},
            "b": {"devices": _devices(1, **_SHARED, consumesCounters=consumes)},
        }.items()
    ]
    served = _share("served", consumedCapacity={"memory": "8Gi"}, shareID="s")
    asked: Document = {"capacity": {"requests": {"memory": "8Gi"}}}
    assert "a" not in _why(_plan(_claim("a", _exactly(**asked)), _pod("a", "a"), served, *said))


def test_pods_that_share_a_claim_of_several_nodes_have_claims_of_their_own() -> None:
    """(kubernetes/kubernetes #139017: they waited for ever)"""
    shared = _share("fabric", driver=NIC)
    pods = [_pod(f"p{n}", "fabric", f"own{n}") for n in range(2)]
    plan = _plan(shared, *pods, _claim("own0"), _claim("own1"), types=(_gpus(1),))
    assert _together(plan) == [["p0"], ["p1"]]


def test_all_devices_that_take_of_counters_are_given_together() -> None:
    """If there is enough for all of them (kubernetes/kubernetes #138885: the scheduler panicked)."""
    for budget, is_placed in (("2", True), ("1", False)):
        counters = {"slots": {"value": budget}}
        consumes = [{"counterSet": "set", "counters": {"slots": {"value": "1"}}}]
        kind = _type(
            _slice(sharedCounters=[{"name": "set", "counters": counters}]),
            _slice(*_devices(2, consumesCounters=consumes)),
        )
        every = {"name": "req", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
        assert bool(_plan(_claim("a", every), _pod("a", "a"), types=(kind,)).launches) == is_placed


def test_a_way_that_was_given_up_takes_nothing() -> None:
    """Of a shared device whose counters suffice once (kubernetes/kubernetes #140431: what a search had taken and given
    back stayed taken)."""
    counters = {"slots": {"value": "1"}}
    consumes = [{"counterSet": "set", "counters": counters}]
    small = {"attributes": {"size": {"string": "small"}}, "consumesCounters": consumes}
    kind = _type(
        _slice(sharedCounters=[{"name": "set", "counters": counters}]),
        _slice(
            {"name": "shared", **_SHARED, "consumesCounters": consumes, "attributes": {"size": {"string": "large"}}},
            {"name": "own", **small},
        ),
    )
    wants_small = [{"cel": {"expression": f"device.attributes['{GPU}'].size == 'small'"}}]
    two = _exactly("any"), _exactly("small", selectors=wants_small)
    assert not _plan(_claim("a", *two), _pod("a", "a"), types=(kind,)).launches
    assert _plan(_claim("a", _exactly("small", selectors=wants_small)), _pod("a", "a"), types=(kind,)).launches


def test_a_template_of_slices_need_not_say_how_many_there_are() -> None:
    """(kubernetes/autoscaler #10199: pools made for nodes to come were never complete)"""
    slices = (msgspec.structs.replace(_slice(*_devices(1)), pool=ResourcePool(name="p", resource_slice_count=0)),)
    assert _plan(_claim("a"), _pod("a", "a"), types=(_type(*slices),)).launches


def test_a_shared_device_that_is_full_gives_way_to_the_next() -> None:
    """(kubernetes/kubernetes #133705: the scheduler went no further)"""
    asked: Document = {"capacity": {"requests": {"memory": "12Gi"}}}
    there = _claim("a", _exactly(**asked)), _pod("a", "a"), _share("s", consumedCapacity={"memory": "8Gi"}, shareID="s")
    assert not _plan(*there, _everywhere(1, **_SHARED)).launches
    assert _plan(*there, _everywhere(2, **_SHARED)).launches


def test_a_share_of_a_device_keeps_others_from_its_counters() -> None:
    """(kubernetes/kubernetes #139034: counters of a share that a claim had were free for partitions beside it)"""
    counters = {"slots": {"value": "1"}}
    consumes = [{"counterSet": "set", "counters": counters}]
    of_pool = {"driver": GPU, "pool": {"name": "shared", "resourceSliceCount": 2}, "allNodes": True}
    devices = [
        {**_devices(1, **_SHARED)[0], "consumesCounters": consumes},
        {"name": "own", "consumesCounters": consumes},
    ]
    said = [
        _published(name, msgspec.convert({**of_pool, **more}, ResourceSliceSpec))
        for name, more in {
            "a": {"sharedCounters": [{"name": "set", "counters": counters}]},
            "b": {"devices": devices},
        }.items()
    ]
    served = _share("served", consumedCapacity={"memory": "16Gi"}, shareID="s")
    assert _plan(_claim("a"), _pod("a", "a"), *said).launches
    assert not _plan(_claim("a"), _pod("a", "a"), served, *said).launches


@pytest.mark.parametrize(("numas", "is_placed"), [("121", False), ("1213", True)])
def test_all_values_of_one_request_differ(numas: str, is_placed: bool) -> None:
    """(kubernetes/kubernetes #140438, kubernetes-sigs/dra-driver-cpu #62: only the last one counted)"""
    devices = [{"name": f"d{n}", "attributes": {"numa": {"string": numa}}} for n, numa in enumerate(numas)]
    apart = ({"distinctAttribute": f"{GPU}/numa"},)
    plan = _plan(_claim("a", _exactly(count=3), constraints=apart), _pod("a", "a"), types=(_type(_slice(*devices)),))
    assert bool(plan.launches) == is_placed


def test_all_devices_are_one_at_least() -> None:
    """Also as an alternative (kubernetes/kubernetes #129310: pods were bound to nodes without devices)."""
    every = {"deviceClassName": "gpu", "allocationMode": "All"}
    nics = {"name": "nics", "deviceClassName": "nic"}
    either = {"name": "req", "firstAvailable": [{"name": "gpus", **every}, nics]}
    plain, fabric = _type(name="m7a.large"), _type(_slice(*_devices(1), driver=NIC), name="m7a.4xlarge")
    assert not _plan(_claim("a", {"name": "req", "exactly": every}), _pod("a", "a"), types=(plain, fabric)).launches
    plan = _plan(_claim("a", either), _pod("a", "a"), types=(plain, fabric))
    assert [launch.offering.instance_type for launch in plan.launches] == ["m7a.4xlarge"]


def test_where_not_all_are_free_the_next_alternative_counts() -> None:
    """(kubernetes/kubernetes #137347: no alternative was tried)"""
    every = {"name": "all", "deviceClassName": "gpu", "allocationMode": "All"}
    either = {"name": "req", "firstAvailable": [every, {"name": "one", "deviceClassName": "gpu"}]}
    there = _node("n1"), _published("n1", msgspec.structs.replace(_slice(*_devices(2)), node_name="n1"))
    served = _allocated("served", "pool", "device-0", by="live")
    plan = _plan(_claim("a", either), _pod("a", "a"), *there, served)
    assert [one.pods for one in plan.existing] == [("default/a",)]


def test_who_only_looks_needs_no_node_of_its_own() -> None:
    """(kubernetes-sigs/karpenter #3230: a node was bought though all devices that there are would do)"""
    there = _node("n1"), _published("n1", msgspec.structs.replace(_slice(*_devices(1)), node_name="n1"))
    served = _allocated("served", "pool", "device-0", by="live")
    looks = _claim("looks", _exactly(adminAccess=True))
    plan = _plan(looks, _pod("looks", "looks"), _claim("a"), _pod("a", "a"), *there, served, types=(_gpus(1),))
    assert [one.pods for one in plan.existing] == [("default/looks",)]
    assert _together(plan) == [["a"]]


def test_a_claim_that_never_goes_keeps_its_device() -> None:
    """Whose pods are long gone (kubernetes-sigs/dra-driver-nvidia-gpu #725: its finalizer stays)."""
    there = _node("n1"), _published("n1", msgspec.structs.replace(_slice(*_devices(1)), node_name="n1"))
    served = _allocated("served", "pool", "device-0", by="gone")
    zombie = msgspec.structs.replace(served, metadata=ObjectMeta(name="served", deletion_timestamp=EPOCH))
    plan = _plan(_claim("a"), _pod("a", "a"), *there, zombie, types=(_gpus(1),))
    assert (len(plan.existing), len(plan.launches)) == (0, 1)


# --- DaemonSets' claims ---


def _template(name: str, *requests: Document) -> ResourceClaimTemplate:
    said = {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": _asks(*requests)}}
    return msgspec.convert(said, ResourceClaimTemplate)


def _daemons(template: str = "one", **spec: Any) -> DaemonSet:
    return daemon_set(
        "agent", namespace="default", resource_claims=[{"name": "c", "resourceClaimTemplateName": template}], **spec
    )


ONE = _template("one")


def test_a_daemon_set_has_its_devices_on_each_node_to_be_bought() -> None:
    """kube-scheduler gives them to its pod, which comes before the others."""
    three = [_pod(name, "*one") for name in "abc"]
    assert sorted(map(len, _together(_plan(ONE, _daemons(), *three, types=(_gpus(3),))))) == [1, 2]
    assert not _plan(ONE, _daemons(), _pod("a", "*one"), types=(_gpus(1),)).launches


def test_a_daemon_set_that_only_looks_takes_no_device() -> None:
    """Most agents for GPUs ask so (adminAccess)."""
    looking = _template("looking", _exactly(adminAccess=True))
    assert _plan(ONE, looking, _daemons("looking"), _pod("a", "*one"), types=(_gpus(1),)).launches


def test_types_without_devices_for_a_daemon_set_are_bought_all_the_same() -> None:
    """Its pod waits there, as it does on a node with Karpenter."""
    (launch,) = _plan(
        ONE, _daemons(), pod("a"), _pod("b", "*one"), types=(PLAIN, _gpus(2, name="m7a.4xlarge"))
    ).launches
    assert _plan(ONE, _daemons(), pod("a"), types=(PLAIN,)).launches
    assert launch.instance_types == ("m7a.4xlarge",)


def test_a_daemon_set_takes_devices_of_the_nodes_that_it_runs_on_alone() -> None:
    """Here on none that can be bought."""
    elsewhere = _daemons(node_selector={ARCH: "arm64"})
    assert _plan(ONE, elsewhere, _pod("a", "*one"), types=(_gpus(1),)).launches


@pytest.mark.parametrize("initialized", [True, False])
def test_a_daemon_set_whose_pod_is_still_to_come_has_its_devices_on_a_node(initialized: bool) -> None:
    """On a node that is there and on one that is on its way."""
    there = [_node("n1", initialized=initialized), _of_node("n1", 2)]
    plan = _plan(ONE, _daemons(), *there, _pod("a", "*one"), _pod("b", "*one"), types=(_gpus(2),))
    assert [len(placement.pods) for placement in plan.existing] == [1]
    assert len(plan.launches) == 1


def test_a_daemon_set_s_pod_that_runs_has_its_devices_once() -> None:
    """Its claim has them already."""
    running = _pod("agent-1", "*one", node="n1", owner=owner("DaemonSet", "agent"))
    served = _allocated("agent-1-c", "of-n1", "device-0", "agent-1")
    plan = _plan(ONE, _daemons(), running, served, _node("n1"), _of_node("n1", 2), _pod("a", "*one"), types=(_gpus(2),))
    assert [placement.pods for placement in plan.existing] == [("default/a",)]


@pytest.mark.parametrize("template", ["missing", "classless"])
def test_a_daemon_set_whose_claim_cannot_be_read_takes_nothing(template: str) -> None:
    """Its pod waits for the template or the DeviceClass."""
    classless = _template("classless", _exactly(of="nothing"))
    assert _plan(ONE, classless, _daemons(template), _pod("a", "*one"), types=(_gpus(1),)).launches


# --- as kube-scheduler has it, found by asking it and us the same ---


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"bool": True}, {"int": 1}),
        ({"int": 0}, {"bool": False}),
        ({"string": "1"}, {"int": 1}),
        ({"version": "1.0.0+a"}, {"version": "1.0.0+b"}),
    ],
)
def test_values_are_alike_if_they_are_written_alike(one: Document, other: Document) -> None:
    """A number is no truth value, and versions are compared with all that stands in them."""
    kind = _type(_slice(*({"name": f"d{n}", "attributes": {"root": said}} for n, said in enumerate((one, other)))))
    alike, unlike = ({key: f"{GPU}/root"} for key in ("matchAttribute", "distinctAttribute"))
    assert not _plan(_claim("a", _exactly(count=2), constraints=(alike,)), _pod("a", "a"), types=(kind,)).launches
    assert _plan(_claim("a", _exactly(count=2), constraints=(unlike,)), _pod("a", "a"), types=(kind,)).launches


def test_devices_whose_versions_differ_in_their_builds_alone_are_not_alike() -> None:
    """What one of them is not given for, another one may be."""
    versions = ("1.0.0+a", "1.0.0+a", "1.0.0+b")
    kind = _type(_slice(*({"name": f"d{n}", "attributes": {"root": {"version": of}}} for n, of in enumerate(versions))))
    unlike = {"distinctAttribute": f"{GPU}/root"}
    assert _plan(_claim("a", _exactly(count=2), constraints=(unlike,)), _pod("a", "a"), types=(kind,)).launches


_ALL: Document = {"deviceClassName": "gpu", "allocationMode": "All"}
_BROKEN: Document = {"taints": [{"key": "broken", "effect": "NoSchedule"}]}


def test_who_wants_all_devices_wants_the_tainted_ones_too() -> None:
    """And gets none of them without a toleration."""
    kind = _type(_slice({"name": "good"}, {"name": "bad", **_BROKEN}))
    tolerating = {**_ALL, "tolerations": [{"key": "broken", "operator": "Exists"}]}
    assert not _plan(_claim("a", {"name": "req", "exactly": _ALL}), _pod("a", "a"), types=(kind,)).launches
    assert _plan(_claim("a", {"name": "req", "exactly": tolerating}), _pod("a", "a"), types=(kind,)).launches


def test_of_devices_that_claims_share_all_are_those_with_room() -> None:
    """One of two is full: the other one is all that there is."""
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "16Gi"}}}
    full = _allocated("full", "of-n1", "device-0", by="live", shareID="s", consumedCapacity={"memory": "16Gi"})
    slices = _published("of-n1", _slice(*_devices(2, **shared), pool="of-n1", nodeName="n1"))
    live = pod("live", node="n1", owner="rs")
    plan = _plan(_claim("a", {"name": "req", "exactly": _ALL}), full, live, _pod("a", "a"), slices, _node("n1"))
    assert [placement.node for placement in plan.existing] == ["n1"]


@pytest.mark.parametrize(("alternatives", "is_placed"), [(("One", "All"), False), (("One",), True)])
def test_no_alternative_is_tried_while_it_is_not_known_what_all_devices_are(
    alternatives: tuple[str, ...], *, is_placed: bool
) -> None:
    """A pool of the node is not whole, and one of the alternatives asks for all."""
    ways = {"One": {"name": "one", "deviceClassName": "gpu"}, "All": {"name": "all", **_ALL}}
    request = {"name": "req", "firstAvailable": [ways[name] for name in alternatives]}
    part = _slice(*_devices(1), pool="part", nodeName="n1")
    slices = [
        _published("whole", _slice(*_devices(1), pool="whole", nodeName="n1")),
        _published("part", msgspec.structs.replace(part, pool=ResourcePool(name="part", resource_slice_count=2))),
    ]
    assert bool(_plan(_claim("a", request), _pod("a", "a"), *slices, _node("n1")).existing) == is_placed


def test_all_devices_that_may_not_be_together_leave_no_alternative() -> None:
    """The scheduler takes such a claim for a mistake, and ends there."""
    request = {"name": "req", "firstAvailable": [{"name": "all", **_ALL}, {"name": "one", "deviceClassName": "gpu"}]}
    kind = _type(_slice(*({"name": f"d{n}", "attributes": {"root": {"int": n}}} for n in range(2))))
    wanted = _claim("a", request, constraints=({"matchAttribute": f"{GPU}/root"},))
    assert not _plan(wanted, _pod("a", "a"), types=(kind,)).launches


def _zone(zone: str) -> Document:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    return {"nodeSelectorTerms": terms}


def test_devices_of_two_zones_share_counters() -> None:
    """What a claim in one zone takes of them is not there in the other (Karpenter's NonTargetingDevices)."""
    consumes = {"consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": "40Gi"}}}]}
    pool = ResourcePool(name="pool", resource_slice_count=3)
    counters = {"name": "set", "counters": {"memory": {"value": "60Gi"}}}
    slices = [
        _published(f"in-{zone}", msgspec.structs.replace(_slice(device, nodeSelector=_zone(zone)), pool=pool))
        for zone, device in ((A, {"name": "a", **consumes}), (B, {"name": "b", **consumes}))
    ]
    slices.append(
        _published("counters", msgspec.structs.replace(_slice(sharedCounters=[counters], allNodes=True), pool=pool))
    )
    assert _plan(_claim("a"), _pod("a", "a", node_selector={ZONE: B}), *slices).launches
    served = _allocated("served", "pool", "a", by="live")
    assert not _plan(_claim("a"), served, _pod("a", "a", node_selector={ZONE: B}), *slices).launches


def test_all_devices_of_a_node_and_of_several_are_not_given_together() -> None:
    """They are given apart here. Such a pod waits, and its reason says so."""
    plan = _plan(_claim("a", {"name": "req", "exactly": _ALL}), _pod("a", "a"), _everywhere(1), types=(_gpus(1),))
    assert _why(plan) == {"a": "its resource claims ask for all devices, of a node and of several nodes"}


def test_all_devices_of_several_nodes_are_those_of_one_place() -> None:
    """One can be used everywhere, and another one in a zone: there, both are all."""
    plan = _plan(_claim("a", {"name": "req", "exactly": _ALL}), _pod("a", "a"), _everywhere(1), _in_zone(GPU, B))
    assert [launch.offering.zone for launch in plan.launches] == [B]


def test_claims_of_a_pod_leave_each_other_devices_of_several_nodes() -> None:
    """The first would take what only the second can use."""
    devices = [{"name": name, "attributes": {"model": {"string": name}}} for name in ("big", "small")]
    slices = _published("everywhere", _slice(*devices, pool="shared", allNodes=True))
    big = _exactly(selectors=[{"cel": {"expression": f'device.attributes["{GPU}"].model == "big"'}}])
    assert _plan(_claim("any"), _claim("big", big), _pod("a", "any", "big"), slices).launches
