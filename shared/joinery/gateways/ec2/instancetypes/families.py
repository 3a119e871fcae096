"""What an AMI family means for a node's capacity (Karpenter for AWS `amifamily.FeatureFlags`).

Its user data is written in ``launch.userdata``.

Facts about instance types that no AWS API tells; ``data/README.md`` says where they come from. Read on first use.
"""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import msgspec

from joinery.objects.karpenter import labels
from joinery.objects.kubernetes.quantity import amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One AMI family.

    ``pod_storage``: the device that holds pods' ephemeral storage. ``devices``: name and size of each default disk.
    ``eni_density``: network interfaces limit the number of pods, instead of kubelet's 110. ``eni_memory``: the memory
    kept for kubelet follows that limit even where ``maxPods`` says otherwise. ``pods_per_core``: kubelet's setting of
    that name counts. ``windows_build``: the build that its nodes are labelled with, empty for Linux.
    """

    name: str
    pod_storage: str = ""
    devices: tuple[tuple[str, str], ...] = ()
    eni_density: bool = True
    eni_memory: bool = True
    pods_per_core: bool = True
    windows_build: str = ""

    @property
    def default_storage(self) -> int:
        """Size of the pod-storage device where the class does not say."""
        return amount("ephemeral-storage", dict(self.devices).get(self.pod_storage, "20Gi"))


def _windows(year: str, build: str) -> Family:
    return Family(
        name=f"Windows{year}",
        pod_storage="/dev/sda1",
        devices=(("/dev/sda1", "50Gi"),),
        eni_density=False,
        eni_memory=False,
        windows_build=build,
    )


_LINUX = (("/dev/xvda", "20Gi"),)

FAMILIES = {
    family.name: family
    for family in (
        Family(name="AL2023", pod_storage="/dev/xvda", devices=_LINUX),
        Family(name="AL2", pod_storage="/dev/xvda", devices=_LINUX),
        Family(
            name="Bottlerocket",
            pod_storage="/dev/xvdb",
            # EC2 refuses a root disk smaller than the image's snapshot, which is of 6 GiB (Karpenter for AWS,
            # amifamily/bottlerocket; bottlerocket-os/bottlerocket a02834b6ac).
            devices=(("/dev/xvda", "6Gi"), ("/dev/xvdb", "20Gi")),
            eni_memory=False,
            pods_per_core=False,
        ),
        Family(name="Custom"),
        *(_windows(year, build) for year, build in labels.WINDOWS_BUILDS.items()),
    )
}


@cache
def _table(name: str) -> dict[str, int]:
    data = resources.files("joinery.gateways.ec2.instancetypes").joinpath("data", name).read_bytes()
    return msgspec.json.decode(data, type=dict[str, int])


def branch_interfaces(instance_type: str) -> int:
    """Branch network interfaces (security groups for pods); 0 where the type has none or is unknown."""
    return _table("branch-interfaces.json").get(instance_type, 0)


def has_windows_addresses(instance_type: str) -> bool:
    """Whether the VPC resource controller, which gives pods of Windows their addresses, knows the type."""
    return instance_type in _table("branch-interfaces.json")


def network_bandwidth(instance_type: str) -> int | None:
    """Baseline bandwidth in Mbit/s, None where it is unknown or vague."""
    return _table("network-bandwidth-mbps.json").get(instance_type)
