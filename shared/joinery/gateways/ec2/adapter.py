"""The cloud gateway over boto3: EC2, with EKS, SSM and IAM for what a launch needs besides."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from threading import Lock
from typing import Any

from joinery.gateways.answers import Log, needed, unlogged
from joinery.gateways.aws import Clients, cluster_of, translated
from joinery.gateways.ec2.catalog import listing
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.catalog.reservation_queries import reservations_by_id
from joinery.gateways.ec2.gateway import Instance, LaunchRequest, LaunchResult
from joinery.gateways.ec2.instancetypes.remembered import types_of
from joinery.gateways.ec2.launch.create_fleet import CreateFleet
from joinery.gateways.ec2.launch.facts import ClusterFacts, cluster_facts
from joinery.gateways.ec2.launch.impaired import impaired
from joinery.gateways.ec2.launch.running import described
from joinery.gateways.ec2.launch.shifts import ZonalShifts
from joinery.gateways.ec2.launch.terminations import terminate
from joinery.gateways.ec2.launch.userdata import user_data_problem
from joinery.gateways.ec2.nodeclass import discovery
from joinery.gateways.ec2.nodeclass.images import AliasError
from joinery.gateways.ec2.nodeclass.imagesearch import ImageSearch
from joinery.gateways.ec2.nodeclass.profiles import Profiles
from joinery.gateways.ec2.nodeclass.readiness import SelectedResources, Unmet, status
from joinery.gateways.ec2.nodeclass.selections import Selections
from joinery.gateways.ec2.nodeclass.tags import OWNER_PREFIX, is_of_cluster
from joinery.gateways.workers import Threads
from joinery.objects.codes import SUBNET_FULL
from joinery.objects.errors import ConfigurationError, NotFoundError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.ec2nodeclass import AMIStatus, EC2NodeClass, EC2NodeClassStatus, of_ec2
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.snapshot.instances import InstanceStatus
from joinery.objects.snapshot.offerings import InstanceType

#: What tells the name of a class's instance profile.
ProfileOf = Callable[[EC2NodeClass], str]

#: How long EC2 may take for one page of its instance types.
_LISTING_SECONDS = 60
#: How many sources of the catalogue are read at a time. Each has a quota of its own.
_LISTED_AT_A_TIME = 6
#: How many values a filter may have (EC2 API, "Filters").
_MOST_FILTER_VALUES = 200
#: The states of an instance that still exists.
_HERE = ("pending", "running", "stopping", "stopped", "shutting-down")


class Ec2Cloud:
    """Implements ``Cloud``. Making one asks AWS nothing: the cluster is described at the first launch.

    ``log`` hears of what is left out of AWS's answers. ``zonal_shift``: whether ARC is asked for zonal shifts, which
    takes a right and a cluster that is registered there. ``prices_are_estimated``: those on demand, because the price
    list cannot be reached.
    """

    def __init__(
        self,
        cluster: str,
        region: str,
        *,
        now: Callable[[], datetime],
        log: Log = unlogged,
        zonal_shift: bool = False,
        prices_are_estimated: bool = False,
    ) -> None:
        self._cluster, self._now = cluster, now
        self._prices_are_estimated = prices_are_estimated
        self._clients = Clients(region, log)
        self._describing = Lock()
        self._create_fleet = CreateFleet(self._clients, now)
        self._profiles = Profiles(self._clients, cluster)
        self._selections = Selections(now)
        self._shifts = ZonalShifts(self._clients, now) if zonal_shift else None

    @cached_property
    def facts(self) -> ClusterFacts:
        """Where nodes find their cluster.

        ``NotFoundError`` if EKS does not know it, ``UnavailableError`` while it is made.
        """
        with translated(f"describing EKS cluster {self._cluster}"):
            answer: Any = self._clients.eks.describe_cluster(name=self._cluster)
        return cluster_facts(cluster_of(answer, self._cluster))

    def catalog(self, earlier: Catalog | None = None, *, in_full: bool = False) -> Catalog:
        # No run that is short waits for this: the function that lists has minutes, and a person has, too.
        patient = Clients(self._clients.region, self._clients.log, read_seconds=_LISTING_SECONDS)
        workers = Threads(_LISTED_AT_A_TIME)
        if earlier and not in_full:
            return listing.repriced(patient, earlier, self._now(), workers=workers)
        estimated = self._prices_are_estimated
        return listing.read(patient, self._now(), earlier, workers=workers, prices_are_estimated=estimated)

    def status_of(self, node_class: NodeClass) -> EC2NodeClassStatus:
        return self._status(of_ec2(node_class), "find", self._profiles.find)

    def prepare(self, node_class: NodeClass) -> EC2NodeClassStatus:
        return self._status(of_ec2(node_class), "prepare", self._profiles.ensure)

    def _status(self, ec2_class: EC2NodeClass, purpose: str, profile_of: ProfileOf) -> EC2NodeClassStatus:
        selection = self._selections.of(ec2_class, purpose, lambda: self._selected(ec2_class, profile_of))
        return status(ec2_class, selection, self._now())

    def _selected(self, ec2_class: EC2NodeClass, profile_of: ProfileOf) -> SelectedResources:
        """Nine calls or so: see ``nodeclass.selections``."""
        spec = ec2_class.spec
        amis, ami_problem = self._amis(ec2_class)
        profile, profile_problem = _profile(ec2_class, profile_of)
        return SelectedResources(
            subnets=discovery.subnets(self._clients, spec.subnet_selector_terms),
            security_groups=discovery.security_groups(self._clients, spec.security_group_selector_terms),
            amis=amis,
            instance_profile=profile,
            capacity_reservations=discovery.capacity_reservations(self._clients, spec, self._now()),
            ami_problem=ami_problem,
            profile_problem=profile_problem,
            user_data_problem=user_data_problem(spec),
        )

    def instance_types(
        self, node_classes: Sequence[NodeClass], catalog: Catalog, now: datetime
    ) -> Mapping[str, tuple[InstanceType, ...]]:
        classes = [of_ec2(node_class) for node_class in node_classes]
        ids = {entry.id for node_class in classes for entry in node_class.status.capacity_reservations}
        reservations = reservations_by_id(self._clients, sorted(ids))
        return {
            node_class.metadata.name: types_of(catalog, node_class, now=now, reservations=reservations)
            for node_class in classes
        }

    def launch(self, request: LaunchRequest) -> LaunchResult:
        with self._describing:
            facts = self.facts
        try:
            result = self._create_fleet.launch(request, facts)
        except ConfigurationError:
            self._selections.forget(request.node_class.metadata.name)
            raise
        if not all(failure.is_capacity and failure.code != SUBNET_FULL for failure in result.failures):
            self._selections.forget(request.node_class.metadata.name)
        return result

    def shifted_zones(self) -> frozenset[str]:
        return self._shifts.zones(self.facts.arn) if self._shifts else frozenset()

    def instances(self) -> tuple[Instance, ...]:
        filters = [
            {"Name": "tag-key", "Values": [labels.NODE_POOL, labels.PROVISIONER_NAME]},
            {"Name": f"tag:{OWNER_PREFIX}{self._cluster}", "Values": ["owned"]},
            {"Name": "instance-state-name", "Values": list(_HERE)},
        ]
        listed = described(self._clients, Filters=filters)
        return tuple(instance for instance in listed if is_of_cluster(instance.tags or {}, self._cluster))

    def look_up(self, instance_ids: Sequence[str]) -> tuple[Instance, ...]:
        # By a filter: a call for ids is refused as a whole if EC2 does not know one of them.
        return tuple(
            instance
            for start in range(0, len(instance_ids), _MOST_FILTER_VALUES)
            for instance in described(self._clients, Filters=[_ids(instance_ids[start : start + _MOST_FILTER_VALUES])])
        )

    def impaired(self) -> tuple[InstanceStatus, ...]:
        return impaired(self._clients)

    def terminate(self, instance_ids: Sequence[str]) -> None:
        if instance_ids:
            terminate(self._clients, instance_ids)

    def reboot(self, instance_id: str) -> None:
        with translated(f"rebooting instance {instance_id}"):
            self._clients.ec2.reboot_instances(InstanceIds=[instance_id])

    def tag(self, instance_id: str, tags: Mapping[str, str]) -> None:
        with translated(f"tagging instance {instance_id}"):
            pairs: Any = [{"Key": key, "Value": value} for key, value in sorted(tags.items())]
            self._clients.ec2.create_tags(Resources=[instance_id], Tags=pairs)

    def _amis(self, node_class: EC2NodeClass) -> tuple[list[AMIStatus], Unmet | None]:
        terms = node_class.spec.ami_selector_terms
        # Only aliases need the cluster's version. A class of explicit images must not depend on EKS.
        version = self._version() if any(term.alias for term in terms) else ""
        try:
            is_windows = node_class.spec.is_windows
            found = ImageSearch(self._clients, version, self._now(), is_windows=is_windows).find(terms)
            return found or self._kept_amis(node_class), None
        except AliasError as error:
            return [], Unmet("UnsupportedAlias", str(error))
        except ConfigurationError as error:
            # Images that the class has are good for launches while nobody can look for newer ones.
            if node_class.status.amis:
                raise
            return [], Unmet("AMIsNotResolved", str(error))

    def _kept_amis(self, node_class: EC2NodeClass) -> list[AMIStatus]:
        """The images that the class's alias stood for last; none for a class that has changed since.

        A pinned alias has no images for the next version of Kubernetes, and those that it had still boot (Karpenter for
        AWS, amifamily: no status is written where no parameter is found).
        """
        status, name = node_class.status, node_class.metadata.name
        resolved = any(
            condition.type == "AMIsReady"
            and condition.status == "True"
            and condition.observed_generation == node_class.metadata.generation
            for condition in status.conditions
        )
        if not (resolved and any(term.alias for term in node_class.spec.ami_selector_terms)):
            return []
        self._clients.log(f"EC2NodeClass {name}: its alias stands for no image any more; the last ones stay")
        return status.amis

    def _version(self) -> str:
        """Kubernetes' minor version of the cluster, such as 1.33."""
        return str(needed({"version": self.facts.version}, "version", call=f"EKS DescribeCluster {self._cluster}"))


def _ids(instance_ids: Sequence[str]) -> dict[str, Any]:
    return {"Name": "instance-id", "Values": list(instance_ids)}


def _profile(node_class: EC2NodeClass, profile_of: ProfileOf) -> tuple[str, Unmet | None]:
    """The name of the class's instance profile, and what is wrong with it. ``profile_of``: for a class with a role."""
    if node_class.spec.instance_profile:
        return node_class.spec.instance_profile, None
    try:
        return profile_of(node_class), None
    except NotFoundError as error:
        return "", Unmet("RoleNotFound", f"spec.role {node_class.spec.role}: {error}")
