"""What a node of an instance type holds, and how an EC2NodeClass changes it."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from joinery.gateways.ec2.catalog.description import Description, GpuDevice
from joinery.gateways.ec2.catalog.document import Catalog, UnpricedOffering, Zone, entry
from joinery.gateways.ec2.catalog.resolved import decode_entries
from joinery.gateways.ec2.instancetypes.capacity import USUAL, NodeAssumptions
from joinery.gateways.ec2.instancetypes.resolve import resolve
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.kubernetes.quantity import amount, amounts
from joinery.objects.snapshot.offerings import InstanceType
from joinery_cli.catalog import entry as printed_as

DATA = Path(__file__).parents[3] / "data"
MIB = 1 << 20

# As Karpenter for AWS computes them: AL2023, defaults. Type, allocatable cpu, memory in MiB, pods.
GOLDEN = [
    ("t3.nano", "1930m", 74, 4),
    ("t3.micro", "1930m", 548, 4),
    ("t3.medium", "1930m", 3246, 17),
    ("t4g.small", "1930m", 1359, 11),
    ("m5.large", "1930m", 6903, 29),
    ("m5.xlarge", "3920m", 14162, 58),
    ("m5.24xlarge", "95690m", 355262, 737),
    ("m5.metal", "95690m", 355262, 737),
    ("c6g.medium", "940m", 1392, 8),
    ("c6g.xlarge", "3920m", 6525, 58),
    ("m7g.large", "1930m", 6844, 29),
    ("m7i-flex.large", "1930m", 6903, 29),
    ("c8g.48xlarge", "191450m", 355203, 737),
    ("g4dn.xlarge", "3920m", 14481, 29),
    ("g4ad.xlarge", "3920m", 14712, 8),
    ("g5.xlarge", "3920m", 14162, 58),
    ("g5.48xlarge", "191450m", 723299, 345),
    ("g6e.24xlarge", "95690m", 721682, 492),
    ("p4d.24xlarge", "95690m", 1082712, 737),
    ("p5.48xlarge", "191450m", 1938410, 100),
    ("inf2.xlarge", "3920m", 14162, 58),
    ("inf2.48xlarge", "191450m", 718987, 737),
    ("trn1.32xlarge", "127610m", 481894, 247),
    ("c6in.32xlarge", "127610m", 237794, 394),
    ("x2idn.16xlarge", "63770m", 961470, 737),
    ("u7in-16tb.224xlarge", "893690m", 15514235, 394),
    ("hpc7g.4xlarge", "15890m", 118649, 198),
]


def node_class(status: dict[str, Any] | None = None, **spec: Any) -> EC2NodeClass:
    """A class with AL2023 and what is given, fields in their wire names."""
    terms = {"subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]}
    image = {"amiSelectorTerms": [{"alias": "al2023@latest"}], "role": "nodes"}
    wire = {"metadata": {"name": "default"}, "spec": terms | image | spec, "status": status or {}}
    return EC2NodeClass.model_validate(wire)


def only(catalog: Catalog, name: str, of: EC2NodeClass | None = None, assumed: NodeAssumptions = USUAL) -> InstanceType:
    """One resolved type, without resolving a thousand others."""
    position = [description.instance_type for description in catalog.described].index(name)
    sold = tuple(offering for offering in catalog.offerings if offering.instance_type == name)
    alone = msgspec.structs.replace(catalog, instance_types=(catalog.instance_types[position],), offerings=sold)
    return resolve(alone, of or node_class(), assumed=assumed)[0]


SHARED_GPUS = ("g6f.large", "g6f.xlarge", "g6f.2xlarge", "g6f.4xlarge", "gr6f.4xlarge")


#: Labels that follow from an offering, and others that the reference leaves out.
BESIDE = {labels.ZONE, labels.ZONE_ID, labels.CAPACITY_TYPE, labels.TENANCY, labels.GPU_FRACTIONAL}


#: To types that the reference's older table of branch interfaces has none for; provider 1.15.1's has the same as ours.
NEWER_BRANCHES = {
    *(f"{family}.metal-{size}xl" for family in ("c8gb", "c8gn", "m8gb", "m8gn", "r8gb", "r8gn") for size in (24, 48)),
    "c8ib.metal-48xl", "c8ib.metal-96xl", "hpc7g.4xlarge", "hpc7g.8xlarge", "hpc7g.16xlarge", "i4i.large",
}  # fmt: skip
BRANCHES = "vpc.amazonaws.com/pod-eni"


def test_the_sample_catalogue_gives_what_the_reference_planner_was_given(catalog: Catalog) -> None:
    """For every type in common, as ``joinery catalog`` prints it: the same labels and resources, no more and no less.
    The reference lacks dl1.24xlarge.
    """
    reference = json.loads(gzip.decompress((DATA / "instance-types.json.gz").read_bytes()))
    ours = {kind.name: printed_as(kind) for kind in resolve(catalog, node_class())}
    assert (ours.keys() - reference.keys(), reference.keys() - ours.keys()) == ({"dl1.24xlarge"}, set())
    differences = [
        (name, key)
        for name, expected in reference.items()
        for given, wanted in (
            (ours[name]["labels"], expected["labels"]),
            *((amounts(ours[name][part]), amounts(expected[part])) for part in ("capacity", "allocatable")),
        )
        for key in _different(given, wanted) - BESIDE
    ]
    assert set(differences) == {(name, BRANCHES) for name in NEWER_BRANCHES}


def _different(given: Mapping[str, Any], expected: Mapping[str, Any]) -> set[str]:
    """The keys under which the two have another value, or one of them has none."""
    return {key for key in given.keys() | expected.keys() if given.get(key) != expected.get(key)}


def test_parts_of_gpus_are_printed_beside_the_capacity(catalog: Catalog) -> None:
    """The reference has none, because it plans none; whoever plans with what is printed has them all the same."""
    printed = {kind.name: printed_as(kind) for kind in resolve(catalog, node_class())}
    assert {name for name, kind in printed.items() if "partial" in kind} == set(SHARED_GPUS)
    read = decode_entries(json.dumps([printed["g6f.large"]]).encode())
    assert (printed["g6f.large"]["partial"], read.types[0].allocatable["nvidia.com/gpu"]) == (
        {"nvidia.com/gpu": "1"},
        1,
    )


@pytest.mark.parametrize("name", SHARED_GPUS)
def test_a_node_with_a_part_of_a_gpu_says_so(catalog: Catalog, name: str) -> None:
    """Its label counts whole GPUs, as Karpenter's does, and another says that it has a part of one."""
    labels = only(catalog, name).labels
    assert labels["karpenter.k8s.aws/instance-gpu-count"] == ("0",)
    assert labels["karpenter.k8s.aws/instance-gpu-fractional"] == ("true",)
    assert "karpenter.k8s.aws/instance-gpu-fractional" not in only(catalog, "g6.xlarge").labels


