"""What verification reports: a rule that a plan breaks, as data."""

from dataclasses import dataclass
from enum import StrEnum
from typing import LiteralString

from joinery.decisions.scheduling.packing import Launch
from joinery.decisions.scheduling.reason import Figure, Figures, Subject, SubjectKind
from joinery.decisions.verification.nodes import EquivalenceClass, FinalNode


class ViolationCode(StrEnum):
    """Which rule is broken."""

    # Accounts: every pending pod exactly once.
    POD_DUPLICATE = "PodDuplicate"
    POD_UNKNOWN = "PodUnknown"
    POD_NOT_PENDING = "PodNotPending"
    POD_MISSING = "PodMissing"
    NO_REASON = "NoReason"
    NODE_UNKNOWN = "NodeUnknown"
    # A pod and its node.
    NODE_LEAVING = "NodeLeaving"
    NODE_RESERVED = "NodeReserved"
    TAINTS = "Taints"
    NODE_AFFINITY = "NodeAffinity"
    RESOURCES = "Resources"
    HOST_PORTS = "HostPorts"
    NOT_SUPPORTED = "NotSupported"
    # A pod and other pods.
    POD_AFFINITY = "PodAffinity"
    POD_ANTI_AFFINITY = "PodAntiAffinity"
    TOPOLOGY_SPREAD = "TopologySpread"
    GANG = "Gang"
    # Volumes.
    VOLUMES = "Volumes"
    SHARED_VOLUME = "SharedVolume"
    VOLUME_LIMITS = "VolumeLimits"
    DEVICES = "Devices"
    # A launch, its NodePool and the catalogue.
    LAUNCH = "Launch"
    NODE_POOL = "NodePool"
    TEMPLATE = "Template"
    LABELS = "Labels"
    REQUIREMENTS = "Requirements"
    INSTANCE_TYPES = "InstanceTypes"
    OFFERING = "Offering"
    PRICE = "Price"
    CHEAPEST = "Cheapest"
    REQUESTS = "Requests"
    DAEMON_SETS = "DaemonSets"
    ALTERNATIVES = "Alternatives"
    RESERVATION = "Reservation"
    # NodePools and the plan as a whole.
    LIMITS = "Limits"
    REPLICAS = "Replicas"
    MIN_VALUES = "MinValues"
    WEIGHT = "Weight"
    ON_DEMAND_SHARE = "OnDemandShare"
    COST = "Cost"


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that the plan breaks.

    ``subject``: the pod, launch, NodePool or capacity reservation at fault; None for the plan as a whole. A pod's
    ``node`` is the one that the plan puts it on, and ``alike`` counts further pods there of which the same is true.
    ``message``: a sentence for people, made from the ``figures``.
    """

    code: ViolationCode
    message: str
    subject: Subject | None = None
    node: str = ""
    alike: int = 0
    figures: Figures = ()

    @classmethod
    def of(
        cls, code: ViolationCode, template: LiteralString, subject: Subject | None = None, /, **figures: Figure
    ) -> "Violation":
        """A violation whose message is the template, a literal, with its ``{figures}`` filled in."""
        return cls(code, template.format(**figures), subject, figures=tuple(figures.items()))

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.subject else self.message

    @property
    def where(self) -> str:
        """``pod shop/web-1 (and 3 like it) on default-1``, ``launch default-1``; empty for the plan as a whole."""
        others = f" (and {self.alike} like it)" if self.alike else ""
        return f"{self.subject or ''}{others}{f' on {self.node}' if self.node else ''}"


def of_pod(name: str) -> Subject:
    """The pod ``namespace/name``."""
    return Subject(SubjectKind.POD, name)


def of_launch(launch: Launch) -> Subject:
    """The launch."""
    return Subject(SubjectKind.LAUNCH, launch.name)


def misplaced(
    code: ViolationCode, pod_class: EquivalenceClass, node: FinalNode, message: str, /, **figures: Figure
) -> Violation:
    """A violation by pods of the class that the plan puts on the node: it names the first, and counts the others."""
    first, *others = node.planned[pod_class]
    return Violation(code, message, of_pod(first), node.name, len(others), tuple(figures.items()))
