"""What a decision asks for, as data: the one vocabulary between pure decisions and the controllers that act on them.

Rules of this file: a command is frozen, says why in words a person understands, and names one call on one gateway, so
that whatever happens between two commands leaves a state from which the next reconcile goes on. Commands are carried
out in the order in which they are listed; the first that fails stops those after it, and no other object's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from joinery.apis.core import Node, Pod, Toleration
from joinery.apis.nodeclaim import NodeClaim
from joinery.apis.nodeclass import NodeClass
from joinery.apis.nodepool import NodePool
from joinery.state.offerings import OfferingKey

Subject = Pod | Node | NodeClaim | NodePool | NodeClass


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell whoever runs ``kubectl describe`` on the subject. ``event`` is the Kubernetes Event's reason, in CamelCase."""

    event: str
    reason: str
    subject: Subject
    warning: bool = False


@dataclass(frozen=True, slots=True)
class UpdateClaim:
    before: NodeClaim
    after: NodeClaim
    reason: str


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    claim: NodeClaim
    reason: str


@dataclass(frozen=True, slots=True)
class UpdateNode:
    before: Node
    after: Node
    reason: str


@dataclass(frozen=True, slots=True)
class DeleteNode:
    node: Node
    reason: str


@dataclass(frozen=True, slots=True)
class UpdatePool:
    before: NodePool
    after: NodePool
    reason: str


@dataclass(frozen=True, slots=True)
class UpdateClass:
    before: NodeClass
    after: NodeClass
    reason: str


@dataclass(frozen=True, slots=True)
class Reject:
    """A custom resource that does not even parse: its status says so."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tolerate:
    """Let pods that wait onto the node that is kept for them."""

    pods: tuple[Pod, ...]
    toleration: Toleration
    reason: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Ask politely: budgets may refuse. ``node`` is the one being drained."""

    pod: Pod
    node: Node
    reason: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Past every budget, because the deadline comes; ``grace`` in seconds, at least one."""

    pod: Pod
    grace: int
    reason: str


@dataclass(frozen=True, slots=True)
class TerminateInstance:
    instance_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class TagInstance:
    """Let people who look at EC2 know whose node it is."""

    instance_id: str
    tags: Mapping[str, str]
    reason: str


@dataclass(frozen=True, slots=True)
class MarkUnavailable:
    """Remember that EC2 is short of this offering."""

    offering: OfferingKey
    reason: str


Command = (
    Announce
    | UpdateClaim
    | DeleteClaim
    | UpdateNode
    | DeleteNode
    | UpdatePool
    | UpdateClass
    | Reject
    | Tolerate
    | Evict
    | DeletePod
    | TerminateInstance
    | TagInstance
    | MarkUnavailable
)