@pytest.mark.parametrize(
    ("device", "shown", "is_part"),
    [
        ({"Count": 2}, 2, False),
        ({"Count": 1, "LogicalGpuCount": 1, "GpuPartitionSize": 1.0}, 1, False),
        ({"Count": 0, "LogicalGpuCount": 1, "GpuPartitionSize": 0.25}, 1, True),
        ({"Count": 0, "LogicalGpuCount": 1}, 1, False),
        ({"Count": 1, "LogicalGpuCount": 4, "GpuPartitionSize": 0.25}, 4, True),
        ({"Count": 1, "GpuPartitionSize": 0.5}, 1, True),
        ({"Count": 0}, 0, False),
    ],
)
def test_gpus_are_counted_as_a_node_shows_them(device: dict[str, float], shown: int, is_part: bool) -> None:
    """EC2 counts whole GPUs, and logical ones where it partitions them."""
    gpu = msgspec.convert(device, GpuDevice)
    assert (gpu.shown, gpu.is_part) == (shown, is_part)


@pytest.mark.parametrize(("name", "cpu", "memory", "pods"), GOLDEN)
def test_a_node_of_the_type_can_allocate_this_much(
    catalog: Catalog, name: str, cpu: str, memory: int, pods: int
) -> None:
    """The published values of the reference, for AL2023 with defaults."""
    room = only(catalog, name).allocatable
    assert (room["cpu"], room["memory"], room["pods"]) == (amount("cpu", cpu), memory * MIB, pods)


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("g5.48xlarge", {"nvidia.com/gpu": 8, "vpc.amazonaws.com/efa": 1, "vpc.amazonaws.com/pod-eni": 115}),
        ("g4ad.xlarge", {"amd.com/gpu": 1, "vpc.amazonaws.com/pod-eni": 12}),
        (
            "inf2.48xlarge",
            {"aws.amazon.com/neuron": 12, "aws.amazon.com/neuroncore": 24, "vpc.amazonaws.com/pod-eni": 107},
        ),
        ("t3.medium", {}),
    ],
)
def test_devices_are_capacity(catalog: Catalog, name: str, devices: dict[str, int]) -> None:
    """Accelerators, EFA and branch interfaces are counted; what a type has none of is left out."""
    plain = {"cpu", "memory", "ephemeral-storage", "pods"}
    assert {key: value for key, value in only(catalog, name).capacity.items() if key not in plain} == devices


