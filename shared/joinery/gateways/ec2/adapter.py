"""The cloud gateway over boto3: EC2, with EKS, SSM and IAM for what a launch needs besides."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from joinery.gateways.answers import Log, unlogged
from joinery.gateways.aws import Clients, translated
from joinery.gateways.ec2.catalog import bought, listing
from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.catalog.reservation_queries import reservations_by_id
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.ec2.gateway import Instance, LaunchRequest, LaunchResult, Likely, nobody_knows
from joinery.gateways.ec2.instancetypes.capacity import USUAL, NodeAssumptions
from joinery.gateways.ec2.instancetypes.remembered import types_of
from joinery.gateways.ec2.instancetypes.resolve import left_out
from joinery.gateways.ec2.launch.create_fleet import CreateFleet
from joinery.gateways.ec2.launch.dryruns import DryRuns
from joinery.gateways.ec2.launch.facts import ClusterFacts, KnownCluster
from joinery.gateways.ec2.launch.impaired import impaired
from joinery.gateways.ec2.launch.launch_templates import LaunchTemplates
from joinery.gateways.ec2.launch.running import described
from joinery.gateways.ec2.launch.shifts import ZonalShifts
from joinery.gateways.ec2.launch.terminations import terminate
from joinery.gateways.ec2.nodeclass.lookups import Lookups
from joinery.gateways.ec2.nodeclass.placementgroups import PlacementGroups
from joinery.gateways.ec2.nodeclass.profiles import Profiles
from joinery.gateways.ec2.nodeclass.readiness import SelectedResources, status
from joinery.gateways.ec2.nodeclass.selections import Selections
from joinery.gateways.ec2.nodeclass.tags import OWNER_PREFIX, is_of_cluster
from joinery.gateways.ec2.resolution import Resolution
from joinery.gateways.workers import Threads
from joinery.objects.codes import SUBNET_FULL
from joinery.objects.commitments import Bought
from joinery.objects.errors import ConfigurationError, JoineryError
from joinery.objects.karpenter import labels
from joinery.objects.karpenter.conditions import READY, VALID, is_true
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, EC2NodeClassStatus, of_ec2
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.snapshot.instances import InstanceStatus
from joinery.objects.snapshot.learned_memory import LearnedMemory
from joinery.objects.snapshot.offerings import InstanceType

if TYPE_CHECKING:
    from boto3.session import Session

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
    list cannot be reached. ``dry_runs``: whether launches are tried before a class is ready. ``session``: of the role
    that it is asked as (``Clients``).
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
        dry_runs: bool = True,
        assumed: NodeAssumptions = USUAL,
        session: "Callable[[], Session] | None" = None,
    ) -> None:
        self._cluster, self._now = cluster, now
        self._prices_are_estimated, self._assumed = prices_are_estimated, assumed
        self._clients = Clients(region, log, now=now, session=session)
        self._lookups = Lookups(now, log)
        self._described = KnownCluster(self._clients, cluster)
        self._templates = LaunchTemplates(self._clients, cluster, now)
        self._create_fleet = CreateFleet(self._clients, now, self._templates)
        self._dry_runs, self._does_try = DryRuns(self._clients, now), dry_runs
        self._placement_groups = PlacementGroups(self._clients)
        self._profiles = Profiles(self._clients, cluster)
        self._selections = Selections(now)
        self._said = set[tuple[str, int, str]]()
        self._shifts = ZonalShifts(self._clients, now) if zonal_shift else None

    @property
    def facts(self) -> ClusterFacts:
        """Where nodes find their cluster.

        ``NotFoundError`` if EKS does not know it, ``UnavailableError`` while it is made.
        """
        return self._described.facts(self._lookups.recent())

    def catalog(self, earlier: Catalog | None = None, *, in_full: bool = False) -> Catalog:
        return listing.read(
            self._patient,
            self._now(),
            earlier,
            in_full=in_full,
            workers=Threads(_LISTED_AT_A_TIME),
            prices_are_estimated=self._prices_are_estimated,
        )

    def bought(self) -> Bought:
        return bought.read(self._patient, self._cluster, workers=Threads(_LISTED_AT_A_TIME))

    @property
    def _patient(self) -> Clients:
        # No run that is short waits for them: the function that lists has minutes, and a person has, too.
        own = self._clients
        return Clients(own.region, own.log, read_seconds=_LISTING_SECONDS, session=own.session)

    def status_of(self, node_class: NodeClass) -> EC2NodeClassStatus:
        return self._status(of_ec2(node_class), may_make=False)

    def prepare(self, node_class: NodeClass, likely: Likely = nobody_knows) -> EC2NodeClassStatus:
        return self._status(of_ec2(node_class), likely, may_make=True)

    def _status(self, ec2_class: EC2NodeClass, likely: Likely = nobody_knows, *, may_make: bool) -> EC2NodeClassStatus:
        """``may_make``: whether the profile that it lacks is made, and a launch tried."""

        def select() -> SelectedResources:
            looking = Resolution(self._clients, self._described, self._lookups, ec2_class, self._now())
            found = looking.selected(self._profiles, self._placement_groups, may_make=may_make)
            return self._tried(ec2_class, found, likely) if may_make and self._does_try else found

        return status(ec2_class, self._selections.of(ec2_class, "prepare" if may_make else "find", select), self._now())

    def _tried(self, ec2_class: EC2NodeClass, found: SelectedResources, likely: Likely) -> SelectedResources:
        """What was found, with what is wrong with it that only a launch would tell."""
        expected = status(ec2_class, found, self._now())
        if not is_true(expected.conditions, READY):
            return found
        problem = self._dry_runs.problem(ec2_class, expected, lambda: self.facts, likely)
        return replace(found, problems={**found.problems, VALID: problem}) if problem else found

    def instance_types(
        self, node_classes: Sequence[NodeClass], catalog: Catalog, now: datetime, memory: LearnedMemory | None = None
    ) -> Mapping[str, tuple[InstanceType, ...]]:
        classes = [of_ec2(node_class) for node_class in node_classes]
        reservations, types, learned = self._counted(classes), {}, memory or {}
        for node_class in classes:
            name, selector = node_class.metadata.name, node_class.spec.placement_group_selector
            try:
                self._say_left_out(catalog, node_class)
                types[name] = types_of(
                    catalog,
                    node_class,
                    now=now,
                    reservations=reservations,
                    assumed=self._assumed,
                    group=self._placement_groups.known(selector, self._lookups.recent()) if selector else None,
                    memory=learned.get(name),
                )
            except ConfigurationError:
                raise  # The catalogue is broken, for all classes.
            except (
                Exception
            ) as error:  # One class must not keep the pods of others waiting, even if the mistake is ours.
                self._clients.log(f"{node_class.kind} {name}: its instance types cannot be worked out: {error!r}")
        return types

    def _counted(self, classes: Iterable[EC2NodeClass]) -> tuple[CapacityReservation, ...]:
        """The reservations of the classes with what is left of them; none, so that nothing is bought in them, where EC2
        does not say: a plan without them is better than none.
        """
        ids = {entry.id for node_class in classes for entry in node_class.status.capacity_reservations}
        try:
            return reservations_by_id(self._clients, sorted(ids))
        except JoineryError as error:
            self._clients.log(f"what is left of capacity reservations is not known: {error}")
            return ()

    def _say_left_out(self, catalog: Catalog, node_class: EC2NodeClass) -> None:
        """Log, once for each version of the class, which types an expression leaves out: nothing else would say why a
        plan has none of them.
        """
        version = node_class.metadata.uid, node_class.metadata.generation, catalog.listed
        if version not in self._said:
            self._said.add(version)
            if said := left_out(catalog, node_class, self._assumed):
                self._clients.log(f"{node_class.kind} {node_class.metadata.name}: {said}")

    def launch(self, request: LaunchRequest) -> LaunchResult:
        facts = self.facts
        name = request.node_class.metadata.name
        try:
            result = self._create_fleet.launch(request, facts)
        except ConfigurationError:
            self._selections.forget(name)
            self._dry_runs.expire(name)
            raise
        is_refused = any(not failure.is_capacity for failure in result.failures)
        if is_refused:
            self._dry_runs.expire(name)
        if is_refused or any(failure.code == SUBNET_FULL for failure in result.failures):
            self._selections.forget(name)
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

    def remove_unused(
        self, node_classes: Sequence[NodeClass], claims: Sequence[NodeClaim], instances: Sequence[Instance]
    ) -> None:
        used = {claim.metadata.annotations.get(labels.INSTANCE_PROFILE, "") for claim in claims}
        used |= {instance.instance_profile for instance in instances}
        try:
            self._templates.remove_unused(instances)
        finally:
            self._profiles.remove_unused([of_ec2(node_class) for node_class in node_classes], used, self._now())


def _ids(instance_ids: Sequence[str]) -> dict[str, Any]:
    return {"Name": "instance-id", "Values": list(instance_ids)}
