"""What a node class stands for now: each of its selectors is asked by itself, so that what may not be asked does not
hide the rest.

What AWS refuses (a right that is lacking, a filter that it does not take) is a condition with its reason. A class that
was resolved before keeps what it had: a lacking right says nothing about subnets and images that are there. Who does
not answer is asked again, so that is raised.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from joinery.gateways.answers import needed
from joinery.gateways.aws import Clients
from joinery.gateways.ec2.launch.facts import KnownCluster
from joinery.gateways.ec2.launch.userdata import user_data_problem
from joinery.gateways.ec2.nodeclass import discovery
from joinery.gateways.ec2.nodeclass.discovery import Found
from joinery.gateways.ec2.nodeclass.images import AliasError
from joinery.gateways.ec2.nodeclass.imagesearch import ImageSearch
from joinery.gateways.ec2.nodeclass.lookups import Look, Lookups
from joinery.gateways.ec2.nodeclass.placementgroups import PlacementGroups
from joinery.gateways.ec2.nodeclass.profiles import Profiles
from joinery.gateways.ec2.nodeclass.readiness import SelectedResources, Unmet, said
from joinery.objects.errors import ConfigurationError, NotFoundError
from joinery.objects.karpenter.conditions import find
from joinery.objects.karpenter.ec2nodeclass import (
    AMIStatus,
    CapacityReservationStatus,
    EC2NodeClass,
    SecurityGroupStatus,
    SubnetStatus,
)
from joinery.objects.karpenter.ec2nodeclass_status import (
    IMAGES_READY,
    PLACEMENT_READY,
    PROFILE_READY,
    RESERVATIONS_READY,
    SECURITY_GROUPS_READY,
    SUBNETS_READY,
)

T = TypeVar("T")


class Resolution:
    """One look at one class."""

    def __init__(
        self, clients: Clients, cluster: KnownCluster, lookups: Lookups, node_class: EC2NodeClass, now: datetime
    ) -> None:
        self._clients, self._cluster, self._lookups, self._class, self._now = clients, cluster, lookups, node_class, now
        self._look = lookups.look(node_class.metadata.name)
        self._problems: dict[str, Unmet] = {}

    def selected(self, profiles: Profiles, placement_groups: PlacementGroups, *, may_make: bool) -> SelectedResources:
        """What the class selects: nine calls, most of which classes share.

        ``may_make``: whether an instance profile that is not there is made. Raises ``UnavailableError``.
        """
        spec, status = self._class.spec, self._class.status
        self._part(PLACEMENT_READY, None, None, lambda: self._check_placement_group(placement_groups))
        subnets = self._part(SUBNETS_READY, Found(status.subnets, ()), Found((), ()), self._subnets)
        return SelectedResources(
            subnets=subnets,
            security_groups=self._part(
                SECURITY_GROUPS_READY, status.security_groups, [], lambda: self._security_groups(subnets.vpcs)
            ),
            amis=self._part(IMAGES_READY, status.amis, [], self._amis),
            instance_profile=self._part(
                PROFILE_READY, status.instance_profile, "", lambda: self._profile(profiles, may_make)
            ),
            capacity_reservations=self._part(RESERVATIONS_READY, status.capacity_reservations, [], self._reservations),
            problems=self._problems,
            user_data_problem=user_data_problem(spec),
        )

    def _part(self, condition: str, kept: T, nothing: T, find_it: Callable[[], T]) -> T:
        try:
            return find_it()
        except (ConfigurationError, NotFoundError) as refused:
            reason = f"{condition.removesuffix('Ready')}NotResolved"
            stays = self._was_resolved(condition)
            text = f"{said(refused)}; what was found before is used" if stays else said(refused)
            self._problems[condition] = Unmet(reason, text, is_known=not stays)
            return kept if stays else nothing

    def _was_resolved(self, condition: str) -> bool:
        """Whether the status says what the class selects, as it is written now."""
        before = find(self._class.status.conditions, condition)
        of_today = before is not None and before.observed_generation == self._class.metadata.generation
        return before is not None and of_today and before.status != "False"

    def _subnets(self) -> Found[SubnetStatus]:
        terms = self._class.spec.subnet_selector_terms
        return self._look.ask(f"subnets {terms!r}", lambda: discovery.subnets(self._clients, terms))

    def _security_groups(self, networks: frozenset[str]) -> list[SecurityGroupStatus]:
        """``networks``: the VPCs of the subnets."""
        terms = self._class.spec.security_group_selector_terms
        found = self._look.ask(f"security groups {terms!r}", lambda: discovery.security_groups(self._clients, terms))
        if not _fit(found.vpcs, networks):
            text = f"the security groups are of {_listed(found.vpcs)}, and the subnets of {_listed(networks)}"
            self._problems[SECURITY_GROUPS_READY] = Unmet("SecurityGroupsOfAnotherVPC", text)
        return found

    def _reservations(self) -> list[CapacityReservationStatus]:
        spec = self._class.spec
        images, group = (spec.is_windows, spec.ami_selector_terms), spec.placement_group_selector
        question = f"capacity reservations {spec.capacity_reservation_selector_terms!r} {images!r} {group!r}"
        return self._look.ask(question, lambda: discovery.capacity_reservations(self._clients, spec, self._now))

    def _profile(self, profiles: Profiles, may_make: bool) -> str:
        # Given by name, it is not asked for: a class has one where IAM cannot be reached. A dry run says what it is.
        if self._class.spec.instance_profile:
            return self._class.spec.instance_profile
        try:
            return (profiles.ensure if may_make else profiles.find)(self._class, self._look)
        except NotFoundError as error:
            self._problems[PROFILE_READY] = Unmet("RoleNotFound", f"spec.role {self._class.spec.role}: {error}")
            return ""

    def _check_placement_group(self, placement_groups: PlacementGroups) -> None:
        """A problem where the placement group is not there. The status has no field for what was found."""
        selector = self._class.spec.placement_group_selector
        if selector is not None and placement_groups.find(selector, self._look) is None:
            text = f"placementGroupSelector: there is no available placement group {selector.id or selector.name}"
            self._problems[PLACEMENT_READY] = Unmet("PlacementGroupNotFound", text)

    def _amis(self) -> list[AMIStatus]:
        try:
            found = self._search(self._look)
            if found and self._moves_on(found):
                # Another function may have seen the next version of Kubernetes, or the next image, before this one has.
                # What changes a class is no answer from before: so an image never goes back to one of yesterday.
                found = self._search(self._lookups.anew())
            return found or self._last_amis()
        except AliasError as error:
            self._problems[IMAGES_READY] = Unmet("UnsupportedAlias", str(error))
            return []

    def _search(self, look: Look) -> list[AMIStatus]:
        spec = self._class.spec
        terms = spec.ami_selector_terms
        # Only aliases need the cluster's version. A class of explicit images must not depend on EKS.
        version = self._version(look) if any(term.alias for term in terms) else ""
        return ImageSearch(self._clients, version, self._now, is_windows=spec.is_windows, look=look).find(terms)

    def _version(self, look: Look) -> str:
        """Kubernetes' minor version of the cluster, such as 1.33."""
        facts = self._cluster.facts(look)
        return str(needed({"version": facts.version}, "version", call=f"EKS DescribeCluster {facts.name}"))

    def _moves_on(self, found: Sequence[AMIStatus]) -> bool:
        return self._class.images not in (frozenset(), frozenset(image.id for image in found))

    def _last_amis(self) -> list[AMIStatus]:
        """The images that the class's alias stood for last; none for a class that has changed since.

        A pinned alias has no images for the next version of Kubernetes, and those that it had still boot (Karpenter for
        AWS, amifamily: no status is written where no parameter is found).
        """
        has_alias = any(term.alias for term in self._class.spec.ami_selector_terms)
        if not (has_alias and self._was_resolved(IMAGES_READY)):
            return []
        name = self._class.metadata.name
        self._clients.log(f"EC2NodeClass {name}: its alias stands for no image any more; the last ones stay")
        return self._class.status.amis


def _fit(groups: frozenset[str], subnets: frozenset[str]) -> bool:
    """Whether an instance in some subnet can have all the groups. An answer that names no VPC says nothing."""
    return not (groups and subnets) or any(groups == {vpc} for vpc in subnets)


def _listed(vpcs: frozenset[str]) -> str:
    return ", ".join(sorted(vpcs))
