"""What a decision asks for, as data: the vocabulary between pure decisions and the controllers that act on them.

Rules of this file: a command is frozen. Its ``reason`` says why, in words that a person understands. It is carried out
by one call on one gateway, so that a run that is stopped between two commands leaves a state from which the next one
goes on. Updates hold the object as it was read (``before``) and as it should be (``after``); the gateway sends the
difference.

Decisions return commands in chains, one chain an object. ``controllers.acting.actor`` says how they are carried out.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass

from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.autoscaling.provisioningrequest import ProvisioningRequest
from joinery.objects.events import EVENTS
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Node, Pod, Toleration
from joinery.objects.kubernetes.rollouts import Deployment
from joinery.objects.snapshot.offerings import OfferingKey

Subject = Pod | Node | NodeClaim | NodePool | NodeOverlay | NodeClass | CapacityBuffer | ProvisioningRequest
#: The object that gets the Events about an instance, which is itself no object of the cluster.
Owner = Node | NodeClaim | NodePool


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell whoever runs ``kubectl describe`` on the subject.

    ``reason`` and ``message`` are the Kubernetes Event's: one of ``joinery.objects.events.EVENTS``, which has its type,
    and the sentence.
    """

    reason: str
    message: str
    subject: Subject

    @property
    def warning(self) -> bool:
        """Whether the Event's type is Warning, not Normal."""
        return EVENTS[self.reason].is_warning


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
class UpdateOverlay:
    before: NodeOverlay
    after: NodeOverlay
    reason: str


@dataclass(frozen=True, slots=True)
class UpdateBuffer:
    before: CapacityBuffer
    after: CapacityBuffer
    reason: str


@dataclass(frozen=True, slots=True)
class UpdateRequest:
    before: ProvisioningRequest
    after: ProvisioningRequest
    reason: str


@dataclass(frozen=True, slots=True)
class Reject:
    """Write into the status of a custom resource that it cannot be read, and why."""

    kind: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class UpdatePod:
    before: Pod
    after: Pod
    reason: str


@dataclass(frozen=True, slots=True)
class Tolerate:
    """Add a toleration to pods that wait, so that they may go to the node that is kept for them."""

    pods: tuple[Pod, ...]
    toleration: Toleration
    reason: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Ask the eviction API, which may refuse because of a PodDisruptionBudget. ``node`` is the one being drained."""

    pod: Pod
    node: Node
    reason: str


@dataclass(frozen=True, slots=True)
class RestartDeployment:
    """Have a Deployment make its pods anew by a rollout, so that the successor of ``pod`` is Ready before it ends."""

    before: Deployment
    after: Deployment
    pod: Pod
    reason: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete a pod past every budget, because its node's deadline comes. ``grace``: in seconds, at least one."""

    pod: Pod
    grace: int
    reason: str


@dataclass(frozen=True, slots=True)
class TerminateInstance:
    instance_id: str
    reason: str
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class RebootInstance:
    instance_id: str
    reason: str
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class TagInstance:
    """Add tags to an instance, for people who look at EC2. ``tags``: key to value."""

    instance_id: str
    tags: Mapping[str, str]
    reason: str
    owner: Owner | None = None


@dataclass(frozen=True, slots=True)
class MarkUnavailable:
    """Remember for a while that EC2 is out of this offering."""

    offering: OfferingKey
    reason: str


#: What changes the cluster, the cloud or our memory.
Change = (
    UpdateClaim
    | DeleteClaim
    | UpdateNode
    | DeleteNode
    | UpdatePool
    | UpdateOverlay
    | UpdateBuffer
    | UpdateRequest
    | UpdateClass
    | Reject
    | UpdatePod
    | Tolerate
    | Evict
    | RestartDeployment
    | DeletePod
    | TerminateInstance
    | RebootInstance
    | TagInstance
    | MarkUnavailable
)
Command = Announce | Change


@dataclass(frozen=True, slots=True)
class Ask:
    """A call that belongs to no chain of commands, so that it is known again if it is refused
    (``joinery.objects.refusals``).

    ``owner``: the object that it is made for. ``what``: it asks for, in words, such as "its launch".
    """

    owner: Subject
    what: str


def subject(command: Change | Ask) -> str:  # noqa: C901, PLR0911 - one flat table
    """What the command is about, for a person."""
    match command:
        case Ask(Pod() as owner):
            return owner.key
        case Ask(owner):
            return owner.metadata.name
        case UpdateClaim(before) | UpdateNode(before) | UpdatePool(before) | UpdateClass(before):
            return before.metadata.name
        case UpdateOverlay(overlay):
            return overlay.metadata.name
        case UpdateBuffer(buffer) | UpdateRequest(buffer):
            return buffer.key
        case DeleteClaim(claim):
            return claim.metadata.name
        case DeleteNode(node):
            return node.metadata.name
        case UpdatePod(before_pod):
            return before_pod.key
        case Tolerate((pod,)):
            return pod.key
        case Tolerate(pods):
            return f"{len(pods)} pods, first {pods[0].key}"
        case Evict(pod) | DeletePod(pod):
            return pod.key
        case RestartDeployment(deployment):
            return f"{deployment.metadata.namespace}/{deployment.metadata.name}"
        case TerminateInstance(instance_id) | RebootInstance(instance_id) | TagInstance(instance_id):
            return instance_id
        case Reject(kind, name):
            return f"{kind} {name}"
        case MarkUnavailable(offering):
            return " ".join(filter(None, astuple(offering)))


def object_of(command: Change | Ask) -> Subject | None:  # noqa: C901, PLR0911 - one flat table
    """The object that gets the Events about the command; None where there is none."""
    match command:
        case Ask(owner):
            return owner
        case UpdateClaim(before) | UpdateNode(before) | UpdatePool(before) | UpdateClass(before):
            return before
        case UpdateOverlay(overlay):
            return overlay
        case UpdateBuffer(buffer):
            return buffer
        case UpdateRequest(request):
            return request
        case DeleteClaim(claim):
            return claim
        case DeleteNode(node):
            return node
        case UpdatePod(pod) | Evict(pod) | DeletePod(pod) | Tolerate((pod, *_)):
            return pod
        case RestartDeployment():
            return command.pod
        case TerminateInstance() | RebootInstance() | TagInstance():
            return command.owner
        case _:
            return None
