"""NodeClass: what an instance is made of, as far as it is the same for every cloud.

Each cloud brings a kind of its own (AWS: ``apis.ec2nodeclass``). Its model is a subclass of ``NodeClass``, and only the
cloud's own gateway reads its ``spec`` and the rest of its ``status``. Everything else goes by what ``NodeClass`` says
here: a name, a hash, conditions, and why the class cannot be used. That is also how Karpenter's core sees the node
classes of its providers (Karpenter ``cloudprovider.CloudProvider``, ``GetSupportedNodeClasses``).
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import Field

from joinery.objects.karpenter import labels
from joinery.objects.karpenter.meta import Condition, CustomResource, Model
from joinery.objects.karpenter.rules import Transition


@dataclass(frozen=True, slots=True)
class MadeOf:
    """What an instance was made of, as far as its node class decides it.

    ``labels``: its claim's, by which images fit or do not. ``image_id``: the image that it booted. ``subnet_id``,
    ``security_groups`` (ids): where its primary network interface is. ``reservation``: the id of the capacity
    reservation that it was launched into. ``placement_group_id``, ``placement_group``: id and name of the placement
    group that it is in. What is empty is not known, or there is none.
    """

    labels: Mapping[str, str]
    image_id: str = ""
    subnet_id: str = ""
    security_groups: frozenset[str] = frozenset()
    reservation: str = ""
    placement_group_id: str = ""
    placement_group: str = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """Why a claim has drifted: ``reason`` is the condition's, ``message`` says it to a person."""

    reason: str
    message: str


#: A default of ours that the API server does not fill in.
NO_DEFAULT: dict[str, Any] = {"default": None}


@dataclass(frozen=True, slots=True)
class NodeClassKind:
    """A kind of node class, as an API server knows it. Keys that name the kind derive from it."""

    group: str
    kind: str

    @property
    def label(self) -> str:
        """The label of nodes and claims that names their class (Karpenter ``NodeClassLabelKey``)."""
        return f"{self.group}/{self.kind.lower()}"

    @property
    def hash_annotation(self) -> str:
        """Where a class and its claims carry the class's static hash."""
        return f"{self.label}-hash"

    @property
    def hash_version_annotation(self) -> str:
        """Where they carry the version of whoever computed that hash."""
        return f"{self.label}-hash-version"

    @property
    def finalizer(self) -> str:
        """Keeps a class until no claim needs it."""
        return f"{self.group}/termination"


#: What a reference means that names neither group nor kind: Karpenter 1.0 knew no other.
DEFAULT_KIND = NodeClassKind(labels.AWS_GROUP, "EC2NodeClass")


class NodeClassRef(Model):
    """Which EC2NodeClass describes the instances."""

    required_on_wire = frozenset({"group", "kind"})

    group: Annotated[str, Field(pattern=r"^[^/]+$", json_schema_extra=NO_DEFAULT)] = DEFAULT_KIND.group
    """The API group of the node class."""
    kind: Annotated[str, Field(min_length=1, json_schema_extra=NO_DEFAULT)] = DEFAULT_KIND.kind
    """The kind of the node class."""
    name: Annotated[str, Field(min_length=1)]
    """The name of the node class."""

    @property
    def of_kind(self) -> NodeClassKind:
        """The kind of the class that is referred to."""
        return NodeClassKind(self.group, self.kind)


#: Of a NodePool: another class of the same kind may be named later, a class of another kind may not.
PoolNodeClassRef = Annotated[
    NodeClassRef,
    Transition("self.group == oldSelf.group", "nodeClassRef.group cannot change"),
    Transition("self.kind == oldSelf.kind", "nodeClassRef.kind cannot change"),
]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A field that does not act. ``condition`` and ``reason`` are how the status names it."""

    field: str
    problem: str
    condition: str
    reason: str
    verdict: str = "not supported yet"

    def __str__(self) -> str:
        return f"{self.verdict}: {self.field}: {self.problem}"


class NodeClassStatus(Model):
    """What the cloud found when it looked at the class; every cloud adds fields of its own."""

    conditions: list[Condition] = []
    """Whether the class can be used; `Ready` sums it up."""


class NodeClass(CustomResource):
    """A node class of any cloud. A subclass adds ``spec``, and what its cloud keeps in ``status``.

    ``plural`` is the kind's name in URLs of the API server. ``unrecorded`` names fields of ``spec`` that no decision
    reads and that may hold secrets: records of decisions leave them out.
    """

    plural: ClassVar[str]
    unrecorded: ClassVar[frozenset[str]] = frozenset()

    spec: Model
    status: NodeClassStatus = NodeClassStatus()

    @classmethod
    def identity(cls) -> NodeClassKind:
        """Group and kind of these classes."""
        return NodeClassKind(cls.api_version.partition("/")[0], cls.kind)

    def to_record(self) -> dict[str, Any]:
        """The object as records of decisions keep it."""
        document = self.to_wire()
        spec = {key: value for key, value in document["spec"].items() if key not in self.unrecorded}
        return {**document, "spec": spec}

    @property
    @abstractmethod
    def static_hash(self) -> str:
        """A number that changes when nodes made from the class before would have to be replaced
        (``objects.karpenter.hashing``)."""

    @property
    def ready(self) -> Condition | None:
        """The condition ``Ready``; None where nobody has looked yet."""
        return next((condition for condition in self.status.conditions if condition.type == "Ready"), None)

    @property
    def is_deleting(self) -> bool:
        """Whether somebody wants the class gone."""
        return self.metadata.deletion_timestamp is not None

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        """What the class asks for and Joinery does not do yet, in the order of the fields.

        No node is made from such a class.
        """
        return ()

    @property
    def zones(self) -> tuple[tuple[str, str], ...]:
        """Zone and zone id of every network in which instances may be launched, as the status says."""
        return ()

    @property
    def subnets(self) -> tuple[tuple[str, str], ...]:
        """Id and zone of every subnet in which instances may be launched, as the status says."""
        return ()

    @property
    def placement_group(self) -> str:
        """The placement group that instances are launched into, as the class names it; empty for none."""
        return ""

    @property
    def expiring_reservations(self) -> frozenset[str]:
        """The ids of capacity reservations from which the cloud is about to take instances back."""
        return frozenset()

    @property
    def claim_annotations(self) -> Mapping[str, str]:
        """What a claim is annotated with when it has got its instance."""
        return {}

    def drift_of(self, made_of: MadeOf) -> Drift | None:
        """Why an instance of the class would be made of something else today; None if it would not, as far as the
        status tells.

        What the static hash covers is not looked at.
        """
        return None

    @property
    def images(self) -> frozenset[str]:
        """The ids of all images that the class selects now; empty where nobody has looked, or it knows no images."""
        return frozenset()

    def image_for(self, labels: Mapping[str, tuple[str, ...]]) -> str:
        """The id of the image that a node with these labels would boot today, each with the values that it may have;
        empty if there is none.
        """
        return ""

    @property
    def declares_interfaces(self) -> bool:
        """Whether the class itself says which network interfaces an instance gets, whatever its pods ask for."""
        return False
