"""EC2 without asking it: what the command line needs to read files and to plan from them.

The command line reaches this cloud through this module, as controllers do through the gateway. Another cloud would
bring a module with the same names.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.gateways.ec2.instancetypes.capacity import USUAL, NodeAssumptions
from joinery.gateways.ec2.instancetypes.remembered import types_of
from joinery.gateways.ec2.instancetypes.resolve import LONG_AGO, left_out
from joinery.gateways.ec2.nodeclass.placement import MOST_PARTITIONS, PlacementGroup
from joinery.gateways.ec2.nodeclass.reservations import reservations_of, uncounted
from joinery.objects.karpenter.conditions import READY, Observation, false, put
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass, of_ec2
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.snapshot.offerings import InstanceType

if TYPE_CHECKING:
    from joinery.objects.settings import Settings

#: The model of the cloud's node classes.
NODE_CLASS: type[NodeClass] = EC2NodeClass
#: The kinds of its node classes, of today and of Karpenter's older APIs.
CLASS_KINDS = frozenset({EC2NodeClass.kind, "AWSNodeTemplate"})


def instance_types(
    node_classes: Iterable[NodeClass], catalog: Catalog, now: datetime = LONG_AGO, settings: "Settings | None" = None
) -> Mapping[str, tuple[InstanceType, ...]]:
    """By the class's name, the catalogue's types as its nodes may be of them.

    What is left of capacity reservations is what the catalogue says. ``settings``: those of the stack, where they
    are known. Raises ``ConfigurationError`` for a broken catalogue.
    """
    assumed = NodeAssumptions.of(settings) if settings else USUAL
    return {
        node_class.metadata.name: types_of(
            catalog, of_ec2(node_class), now=now, assumed=assumed, group=_group(of_ec2(node_class))
        )
        for node_class in node_classes
    }


def _group(node_class: EC2NodeClass) -> PlacementGroup | None:
    """The placement group that a class names. EC2 was not asked what it is: it takes all types, and may have as many
    partitions as any has.
    """
    selector = node_class.spec.placement_group_selector
    return PlacementGroup(selector.id or "", selector.name or "", "", MOST_PARTITIONS) if selector else None


def assumed_partitions(node_classes: Iterable[NodeClass]) -> Iterator[str]:
    """A line for each class with a placement group, of which no file says how many partitions it has."""
    for node_class in map(of_ec2, node_classes):
        if group := _group(node_class):
            yield (
                f"{node_class.kind} {node_class.metadata.name}: placement group {group.id or group.name} is not looked "
                f"up: pods may ask for each of {MOST_PARTITIONS} partitions, the most that one has"
            )


def default_class() -> NodeClass:
    """AL2023 on its default disk, in every zone."""
    spec: dict[str, Any] = {
        "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"tags": {"*": "*"}}],
        "securityGroupSelectorTerms": [{"tags": {"*": "*"}}],
        "role": "default",
    }
    return EC2NodeClass.model_validate({"metadata": {"name": "default"}, "spec": spec})


def unused_reservations(node_classes: Iterable[NodeClass], catalog: Catalog, now: datetime) -> Iterator[str]:
    """A line for each capacity reservation that a class asks for and that is not used, with the reason."""
    reservations = catalog.capacity_reservations
    for node_class in map(of_ec2, node_classes):
        subject = f"{node_class.kind} {node_class.metadata.name}"
        for name in uncounted(node_class, reservations, now):
            unsaid = "the catalogue does not say how much is left of it"
            yield f"{subject}: capacity reservation {name} is not used: {unsaid}"
        wanted = node_class.spec.capacity_reservation_selector_terms
        if wanted and not reservations_of(node_class, reservations, now):
            yield f"{subject}: capacityReservationSelectorTerms select no capacity reservation of the catalogue"


def unbootable(node_classes: Iterable[NodeClass]) -> Iterator[str]:
    """A line for each class with user data with which no node could boot: a cluster finds it not Ready."""
    for node_class in map(of_ec2, node_classes):
        if problem := _user_data_problem(node_class):
            yield f"{node_class.kind} {node_class.metadata.name}: not usable: {problem}"


def judged(node_classes: Iterable[NodeClass], now: datetime) -> tuple[NodeClass, ...]:
    """The classes, not Ready where a cluster would find them so by their specs alone: nothing is launched of these."""
    return tuple(_judged(of_ec2(node_class), now) for node_class in node_classes)


def _judged(node_class: EC2NodeClass, now: datetime) -> EC2NodeClass:
    problem = node_class.unknown_problem or _user_data_problem(node_class)
    if not problem:
        return node_class
    at = Observation(now=now, generation=node_class.metadata.generation)
    conditions = put(node_class.status.conditions, false(READY, "NotUsable", problem, at))
    status = node_class.status.model_copy(update={"conditions": conditions})
    return node_class.model_copy(update={"status": status})


def _user_data_problem(node_class: EC2NodeClass) -> str:
    # What is wrong with its kubelet's settings is said where the class is refused.
    if not node_class.spec.user_data or node_class.unsupported:
        return ""
    # It brings the clients of AWS along, which other plans need not wait for.
    from joinery.gateways.ec2.launch.userdata import user_data_problem

    problem = user_data_problem(node_class.spec)
    return problem.message if problem else ""


def types_without_value(
    node_classes: Iterable[NodeClass], catalog: Catalog, settings: "Settings | None"
) -> Iterator[str]:
    """A line for each class with an expression that has no value for some types, which it therefore leaves out.

    ``settings``: those of the stack, where they are known.
    """
    assumed = NodeAssumptions.of(settings) if settings else USUAL
    for node_class in map(of_ec2, node_classes):
        if said := left_out(catalog, node_class, assumed):
            yield f"{node_class.kind} {node_class.metadata.name}: {said}"
