"""An EC2NodeClass's status from what its selectors found: is there everything a launch needs? (Karpenter for AWS, nodeclass controller)

``Ready`` is the sum of the other conditions, and takes the first one's reason that is not True: NodePools of a class
that is not Ready take no part in scheduling, so the reason must be one a user can act upon.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from joinery.apis.conditions import READY, Observation, false, put, true
from joinery.apis.ec2nodeclass import (
    AMIStatus,
    CapacityReservationStatus,
    EC2NodeClass,
    EC2NodeClassStatus,
    SecurityGroupStatus,
    SubnetStatus,
)
from joinery.apis.meta import Condition
from joinery.apis.nodeclass import Unsupported
from joinery.cloudprovider.nodeclass.reservations import READY as RESERVATIONS_READY
from joinery.cloudprovider.nodeclass.tags import restricted


@dataclass(frozen=True, slots=True)
class Unmet:
    """Why a condition is False: a reason in one word, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What the selectors of a class found. A problem says why something could not be found."""

    subnets: Sequence[SubnetStatus] = ()
    security_groups: Sequence[SecurityGroupStatus] = ()
    amis: Sequence[AMIStatus] = ()
    capacity_reservations: Sequence[CapacityReservationStatus] = ()
    instance_profile: str = ""
    ami_problem: Unmet | None = None
    profile_problem: Unmet | None = None


def status(node_class: EC2NodeClass, found: Selection, now: datetime) -> EC2NodeClassStatus:
    """The status to write. A condition that did not change keeps its transition time."""
    return EC2NodeClassStatus(
        subnets=list(found.subnets),
        security_groups=list(found.security_groups),
        amis=list(found.amis),
        capacity_reservations=list(found.capacity_reservations),
        instance_profile=found.instance_profile,
        conditions=_conditions(node_class, found, now),
    )


def _conditions(node_class: EC2NodeClass, found: Selection, now: datetime) -> list[Condition]:
    lacking = {found.condition: found for found in node_class.unsupported}
    problems = {
        "SubnetsReady": _missing(found.subnets, "SubnetsNotFound", "subnetSelectorTerms select no subnet"),
        "SecurityGroupsReady": _missing(
            found.security_groups, "SecurityGroupsNotFound", "securityGroupSelectorTerms select no security group"
        ),
        "AMIsReady": found.ami_problem or _missing(found.amis, "AMINotFound", "amiSelectorTerms select no image"),
        "InstanceProfileReady": found.profile_problem
        or _missing(found.instance_profile, "InstanceProfileNotFound", "the instance profile does not exist"),
        # Whatever they select, nothing among it: what is not reserved is bought.
        RESERVATIONS_READY: None,
        "PlacementGroupReady": _lacks(lacking.get("PlacementGroupReady")),
        "ValidationSucceeded": _forbidden(node_class) or _lacks(lacking.get("ValidationSucceeded")),
    }
    problems[READY] = next(filter(None, problems.values()), None)
    return _told(node_class, problems, now)


def _told(node_class: EC2NodeClass, problems: Mapping[str, Unmet | None], now: datetime) -> list[Condition]:
    at = Observation(now=now, generation=node_class.metadata.generation)
    told = [condition for condition in node_class.status.conditions if condition.type in problems]
    for kind, problem in problems.items():
        told = put(told, false(kind, problem.reason, problem.message, at) if problem else true(kind, at))
    return told


def _missing(found: object, reason: str, message: str) -> Unmet | None:
    return None if found else Unmet(reason, message)


def _forbidden(node_class: EC2NodeClass) -> Unmet | None:
    tag = restricted(node_class.spec.tags)
    return Unmet("TagValidationFailed", f"spec.tags: {tag} is set by Joinery") if tag else None


def _lacks(found: Unsupported | None) -> Unmet | None:
    return Unmet(found.reason, str(found)) if found else None