@pytest.mark.parametrize(
    ("spec", "pods", "kept_mib"),
    [
        ({}, 35, 640),
        ({"kubelet": {"maxPods": 10}}, 10, 640),
        ({"kubelet": {"podsPerCore": 2}}, 8, 640),
        ({"kubelet": {"podsPerCore": 0}}, 35, 640),
        ({"amiFamily": "Bottlerocket", "kubelet": {"maxPods": 10}}, 10, 365),
        ({"amiFamily": "Bottlerocket", "kubelet": {"podsPerCore": 2}}, 35, 640),
        ({"amiFamily": "Windows2022", "kubelet": {"maxPods": 10}}, 10, 365),
        ({"amiFamily": "Windows2022"}, 110, 1465),
    ],
)
def test_the_family_decides_pods_and_the_memory_kept_for_kubelet(
    spec: dict[str, Any], pods: int, kept_mib: int
) -> None:
    """A type of 35 pods by its interfaces, under the families' rules."""
    kind = only(
        _catalog_of(enis=3, ips=12),
        "x1.large",
        node_class(amiSelectorTerms=[{"id": "ami-1"}], **{"amiFamily": "AL2023"} | spec),
    )
    assert kind.capacity["pods"] == pods
    assert kind.capacity["memory"] - kind.allocatable["memory"] == (kept_mib + 100) * MIB


def test_reserved_interfaces_leave_fewer_pods() -> None:
    """The VPC CNI's custom networking takes one interface away; without any left there are no pods at all."""
    catalog, reserving = _catalog_of(enis=3, ips=12), [NodeAssumptions(reserved_enis=n) for n in (1, 3)]
    pods = [resolve(catalog, node_class(), assumed=assumed)[0].capacity["pods"] for assumed in reserving]
    assert pods == [24, 0]


@pytest.mark.parametrize(
    ("name", "reserved", "pods"),
    [
        ("m5.large", 0, 110),  # 3 interfaces of 10 addresses: 3 * 9 * 16 + 2 are more
        ("c6g.medium", 0, 98),  # 2 of 4
        ("c6g.medium", 1, 50),
        ("m5.8xlarge", 0, 250),
        ("m5.metal", 0, 250),
        ("t2.medium", 0, 17),  # Xen
    ],
)
def test_with_prefixes_of_addresses_a_node_takes_more_pods(
    catalog: Catalog, name: str, reserved: int, pods: int
) -> None:
    """As EKS' max-pods-calculator.sh has it for --cni-prefix-delegation-enabled (amazon-eks-ami); the memory that is
    kept for kubelet is that of the usual number.
    """
    assumed = NodeAssumptions(prefix_delegation=True, reserved_enis=reserved)
    with_prefixes, usual = only(catalog, name, assumed=assumed), only(catalog, name)
    assert with_prefixes.allocatable["pods"] == pods
    assert with_prefixes.allocatable["memory"] == usual.allocatable["memory"]


