"""Whatever the catalogue claims of a type is in the request that launches it, and on the node; or it is refused.

Each label and each resource has an entry here that says how it gets there. A new one without an entry fails. Labels
come onto a Node twice: kubelet is told those of its claim when the machine boots (not on images of one's own, which
have user data of their own), and registration writes all of the claim's (Karpenter core, nodeclaim/registration).
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from joinery.controllers.launching.fleet_calls import request_of
from joinery.decisions.lifecycle.joining.registration import synced
from joinery.decisions.lifecycle.launching.fleet_groups import FleetGroup, FleetOutcome, after_launch
from joinery.decisions.lifecycle.launching.instance_filters import filtered
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.gateway import LaunchRequest
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.gateways.ec2.launch.facts import ClusterFacts
from joinery.gateways.ec2.launch.fleet import fleet
from joinery.gateways.ec2.launch.templates import FabricAdapter, TemplateKey, template_of
from joinery.gateways.ec2.nodeclass.placement import PlacementGroup
from joinery.objects.actions import UpdateClaim
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.quantity import Resources, amounts
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.offerings import EFA, InstanceType
from simulator import builders
from tests.unit.gateways.ec2.test_instance_types import node_class

FACTS = ClusterFacts(name="blue", endpoint="https://eks", ca="Q0E=", service_cidr="172.20.0.0/16", version="1.33")
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1f")
#: A value of these is the launch's: EC2 is asked for it. All other labels follow from the instance type in the request.
OF_THE_LAUNCH = {labels.ZONE, labels.ZONE_ID, labels.CAPACITY_TYPE, labels.TENANCY, labels.OS}
#: Resources that every instance of the type has, or that a controller gives its Node by the type.
OF_THE_TYPE = {
    "cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore", "vpc.amazonaws.com/pod-eni", "vpc.amazonaws.com/PrivateIPv4Address",
}  # fmt: skip
#: Resources that the template gives it: kubelet's limit, disks, adapters.
OF_THE_TEMPLATE = {"pods", "ephemeral-storage", EFA}


@dataclass(frozen=True)
class Launched:
    """What EC2 was asked for, and what became of it: the claim and its Node's labels."""

    request: LaunchRequest
    template: Mapping[str, Any]
    call: Mapping[str, Any]
    claim: NodeClaim
    node_labels: Mapping[str, str]

    @property
    def user_data(self) -> str:
        return base64.b64decode(self.template["UserData"]).decode()


def of_subnets(**spec: Any) -> EC2NodeClass:
    """A class with an image of its family, which boots on everything, in all zones of the sample."""
    subnets = [{"id": f"subnet-{zone}", "zone": zone, "zoneID": f"use1-{zone[-1]}"} for zone in ZONES]
    status = {"subnets": subnets, "amis": [{"id": "ami-1", "requirements": []}], "instanceProfile": "nodes"}
    return node_class(status, **spec)


def launch(kind: InstanceType, of: EC2NodeClass, *rules: str, **requests: str) -> Launched | None:
    """A claim of that type, launched in the cheapest way that it allows; None where EC2 would not be asked."""
    rules = (f"{labels.INSTANCE_TYPE}={kind.name}", *rules)
    asked = {name.replace("_", "."): amount for name, amount in requests.items()}
    claim = builders.node_claim(conditions=(), provider_id="", requirements=rules, requests=asked or {"cpu": "1m"})
    claim = claim.model_copy(
        update={"metadata": claim.metadata.model_copy(update={"labels": {labels.NODE_POOL: "any"}})}
    )
    group, types = FleetGroup((claim,)), {kind.name: kind}
    found = filtered(claim, [kind], group.requests)
    if found is None:
        return None
    request = request_of(group, of, found, ())
    first = request.overrides[0]
    template = template_of(
        request,
        of,
        FACTS,
        TemplateKey("ami-1", first.max_pods, tuple(map(FabricAdapter, range(first.efa))), first.reservation),
        "us-east-1",
    )
    call = fleet(request, [(template.name, request.overrides)], {}, {s.zone: s.id for s in of.status.subnets})
    instance = Instance(
        "i-1", kind.name, first.zone, request.capacity_type, "pending", builders.EPOCH, "ami-1",
        reservation=first.reservation.id if first.reservation else "",
    )  # fmt: skip
    ((command, *_),), _ = after_launch(group, FleetOutcome(instances=(instance,)), of, types, builders.EPOCH)
    assert isinstance(command, UpdateClaim)
    node = synced(builders.node("n", labels={}), command.after)
    return Launched(request, template.data, call, command.after, node.metadata.labels)


@pytest.fixture(scope="module")
def kinds(catalog: Catalog) -> tuple[InstanceType, ...]:
    """All types of the sample as nodes of Amazon Linux 2023."""
    return resolve(catalog, of_subnets())


