"""An EC2NodeClass's status from what its selectors found: is there everything a launch needs? (aws-provider.md 5.2)

``Ready`` is the sum of the other conditions, and takes the first one's reason that is not True: NodePools of a class
that is not Ready take no part in scheduling, so the reason must be one a user can act upon.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from joinery.apis.ec2nodeclass import (
    AMIStatus,
    EC2NodeClass,
    EC2NodeClassSpec,
    EC2NodeClassStatus,
    SecurityGroupStatus,
    SubnetStatus,
)
from joinery.apis.meta import Condition
from joinery.cloudprovider.tags import restricted

#: Families whose user data Joinery can write.
LAUNCHABLE = ("AL2023", "AL2", "Bottlerocket", "Custom")
READY = "Ready"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a condition is False: a reason in one word, and a sentence."""

    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Found:
    """What the selectors of a class found. A problem says why something could not be found."""

    subnets: Sequence[SubnetStatus] = ()
    security_groups: Sequence[SecurityGroupStatus] = ()
    amis: Sequence[AMIStatus] = ()
    instance_profile: str = ""
    ami_problem: Problem | None = None
    profile_problem: Problem | None = None


def status(node_class: EC2NodeClass, found: Found, now: datetime) -> EC2NodeClassStatus:
    """The status to write. A condition that did not change keeps its transition time."""
    return EC2NodeClassStatus(
        subnets=list(found.subnets),
        security_groups=list(found.security_groups),
        amis=list(found.amis),
        instance_profile=found.instance_profile,
        conditions=_conditions(node_class, found, now),
    )


def _conditions(node_class: EC2NodeClass, found: Found, now: datetime) -> list[Condition]:
    problems = {
        "SubnetsReady": _missing(found.subnets, "SubnetsNotFound", "subnetSelectorTerms select no subnet"),
        "SecurityGroupsReady": _missing(
            found.security_groups, "SecurityGroupsNotFound", "securityGroupSelectorTerms select no security group"
        ),
        "AMIsReady": found.ami_problem or _missing(found.amis, "AMINotFound", "amiSelectorTerms select no image"),
        "InstanceProfileReady": found.profile_problem
        or _missing(found.instance_profile, "InstanceProfileNotFound", "the instance profile does not exist"),
        "ValidationSucceeded": _invalid(node_class.spec),
    }
    problems[READY] = next(filter(None, problems.values()), None)
    return [_condition(node_class, kind, problem, now) for kind, problem in problems.items()]


def _missing(found: object, reason: str, message: str) -> Problem | None:
    return None if found else Problem(reason, message)


def _invalid(spec: EC2NodeClassSpec) -> Problem | None:
    if tag := restricted(spec.tags):
        return Problem("TagValidationFailed", f"spec.tags: {tag} is set by Joinery")
    if spec.family not in LAUNCHABLE:
        return Problem("UnsupportedFamily", f"amiFamily {spec.family} is not supported yet")
    if spec.placement_group_selector is not None:
        return Problem("UnsupportedPlacementGroup", "placementGroupSelector is not supported yet")
    return None


def _condition(node_class: EC2NodeClass, kind: str, problem: Problem | None, now: datetime) -> Condition:
    before = next((c for c in node_class.status.conditions if c.type == kind), None)
    state = "False" if problem else "True"
    changed = before is None or before.status != state or before.last_transition_time is None
    return Condition(
        type=kind,
        status="False" if problem else "True",
        reason=problem.reason if problem else kind,
        message=problem.message if problem else "",
        last_transition_time=now if changed or before is None else before.last_transition_time,
        observed_generation=node_class.metadata.generation,
    )