def test_memory_that_nodes_were_seen_to_have_replaces_the_estimate(catalog: Catalog) -> None:
    """What kubelet and eviction keep is the same; other types keep their estimates."""
    learned = resolve(catalog, node_class(), memory={"m5.large": 7800 * MIB})
    estimated = resolve(catalog, node_class())
    (pair,) = (pair for pair in zip(learned, estimated, strict=True) if pair[0] != pair[1])
    (kind, usual) = pair
    assert (kind.name, kind.capacity["memory"]) == ("m5.large", 7800 * MIB)
    kept = usual.capacity["memory"] - usual.allocatable["memory"]
    assert kind.allocatable["memory"] == 7800 * MIB - kept


@pytest.mark.parametrize("mib", [1, 3000, 8193, 1 << 30])
def test_memory_that_no_node_of_the_type_can_have_is_not_believed(catalog: Catalog, mib: int) -> None:
    """One kubelet that lies would keep everybody from the type, or fill its nodes with pods that have no room."""
    assert resolve(catalog, node_class(), memory={"m5.large": mib * MIB}) == resolve(catalog, node_class())


def test_reservations_of_the_user_replace_the_defaults_they_name(catalog: Catalog) -> None:
    """kubeReserved overrides key by key, systemReserved adds, and a threshold of 100 % is none."""
    kubelet = {
        "kubeReserved": {"cpu": "200m"},
        "systemReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "100%"},
    }
    kind = only(catalog, "m5.large", node_class(kubelet=kubelet))
    assert kind.allocatable["cpu"] == 1800
    kept = kind.capacity["memory"] - kind.allocatable["memory"]
    assert kept == (11 * 29 + 255) * MIB + (1 << 30) + -(-kind.capacity["memory"] * 5 // 100)
    assert kind.allocatable["ephemeral-storage"] == 19 << 30


@pytest.mark.parametrize(
    ("hard", "soft", "image", "mib"),
    [
        ("", "500Mi", "al2023", 100),
        ("1Gi", "3Gi", "al2023", 1024),
        ("3Gi", "1Gi", "al2023", 3072),
        ("512Mi", "25%", "al2", 512),
        ("1Gi", "3Gi", "bottlerocket", 1024),
    ],
)
def test_only_the_hard_threshold_is_kept(hard: str, soft: str, image: str, mib: float) -> None:
    """As by the kubelet, whose nodes say so; a plan with less would buy what nobody needs (Karpenter v1.15)."""
    kubelet = {
        "kubeReserved": {"memory": "0"},
        "evictionHard": {"memory.available": hard} if hard else {},
        "evictionSoft": {"memory.available": soft},
        "evictionSoftGracePeriod": {"memory.available": "2m"},
    }
    of = node_class(amiSelectorTerms=[{"alias": f"{image}@latest"}], kubelet=kubelet)
    kind = only(_catalog_of(mib=16384), "x1.large", of)
    assert kind.capacity["memory"] - kind.allocatable["memory"] == pytest.approx(mib * MIB, abs=1)


def test_a_soft_threshold_of_the_disk_is_not_kept_either(catalog: Catalog) -> None:
    """Of the 20 GiB, kubelet keeps 1, and 10 % by its hard default."""
    kubelet = {"evictionSoft": {"nodefs.available": "20%"}, "evictionSoftGracePeriod": {"nodefs.available": "2m"}}
    assert only(catalog, "m5.large", node_class(kubelet=kubelet)).allocatable["ephemeral-storage"] == 17 << 30


@pytest.mark.parametrize(
    ("name", "pods", "cpu", "memory"),
    [("m5.large", 20, 60 + 20, 11 * 20 + 255 + 128), ("m5.24xlarge", 688, 2880 + 960, 11 * 688 + 255 + 6144)],
)
def test_expressions_are_evaluated_for_each_type(catalog: Catalog, name: str, pods: int, cpu: int, memory: int) -> None:
    """With the pods that come of maxPods, and rounded up to 10 millicores and 16 MiB (Karpenter v1.15)."""
    kubelet = {
        "maxPods": "((default_enis - 1) * (ips_per_eni - 1)) + 2",
        "kubeReserved": {"cpu": "max(60, vcpus * 30)", "memory": "11 * max_pods + 255"},
        "systemReserved": {"cpu": "max(20, vcpus * 10)", "memory": "max(100, memory_mib / 64)"},
        "evictionHard": {"memory.available": "100%"},
    }
    kind = only(catalog, name, node_class(kubelet=kubelet))
    kept = {resource: kind.capacity[resource] - kind.allocatable[resource] for resource in ("cpu", "memory")}
    assert kind.capacity["pods"] == pods
    assert kept["cpu"] == cpu
    assert memory <= kept["memory"] / MIB < memory + 16


@pytest.mark.parametrize("pods", ["max_pods - 100", "10 / (vcpus - 2)", "max_pods * 1000000000"])
def test_a_type_for_which_an_expression_has_no_value_is_not_available(catalog: Catalog, pods: str) -> None:
    """Others of the class are, and the price of its nodes stays known."""
    of = node_class(kubelet={"maxPods": pods})
    assert only(catalog, "m5.large", of).offerings
    assert not any(offering.available for offering in only(catalog, "m5.large", of).offerings)
    assert ("1000000000" in pods) or any(each.available for each in only(catalog, "m5.24xlarge", of).offerings)


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ({}, 20 << 30),
        ({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi"}}]}, 100 << 30),
        ({"blockDeviceMappings": [{"deviceName": "/dev/xvdb", "ebs": {"volumeSize": "100Gi"}}]}, 20 << 30),
        (
            {"blockDeviceMappings": [{"deviceName": "/dev/sdz", "rootVolume": True, "ebs": {"volumeSize": "30Gi"}}]},
            30 << 30,
        ),
        ({"blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {"snapshotID": "snap-1"}}]}, 20 << 30),
        ({"instanceStorePolicy": "RAID0"}, 75 * 10**9),
        ({"amiFamily": "Windows2022"}, 50 << 30),
    ],
)
def test_the_disks_decide_ephemeral_storage(catalog: Catalog, spec: dict[str, Any], size: int) -> None:
    """RAID0 takes the local disks, else the volume that holds pods, else the family's default."""
    given = {"amiSelectorTerms": [{"id": "ami-1"}], "amiFamily": "AL2023"} | spec
    assert only(catalog, "m5d.large", node_class(**given)).capacity["ephemeral-storage"] == size


def test_a_custom_image_has_the_size_of_its_last_disk(catalog: Catalog) -> None:
    """Without knowing the image, the last mapping is taken for the root."""
    disks = [{"deviceName": f"/dev/{n}", "ebs": {"volumeSize": size}} for n, size in (("a", "10Gi"), ("b", "40Gi"))]
    custom = node_class(amiSelectorTerms=[{"id": "ami-1"}], amiFamily="Custom", blockDeviceMappings=disks)
    assert only(catalog, "m5.large", custom).capacity["ephemeral-storage"] == 40 << 30


def test_offerings_outside_the_classes_subnets_are_listed_but_not_available(catalog: Catalog) -> None:
    """A zone without a subnet keeps its price and cannot be launched in."""
    status = {"subnets": [{"id": "subnet-1", "zone": "us-east-1b", "zoneID": "use1-az1"}]}
    kind = only(catalog, "m5.large", node_class(status))
    assert kind.labels[labels.ZONE] == ("us-east-1b",)
    assert kind.labels[labels.ZONE_ID] == ("use1-az1",)
    assert {o.zone for o in kind.offerings if o.available} == {"us-east-1b"}
    assert kind.price("us-east-1a", "on-demand") == 0.096


def test_a_type_that_no_image_of_the_class_can_boot_is_not_available(catalog: Catalog) -> None:
    """Images limit architectures and accelerators by their requirements."""
    arm = {"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}
    plain = {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"}
    status = {"amis": [{"id": "ami-1", "requirements": [arm, plain]}]}
    able = {kind.name for kind in resolve(catalog, node_class(status)) if any(o.available for o in kind.offerings)}
    assert "m7g.large" in able
    assert not able & {"m5.large", "g5g.xlarge"}


@pytest.mark.parametrize(
    ("spec", "name", "usable"),
    [
        ({}, "a1.large", False),
        ({"amiFamily": "AL2", "amiSelectorTerms": [{"id": "ami-1"}]}, "a1.large", True),
        ({"connectionTracking": {"udpTimeout": "30s"}}, "m5.large", True),
        ({"connectionTracking": {"udpTimeout": "30s"}}, "m5.metal", False),
        ({"cpuOptions": {"nestedVirtualization": "enabled"}}, "m5.large", False),
        ({"enclaveOptions": {"enabled": True}}, "m5.xlarge", True),
        ({"enclaveOptions": {"enabled": True}}, "t3.medium", False),
        ({"enclaveOptions": {"enabled": False}}, "t3.medium", True),
        ({"networkInterfaces": [{}, {"networkCardIndex": 1, "deviceIndex": 1}]}, "m5.large", False),
        ({"networkInterfaces": [{}, {"networkCardIndex": 1, "deviceIndex": 1}]}, "c6in.32xlarge", True),
        ({"networkInterfaces": [{}, {"deviceIndex": 1, "interfaceType": "efa-only"}]}, "m5.large", False),
    ],
)
def test_settings_that_a_type_cannot_have_rule_it_out(
    catalog: Catalog, spec: dict[str, Any], name: str, usable: bool
) -> None:
    """The checks of Karpenter for AWS, instancetype/compatibility."""
    assert any(o.available for o in only(catalog, name, node_class(**spec)).offerings) is usable


@pytest.mark.parametrize(
    ("name", "spec", "left"),
    [
        ("m5.large", {}, 25),
        ("i3en.24xlarge", {}, 17),
        ("m7i.large", {}, 31),
        ("m7i.large", {"amiFamily": "Bottlerocket"}, 30),
        ("m7i.large", {"blockDeviceMappings": [{"deviceName": f"/dev/xvd{letter}"} for letter in "abc"]}, 29),
    ],
)
def test_a_node_attaches_what_ec2_says_less_its_own_disks(
    catalog: Catalog, name: str, spec: dict[str, Any], left: int
) -> None:
    """As the EBS CSI driver will say. A shared limit counts the interface that the VPC CNI keeps ready, too."""
    named = node_class(amiSelectorTerms=[{"id": "ami-1"}], **{"amiFamily": "AL2023"} | spec)
    assert only(catalog, name, named).attachments == {"ebs.csi.aws.com": left}


def test_a_type_of_which_ec2_says_no_limit_has_none() -> None:
    """What is not known keeps no pod from a node; its CSI driver may say more when it starts."""
    assert resolve(_catalog_of(), node_class())[0].attachments == {}


def test_declared_efa_interfaces_take_pods_and_give_efa(catalog: Catalog) -> None:
    """An efa-only interface on the first card carries no pod addresses."""
    nics = [{}, {"deviceIndex": 1, "interfaceType": "efa-only"}]
    plain, efa = only(catalog, "c8g.48xlarge"), only(catalog, "c8g.48xlarge", node_class(networkInterfaces=nics))
    assert efa.capacity["vpc.amazonaws.com/efa"] == 1
    assert plain.capacity["pods"] - efa.capacity["pods"] == 49


def test_windows_nodes_exist_for_amd64_only(catalog: Catalog) -> None:
    """A Windows class gives amd64 types a system and a build. None of arm64 can be bought."""
    windows = node_class(amiFamily="Windows2022", amiSelectorTerms=[{"id": "ami-1"}])
    amd, arm = only(catalog, "m5.large", windows), only(catalog, "m7g.large", windows)
    assert amd.labels[labels.OS] == ("windows",)
    assert amd.labels[labels.WINDOWS_BUILD] == ("10.0.20348",)
    assert amd.capacity["vpc.amazonaws.com/PrivateIPv4Address"] == 9
    assert any(offering.available for offering in amd.offerings)
    assert not any(offering.available for offering in arm.offerings)


def test_a_type_that_the_vpc_resource_controller_does_not_know_has_no_addresses_for_windows() -> None:
    """It gives addresses to pods of Windows by its own table of types (amazon-vpc-resource-controller-k8s, pkg/aws/vpc;
    Karpenter for AWS, privateIPv4Address).
    """
    windows = node_class(amiFamily="Windows2022", amiSelectorTerms=[{"id": "ami-1"}])
    assert "vpc.amazonaws.com/PrivateIPv4Address" not in resolve(_catalog_of(ips=10), windows)[0].capacity


@given(vcpus=st.integers(1, 900), mib=st.integers(512, 32 << 20), enis=st.integers(1, 16), overhead=st.floats(0, 0.5))
def test_nothing_is_ever_allocatable_beyond_capacity(vcpus: int, mib: int, enis: int, overhead: float) -> None:
    """Whatever the machine: allocatable is at most capacity, and a node on which nothing is left is not offered."""
    small = _catalog_of(vcpus=vcpus, mib=mib, enis=enis, ips=10)
    kind = resolve(small, node_class(), assumed=NodeAssumptions(vm_memory_overhead=overhead))[0]
    assert all(kind.allocatable[name] <= kind.capacity[name] for name in kind.capacity)
    assert min(kind.allocatable.values()) >= 0 or not any(o.available for o in kind.offerings)


@pytest.mark.parametrize(("cards", "adapters", "takes"), [(1, 1, True), (32, 32, True), (17, 16, False)])
def test_of_more_network_cards_than_fabric_adapters_the_first_takes_none(
    cards: int, adapters: int, takes: bool
) -> None:
    """p6-b300: https://github.com/aws/aws-parallelcluster/issues/7143."""
    network = {
        "NetworkCards": [{"NetworkCardIndex": card} for card in range(cards)],
        "EfaInfo": {"MaximumEfaInterfaces": adapters},
    }
    described = msgspec.convert({"InstanceType": "x1.large", "NetworkInfo": network}, Description)
    assert described.efa_on_first_card is takes


@pytest.mark.parametrize(
    ("name", "interfaces", "expected"),
    [("p5.48xlarge", [2, 2, 2], set()), ("x1.large", [1, 1, 2], {1}), ("p6e-gb200.36xlarge", [2, 2, 2, 2], {1, 3})],
)
def test_some_network_cards_take_no_ordinary_interface_beside_the_fabric_adapter(
    name: str, interfaces: list[int], expected: set[int]
) -> None:
    """Those for one interface, and every second of p6e-gb200 (https://github.com/aws/aws-parallelcluster/pull/6930)."""
    cards = [{"NetworkCardIndex": n, "MaximumNetworkInterfaces": most} for n, most in enumerate(interfaces)]
    described = msgspec.convert({"InstanceType": name, "NetworkInfo": {"NetworkCards": cards}}, Description)
    assert described.efa_only_cards == expected


def test_a_type_without_a_price_has_the_places_where_it_is_sold() -> None:
    """Nothing can be bought there until a NodeOverlay says for how much; of zones beyond the class, never."""
    places = tuple(UnpricedOffering("x1.large", f"us-east-1{letter}", "spot") for letter in "az")
    catalog = replace(_catalog_of(), zones=(Zone("us-east-1a"),), unpriced=places)
    (kind,) = resolve(catalog, node_class())
    assert kind.offerings == ()
    assert [(one.zone, one.available) for one in kind.unpriced] == [("us-east-1a", True), ("us-east-1z", False)]


def _catalog_of(*, vcpus: int = 4, mib: int = 16384, enis: int = 4, ips: int = 15) -> Catalog:
    """A catalogue of one made-up type."""
    card = {"NetworkCardIndex": 0, "MaximumNetworkInterfaces": enis}
    description = {
        "InstanceType": "x1.large",
        "SupportedUsageClasses": ["on-demand", "spot"],
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "Manufacturer": "Intel"},
        "VCpuInfo": {"DefaultVCpus": vcpus},
        "MemoryInfo": {"SizeInMiB": mib},
        "NetworkInfo": {"NetworkCards": [card], "DefaultNetworkCardIndex": 0, "Ipv4AddressesPerInterface": ips},
    }
    return Catalog(region="us-east-1", instance_types=(entry(description),))
