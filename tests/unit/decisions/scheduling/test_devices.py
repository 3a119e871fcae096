"""Pods that claim devices (dynamic resource allocation), as Karpenter's own specs ask for them.

The names in parentheses are those of its specs (`provisioning/dra_test.go`, `disruption/consolidation_dra_test.go`,
core 1.15.0).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.solve import solve
from joinery.objects.karpenter.labels import ARCH, OVERRIDES, ZONE
from joinery.objects.kubernetes.core import DaemonSet, ObjectMeta, PodResourceClaimStatus
from joinery.objects.kubernetes.dynamic_resources import (
    ResourceClaimTemplate,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from joinery.objects.snapshot.offerings import InstanceType
from simulator.builders import EPOCH, daemon_set, node, node_claim, node_pool, owner, pod
from tests.unit.decisions.scheduling.device_claims import (
    CLASSES,
    GPU,
    NIC,
    PLAIN,
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
    slice_of_node,
    slice_of_zone,
    some_devices,
    spec_of,
    type_with,
    type_with_gpus,
    why_left,
)
from tests.unit.decisions.verification.plans import A, B, problem

# --- nodes to be bought ---


def test_only_types_with_the_devices_are_bought() -> None:
    """(A1, A2) Though others are cheaper."""
    plan = plan_of(claim_for("a"), claiming_pod("a", "a"), types=(type_with_gpus(1), type_with(name="m7a.large")))
    assert [launch.instance_types for launch in plan.launches] == [("m7a.2xlarge",)]


def test_a_claim_made_from_a_template_counts_before_it_is_made() -> None:
    """(A4) In a file there is nobody who makes it."""
    template = msgspec.convert(
        {"metadata": {"name": "one", "namespace": "default"}, "spec": {"spec": spec_of()}}, ResourceClaimTemplate
    )
    plan = plan_of(
        template,
        claiming_pod("a", "*one"),
        claiming_pod("b", "*one"),
        claiming_pod("c", "*one"),
        types=(type_with_gpus(2),),
    )
    assert sorted(map(len, pods_together(plan))) == [1, 2]


def test_pods_share_a_node_while_it_has_devices() -> None:
    """(B1, B2)"""
    three = [
        claim_for("a"),
        claim_for("b"),
        claim_for("c"),
        claiming_pod("a", "a"),
        claiming_pod("b", "b"),
        claiming_pod("c", "c"),
    ]
    assert sorted(map(len, pods_together(plan_of(*three, types=(type_with_gpus(2),))))) == [1, 2]
    assert len(plan_of(*three, types=(type_with_gpus(3),)).launches) == 1
    assert len(plan_of(*three, types=(type_with_gpus(1),)).launches) == 3


def test_all_devices_of_a_node_are_one_pod_s() -> None:
    """(F1)"""
    all_of_them = {"name": "req", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    plan = plan_of(
        claim_for("a", all_of_them),
        claim_for("b"),
        claiming_pod("a", "a"),
        claiming_pod("b", "b"),
        types=(type_with_gpus(3),),
    )
    assert pods_together(plan) == [["a"], ["b"]]


@pytest.mark.parametrize(("roots", "is_placed"), [(("x", "x"), True), (("x", "y"), False)])
def test_devices_match_where_a_constraint_says_so(roots: tuple[str, str], is_placed: bool) -> None:
    """(F2) Two requests for devices behind one root, which there may be or not."""
    devices = [{"name": root + str(n), "attributes": {"root": {"string": root}}} for n, root in enumerate(roots)]
    wanted = claim_for(
        "a", exactly_asked("one"), exactly_asked("two"), constraints=({"matchAttribute": f"{GPU}/root"},)
    )
    plan = plan_of(wanted, claiming_pod("a", "a"), types=(type_with(slice_of(*devices)),))
    assert bool(plan.launches) == is_placed


def test_each_type_of_a_launch_has_roots_of_its_own() -> None:
    """EC2 may choose any of them, and each is asked by itself."""

    def rooted(name: str) -> InstanceType:
        return type_with(slice_of(*some_devices(2, attributes={"root": {"string": name}})), name=name)

    wanted = claim_for("a", exactly_asked(count=2), constraints=({"matchAttribute": f"{GPU}/root"},))
    (launch,) = plan_of(wanted, claiming_pod("a", "a"), types=(rooted("m7a.xlarge"), rooted("m7i.xlarge"))).launches
    assert len(launch.instance_types) == 2


def test_a_value_that_only_the_node_knows_is_one_for_all_of_its_devices() -> None:
    """Karpenter's AttributeBindings: the version of the driver is not known, and matches itself."""
    wanted = claim_for("a", exactly_asked(count=2), constraints=({"matchAttribute": f"{GPU}/driver"},))
    bound = type_with(slice_of(*some_devices(2, attributes={"driver": {"onNode": ""}})))
    assert plan_of(wanted, claiming_pod("a", "a"), types=(bound,)).launches
    assert not plan_of(wanted, claiming_pod("a", "a"), types=(type_with_gpus(2),)).launches


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
    objects = [claim_for("a", first), claim_for("b", first), claiming_pod("a", "a"), claiming_pod("b", "b")]
    assert len(plan_of(*objects, types=(type_with_gpus(there),)).launches) == launches


