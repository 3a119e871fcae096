"""What is wrong with a PodGroup of a file: three APIs have the kind, and each its own word for the number of pods that
are placed together. In the wrong place that number counts for nothing, and a gang is planned pod by pod.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from joinery.objects.kubernetes.podgroups import PodGroup
from joinery.objects.snapshot.gangs import FIELDS
from joinery.objects.spelling import meant_by
from joinery.objects.wording import must_be
from joinery_cli.reading.fields import FieldFinding

_KUBERNETES, _COSCHEDULING, _VOLCANO = (
    FIELDS[field].group for field in ("scheduling_groups", "coscheduling_groups", "volcano_groups")
)
_OF_GANG = "schedulingPolicy.gang.minCount"
#: The fields of each API's spec (Kubernetes 1.37, scheduler-plugins 0.34, Volcano 1.13).
_SPEC = {
    _KUBERNETES: (
        "disruptionMode", "parentCompositePodGroupName", "podGroupTemplateRef", "preemptionPolicy", "priority",
        "priorityClassName", "resourceClaims", "schedulingConstraints", "schedulingPolicy", "workloadRef",
    ),
    _COSCHEDULING: ("minMember", "minResources", "scheduleTimeoutSeconds"),
    _VOLCANO: (
        "minMember", "minResources", "minTaskMember", "networkTopology", "priorityClassName", "queue",
        "subGroupPolicy",
    ),
}  # fmt: skip
#: What the other APIs, and Volcano's Job, call the number.
_ITS_NAMES = ("minAvailable", "minCount", "minMember", "schedulingPolicy")


def group_findings(group: PodGroup, api: str, raw: bytes) -> Iterator[FieldFinding]:
    """``api``: the API group. ``raw``: the document."""
    spec: Any = msgspec.json.decode(raw).get("spec") or {}
    number = _OF_GANG if api == _KUBERNETES else "minMember"
    for key in (one for one in spec if one not in _SPEC[api]):
        if meant := number if key in _ITS_NAMES else meant_by(key, _SPEC[api]):
            # A cluster may have a newer version of it.
            is_error = not group.metadata.uid
            yield FieldFinding(f"spec.{key}", f"no such field in {api}; is it {meant}?", is_error)
    yield from _of_kubernetes(group) if api == _KUBERNETES else _of_plugins(group, 0 if api == _VOLCANO else 1)


def _of_kubernetes(group: PodGroup) -> Iterator[FieldFinding]:
    gang = group.spec.scheduling_policy.gang
    if gang is None:
        return
    if gang.min_count is None:
        yield FieldFinding(f"spec.{_OF_GANG}", "is missing")
    elif gang.min_count < 1:
        yield FieldFinding(f"spec.{_OF_GANG}", must_be("at least 1", gang.min_count))


def _of_plugins(group: PodGroup, least: int) -> Iterator[FieldFinding]:
    """``least``: what the definition allows."""
    member = group.spec.min_member
    if member is None:
        yield FieldFinding("spec.minMember", "is missing, so its pods are placed one by one", is_error=False)
    elif member < least:
        yield FieldFinding("spec.minMember", must_be(f"at least {least}", member))