@pytest.mark.parametrize("alias", ["al2023", "bottlerocket", "windows2022"])
def test_every_type_is_launched_with_what_is_claimed_of_it(catalog: Catalog, alias: str) -> None:
    """The call names the type, its Node has each label that follows from it, and its claim each resource. Refused is
    what the family's images do not boot (a1, or all of arm64), or what has no room for its kubelet.
    """
    of, refused = of_subnets(amiSelectorTerms=[{"alias": f"{alias}@latest"}]), set()
    kinds = resolve(catalog, of)
    for kind in kinds:
        launched = launch(kind, of)
        if launched is None:
            refused.add(kind.name)
            assert not any(offering.available for offering in kind.offerings)
            continue
        (config,) = launched.call["LaunchTemplateConfigs"]
        assert {override["InstanceType"] for override in config["Overrides"]} == {kind.name}
        for key in kind.labels.keys() - OF_THE_LAUNCH:
            assert [launched.node_labels[key]] == [*kind.labels[key]], (kind.name, key)
        assert kind.capacity.keys() <= OF_THE_TYPE | OF_THE_TEMPLATE
        promised = {name: value for name, value in kind.capacity.items() if name != EFA and value}
        assert amounts(launched.claim.status.capacity) == promised
    a1 = {kind.name for kind in kinds if kind.name.startswith("a1.")}
    arm = {kind.name for kind in kinds if kind.labels[labels.ARCH] == ("arm64",)}
    small = {kind.name for kind in kinds if min(kind.allocatable.values()) < 0}
    assert refused - small == {"al2023": a1, "bottlerocket": set(), "windows2022": arm}[alias] - small


def test_what_is_launched_into_a_reservation_says_which(catalog: Catalog) -> None:
    """The template names it, and its labels come onto the Node from the claim: EC2 says only that it is on demand."""
    zone = ZONES[0]
    entry = {"id": "cr-1", "availabilityZone": zone, "instanceType": "m5.large", "instanceMatchCriteria": "targeted"}
    of = of_subnets(capacityReservationSelectorTerms=[{"id": "cr-1"}])
    status = EC2NodeClassStatus.model_validate({**of.status.model_dump(by_alias=True), "capacityReservations": [entry]})
    of = of.model_copy(update={"status": status})
    stock = CapacityReservation(
        capacity_reservation_id="cr-1", instance_type="m5.large", availability_zone=zone, available_instance_count=3
    )
    kind = next(one for one in resolve(catalog, of, reservations=[stock]) if one.name == "m5.large")
    launched = launch(kind, of, f"{labels.CAPACITY_TYPE}=reserved", f"{labels.RESERVATION_ID}=cr-1")
    assert launched is not None
    target = launched.template["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationId": "cr-1"}
    assert {key: launched.node_labels[key] for key in (*labels.RESERVATION_LABELS, labels.CAPACITY_TYPE)} == {
        labels.RESERVATION_ID: "cr-1", labels.RESERVATION_TYPE: "default",
        labels.RESERVATION_INTERRUPTIBLE: "false", labels.CAPACITY_TYPE: "reserved",
    }  # fmt: skip


@pytest.mark.parametrize("partition", ["", "2"])
def test_what_is_launched_into_a_placement_group_says_which(catalog: Catalog, partition: str) -> None:
    """The template names group and partition. What no claim asks for EC2 chooses, and registration writes it once EC2
    has said it (``tests/functional/test_placement_groups.py``).
    """
    of = of_subnets(placementGroupSelector={"name": "racks"})
    group = PlacementGroup("pg-1", "racks", "partition", 3)
    kind = next(one for one in resolve(catalog, of, group=group) if one.name == "m5.large")
    launched = launch(kind, of, *([f"{labels.PARTITION}={partition}"] if partition else []))
    assert launched is not None
    placement = launched.template["Placement"]
    assert (placement["GroupName"], str(placement.get("PartitionNumber", ""))) == ("racks", partition)
    assert launched.node_labels[labels.PLACEMENT_GROUP] == "pg-1"
    assert launched.node_labels.get(labels.PARTITION, "") == partition