def test_claims_of_two_drivers_are_served_together() -> None:
    """(G1)"""
    both = type_with(slice_of(*some_devices(1)), slice_of(*some_devices(1), driver=NIC))
    claims = claim_for("a"), claim_for("b", exactly_asked(of="nic"))
    assert plan_of(*claims, claiming_pod("a", "a", "b"), types=(both,)).launches
    assert not plan_of(*claims, claiming_pod("a", "a", "b"), types=(type_with_gpus(1),)).launches


# --- pods that wait ---


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ((claiming_pod("a", "gone"),), "its resource claim c0: there is no ResourceClaim default/gone"),
        ((claiming_pod("a", "*gone"),), "its resource claim c0: there is no ResourceClaimTemplate default/gone"),
        (
            (claim_for("a", exactly_asked(of="other")), claiming_pod("a", "a")),
            "its resource claim c0: request req: there is no DeviceClass other",
        ),
        (
            (claim_for("a", exactly_asked(selectors=[{"cel": {"expression": "device.x("}}])), claiming_pod("a", "a")),
            "its resource claim c0: request req: the selector device.x(: it ends too early",
        ),
        (
            (
                claim_for(
                    "a", exactly_asked(selectors=[{"cel": {"expression": f"device.driver == '{'x' * 5000}' &&"}}])
                ),
                claiming_pod("a", "a"),
            ),
            f"its resource claim c0: request req: the selector device.driver == '{'x' * 142}...: it ends too early",
        ),
        (
            (claim_for("a", exactly_asked(count=33)), claiming_pod("a", "a")),
            "its resource claim c0: it asks for 33 devices, and a claim may have 32",
        ),
        (
            (claim_for("a", exactly_asked(count=3)), claiming_pod("a", "a")),
            "claim c0, request req: it asks for 3 devices, and no instance type that it allows has more than 2",
        ),
        (
            (claim_for("a", exactly_asked(of="nic")), claiming_pod("a", "a")),
            "claim c0, request req: no device of the instance types that it allows meets the selector "
            'device.driver == "nic.example.com"',
        ),
    ],
)
def test_a_pod_that_waits_is_told_why(objects: tuple[Any, ...], message: str) -> None:
    """(U1, U2, U3)"""
    plan = plan_of(*objects, types=(type_with_gpus(2),))
    assert not plan.launches
    assert why_left(plan) == {"a": message}


def test_who_has_no_devices_to_offer_says_so() -> None:
    """(U2)"""
    why = "none of the 1 instance types that it allows has devices for the pod's claims"
    assert why_left(plan_of(claim_for("a"), claiming_pod("a", "a"))) == {"a": why}


def test_devices_of_types_that_a_default_leaves_out_are_none_to_offer() -> None:
    """What the NodePool lists holds for a pod that chooses nothing else, and for the reason too."""
    pool = node_pool(requirements=[f"{ARCH}=amd64"])
    pool.metadata.annotations[OVERRIDES] = "true"
    types = (PLAIN, type_with_gpus(1, name="m7g.2xlarge", arch="arm64"))
    waiting = solve(problem(pool, *CLASSES, claim_for("a"), claiming_pod("a", "a"), types=types))
    assert why_left(waiting) == {"a": "none of the 1 instance types that it allows has devices for the pod's claims"}


def test_a_claim_that_was_not_needed_asks_for_nothing() -> None:
    """(U4) Its status says that no claim was made."""
    bare = claiming_pod("a", "*gone")
    status = msgspec.structs.replace(bare.status, resource_claim_statuses=[PodResourceClaimStatus(name="c0")])
    assert plan_of(msgspec.structs.replace(bare, status=status)).launches


def test_a_claim_that_is_being_deleted_serves_nobody() -> None:
    """Not even with devices: kube-scheduler binds no pod that uses it (`foreachPodResourceClaim`)."""
    leaving = claim_for("a")
    leaving = msgspec.structs.replace(
        leaving, metadata=msgspec.structs.replace(leaving.metadata, deletion_timestamp=EPOCH)
    )
    why = {"a": "its resource claim c0: the ResourceClaim default/a is being deleted"}
    assert why_left(plan_of(leaving, claiming_pod("a", "a"), types=(type_with_gpus(1),))) == why
    has = allocated_claim("a", "of-n1", "device-0", by="a")
    has = msgspec.structs.replace(has, metadata=leaving.metadata)
    assert why_left(plan_of(has, claiming_pod("a", "a"), node_of_pool("n1"), slice_of_node("n1"))) == why


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
    made = claim_for("made")
    owned = msgspec.convert({"name": "made", "namespace": "default", "ownerReferences": owners}, ObjectMeta)
    asks = claiming_pod("a", "*template", uid="")
    status = [PodResourceClaimStatus(name="c0", resource_claim_name="made")]
    asks = msgspec.structs.replace(asks, status=msgspec.structs.replace(asks.status, resource_claim_statuses=status))
    assert why_left(plan_of(msgspec.structs.replace(made, metadata=owned), asks, types=(type_with_gpus(1),))) == left


