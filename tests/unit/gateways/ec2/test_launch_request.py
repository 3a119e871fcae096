"""What EC2 is asked for, and what its answer means."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from joinery.gateways.ec2.gateway import (
    LaunchedInstance,
    LaunchFailure,
    LaunchRequest,
    LaunchResult,
    Override,
    capacity_pools,
)
from joinery.gateways.ec2.instancetypes.families import FAMILIES
from joinery.gateways.ec2.launch.fleet import fleet, result
from joinery.gateways.ec2.launch.running import as_ours
from joinery.gateways.ec2.launch.templates import FabricAdapter, Machine, template
from joinery.gateways.ec2.nodeclass.images import AliasError, Image, statuses, variants
from joinery.objects.codes import is_capacity
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.ec2nodeclass import AMISelectorTerm, EC2NodeClass
from joinery.objects.karpenter.meta import ObjectMeta
from joinery.objects.kubernetes.quantity import amount
from joinery.objects.snapshot.offerings import (
    ALL_SPOT,
    DEDICATED_SCOPE,
    OfferingKey,
    Reservation,
    class_scope,
    group_scope,
)
from joinery.objects.snapshot.shortages import Shortage, as_met_by, refuted

STATUS = {
    "subnets": [
        {"id": "subnet-a1", "zone": "us-east-1a"},
        {"id": "subnet-a2", "zone": "us-east-1a"},
        {"id": "subnet-b1", "zone": "us-east-1b"},
    ],
    "securityGroups": [{"id": "sg-1"}, {"id": "sg-2"}],
    "amis": [{"id": "ami-1", "requirements": []}],
    "instanceProfile": "profile-1",
}
SUBNETS = {"us-east-1a": "subnet-a1", "us-east-1b": "subnet-b1"}
MACHINE = Machine(image_id="ami-1", user_data="Li4u", capacity_type="spot", region="us-east-1", ipv6=False)


def node_class(**spec: Any) -> EC2NodeClass:
    """A class whose status is complete."""
    wire = {
        "subnetSelectorTerms": [{"id": "subnet-1"}],
        "securityGroupSelectorTerms": [{"id": "sg-1"}],
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "role": "nodes",
    }
    return EC2NodeClass.model_validate({"metadata": {"name": "default"}, "spec": wire | spec, "status": STATUS})


def asked(**changes: Any) -> LaunchRequest:
    """Two spot nodes, from either of two pools."""
    request = LaunchRequest(
        token="t-1",
        count=2,
        node_pool="general",
        node_class=node_class(),
        capacity_type="spot",
        overrides=(Override("m5.large", "us-east-1a", 0.05, 29), Override("m5.large", "us-east-1c", 0.04, 29)),
        labels={},
    )
    return replace(request, **changes)


def test_a_spot_launch_asks_for_all_pools_at_once() -> None:
    """The whole request; a zone without a subnet is left out."""
    tags = [{"Key": "a", "Value": "b"}]
    assert fleet(asked(), [("karpenter.k8s.aws/1", asked().overrides)], {"a": "b"}, SUBNETS) == {
        "Type": "instant",
        "ClientToken": "t-1",
        "TargetCapacitySpecification": {"TotalTargetCapacity": 2, "DefaultTargetCapacityType": "spot"},
        "SpotOptions": {"AllocationStrategy": "price-capacity-optimized"},
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateName": "karpenter.k8s.aws/1", "Version": "$Latest"},
                "Overrides": [
                    {
                        "InstanceType": "m5.large",
                        "SubnetId": "subnet-a1",
                        "AvailabilityZone": "us-east-1a",
                        "Priority": 0.05,
                    }
                ],
            }
        ],
        "TagSpecifications": [{"ResourceType": kind, "Tags": tags} for kind in ("instance", "volume", "fleet")],
    }


def test_an_on_demand_launch_takes_the_lowest_price() -> None:
    """And passes the class's context on."""
    request = fleet(asked(capacity_type="on-demand", node_class=node_class(context="cr-1")), [], {}, SUBNETS)
    assert request["OnDemandOptions"] == {"AllocationStrategy": "lowest-price"}
    assert request["Context"] == "cr-1"
    assert "SpotOptions" not in request


