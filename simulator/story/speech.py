"""Short ways to name things in a timeline."""

from collections import Counter
from collections.abc import Iterable, Sequence

from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod


def counted(number: int, noun: str) -> str:
    """``1 pod``, ``2 pods``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def short(name: str) -> str:
    """A node's name without its domain."""
    return name.partition(".")[0]


def tail(instance_id: str) -> str:
    """An instance's id, as much of it as differs."""
    return f"i-…{instance_id[-4:]}"


def names(words: Sequence[str], *, most: int) -> str:
    """The first few, and how many more."""
    shown = ", ".join(words[:most])
    return f"{shown} and {len(words) - most} more" if len(words) > most else shown


def pods_by_owner(pods: Iterable[Pod]) -> str:
    """``3 storefront, 1 orders``: pods by what owns them, most first."""
    counts = Counter(_owner(pod) for pod in pods)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number} {name}" for name, number in ordered) or "nothing but daemons"


def _owner(pod: Pod) -> str:
    """Its workload's name. A Deployment's ReplicaSets have its name and an end of their own."""
    for owner in pod.metadata.owner_references:
        return owner.name.rpartition("-")[0] if owner.kind == "ReplicaSet" else owner.name
    return pod.metadata.name


def place(claim: NodeClaim) -> str:
    """``m7a.large spot us-east-1a``."""
    labels = claim.metadata.labels
    return " ".join(labels.get(key, "?") for key in (keys.INSTANCE_TYPE, keys.CAPACITY_TYPE, keys.ZONE))