@pytest.mark.parametrize(
    ("count", "left"), [(0, {}), (-1, {"a": "its resource claim c0: request req: it asks for -1 devices"})]
)
def test_a_count_of_none_is_the_api_server_s_default(count: int, left: Mapping[str, str]) -> None:
    """Files may have what no API server has let in."""
    assert (
        why_left(
            plan_of(claim_for("a", exactly_asked(count=count)), claiming_pod("a", "a"), types=(type_with_gpus(1),))
        )
        == left
    )


def test_devices_of_another_architecture_are_none() -> None:
    """(X3)"""
    types = (type_with_gpus(1, arch="arm64"), type_with(name="m7a.large"))
    assert not plan_of(claim_for("a"), claiming_pod("a", "a", node_selector={ARCH: "amd64"}), types=types).launches


def test_pods_without_claims_are_planned_beside_those_with_some() -> None:
    """(R1)"""
    assert len(plan_of(claim_for("a"), claiming_pod("a", "a"), pod("b"), types=(type_with_gpus(1),)).unplaced) == 0


def test_a_device_that_another_pod_of_the_plan_gets_is_lacking() -> None:
    """In a cluster that buys nothing."""
    there = node_of_pool("n1"), slice_of_node("n1")
    claims = claim_for("a"), claim_for("b"), claiming_pod("a", "a"), claiming_pod("b", "b")
    (left,) = solve(problem(*CLASSES, *there, *claims)).unplaced
    assert left.reasons[-1].message == "the one existing node has too few devices for its claims"


# --- nodes that exist ---


def test_a_node_s_devices_are_used_before_one_is_bought() -> None:
    """(C1, C2)"""
    plan = plan_of(
        claim_for("a"), claiming_pod("a", "a"), node_of_pool("n1"), slice_of_node("n1"), types=(type_with_gpus(1),)
    )
    assert [(one.node, one.pods) for one in plan.existing] == [("n1", ("default/a",))]


def test_a_device_that_a_claim_has_is_no_other_s() -> None:
    """(H1 of several runs)"""
    served = allocated_claim("served", "of-n1", "device-0", by="web")
    plan = plan_of(
        claim_for("a"),
        claiming_pod("a", "a"),
        served,
        node_of_pool("n1"),
        slice_of_node("n1"),
        types=(type_with_gpus(1),),
    )
    assert pods_together(plan) == [["a"]]