@pytest.mark.parametrize(
    ("capacity_type", "options", "strategy"),
    [
        ("spot", "SpotOptions", "capacity-optimized-prioritized"), ("on-demand", "OnDemandOptions", "prioritized"),
    ],
)  # fmt: skip
def test_a_launch_by_other_prices_than_awss_goes_by_its_priorities(
    capacity_type: str, options: str, strategy: str
) -> None:
    """EC2 would take what is cheapest by its own (Karpenter for AWS, `WithOverlay`)."""
    request = fleet(asked(capacity_type=capacity_type, in_our_order=True), [], {}, SUBNETS)
    assert request[options] == {"AllocationStrategy": strategy}


def test_of_one_price_the_priority_is_by_awss_list() -> None:
    """And by less than any price differs from another (Karpenter for AWS has the price alone)."""
    listed = {"m7a.medium": (1.0, 0.06), "m7a.large": (1.0, 0.12), "m7g.large": (1.01, None), "x2.metal": (0.99, 9.0)}
    pools = tuple(Override(name, "us-east-1a", price, 8, listed=own) for name, (price, own) in listed.items())
    sent = fleet(asked(overrides=pools, in_our_order=True), [("t", pools)], {}, SUBNETS)
    overrides = sent["LaunchTemplateConfigs"][0]["Overrides"]
    by_priority = sorted(overrides, key=lambda override: override["Priority"])
    assert [override["InstanceType"] for override in by_priority] == [
        "x2.metal", "m7a.medium", "m7a.large", "m7g.large",
    ]  # fmt: skip


def test_a_launch_that_gave_up_minvalues_leaves_out_the_context() -> None:
    """The context is for fleets that are as varied as the NodePool demands (Karpenter, "EC2 Context")."""
    lenient = asked(node_class=node_class(context="cr-1"), min_values_relaxed=True)
    assert "Context" not in fleet(lenient, [], {}, SUBNETS)


def test_a_template_holds_all_that_instances_have_in_common() -> None:
    """Security groups inside the interface, encrypted default disk, tokens required, tags on what EC2 makes besides."""
    made = template(node_class(), MACHINE, {"a": "b"})
    tags = [{"Key": "a", "Value": "b"}]
    assert made.data == {
        "ImageId": "ami-1",
        "UserData": "Li4u",
        "IamInstanceProfile": {"Name": "profile-1"},
        "Monitoring": {"Enabled": False},
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpProtocolIpv6": "disabled",
            "HttpPutResponseHopLimit": 1,
            "HttpTokens": "required",
            "InstanceMetadataTags": "disabled",
        },
        "NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-1", "sg-2"]}],
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"Encrypted": True, "VolumeType": "gp3", "VolumeSize": 20}}
        ],
        "TagSpecifications": [
            {"ResourceType": "network-interface", "Tags": tags},
            {"ResourceType": "spot-instances-request", "Tags": tags},
        ],
        "Placement": {"Tenancy": "default"},
        "CapacityReservationSpecification": {"CapacityReservationPreference": "none"},
    }


@pytest.mark.parametrize(
    ("reservation", "market", "target", "options"),
    [
        (Reservation("cr-1"), None, "on-demand", {"OnDemandOptions": {"AllocationStrategy": "lowest-price"}}),
        (Reservation("cr-1", "capacity-block"), "capacity-block", "capacity-block", {}),
        (
            Reservation("cr-1", is_interruptible=True),
            "interruptible-capacity-reservation",
            "reserved-capacity",
            {"ReservedCapacityOptions": {"ReservationTypes": ["interruptible-capacity-reservation"]}},
        ),
    ],
    ids=["ordinary", "capacity block", "interruptible"],
)
def test_a_reserved_launch_goes_into_its_reservation_alone(
    reservation: Reservation, market: str | None, target: str, options: dict[str, Any]
) -> None:
    """The template names the reservation, and the request says what EC2 calls such a launch (EC2 API CreateFleet)."""
    machine = replace(MACHINE, capacity_type="reserved", reservation=reservation)
    data = template(node_class(), machine, {}).data
    assert data["CapacityReservationSpecification"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": "cr-1"},
    }
    assert data.get("InstanceMarketOptions") == ({"MarketType": market} if market else None)
    override = Override("m5.large", "us-east-1a", 0.0, 29, reservation)
    request = fleet(asked(capacity_type="reserved", overrides=(override,)), [], {}, SUBNETS)
    assert request["TargetCapacitySpecification"]["DefaultTargetCapacityType"] == target
    chosen = ("OnDemandOptions", "SpotOptions", "ReservedCapacityOptions")
    assert {key: request[key] for key in chosen if key in request} == options


