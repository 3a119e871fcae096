"""PodGroups of the three APIs that have such a kind, as far as a plan needs them.

One struct reads them all: what each API has is a field that the others lack.

- ``scheduling.k8s.io`` (KEP-4671, KEP-5832): ``schedulingPolicy`` and ``schedulingConstraints``
- ``scheduling.x-k8s.io``, of the coscheduling plugin (kubernetes-sigs/scheduler-plugins): ``minMember``
- ``scheduling.volcano.sh``, Volcano's: ``minMember``
"""

from collections.abc import Mapping
from typing import Any

from joinery.objects.kubernetes.core import ObjectMeta, _Object


class GangSchedulingPolicy(_Object, frozen=True):
    """All or nothing, for so many pods."""

    min_count: int | None = None


class PodGroupSchedulingPolicy(_Object, frozen=True):
    """Without ``gang`` each pod is scheduled by itself (``basic``)."""

    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(_Object, frozen=True):
    """``key``: the node label that has one value for all pods of the group."""

    key: str = ""


class PodGroupSchedulingConstraints(_Object, frozen=True):
    """The API server accepts one ``topology`` at most."""

    topology: list[TopologyConstraint] = []


class DisruptionMode(_Object, frozen=True):
    """As Kubernetes 1.37 has it; 1.36 has one word. The API server fills in ``single``."""

    single: Mapping[str, Any] | None = None
    all: Mapping[str, Any] | None = None


class PodGroupSpec(_Object, frozen=True):
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    min_member: int | None = None
    disruption_mode: str | DisruptionMode = ""


class PodGroup(_Object, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodGroupSpec = PodGroupSpec()

    @property
    def minimum(self) -> int:
        """How many of its pods are scheduled together or not at all."""
        gang = self.spec.scheduling_policy.gang
        return max(self.spec.min_member or 1, (gang.min_count if gang else None) or 1)

    @property
    def goes_whole(self) -> bool:
        """Whether all of its pods are disrupted together, or none (``all``; alpha in 1.36, there ``PodGroup``)."""
        mode = self.spec.disruption_mode
        return mode == "PodGroup" if isinstance(mode, str) else mode.all is not None

    @property
    def topology_key(self) -> str:
        """The node label that has one value for all of its pods; empty where they may be anywhere."""
        constraints = self.spec.scheduling_constraints
        return constraints.topology[0].key if constraints and constraints.topology else ""