def test_a_claim_with_its_device_binds_its_pods_to_where_that_is() -> None:
    """(H2 of several runs) The allocation names the node by its name, not by a label."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]
    served = allocated_claim("served", "of-n2", "device-0", by="web", nodeSelector={"nodeSelectorTerms": terms})
    nodes = [node_of_pool("n1"), node_of_pool("n2"), slice_of_node("n1"), slice_of_node("n2")]
    assert [
        one.node for one in plan_of(served, claiming_pod("b", "served"), *nodes, types=(type_with_gpus(1),)).existing
    ] == ["n2"]


@pytest.mark.parametrize("slices", [(), (slice_of_node("n1"),)])
def test_a_node_that_is_not_initialized_has_what_its_type_says(slices: tuple[ResourceSlice, ...]) -> None:
    """(S1, I1) What it publishes by now is not counted beside that."""
    claims = [claim_for("a"), claim_for("b"), claiming_pod("a", "a"), claiming_pod("b", "b")]
    claim = node_claim("c1", conditions=("Launched",), instance_type="m7a.2xlarge")
    plan = plan_of(*claims, claim, *slices, types=(type_with_gpus(1),))
    assert [len(one.pods) for one in plan.existing] == [1]
    assert len(plan.launches) == 1


def test_slices_of_a_node_that_is_not_there_are_nobody_s() -> None:
    """(S2)"""
    plan = plan_of(claim_for("a"), claiming_pod("a", "a"), slice_of_node("gone"), types=(type_with_gpus(1),))
    assert pods_together(plan) == [["a"]]


def test_a_pool_that_is_not_complete_or_outdated_counts_for_nothing() -> None:
    """Of several generations the newest, and that once all of it is there (API, ``ResourcePool``)."""
    half = msgspec.convert({"name": "p", "resourceSliceCount": 2}, ResourcePool)
    of_two = published_slice("half", msgspec.structs.replace(slice_of(*some_devices(1), nodeName="n1"), pool=half))
    assert plan_of(
        claim_for("a"), claiming_pod("a", "a"), node_of_pool("n1"), of_two, types=(type_with_gpus(1),)
    ).launches


# --- devices of several nodes ---


def test_devices_of_a_zone_bind_a_node_to_it() -> None:
    """(D1, D2)"""
    claims = claim_for("a"), claim_for("b", exactly_asked(of="nic"))
    plan = plan_of(*claims, claiming_pod("a", "a", "b"), slice_of_zone(GPU, B), slice_of_zone(NIC, B))
    assert [launch.offering.zone for launch in plan.launches] == [B]


def test_a_free_device_of_a_node_is_as_good_as_one_of_a_zone() -> None:
    """No node is bought in a zone with a device while one elsewhere has room and a device of its own."""
    there = (
        node_of_pool("n1", zone=A),
        published_slice("n1", msgspec.structs.replace(slice_of(*some_devices(1)), node_name="n1")),
    )
    plan = plan_of(claim_for("a"), claiming_pod("a", "a"), slice_of_zone(GPU, B), *there)
    assert (len(plan.existing), len(plan.launches)) == (1, 0)
    both = plan_of(
        claim_for("a"), claim_for("b"), claiming_pod("a", "a"), claiming_pod("b", "b"), slice_of_zone(GPU, B), *there
    )
    assert not both.unplaced


def test_a_device_of_a_zone_spares_a_dear_type() -> None:
    """A node without devices costs less there than one with a device of its own."""
    dear = type_with_gpus(1, price=9.0)
    plan = plan_of(
        claim_for("a"), claiming_pod("a", "a"), slice_of_zone(GPU, B), types=(dear, type_with(name="m7a.large"))
    )
    assert [(launch.offering.instance_type, launch.offering.zone) for launch in plan.launches] == [("m7a.large", B)]
    cheap = type_with(slice_of(*some_devices(1)), name="m7a.large", price=0.01)
    plan = plan_of(claim_for("a"), claiming_pod("a", "a"), slice_of_zone(GPU, B), types=(type_with(price=9.0), cheap))
    assert [launch.offering.instance_type for launch in plan.launches] == ["m7a.large"]


def test_devices_of_two_zones_are_no_pod_s() -> None:
    """(X1)"""
    claims = claim_for("a"), claim_for("b", exactly_asked(of="nic"))
    assert not plan_of(*claims, claiming_pod("a", "a", "b"), slice_of_zone(GPU, A), slice_of_zone(NIC, B)).launches


def test_a_claim_that_pods_share_takes_one_device() -> None:
    """(E1) One that all nodes can use, so that its pods need not be together."""
    claims = claim_for("shared"), claim_for("own")
    plan = plan_of(
        *claims, claiming_pod("a", "shared"), claiming_pod("b", "shared"), claiming_pod("c", "own"), slice_of_all(2)
    )
    assert not plan.unplaced
    assert len(plan_of(*claims, claiming_pod("a", "shared"), claiming_pod("c", "own"), slice_of_all(1)).unplaced) == 1


def test_pods_that_share_a_claim_for_a_node_s_device_share_the_node() -> None:
    """(E2) Also where they would be cheaper apart, and where they are of different sizes."""
    pods = claiming_pod("a", "shared", cpu="3"), claiming_pod("b", "shared", cpu="4"), claiming_pod("c", "own")
    types = (type_with_gpus(1, name="m7a.xlarge"), type_with_gpus(1))
    plan = plan_of(claim_for("shared"), claim_for("own"), *pods, types=types)
    assert pods_together(plan) == [["a", "b"], ["c"]]


@pytest.mark.parametrize("is_going", [True, False])
def test_a_device_whose_pods_all_move_is_free(is_going: bool) -> None:
    """(V1, V2)"""
    live = pod("live", node="n1", owner="rs")
    there = node("n1", node_pool="default", deleted=EPOCH if is_going else None)
    plan = plan_of(
        claim_for("a"),
        claiming_pod("a", "a"),
        live,
        there,
        slice_of_all(1),
        allocated_claim("served", "shared", "device-0", by="live"),
    )
    assert (("default/a") in {left.pod for left in plan.unplaced}) != is_going


# --- parts of devices ---


def _parts(*amounts: str, policy: Document | None = None, dimension: str = "memory") -> Packing:
    """A pod for each amount of a device with 16Gi; an empty one asks for none."""
    capacity = {"memory": {"value": "16Gi", "requestPolicy": policy}} if policy else SHARED["capacity"]
    kind = type_with(slice_of(*some_devices(1, capacity=capacity, allowMultipleAllocations=True)))
    objects = list[Any]()
    for number, amount in enumerate(amounts):
        asked: Document = {"capacity": {"requests": {dimension: amount}}} if amount else {}
        objects += [claim_for(f"c{number}", exactly_asked(**asked)), claiming_pod(f"p{number}", f"c{number}")]
    return plan_of(*objects, types=(kind,))


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
        allocated_claim("live", "shared", "device-0", by="live", consumedCapacity={"memory": "4Gi"}),
        allocated_claim("going", "shared", "device-0", by="going", consumedCapacity={"memory": "10Gi"}),
        pod("live", node="n1", owner="rs"),
        pod("going", node="n2", owner="rs"),
        node("n1", node_pool="default", cpu="1"),
        node("n2", node_pool="default", deleted=EPOCH),
    ]
    wanted = claim_for("a", exactly_asked(capacity={"requests": {"memory": "10Gi"}}))
    plan = plan_of(wanted, claiming_pod("a", "a"), *shares, slice_of_all(1, **SHARED))
    assert "a" not in why_left(plan)


def _partitions(budget: Document, profiles: int, each: Document, of: int, counter_set: str = "set") -> Packing:
    def counters(amounts: Document) -> Document:
        return {name: {"value": value} for name, value in amounts.items()}

    consumes = [{"counterSet": counter_set, "counters": counters(each)}]
    kind = type_with(
        slice_of(sharedCounters=[{"name": "set", "counters": counters(budget)}]),
        slice_of(*some_devices(profiles, consumesCounters=consumes)),
    )
    objects = [one for n in range(of) for one in (claim_for(f"c{n}"), claiming_pod(f"p{n}", f"c{n}"))]
    return plan_of(*objects, types=(kind,))


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
    looking = claim_for("a", exactly_asked(adminAccess=True)), claim_for("b")
    assert (
        len(plan_of(*looking, claiming_pod("a", "a"), claiming_pod("b", "b"), types=(type_with_gpus(1),)).launches) == 1
    )


def test_a_tainted_device_is_for_who_tolerates_it() -> None:
    """(API, ``DeviceTaint``)"""
    kind = type_with(slice_of(*some_devices(1, taints=[{"key": "broken", "effect": "NoSchedule"}])))
    tolerating = exactly_asked(tolerations=[{"key": "broken", "operator": "Exists"}])
    assert not plan_of(claim_for("a"), claiming_pod("a", "a"), types=(kind,)).launches
    assert plan_of(claim_for("a", tolerating), claiming_pod("a", "a"), types=(kind,)).launches


def test_a_pod_with_very_many_claims_is_refused_alone() -> None:
    """A search goes deeper by each claim, and Python's stack ends; others are planned all the same."""
    claims = [claim_for(f"c{number}", exactly_asked(adminAccess=True)) for number in range(400)]
    greedy = claiming_pod("greedy", *(claim.metadata.name for claim in claims))
    packing = plan_of(*claims, greedy, claim_for("a"), claiming_pod("a", "a"), types=(type_with_gpus(1),))
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
    plan = plan_of(
        claim_for("mine", exactly_asked()), claiming_pod("claims", "mine"), claiming_pod("other"),
        slice_of_all(1, allowMultipleAllocations=True, **said),
    )  # fmt: skip
    assert "other" in [name for names in pods_together(plan) for name in names]


