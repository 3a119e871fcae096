"""The status of an EC2NodeClass: what its selectors found, and whether that is all that a launch needs.

(Karpenter for AWS, nodeclass controller.) ``Ready`` is True if all other conditions are. If not, it repeats the reason
of the first that is False, because NodePools of such a class launch nothing and their users must learn what to do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from joinery.gateways.ec2.nodeclass.reservations import READY as RESERVATIONS_READY
from joinery.gateways.ec2.nodeclass.tags import restricted
from joinery.objects.karpenter.conditions import READY, Observation, false, put, true
from joinery.objects.karpenter.ec2nodeclass import (
    AMIStatus,
    CapacityReservationStatus,
    EC2NodeClass,
    EC2NodeClassStatus,
    SecurityGroupStatus,
    SubnetStatus,
)
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclass import Unsupported


@dataclass(frozen=True, slots=True)
class Unmet:
    """Why a condition is False: its reason in CamelCase, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class SelectedResources:
    """What the selectors of a class found.

    ``ami_problem`` and ``profile_problem``: why images or a profile could not be found. ``user_data_problem``: why no
    node could boot with the class's user data.
    """

    subnets: Sequence[SubnetStatus] = ()
    security_groups: Sequence[SecurityGroupStatus] = ()
    amis: Sequence[AMIStatus] = ()
    capacity_reservations: Sequence[CapacityReservationStatus] = ()
    instance_profile: str = ""
    ami_problem: Unmet | None = None
    profile_problem: Unmet | None = None
    user_data_problem: Unmet | None = None


def status(node_class: EC2NodeClass, selection: SelectedResources, now: datetime) -> EC2NodeClassStatus:
    """The status to write. A condition that did not change keeps its transition time."""
    return EC2NodeClassStatus(
        subnets=list(selection.subnets),
        security_groups=list(selection.security_groups),
        amis=list(selection.amis),
        capacity_reservations=list(selection.capacity_reservations),
        instance_profile=selection.instance_profile,
        conditions=_conditions(node_class, selection, now),
    )


def _conditions(node_class: EC2NodeClass, selection: SelectedResources, now: datetime) -> list[Condition]:
    unsupported = {field.condition: field for field in reversed(node_class.unsupported)}
    problems = {
        "SubnetsReady": _missing(selection.subnets, "SubnetsNotFound", "subnetSelectorTerms select no subnet"),
        "SecurityGroupsReady": _missing(
            selection.security_groups, "SecurityGroupsNotFound", "securityGroupSelectorTerms select no security group"
        ),
        "AMIsReady": selection.ami_problem
        or _missing(selection.amis, "AMINotFound", "amiSelectorTerms select no image"),
        "InstanceProfileReady": selection.profile_problem
        or _missing(selection.instance_profile, "InstanceProfileNotFound", "the instance profile does not exist"),
        # A class may select no reservation: what is not reserved is bought.
        RESERVATIONS_READY: None,
        "PlacementGroupReady": _lacks(unsupported.get("PlacementGroupReady")),
        "ValidationSucceeded": _forbidden(node_class)
        or _lacks(unsupported.get("ValidationSucceeded"))
        or selection.user_data_problem,
    }
    problems[READY] = next(filter(None, problems.values()), None)
    return _updated(node_class, problems, now)


def _updated(node_class: EC2NodeClass, problems: Mapping[str, Unmet | None], now: datetime) -> list[Condition]:
    """The class's conditions of these types, as they are now. Conditions of other types are dropped."""
    at = Observation(now=now, generation=node_class.metadata.generation)
    conditions = [condition for condition in node_class.status.conditions if condition.type in problems]
    for name, unmet in problems.items():
        conditions = put(conditions, false(name, unmet.reason, unmet.message, at) if unmet else true(name, at))
    return conditions


def _missing(selected: object, reason: str, message: str) -> Unmet | None:
    return None if selected else Unmet(reason, message)


def _forbidden(node_class: EC2NodeClass) -> Unmet | None:
    tag = restricted(node_class.spec.tags)
    return Unmet("TagValidationFailed", f"spec.tags: {tag} is set by Joinery") if tag else None


def _lacks(unsupported: Unsupported | None) -> Unmet | None:
    return Unmet(unsupported.reason, str(unsupported)) if unsupported else None
