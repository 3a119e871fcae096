"""The status of an EC2NodeClass: what its selectors found, and whether that is all that a launch needs.

(Karpenter for AWS, nodeclass controller.) ``Ready`` is True if no other condition is False. If one is, it repeats the
reason of the first, because NodePools of such a class launch nothing and their users must learn what to do.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from joinery.gateways.ec2.nodeclass.tags import restricted
from joinery.objects.errors import JoineryError
from joinery.objects.karpenter.conditions import READY, VALID, Observation, false, put, true, unknown
from joinery.objects.karpenter.ec2nodeclass import (
    AMIStatus,
    CapacityReservationStatus,
    EC2NodeClass,
    EC2NodeClassStatus,
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
from joinery.objects.karpenter.gpu_sharing import is_sharing
from joinery.objects.karpenter.labels import GPU_SHARING
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodeclass import Unsupported

#: EC2 appends it to what it denies, and it is another text each time.
_ENCODED = re.compile(r"(?<!\s)\s*Encoded authorization failure message: \S+")


@dataclass(frozen=True, slots=True)
class Unmet:
    """Why a condition is not True: its reason in CamelCase, and a sentence.

    ``is_known``: False where nobody could look, and what was found before is used on.
    """

    reason: str
    message: str
    is_known: bool = True


@dataclass(frozen=True, kw_only=True)
class SelectedResources:
    """What the selectors of a class found.

    ``problems``: by the condition's type, why something could not be found, or not be used. ``user_data_problem``: why
    no node could boot with the class's user data.
    """

    subnets: Sequence[SubnetStatus] = ()
    security_groups: Sequence[SecurityGroupStatus] = ()
    amis: Sequence[AMIStatus] = ()
    capacity_reservations: Sequence[CapacityReservationStatus] = ()
    instance_profile: str = ""
    problems: Mapping[str, Unmet] = field(default_factory=dict)
    user_data_problem: Unmet | None = None


def said(error: JoineryError) -> str:
    """What an error says, in words that are the same each time that it comes."""
    return _ENCODED.sub("", str(error))


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
    lacking = {
        SUBNETS_READY: _missing(selection.subnets, "SubnetsNotFound", "subnetSelectorTerms select no subnet"),
        SECURITY_GROUPS_READY: _missing(
            selection.security_groups, "SecurityGroupsNotFound", "securityGroupSelectorTerms select no security group"
        ),
        IMAGES_READY: _missing(selection.amis, "AMINotFound", "amiSelectorTerms select no image"),
        PROFILE_READY: _missing(
            selection.instance_profile, "InstanceProfileNotFound", "the instance profile does not exist"
        ),
        # A class may select no reservation: what is not reserved is bought.
        RESERVATIONS_READY: None,
        PLACEMENT_READY: None,
        VALID: _forbidden(node_class)
        or _unknown_field(node_class)
        or _sharing(node_class)
        or _lacks(unsupported.get(VALID))
        or selection.user_data_problem,
    }
    problems = {name: selection.problems.get(name) or unmet for name, unmet in lacking.items()}
    problems[READY] = next((unmet for unmet in problems.values() if unmet and unmet.is_known), None)
    return _updated(node_class, problems, now)


def _updated(node_class: EC2NodeClass, problems: Mapping[str, Unmet | None], now: datetime) -> list[Condition]:
    """The class's conditions of these types, as they are now. Conditions of other types are dropped."""
    at = Observation(now=now, generation=node_class.metadata.generation)
    conditions = [condition for condition in node_class.status.conditions if condition.type in problems]
    for name, unmet in problems.items():
        conditions = put(conditions, _condition(name, unmet, at))
    return conditions


def _condition(name: str, unmet: Unmet | None, at: Observation) -> Condition:
    if unmet is None:
        return true(name, at)
    return (false if unmet.is_known else unknown)(name, unmet.reason, unmet.message, at)


def _missing(selected: object, reason: str, message: str) -> Unmet | None:
    return None if selected else Unmet(reason, message)


def _forbidden(node_class: EC2NodeClass) -> Unmet | None:
    tag = restricted(node_class.spec.tags)
    return Unmet("TagValidationFailed", f"spec.tags: {tag} is set by Joinery") if tag else None


def _unknown_field(node_class: EC2NodeClass) -> Unmet | None:
    problem = node_class.unknown_problem
    return Unmet("UnknownField", problem) if problem else None


def _sharing(node_class: EC2NodeClass) -> Unmet | None:
    """Where the annotation says of GPUs what their driver cannot do, every node would hold another number of pods."""
    said = node_class.metadata.annotations.get(GPU_SHARING, "")
    if said in ("", "disabled") or is_sharing(said):
        return None
    words = f"annotation {GPU_SHARING}: {said!r} is neither disabled, memory, unlimited nor a number of shares"
    return Unmet("NVIDIAConsumableCapacityInvalid", words)


def _lacks(unsupported: Unsupported | None) -> Unmet | None:
    return Unmet(unsupported.reason, str(unsupported)) if unsupported else None