def test_an_amount_that_is_none_counts_for_nothing_where_it_is_used() -> None:
    """Of a claim that has its device."""
    served = allocated_claim("theirs", "pool", "device-0", "their-pod", consumedCapacity={"memory": "??"})
    plan = plan_of(
        served,
        claim_for("mine", exactly_asked()),
        claiming_pod("claims", "mine"),
        claiming_pod("other"),
        slice_of_all(2),
    )
    assert "other" in [name for names in pods_together(plan) for name in names]


# --- as kube-scheduler reads slices and requests (Kubernetes 1.36 `structured/internal/experimental`) ---


def test_a_request_for_several_devices_gets_several() -> None:
    """Not two shares of one; two requests may share it (Karpenter: "should deduct capacity within a single DFS")."""
    half: Document = {"capacity": {"requests": {"memory": "8Gi"}}}
    kind = type_with(slice_of(*some_devices(1, **SHARED)))
    assert not plan_of(claim_for("a", exactly_asked(count=2, **half)), claiming_pod("a", "a"), types=(kind,)).launches
    two = exactly_asked("one", **half), exactly_asked("other", **half)
    assert plan_of(claim_for("a", *two), claiming_pod("a", "a"), types=(kind,)).launches


def test_a_claim_has_a_device_once() -> None:
    """Also who only looks at devices."""
    both = exactly_asked("one", adminAccess=True), exactly_asked("other", adminAccess=True)
    assert not plan_of(claim_for("a", *both), claiming_pod("a", "a"), types=(type_with_gpus(1),)).launches
    assert plan_of(claim_for("a", *both), claiming_pod("a", "a"), types=(type_with_gpus(2),)).launches


def test_an_amount_is_asked_for_by_the_name_that_the_driver_gives_it() -> None:
    """With its domain only where the driver says that too."""
    asked: Document = {"capacity": {"requests": {f"{GPU}/memory": "8Gi"}}}
    short, full = ({"capacity": {name: {"value": "16Gi"}}} for name in ("memory", f"{GPU}/memory"))
    for said, is_placed in ((short, False), (full, True)):
        kind = type_with(slice_of(*some_devices(1, allowMultipleAllocations=True, **said)))
        assert (
            bool(plan_of(claim_for("a", exactly_asked(**asked)), claiming_pod("a", "a"), types=(kind,)).launches)
            == is_placed
        )


def test_what_claims_share_takes_of_a_counter_once() -> None:
    """(Karpenter: "should track both capacity and counters independently for multi-alloc devices")"""
    counters = {"slots": {"value": "1"}}
    consumes = [{"counterSet": "set", "counters": counters}]
    kind = type_with(
        slice_of(sharedCounters=[{"name": "set", "counters": counters}]),
        slice_of(*some_devices(1, **SHARED, consumesCounters=consumes)),
    )
    asked: Document = {"capacity": {"requests": {"memory": "8Gi"}}}
    objects = [
        one for n in range(2) for one in (claim_for(f"c{n}", exactly_asked(**asked)), claiming_pod(f"p{n}", f"c{n}"))
    ]
    assert len(plan_of(*objects, types=(kind,)).launches) == 1