def test_an_instance_in_a_reservation_says_which() -> None:
    """EC2 calls it on-demand; what was asked for tells."""
    override = Override("m5.large", "us-east-1a", 0.0, 29, Reservation("cr-1"))
    where = {"Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}}
    answer = {"Instances": [{"LaunchTemplateAndOverrides": where, "Lifecycle": "on-demand", "InstanceIds": ["i-1"]}]}
    (found,) = result(asked(capacity_type="reserved", overrides=(override,)), answer, {}, {}).instances
    assert (found.capacity_type, found.reservation) == ("reserved", "cr-1")


@pytest.mark.parametrize(
    ("preference", "expected"), [("capacity-reservations-only", ("reserved", "cr-1")), ("open", ("on-demand", ""))]
)
def test_only_what_was_launched_for_its_reservation_is_reserved(preference: str, expected: tuple[str, str]) -> None:
    """An on-demand instance that happens to use an open reservation stays one."""
    instance = as_ours({
        "InstanceId": "i-1", "InstanceType": "m5.large", "Placement": {"AvailabilityZone": "us-east-1a"},
        "State": {"Name": "running"}, "LaunchTime": datetime(2026, 1, 1, tzinfo=UTC), "CapacityReservationId": "cr-1",
        "CapacityReservationSpecification": {"CapacityReservationPreference": preference},
    })  # fmt: skip
    assert (instance.capacity_type, instance.reservation) == expected


@pytest.mark.parametrize(
    ("selector", "partition", "expected"),
    [
        ({"name": "rack"}, "", {"GroupName": "rack"}),
        ({"id": "pg-1"}, "2", {"GroupId": "pg-1", "PartitionNumber": 2}),
    ],
)
def test_a_template_names_the_placement_group_as_its_class_does(
    selector: dict[str, str], partition: str, expected: dict[str, Any]
) -> None:
    """By name or id; with a partition where the node is to be in one (EC2 API LaunchTemplatePlacementRequest)."""
    made = template(node_class(placementGroupSelector=selector), replace(MACHINE, partition=partition), {})
    assert made.data["Placement"] == {"Tenancy": "default", **expected}


def test_what_a_placement_group_lacks_is_there_outside_of_it() -> None:
    """A spread group takes seven instances a zone, of any type (Karpenter for AWS, ``pkg/errors``)."""
    limit = "You've reached the limit of instances in this spread placement group."
    entry = {"Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}}
    request = asked(node_class=node_class(placementGroupSelector={"name": "rack"}))
    for message, kind in ((limit, ""), ("no", "m5.large")):
        error = {
            "LaunchTemplateAndOverrides": entry, "ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": message
        }  # fmt: skip
        found = capacity_pools(result(request, {"Errors": [error]}, {}, {}).failures)
        expected = OfferingKey(kind, "us-east-1a", "spot" if kind else "", scope="group/rack")
        assert found == {expected}
        assert as_met_by(node_class(), found) == frozenset()
        assert as_met_by(request.node_class, found) == {replace(expected, scope="")}


def test_want_of_dedicated_hardware_is_nobody_elses() -> None:
    """EC2 may have plenty of all else. Otherwise one pod that selects that tenancy closes its NodePool for all."""
    dedicated = asked(tenancy="dedicated").pools
    assert as_met_by(node_class(), dedicated) == frozenset()
    assert not refuted(dict.fromkeys(dedicated, Shortage(datetime(2026, 1, 1, tzinfo=UTC))), asked().pools)


@pytest.mark.parametrize(
    ("code", "message", "tenancy", "is_for_all"),
    [
        ("Unsupported", "Your requested instance type (m5.large) is not supported in your requested Availability Zone "
         "(us-east-1a).", "default", True),
        ("Unsupported", "The requested configuration is currently not supported.", "default", False),
        ("Unsupported", "The requested configuration is currently not supported.", "dedicated", False),
        ("InsufficientInstanceCapacity", "no", "default", True),
        ("InsufficientInstanceCapacity", "no", "dedicated", False),
        ("InsufficientHostCapacity", "no", "default", False),
        ("InsufficientCapacityOnOutpost", "no", "default", False),
    ],
)  # fmt: skip
def test_what_the_options_of_a_class_are_refused_is_there_for_others(
    code: str, message: str, tenancy: str, is_for_all: bool
) -> None:
    """EC2 calls types that a zone does not have and options that a type does not take by one code (EC2 API, "Error
    codes", Unsupported); hosts and an Outpost are the class's own. A class that has changed is tried again.
    """
    entry = {"Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}}
    error = {"LaunchTemplateAndOverrides": entry, "ErrorCode": code, "ErrorMessage": message}
    request = asked(tenancy=tenancy)
    found = capacity_pools(result(request, {"Errors": [error]}, {}, {}).failures)
    pool = OfferingKey("m5.large", "us-east-1a", "spot")
    other, changed = (
        node_class().model_copy(update={"metadata": ObjectMeta(name=name, generation=2)})
        for name in ("other", "default")
    )
    for_all = {pool} if is_for_all else set()
    assert as_met_by(other, found, tenancy=tenancy) == ({pool} if code.endswith("InstanceCapacity") else for_all)
    assert as_met_by(node_class(), found, tenancy=tenancy) == {pool}
    assert as_met_by(other, found) == for_all
    if code == "Unsupported":
        assert as_met_by(changed, found, tenancy=tenancy) == for_all


def test_what_one_partition_lacks_is_there_in_the_others() -> None:
    """Each is on racks of its own (EC2 User Guide, "Partition placement groups"; Karpenter for AWS, ICE cache)."""
    racked = node_class(placementGroupSelector={"name": "rack"})
    entry = {"Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}}
    error = {"LaunchTemplateAndOverrides": entry, "ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": "no"}
    request = asked(node_class=racked, partition="3")
    found = capacity_pools(result(request, {"Errors": [error]}, {}, {}).failures)
    assert as_met_by(racked, found) == as_met_by(racked, found, partition="2") == frozenset()
    assert as_met_by(racked, found, partition="3") == {OfferingKey("m5.large", "us-east-1a", "spot")}


def test_a_launch_ends_what_would_have_kept_it_from_its_pool() -> None:
    """What there is for a class in a group, there is for the class; not on dedicated hardware."""
    racked = node_class(placementGroupSelector={"name": "rack"})
    request = asked(node_class=racked, partition="3")
    launched = LaunchedInstance("i-1", "m5.large", "us-east-1a", "spot", "ami-1")
    served = request.served_by(LaunchResult((launched,)))
    pool = OfferingKey("m5.large", "us-east-1a", "spot")
    marks = {pool, *(replace(pool, scope=scope) for scope in (class_scope(racked), group_scope("rack")))}
    others = {replace(pool, scope=scope) for scope in (DEDICATED_SCOPE, group_scope("rack", "2"))}
    over = refuted(dict.fromkeys(marks | others, Shortage(datetime(2026, 1, 1, tzinfo=UTC))), served)
    assert over == marks


def test_an_instance_says_in_which_placement_group_it_is() -> None:
    """By id and by name; most are in none."""
    entry: dict[str, Any] = {"InstanceId": "i-1", "Placement": {"GroupId": "pg-1", "GroupName": "rack"}}
    instance, alone = as_ours(entry), as_ours({"InstanceId": "i-2", "Placement": {"GroupName": ""}})
    assert (instance.placement_group_id, instance.placement_group) == ("pg-1", "rack")
    assert (alone.placement_group_id, alone.placement_group) == ("", "")


def test_a_template_is_named_after_its_content() -> None:
    """The same content twice is one template; anything else is another."""
    name = template(node_class(), MACHINE, {"a": "b"}).name
    assert name.startswith("karpenter.k8s.aws/")
    assert name.partition("/")[2].isdecimal()
    assert template(node_class(), MACHINE, {"a": "b"}).name == name
    others = [
        template(node_class(detailedMonitoring=True), MACHINE, {"a": "b"}),
        template(node_class(), replace(MACHINE, user_data="x"), {"a": "b"}),
        template(node_class(), MACHINE, {"a": "c"}),
    ]
    assert len({name, *(other.name for other in others)}) == 4


def test_a_template_has_the_users_disks_and_interfaces() -> None:
    """Sizes in whole GiB, rounded up; addresses only on interfaces that have any.

    EC2 takes either an IPv6 address or a prefix (https://github.com/aws/karpenter-provider-aws/pull/9201).
    """
    made = template(
        node_class(
            blockDeviceMappings=[
                {"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100G", "volumeType": "gp3", "kmsKeyID": "k"}}
            ],
            networkInterfaces=[{}, {"deviceIndex": 1, "interfaceType": "efa-only"}],
            associatePublicIPAddress=False,
            ipPrefixCount=2,
            connectionTracking={"udpTimeout": "30s"},
            cpuOptions={"nestedVirtualization": "enabled"},
        ),
        replace(MACHINE, ipv6=True),
        {},
    ).data
    assert made["BlockDeviceMappings"] == [
        {"DeviceName": "/dev/xvda", "Ebs": {"KmsKeyId": "k", "VolumeSize": 94, "VolumeType": "gp3"}}
    ]
    primary, efa = made["NetworkInterfaces"]
    assert primary == {
        "NetworkCardIndex": 0,
        "DeviceIndex": 0,
        "InterfaceType": "interface",
        "Groups": ["sg-1", "sg-2"],
        "AssociatePublicIpAddress": False,
        "PrimaryIpv6": True,
        "Ipv6AddressCount": 1,
        "ConnectionTrackingSpecification": {"UdpTimeout": 30},
    }
    assert set(efa) == {"NetworkCardIndex", "DeviceIndex", "InterfaceType", "Groups"}
    assert made["CpuOptions"] == {"NestedVirtualization": "enabled"}


def adapters(cards: Iterable[int], only: Collection[int] = ()) -> tuple[FabricAdapter, ...]:
    """An Elastic Fabric Adapter on each of these network cards."""
    return tuple(FabricAdapter(card, card in only) for card in cards)


def test_a_card_that_takes_one_interface_has_an_adapter_without_addresses() -> None:
    """It is the card's first device (EC2 User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple
    network cards").
    """
    made = template(node_class(ipPrefixCount=2), replace(MACHINE, efa=adapters(range(3), {1})), {}).data
    assert [
        (each["NetworkCardIndex"], each["DeviceIndex"], each["InterfaceType"], "Ipv4PrefixCount" in each)
        for each in made["NetworkInterfaces"]
    ] == [(0, 0, "efa", True), (1, 0, "efa-only", False), (2, 1, "efa", True)]


def test_fabric_adapters_take_the_place_of_the_ordinary_interface() -> None:
    """One a network card; addresses and groups as elsewhere (EC2 API, InterfaceType efa)."""
    made = template(node_class(ipPrefixCount=2), replace(MACHINE, efa=adapters(range(3))), {}).data["NetworkInterfaces"]
    assert [(each["NetworkCardIndex"], each["DeviceIndex"]) for each in made] == [(0, 0), (1, 1), (2, 1)]
    assert {each["InterfaceType"] for each in made} == {"efa"}
    assert all(each["Groups"] == ["sg-1", "sg-2"] and each["Ipv4PrefixCount"] == 2 for each in made)


def test_where_the_first_network_card_takes_no_fabric_adapter_it_has_an_ordinary_interface() -> None:
    """As AWS configures p6-b300; the adapters on the other cards have no addresses.

    EC2 User Guide, "Maximize network bandwidth on Amazon EC2 instances with multiple network cards".
    """
    machine = replace(MACHINE, efa=adapters(range(1, 3)))
    first, *others = template(node_class(ipPrefixCount=2), machine, {}).data["NetworkInterfaces"]
    assert first == {"DeviceIndex": 0, "Groups": ["sg-1", "sg-2"], "Ipv4PrefixCount": 2}
    efa = {"DeviceIndex": 0, "InterfaceType": "efa-only", "Groups": ["sg-1", "sg-2"]}
    assert others == [{"NetworkCardIndex": card} | efa for card in (1, 2)]


def test_interfaces_that_the_class_declares_stay_as_they_are() -> None:
    """Whatever the pods ask for: its types promise no other adapters."""
    declared = [{}, {"deviceIndex": 1, "interfaceType": "efa-only"}]
    made = template(node_class(networkInterfaces=declared), replace(MACHINE, efa=adapters(range(1))), {}).data[
        "NetworkInterfaces"
    ]
    assert [each["InterfaceType"] for each in made] == ["interface", "efa-only"]


def test_enclaves_are_switched_on_where_the_class_says_so() -> None:
    """EC2 API, EnclaveOptions. Without it there are none."""
    on, off = ({"enclaveOptions": {"enabled": enabled}} for enabled in (True, False))
    assert template(node_class(**on), MACHINE, {}).data["EnclaveOptions"] == {"Enabled": True}
    assert "EnclaveOptions" not in template(node_class(**off), MACHINE, {}).data


def test_hardware_is_dedicated_where_the_request_says_so() -> None:
    """EC2 API, Placement.Tenancy."""
    assert template(node_class(), replace(MACHINE, tenancy="dedicated"), {}).data["Placement"] == {
        "Tenancy": "dedicated"
    }


def test_instances_and_failures_are_read_from_one_answer() -> None:
    """EC2 may group instances in an entry; failures count also when every instance was launched, each once."""
    where = {"Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}}
    elsewhere = {"Overrides": {"InstanceType": "m5.large", "SubnetId": "subnet-b1"}}
    failed = {
        "LaunchTemplateAndOverrides": elsewhere,
        "ErrorCode": "InsufficientInstanceCapacity",
        "ErrorMessage": "no",
    }
    answer = {
        "Instances": [{"LaunchTemplateAndOverrides": where, "Lifecycle": "spot", "InstanceIds": ["i-1", "i-2"]}],
        "Errors": [failed, failed, {**failed, "ErrorCode": "RequestLimitExceeded"}],
    }
    found = result(asked(), answer, {"m5.large": "ami-1"}, {})
    assert found.instances == tuple(
        LaunchedInstance(name, "m5.large", "us-east-1a", "spot", "ami-1") for name in ("i-1", "i-2")
    )
    pool = OfferingKey("m5.large", "us-east-1b", "spot")
    assert found.failures == (
        LaunchFailure(pool, "InsufficientInstanceCapacity", "no", True),
        LaunchFailure(pool, "RequestLimitExceeded", "no", False),
    )


def test_a_failure_names_the_reservation_that_was_asked_for() -> None:
    """EC2 repeats type and zone only; another reservation may hold the same type there."""
    reserved = Override("m5.large", "us-east-1a", 0.0, 29, Reservation("cr-1"))
    where = {"Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}}
    failed = {
        "LaunchTemplateAndOverrides": where,
        "ErrorCode": "ReservationCapacityExceeded",
        "ErrorMessage": "no",
    }
    found = result(asked(capacity_type="reserved", overrides=(reserved,)), {"Errors": [failed]}, {}, {})
    assert [failure.pool for failure in found.failures] == [OfferingKey("m5.large", "us-east-1a", "reserved", "cr-1")]


def test_without_its_role_there_is_no_spot_at_all() -> None:
    """EC2 names one override after the other, and no other spot offering would do better."""
    code = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
    where = {"Overrides": {"InstanceType": "m5.large", "AvailabilityZone": "us-east-1a"}}
    failed = {"LaunchTemplateAndOverrides": where, "ErrorCode": code, "ErrorMessage": "no"}
    found = result(asked(), {"Errors": [failed]}, {}, {})
    assert found.failures == (LaunchFailure(ALL_SPOT, code, "no", True),)


@pytest.mark.parametrize(
    ("code", "capacity"),
    [
        ("InsufficientInstanceCapacity", True),
        ("VcpuLimitExceeded", True),
        ("Unsupported", True),
        ("InvalidCapacityReservationState.Unavailable", True),
        ("InvalidCapacityReservationState.PendingActivation", True),
        ("InvalidCapacityReservationId.NotFound", True),
        ("UnsupportedOperation", False),
        ("UnauthorizedOperation", False),
    ],
)
def test_only_some_errors_mean_that_a_pool_is_out(code: str, capacity: bool) -> None:
    """The codes that Karpenter takes for a want of capacity; everything else is somebody's mistake."""
    assert is_capacity(code) is capacity


def test_bottlerockets_root_disk_holds_its_images_snapshot() -> None:
    """EC2 refuses a smaller one with InvalidBlockDeviceMapping."""
    sizes = {name: amount("ephemeral-storage", size) >> 30 for name, size in FAMILIES["Bottlerocket"].devices}
    assert sizes == {"/dev/xvda": 6, "/dev/xvdb": 20}


def test_an_alias_stands_for_a_parameter_a_variant() -> None:
    """The paths under which AWS publishes images."""
    latest = [v.parameter for v in variants(AMISelectorTerm(alias="al2023@latest"), "1.33")]
    base = "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023"
    assert latest == [
        f"{base}/{arch}/recommended/image_id"
        for arch in ("x86_64/standard", "x86_64/nvidia", "x86_64/neuron", "arm64/standard", "arm64/nvidia")
    ]
    pinned = variants(AMISelectorTerm(alias="al2023@v20260801"), "1.33")[0].parameter
    assert pinned == f"{base}/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.33-v20260801/image_id"
    rocket = variants(AMISelectorTerm(alias="bottlerocket@v1.46.0"), "1.33")[1].parameter
    assert rocket == "/aws/service/bottlerocket/aws-k8s-1.33-nvidia/x86_64/1.46.0/image_id"
    (windows,) = variants(AMISelectorTerm(alias="windows2025@latest"), "1.35")
    base = "/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.35"
    assert windows.parameter == f"{base}/image_id"


def test_al2_ends_with_kubernetes_1_33() -> None:
    """There are no such images, and the message says so."""
    assert len(variants(AMISelectorTerm(alias="al2@latest"), "1.32")) == 3
    with pytest.raises(ConfigurationError, match="alias al2 has no images for Kubernetes 1.33"):
        variants(AMISelectorTerm(alias="al2@latest"), "1.33")


def test_windows_2025_begins_with_kubernetes_1_35() -> None:
    """There are no such images before, and the message says from when on."""
    assert len(variants(AMISelectorTerm(alias="windows2022@latest"), "1.34")) == 1
    with pytest.raises(AliasError, match="alias windows2025 needs Kubernetes 1.35, and this is 1.34"):
        variants(AMISelectorTerm(alias="windows2025@latest"), "1.34")


def test_of_images_for_the_same_types_the_best_is_taken() -> None:
    """Not deprecated before deprecated, then the newest, then by name; newest first; without an architecture, none."""
    days = [datetime(2026, 8, day, tzinfo=UTC) for day in (1, 2, 3)]
    found = statuses([
        (Image("ami-old", "a", "amd64", days[0]), ()),
        (Image("ami-new", "a", "amd64", days[1]), ()),
        (Image("ami-deprecated", "a", "amd64", days[2], deprecated=True), ()),
        (Image("ami-arm", "a", "arm64", days[2]), ()),
        (Image("ami-unknown", "a", "", days[2]), ()),
    ])  # fmt: skip
    assert [ami.id for ami in found] == ["ami-arm", "ami-new"]


def test_one_image_may_serve_two_kinds_of_node() -> None:
    """AL2's GPU image is for NVIDIA and for Neuron types: two entries, each with its requirements."""
    image = Image("ami-gpu", "a", "amd64", datetime(2026, 8, 1, tzinfo=UTC))
    found = statuses([(image, ("neuron", "nvidia"))])
    assert [(ami.id, ami.requirements[-1].key.rpartition("/")[2]) for ami in found] == [
        ("ami-gpu", "instance-accelerator-count"),
        ("ami-gpu", "instance-gpu-count"),
    ]


@pytest.mark.parametrize(
    ("zones", "types", "by"),
    [
        (("us-east-1a", "us-east-1a"), ("m5.large", "m6a.large"), {"SingleAvailabilityZone": True}),
        (("us-east-1a", "us-east-1c"), ("m5.large", "m5.large"), {"SingleInstanceType": True}),
        (("us-east-1a", "us-east-1c"), ("m5.large", "m6a.large"), {}),
    ],
)
@pytest.mark.parametrize(("capacity_type", "options"), [("spot", "SpotOptions"), ("on-demand", "OnDemandOptions")])
def test_nodes_of_a_gang_are_launched_together_where_ec2_can_promise_that(
    zones: tuple[str, str], types: tuple[str, str], by: dict[str, bool], capacity_type: str, options: str
) -> None:
    """EC2 API OnDemandOptionsRequest and SpotOptionsRequest: MinTargetCapacity takes one zone, or one type."""
    overrides = tuple(Override(kind, zone, 0.05, 29) for kind, zone in zip(types, zones, strict=True))
    wanted = asked(overrides=overrides, capacity_type=capacity_type, together=True)
    request = fleet(wanted, [], {}, SUBNETS)
    del request[options]["AllocationStrategy"]
    assert request[options] == ({**by, "MinTargetCapacity": 2} if by else {})
    alone = fleet(replace(wanted, count=1), [], {}, SUBNETS)
    assert "MinTargetCapacity" not in alone[options]