@pytest.mark.parametrize("name", ["m7g.large", "p5.48xlarge"])
@pytest.mark.parametrize("key", sorted(OF_THE_LAUNCH))
def test_each_value_that_the_launch_decides_is_asked_for(kinds: tuple[InstanceType, ...], name: str, key: str) -> None:
    """A claim that wants one value gets an instance that has it, and its Node says so."""
    of, kind = of_subnets(), next(kind for kind in kinds if kind.name == name)
    for value in kind.labels[key]:
        launched = launch(kind, of, f"{key}={value}")
        if launched is None:
            assert not any(o.available for o in kind.offerings if value in (o.zone, o.zone_id, o.capacity_type))
            continue
        overrides = launched.call["LaunchTemplateConfigs"][0]["Overrides"]
        zones = {override["AvailabilityZone"] for override in overrides}
        asked = {
            labels.ZONE: zones,
            labels.ZONE_ID: {subnet.zone_id for subnet in of.status.subnets if subnet.zone in zones},
            labels.CAPACITY_TYPE: {launched.call["TargetCapacitySpecification"]["DefaultTargetCapacityType"]},
            labels.TENANCY: {launched.template["Placement"]["Tenancy"]},
            labels.OS: {"linux"},
        }
        assert (asked[key], launched.node_labels[key]) == ({value}, value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, '"maxPods": 29'),
        ({"kubelet": {"maxPods": 11}}, '"maxPods": 11'),
        ({"amiFamily": "Bottlerocket", "amiSelectorTerms": [{"alias": "bottlerocket@latest"}]}, "max-pods = 29"),
        ({"amiFamily": "AL2", "amiSelectorTerms": [{"alias": "al2@latest"}]}, "--max-pods=29"),
        ({"amiSelectorTerms": [{"alias": "windows2025@latest"}]}, "--max-pods=110"),
    ],
)
def test_the_number_of_pods_and_the_disk_are_in_the_template(catalog: Catalog, spec: dict[str, Any], said: str) -> None:
    """As kubelet reads them: it would say another number of pods, and a disk of the image's own size."""
    of = of_subnets(**spec)
    kind = next(kind for kind in resolve(catalog, of) if kind.name == "m5.large")
    launched = launch(kind, of)
    assert launched is not None
    assert said in launched.user_data
    sizes = [mapping["Ebs"]["VolumeSize"] for mapping in launched.template["BlockDeviceMappings"]]
    assert kind.capacity["ephemeral-storage"] == sizes[-1] << 30


def test_the_name_of_the_image_says_what_it_knows(catalog: Catalog) -> None:
    """Bottlerocket 1.46 is told no directories for its local disks."""
    of = of_subnets(amiSelectorTerms=[{"alias": "bottlerocket@latest"}], instanceStorePolicy="RAID0")
    image = of.status.amis[0].model_copy(update={"name": "bottlerocket-aws-k8s-1.33-x86_64-v1.46.0-431fe75a"})
    of = of.model_copy(update={"status": of.status.model_copy(update={"amis": [image]})})
    launched = launch(next(kind for kind in resolve(catalog, of) if kind.name == "m5.large"), of)
    assert launched is not None
    assert "--dirs" not in launched.user_data


def test_a_windows_node_is_what_pods_for_windows_ask_for(catalog: Catalog) -> None:
    """System, build, and an address for each pod, which the webhook of EKS's VPC resource controller asks for."""
    of = of_subnets(amiSelectorTerms=[{"alias": "windows2022@latest"}])
    kind = next(kind for kind in resolve(catalog, of) if kind.name == "m5.large")
    address = {"vpc_amazonaws_com/PrivateIPv4Address": "1"}
    launched = launch(kind, of, f"{labels.OS}=windows", f"{labels.WINDOWS_BUILD}=10.0.20348", **address)
    assert launched is not None
    assert launched.node_labels[labels.OS] == "windows"
    assert launched.node_labels[labels.WINDOWS_BUILD] == "10.0.20348"
    assert amounts(launched.claim.status.capacity)["vpc.amazonaws.com/PrivateIPv4Address"] == 9


def test_instance_stores_that_are_counted_are_mounted(catalog: Catalog) -> None:
    """Without the policy they are not counted."""
    of = of_subnets(instanceStorePolicy="RAID0")
    kind = next(kind for kind in resolve(catalog, of) if kind.name == "m5d.large")
    launched = launch(kind, of)
    assert launched is not None
    assert kind.capacity["ephemeral-storage"] == 75 * 10**9
    assert '"strategy": "RAID0"' in launched.user_data


@pytest.mark.parametrize(("asked", "adapters"), [({}, 0), ({"vpc_amazonaws_com/efa": "1"}, 32)])
def test_adapters_are_there_for_those_who_ask(
    kinds: tuple[InstanceType, ...], asked: dict[str, str], adapters: int
) -> None:
    """They take the place of ordinary interfaces. A claim whose pods ask for none does not count them."""
    kind = next(kind for kind in kinds if kind.name == "p5.48xlarge")
    launched = launch(kind, of_subnets(), **asked)
    assert launched is not None
    interfaces = launched.template["NetworkInterfaces"]
    assert sum(each.get("InterfaceType") == "efa" for each in interfaces) == adapters
    counted: Resources = amounts(launched.claim.status.capacity)
    assert counted.get(EFA, 0) == adapters