@pytest.mark.parametrize(
    "slices",
    [
        [slice_of(*some_devices(1)), slice_of(*some_devices(1))],
        [slice_of({"name": "a"}), slice_of({"name": "b"}), slice_of({"name": "c"})],
        [
            slice_of({"name": "a"}),
            slice_of({"name": "b", "consumesCounters": [{"counterSet": "set", "counters": {"slots": {"value": "1"}}}]}),
        ],
        [
            slice_of({"name": "a"}, sharedCounters=[{"name": "set"}]),
            slice_of({"name": "b"}, sharedCounters=[{"name": "set"}]),
        ],
    ],
    ids=["a name twice", "more slices than it says", "no such counters", "counters twice"],
)
def test_a_pool_that_contradicts_itself_counts_for_nothing(slices: list[ResourceSliceSpec]) -> None:
    """(Karpenter: "should mark a pool as invalid …", "… as incomplete when more slices than ResourceSliceCount")"""
    whole = ResourcePool(name="pool", resource_slice_count=2)
    said = [
        published_slice(f"s{n}", msgspec.structs.replace(one, pool=whole, node_name="n1"))
        for n, one in enumerate(slices)
    ]
    plan = plan_of(node_of_pool("n1"), claim_for("a"), claiming_pod("a", "a"), *said)
    assert "a" in why_left(plan)
    right = [one for one in said if one.spec.devices[0].name == "a" and not one.spec.shared_counters][:1]
    alone = [msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, pool=ResourcePool())) for one in right]
    assert not alone or "a" not in why_left(plan_of(node_of_pool("n1"), claim_for("a"), claiming_pod("a", "a"), *alone))


def test_a_device_that_is_one_node_s_is_no_other_s() -> None:
    """Where a slice says of each device whose it is (perDeviceNodeSelection)."""
    listed: list[Document] = [
        {"name": "mine", "nodeName": "n1"},
        {"name": "other", "nodeName": "n2"},
        {"name": "all", "allNodes": True},
    ]
    said = published_slice("fabric", slice_of(*listed, perDeviceNodeSelection=True))
    for count, is_placed in ((1, True), (2, False)):
        claim = claim_for("a", exactly_asked(count=count))
        assert ("a" not in why_left(plan_of(node_of_pool("n1"), claim, claiming_pod("a", "a"), said))) == is_placed


def test_counters_may_be_in_a_slice_for_all_nodes() -> None:
    """Where devices of one node alone take of them."""
    counters = {"slots": {"value": "1"}}
    takes = [{"counterSet": "set", "counters": counters}]
    of_pool = {"driver": GPU, "pool": {"name": "pool", "resourceSliceCount": 2}}
    shared = {**of_pool, "allNodes": True, "sharedCounters": [{"name": "set", "counters": counters}]}
    own = {**of_pool, "nodeName": "n1", "devices": some_devices(2, consumesCounters=takes)}
    said = [published_slice(f"s{n}", msgspec.convert(one, ResourceSliceSpec)) for n, one in enumerate((shared, own))]
    objects = [one for n in range(2) for one in (claim_for(f"c{n}"), claiming_pod(f"p{n}", f"c{n}"))]
    assert len(why_left(plan_of(node_of_pool("n1"), *objects, *said))) == 1


@pytest.mark.parametrize("are_apart", [True, False], ids=["in a slice of their own", "beside the devices"])
def test_counters_may_be_in_a_slice_that_says_of_each_device_whose_it_is(*, are_apart: bool) -> None:
    """Where devices of one node alone take of them, whatever other nodes have in the slice."""
    counters = {"slots": {"value": "1"}}
    takes = [{"counterSet": "set", "counters": counters}]
    mine = [{**one, "nodeName": "n1"} for one in some_devices(2, consumesCounters=takes)]
    of_pool = {
        "driver": GPU,
        "pool": {"name": "pool", "resourceSliceCount": 1 + are_apart},
        "perDeviceNodeSelection": True,
    }
    sets = {"sharedCounters": [{"name": "set", "counters": counters}]}
    listed = {**of_pool, "devices": [*mine, {"name": "other", "nodeName": "n2"}]}
    slices = [listed, {**of_pool, **sets}] if are_apart else [{**listed, **sets}]
    said = [published_slice(f"s{n}", msgspec.convert(one, ResourceSliceSpec)) for n, one in enumerate(slices)]
    objects = [one for n in range(2) for one in (claim_for(f"c{n}"), claiming_pod(f"p{n}", f"c{n}"))]
    assert len(why_left(plan_of(node_of_pool("n1"), *objects, *said))) == 1


# --- DaemonSets' claims ---


def _template(name: str, *requests: Document) -> ResourceClaimTemplate:
    said = {"metadata": {"name": name, "namespace": "default"}, "spec": {"spec": spec_of(*requests)}}
    return msgspec.convert(said, ResourceClaimTemplate)


def _daemons(template: str = "one", **spec: Any) -> DaemonSet:
    return daemon_set(
        "agent", namespace="default", resource_claims=[{"name": "c", "resourceClaimTemplateName": template}], **spec
    )


ONE = _template("one")


