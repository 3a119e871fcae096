"""What an EC2NodeClass's selectors can find in the simulated account: subnets, security groups, images."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.launch.userdata import user_data_problem
from joinery.gateways.ec2.nodeclass.images import standard_requirements
from joinery.gateways.ec2.nodeclass.placement import PlacementGroup
from joinery.gateways.ec2.nodeclass.readiness import SelectedResources, Unmet
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import AMIStatus, EC2NodeClass, SecurityGroupStatus, SubnetStatus
from joinery.objects.karpenter.ec2nodeclass_status import PLACEMENT_READY
from joinery.objects.karpenter.meta import Requirement

DISCOVERY_TAG = "karpenter.sh/discovery"


@dataclass(frozen=True, slots=True)
class Subnet:
    id: str
    zone: str
    zone_id: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecurityGroup:
    id: str
    name: str
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Image:
    """``alias`` is the family whose images an alias term finds, in lower case."""

    id: str
    name: str
    arch: str
    alias: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


class _Term(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def tags(self) -> dict[str, str]: ...


@dataclass(kw_only=True)
class Network:
    """The account's network and images, the newest first. Fields are lists, so that a test may add to them."""

    subnets: list[Subnet]
    security_groups: list[SecurityGroup]
    images: list[Image]
    groups: list[PlacementGroup] = field(default_factory=list)

    @classmethod
    def of(cls, cluster: str, catalog: Catalog) -> "Network":
        """A subnet in every zone and a security group, tagged for discovery, and AL2023 for both architectures."""
        tags = {DISCOVERY_TAG: cluster, "joinery.dev/discovery": "simulated"}
        return cls(
            subnets=[Subnet(f"subnet-{zone.name}", zone.name, zone.id, tags) for zone in catalog.zones],
            security_groups=[SecurityGroup("sg-nodes", "nodes", tags)],
            images=[Image(f"ami-al2023-{arch}", f"al2023-{arch}", arch, "al2023") for arch in ("amd64", "arm64")],
        )

    def find(self, node_class: EC2NodeClass) -> SelectedResources:
        """What the class selects. A role always has its profile here."""
        spec = node_class.spec
        return SelectedResources(
            subnets=[
                SubnetStatus(id=subnet.id, zone=subnet.zone, zone_id=subnet.zone_id)
                for subnet in self.subnets
                if _selected(subnet.id, subnet.tags, spec.subnet_selector_terms)
            ],
            security_groups=[
                SecurityGroupStatus(id=group.id, name=group.name)
                for group in self.security_groups
                if _selected(group.id, group.tags, spec.security_group_selector_terms)
                or any(term.name == group.name for term in spec.security_group_selector_terms)
            ],
            amis=_newest(_ami(image) for image in self.images if _is_selected_image(image, node_class)),
            instance_profile=spec.instance_profile or f"profile-{spec.role}",
            problems=self._group_problem(node_class),
            user_data_problem=user_data_problem(spec),
        )

    def group(self, node_class: EC2NodeClass) -> PlacementGroup | None:
        """The placement group that the class names."""
        name = node_class.placement_group
        return next((group for group in self.groups if name and name in (group.id, group.name)), None)

    def _group_problem(self, node_class: EC2NodeClass) -> dict[str, Unmet]:
        if not node_class.placement_group or self.group(node_class):
            return {}
        return {PLACEMENT_READY: Unmet("PlacementGroupNotFound", f"there is no {node_class.placement_group}")}


def _selected(found_id: str, tags: Mapping[str, str], terms: Sequence[_Term]) -> bool:
    return any(term.id == found_id if term.id else _matches(tags, term.tags) for term in terms)


def _matches(tags: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return bool(wanted) and all(key in tags and fnmatchcase(tags[key], value) for key, value in wanted.items())


def _is_selected_image(image: Image, node_class: EC2NodeClass) -> bool:
    terms = node_class.spec.ami_selector_terms
    if any(term.alias and term.alias.partition("@")[0] == image.alias for term in terms):
        return True
    named = any(term.name and fnmatchcase(image.name, term.name) for term in terms)
    return named or _selected(image.id, image.tags, terms)


def _newest(images: Iterable[AMIStatus]) -> list[AMIStatus]:
    """The first of each kind: of images for the same nodes the newest is all that a class selects (Karpenter)."""
    kinds: dict[str, AMIStatus] = {}
    for image in images:
        kinds.setdefault(repr(image.requirements), image)
    return list(kinds.values())


def _ami(image: Image) -> AMIStatus:
    arch = Requirement(key=labels.ARCH, operator="In", values=[image.arch])
    variant: Iterable[Requirement] = standard_requirements() if image.alias else ()
    return AMIStatus(id=image.id, name=image.name, requirements=[arch, *variant])
