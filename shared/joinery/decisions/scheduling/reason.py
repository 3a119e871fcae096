"""Reasons as data: why a pod is left out of a plan, or a NodePool takes no part in it.

Programs read the code, the subject and the figures; people read the message, which is made from the figures. Nothing
parses a message.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import LiteralString

Figure = int | str
#: What a message was made from, by name: amounts as Kubernetes writes them, counts as numbers.
Figures = tuple[tuple[str, Figure], ...]


class ReasonCode(StrEnum):
    """Which rule left a pod out, or kept a NodePool from taking part. The spelling is part of what users see."""

    # Rules between a pod and the nodes that it could have.
    TAINTS = "Taints"
    REQUIREMENTS = "Requirements"
    RESOURCES = "Resources"
    HOST_PORTS = "HostPorts"
    VOLUME = "Volume"
    DEVICES = "Devices"
    TOPOLOGY = "Topology"
    SELECTORS = "Selectors"
    GANG = "Gang"
    # What a NodePool may buy.
    OFFERINGS = "Offerings"
    RESERVED = "Reserved"
    LIMITS = "Limits"
    MIN_VALUES = "MinValues"
    # NodePools that take no part.
    INVALID = "Invalid"
    STATIC = "Static"
    DELETING = "Deleting"
    NOT_READY = "NotReady"
    PAUSED = "Paused"
    NODE_CLASS = "NodeClass"
    # The cluster as a whole.
    NO_NODE_POOL = "NoNodePool"
    EXISTING_NODES = "ExistingNodes"
    # Joinery itself.
    NOT_SUPPORTED = "NotSupported"
    HELD_OFF = "HeldOff"
    REFUSED = "Refused"
    CAPS = "Caps"
    TIME_LIMIT = "TimeLimit"
    TOO_MUCH = "TooMuch"


class SubjectKind(StrEnum):
    """What kind of thing a reason or a violation is about."""

    POD = "pod"
    NODE_POOL = "NodePool"
    LAUNCH = "launch"
    CAPACITY_RESERVATION = "capacity reservation"


@dataclass(frozen=True, slots=True)
class Subject:
    """What a reason or a violation is about. Pods are named ``namespace/name``."""

    kind: SubjectKind
    name: str

    @classmethod
    def node_pool(cls, name: str) -> "Subject":
        """The NodePool of that name."""
        return cls(SubjectKind.NODE_POOL, name)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a pod was not placed, or a NodePool not used.

    ``subject``: what refused it; None for the pod itself. ``message``: a sentence for the pod's owner. ``figures``:
    what the sentence was made from.
    """

    code: ReasonCode
    message: str
    subject: Subject | None = None
    figures: Figures = ()

    @classmethod
    def of(
        cls, code: ReasonCode, template: LiteralString, subject: Subject | None = None, /, **figures: Figure
    ) -> "Reason":
        """A reason whose message is the template with its ``{figures}`` filled in.

        The template is a literal, never text of others: names and values go in as figures, whatever characters they
        have.
        """
        return cls(code, template.format(**figures), subject, tuple(figures.items()))

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}" if self.subject else self.message