def test_a_daemon_set_has_its_devices_on_each_node_to_be_bought() -> None:
    """kube-scheduler gives them to its pod, which comes before the others."""
    three = [claiming_pod(name, "*one") for name in "abc"]
    assert sorted(map(len, pods_together(plan_of(ONE, _daemons(), *three, types=(type_with_gpus(3),))))) == [1, 2]
    assert not plan_of(ONE, _daemons(), claiming_pod("a", "*one"), types=(type_with_gpus(1),)).launches


def test_a_daemon_set_that_only_looks_takes_no_device() -> None:
    """Most agents for GPUs ask so (adminAccess)."""
    looking = _template("looking", exactly_asked(adminAccess=True))
    assert plan_of(ONE, looking, _daemons("looking"), claiming_pod("a", "*one"), types=(type_with_gpus(1),)).launches


def test_types_without_devices_for_a_daemon_set_are_bought_all_the_same() -> None:
    """Its pod waits there, as it does on a node with Karpenter."""
    (launch,) = plan_of(
        ONE, _daemons(), pod("a"), claiming_pod("b", "*one"), types=(PLAIN, type_with_gpus(2, name="m7a.4xlarge"))
    ).launches
    assert plan_of(ONE, _daemons(), pod("a"), types=(PLAIN,)).launches
    assert launch.instance_types == ("m7a.4xlarge",)


def test_a_daemon_set_takes_devices_of_the_nodes_that_it_runs_on_alone() -> None:
    """Here on none that can be bought."""
    elsewhere = _daemons(node_selector={ARCH: "arm64"})
    assert plan_of(ONE, elsewhere, claiming_pod("a", "*one"), types=(type_with_gpus(1),)).launches


@pytest.mark.parametrize("initialized", [True, False])
def test_a_daemon_set_whose_pod_is_still_to_come_has_its_devices_on_a_node(initialized: bool) -> None:
    """On a node that is there and on one that is on its way."""
    there = [node_of_pool("n1", initialized=initialized), slice_of_node("n1", 2)]
    plan = plan_of(
        ONE, _daemons(), *there, claiming_pod("a", "*one"), claiming_pod("b", "*one"), types=(type_with_gpus(2),)
    )
    assert [len(placement.pods) for placement in plan.existing] == [1]
    assert len(plan.launches) == 1


def test_a_daemon_set_s_pod_that_runs_has_its_devices_once() -> None:
    """Its claim has them already."""
    running = claiming_pod("agent-1", "*one", node="n1", owner=owner("DaemonSet", "agent"))
    served = allocated_claim("agent-1-c", "of-n1", "device-0", "agent-1")
    plan = plan_of(
        ONE,
        _daemons(),
        running,
        served,
        node_of_pool("n1"),
        slice_of_node("n1", 2),
        claiming_pod("a", "*one"),
        types=(type_with_gpus(2),),
    )
    assert [placement.pods for placement in plan.existing] == [("default/a",)]


@pytest.mark.parametrize("template", ["missing", "classless"])
def test_a_daemon_set_whose_claim_cannot_be_read_takes_nothing(template: str) -> None:
    """Its pod waits for the template or the DeviceClass."""
    classless = _template("classless", exactly_asked(of="nothing"))
    assert plan_of(ONE, classless, _daemons(template), claiming_pod("a", "*one"), types=(type_with_gpus(1),)).launches


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
    kind = type_with(
        slice_of(*({"name": f"d{n}", "attributes": {"root": said}} for n, said in enumerate((one, other))))
    )
    alike, unlike = ({key: f"{GPU}/root"} for key in ("matchAttribute", "distinctAttribute"))
    assert not plan_of(
        claim_for("a", exactly_asked(count=2), constraints=(alike,)), claiming_pod("a", "a"), types=(kind,)
    ).launches
    assert plan_of(
        claim_for("a", exactly_asked(count=2), constraints=(unlike,)), claiming_pod("a", "a"), types=(kind,)
    ).launches


def test_devices_whose_versions_differ_in_their_builds_alone_are_not_alike() -> None:
    """What one of them is not given for, another one may be."""
    versions = ("1.0.0+a", "1.0.0+a", "1.0.0+b")
    kind = type_with(
        slice_of(*({"name": f"d{n}", "attributes": {"root": {"version": of}}} for n, of in enumerate(versions)))
    )
    unlike = {"distinctAttribute": f"{GPU}/root"}
    assert plan_of(
        claim_for("a", exactly_asked(count=2), constraints=(unlike,)), claiming_pod("a", "a"), types=(kind,)
    ).launches


_ALL: Document = {"deviceClassName": "gpu", "allocationMode": "All"}
_BROKEN: Document = {"taints": [{"key": "broken", "effect": "NoSchedule"}]}


def test_who_wants_all_devices_wants_the_tainted_ones_too() -> None:
    """And gets none of them without a toleration."""
    kind = type_with(slice_of({"name": "good"}, {"name": "bad", **_BROKEN}))
    tolerating = {**_ALL, "tolerations": [{"key": "broken", "operator": "Exists"}]}
    assert not plan_of(claim_for("a", {"name": "req", "exactly": _ALL}), claiming_pod("a", "a"), types=(kind,)).launches
    assert plan_of(
        claim_for("a", {"name": "req", "exactly": tolerating}), claiming_pod("a", "a"), types=(kind,)
    ).launches


