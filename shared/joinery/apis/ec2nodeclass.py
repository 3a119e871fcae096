"""EC2NodeClass (karpenter.k8s.aws/v1): what an instance is made of: AMI, network, disks, kubelet, identity."""

from typing import Literal

from pydantic import Field

from joinery.apis.meta import Condition, CustomResource, Model, Quantity, Requirement


class SubnetSelectorTerm(Model):
    tags: dict[str, str] = {}
    id: str = ""


class SecurityGroupSelectorTerm(Model):
    tags: dict[str, str] = {}
    id: str = ""
    name: str = ""


class CapacityReservationSelectorTerm(Model):
    tags: dict[str, str] = {}
    id: str = ""
    owner_id: str = Field(default="", alias="ownerID")
    instance_match_criteria: str = ""


class AMISelectorTerm(Model):
    alias: str = ""
    id: str = ""
    name: str = ""
    owner: str = ""
    ssm_parameter: str = Field(default="", alias="ssmParameter")
    tags: dict[str, str] = {}


class PlacementGroupSelector(Model):
    name: str = ""
    id: str = ""


class KubeletConfiguration(Model):
    cluster_dns: list[str] = Field(default=[], alias="clusterDNS")
    max_pods: int | None = None
    pods_per_core: int | None = None
    system_reserved: dict[str, Quantity] = {}
    kube_reserved: dict[str, Quantity] = {}
    eviction_hard: dict[str, str] = {}
    eviction_soft: dict[str, str] = {}
    eviction_soft_grace_period: dict[str, str] = {}
    eviction_max_pod_grace_period: int | None = None
    image_gc_high_threshold_percent: int | None = Field(default=None, alias="imageGCHighThresholdPercent")
    image_gc_low_threshold_percent: int | None = Field(default=None, alias="imageGCLowThresholdPercent")
    cpu_cfs_quota: bool | None = Field(default=None, alias="cpuCFSQuota")


class BlockDevice(Model):
    delete_on_termination: bool | None = None
    encrypted: bool | None = None
    iops: int | None = None
    kms_key_id: str = Field(default="", alias="kmsKeyID")
    snapshot_id: str = Field(default="", alias="snapshotID")
    throughput: int | None = None
    volume_initialization_rate: int | None = None
    volume_size: Quantity | None = None
    volume_type: str = ""


class BlockDeviceMapping(Model):
    device_name: str = ""
    root_volume: bool = False
    ebs: BlockDevice | None = None


class NetworkInterface(Model):
    network_card_index: int = 0
    device_index: int = 0
    interface_type: str = "interface"


class MetadataOptions(Model):
    http_endpoint: Literal["enabled", "disabled"] = "enabled"
    http_protocol_ipv6: Literal["enabled", "disabled"] = Field(default="disabled", alias="httpProtocolIPv6")
    http_put_response_hop_limit: int = 1
    http_tokens: Literal["required", "optional"] = "required"


class ConnectionTracking(Model):
    tcp_established_timeout: str | None = None
    udp_stream_timeout: str | None = None
    udp_timeout: str | None = None


class CPUOptions(Model):
    nested_virtualization: Literal["enabled", "disabled"] | None = None


class EC2NodeClassSpec(Model):
    subnet_selector_terms: list[SubnetSelectorTerm]
    security_group_selector_terms: list[SecurityGroupSelectorTerm]
    capacity_reservation_selector_terms: list[CapacityReservationSelectorTerm] = []
    placement_group_selector: PlacementGroupSelector | None = None
    ami_selector_terms: list[AMISelectorTerm]
    ami_family: str | None = None
    user_data: str | None = None
    role: str = ""
    instance_profile: str = ""
    tags: dict[str, str] = {}
    associate_public_ip_address: bool | None = Field(default=None, alias="associatePublicIPAddress")
    ip_prefix_count: int | None = None
    kubelet: KubeletConfiguration | None = None
    block_device_mappings: list[BlockDeviceMapping] = []
    instance_store_policy: Literal["RAID0"] | None = None
    network_interfaces: list[NetworkInterface] | None = None
    detailed_monitoring: bool | None = None
    metadata_options: MetadataOptions = MetadataOptions()
    connection_tracking: ConnectionTracking | None = None
    cpu_options: CPUOptions | None = None
    context: str | None = None

    @property
    def family(self) -> str:
        """The AMI family that decides user data, disks and pod density: named, or told by the alias."""
        if self.ami_family:
            return self.ami_family
        alias = next((term.alias for term in self.ami_selector_terms if term.alias), "")
        known = {name.lower(): name for name in FAMILIES}
        return known.get(alias.partition("@")[0].lower(), "Custom")


FAMILIES = ("AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025")


class SubnetStatus(Model):
    id: str
    zone: str
    zone_id: str = Field(default="", alias="zoneID")


class SecurityGroupStatus(Model):
    id: str
    name: str = ""


class AMIStatus(Model):
    id: str
    name: str = ""
    deprecated: bool = False
    requirements: list[Requirement] = []


class CapacityReservationStatus(Model):
    id: str
    availability_zone: str = ""
    instance_type: str = ""
    owner_id: str = Field(default="", alias="ownerID")
    instance_match_criteria: str = ""
    reservation_type: str = "default"
    interruptible: bool = False
    end_time: str | None = None
    state: str = "active"


class EC2NodeClassStatus(Model):
    subnets: list[SubnetStatus] = []
    security_groups: list[SecurityGroupStatus] = []
    amis: list[AMIStatus] = []
    capacity_reservations: list[CapacityReservationStatus] = []
    instance_profile: str = ""
    conditions: list[Condition] = []


class EC2NodeClass(CustomResource):
    spec: EC2NodeClassSpec
    status: EC2NodeClassStatus = EC2NodeClassStatus()