def test_of_devices_that_claims_share_all_are_those_with_room() -> None:
    """One of two is full: the other one is all that there is."""
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "16Gi"}}}
    full = allocated_claim("full", "of-n1", "device-0", by="live", shareID="s", consumedCapacity={"memory": "16Gi"})
    slices = published_slice("of-n1", slice_of(*some_devices(2, **shared), pool="of-n1", nodeName="n1"))
    live = pod("live", node="n1", owner="rs")
    plan = plan_of(
        claim_for("a", {"name": "req", "exactly": _ALL}), full, live, claiming_pod("a", "a"), slices, node_of_pool("n1")
    )
    assert [placement.node for placement in plan.existing] == ["n1"]


@pytest.mark.parametrize(("alternatives", "is_placed"), [(("One", "All"), False), (("One",), True)])
def test_no_alternative_is_tried_while_it_is_not_known_what_all_devices_are(
    alternatives: tuple[str, ...], *, is_placed: bool
) -> None:
    """A pool of the node is not whole, and one of the alternatives asks for all."""
    ways = {"One": {"name": "one", "deviceClassName": "gpu"}, "All": {"name": "all", **_ALL}}
    request = {"name": "req", "firstAvailable": [ways[name] for name in alternatives]}
    part = slice_of(*some_devices(1), pool="part", nodeName="n1")
    slices = [
        published_slice("whole", slice_of(*some_devices(1), pool="whole", nodeName="n1")),
        published_slice("part", msgspec.structs.replace(part, pool=ResourcePool(name="part", resource_slice_count=2))),
    ]
    assert (
        bool(plan_of(claim_for("a", request), claiming_pod("a", "a"), *slices, node_of_pool("n1")).existing)
        == is_placed
    )


def test_all_devices_that_may_not_be_together_leave_no_alternative() -> None:
    """The scheduler takes such a claim for a mistake, and ends there."""
    request = {"name": "req", "firstAvailable": [{"name": "all", **_ALL}, {"name": "one", "deviceClassName": "gpu"}]}
    kind = type_with(slice_of(*({"name": f"d{n}", "attributes": {"root": {"int": n}}} for n in range(2))))
    wanted = claim_for("a", request, constraints=({"matchAttribute": f"{GPU}/root"},))
    assert not plan_of(wanted, claiming_pod("a", "a"), types=(kind,)).launches


def _zone(zone: str) -> Document:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    return {"nodeSelectorTerms": terms}


def test_devices_of_two_zones_share_counters() -> None:
    """What a claim in one zone takes of them is not there in the other (Karpenter's NonTargetingDevices)."""
    consumes = {"consumesCounters": [{"counterSet": "set", "counters": {"memory": {"value": "40Gi"}}}]}
    pool = ResourcePool(name="pool", resource_slice_count=3)
    counters = {"name": "set", "counters": {"memory": {"value": "60Gi"}}}
    slices = [
        published_slice(f"in-{zone}", msgspec.structs.replace(slice_of(device, nodeSelector=_zone(zone)), pool=pool))
        for zone, device in ((A, {"name": "a", **consumes}), (B, {"name": "b", **consumes}))
    ]
    slices.append(
        published_slice(
            "counters", msgspec.structs.replace(slice_of(sharedCounters=[counters], allNodes=True), pool=pool)
        )
    )
    assert plan_of(claim_for("a"), claiming_pod("a", "a", node_selector={ZONE: B}), *slices).launches
    served = allocated_claim("served", "pool", "a", by="live")
    assert not plan_of(claim_for("a"), served, claiming_pod("a", "a", node_selector={ZONE: B}), *slices).launches


def test_all_devices_of_a_node_and_of_several_are_not_given_together() -> None:
    """They are given apart here. Such a pod waits, and its reason says so."""
    plan = plan_of(
        claim_for("a", {"name": "req", "exactly": _ALL}),
        claiming_pod("a", "a"),
        slice_of_all(1),
        types=(type_with_gpus(1),),
    )
    assert why_left(plan) == {"a": "its resource claims ask for all devices, of a node and of several nodes"}


def test_all_devices_of_several_nodes_are_those_of_one_place() -> None:
    """One can be used everywhere, and another one in a zone: there, both are all."""
    plan = plan_of(
        claim_for("a", {"name": "req", "exactly": _ALL}), claiming_pod("a", "a"), slice_of_all(1), slice_of_zone(GPU, B)
    )
    assert [launch.offering.zone for launch in plan.launches] == [B]


def test_claims_of_a_pod_leave_each_other_devices_of_several_nodes() -> None:
    """The first would take what only the second can use."""
    devices = [{"name": name, "attributes": {"model": {"string": name}}} for name in ("big", "small")]
    slices = published_slice("everywhere", slice_of(*devices, pool="shared", allNodes=True))
    big = exactly_asked(selectors=[{"cel": {"expression": f'device.attributes["{GPU}"].model == "big"'}}])
    assert plan_of(claim_for("any"), claim_for("big", big), claiming_pod("a", "any", "big"), slices).launches
