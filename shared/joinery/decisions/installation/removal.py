"""What uninstalling does with the nodes that a cluster still has: decisions.

Two ways out. ``retire``: every NodeClaim is deleted, so that its node is drained and its instance ends. ``keep``: nodes
stay as they are and are handed to Karpenter, whose objects and finalizers Joinery uses anyway. Nodes of which nobody
has said so would be left to nobody, so a deletion of the stack alone is refused while there are any.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.references import Document

#: On the object with the marks of an installation: what becomes of the nodes. `joinery uninstall` writes it.
UNINSTALLING = f"{keys.OWN_GROUP}/uninstalling"
#: Whatever stands for a node: NodeClaims, and what a Karpenter up to v0.37 kept instead.
CLAIMS = ("NodeClaim", "NodeClaim.v1beta1", "Machine")
#: How many names a sentence has.
_NAMED = 3
#: The second is a Machine's.
_INITIALIZED = ("Initialized", "MachineInitialized")
#: EKS Auto Mode is a Karpenter of its own, and its nodes have the labels and taints of ours.
_AUTO_MODE = "auto"


class Nodes(StrEnum):
    """What becomes of nodes."""

    KEEP = "keep"
    RETIRE = "retire"


class Disposal(StrEnum):
    """What becomes of what holds a user's own data."""

    KEEP = "keep"
    DELETE = "delete"


def of_ours(claims: Iterable[Document]) -> Sequence[Document]:
    """Of all objects of the kinds ``CLAIMS`` those whose class is EC2's, each once, because EKS Auto Mode, or another
    provider's controller, may share the cluster.

    Karpenter up to 1.0 knew one kind of class, and named no group, or a blank.
    """
    ours: dict[tuple[str, str], Document] = {}
    for claim in claims:
        reference = claim.get("spec", {}).get("nodeClassRef") or {}
        if reference.get("group", "") in ("", keys.AWS_GROUP):
            ours.setdefault((claim["kind"].partition(".")[0], claim["metadata"]["name"]), claim)
    return tuple(ours.values())


def refusal(claims: Sequence[Document], marked: Document | None, cluster: str) -> str | None:
    """Why the stack must not be deleted yet, and what to run.

    ``claims``: ours. ``marked``: the object with the marks of the installation.
    """
    annotations = (marked or {}).get("metadata", {}).get("annotations") or {}
    if not claims or annotations.get(UNINSTALLING) == Nodes.KEEP:
        return None
    return (
        f"The cluster still has {_count(claims)} ({named(claims)}), whose instances would be left to nobody. Nothing "
        f"was deleted. Run make undeploy CLUSTER={cluster} NODES=retire, which drains and ends them, or NODES=keep, "
        "which hands them to Karpenter."
    )


def in_progress(claim: Document) -> str:
    """What a NodeClaim is in the middle of, so that it cannot be handed over yet; empty for one that can."""
    metadata = claim["metadata"]
    if "deletionTimestamp" in metadata:
        return "ending"
    if keys.DISRUPTION_COMMAND in (metadata.get("annotations") or {}):
        return "being disrupted"
    conditions = claim.get("status", {}).get("conditions", ())
    if not any(one["type"] in _INITIALIZED and one["status"] == "True" for one in conditions):
        return "starting"
    return ""


def unmarked(document: Document) -> Document | None:
    """The merge patch that takes Joinery's annotations, and of a Node Joinery's taints; None if it has none.

    The taint of a disruption goes too: its command was Joinery's. Finalizers and all else are Karpenter's own.
    """
    labels = document["metadata"].get("labels") or {}
    if document["kind"] == "Node" and (keys.NODE_POOL not in labels or labels.get(keys.COMPUTE_TYPE) == _AUTO_MODE):
        return None  # somebody else's
    own = [name for name in document["metadata"].get("annotations") or {} if name.startswith(f"{keys.OWN_GROUP}/")]
    taints = document.get("spec", {}).get("taints") or []
    kept = [taint for taint in taints if taint["key"] not in (keys.PLANNED_TAINT, keys.DISRUPTED_TAINT)]
    patch: Document = {"metadata": {"annotations": dict.fromkeys(own)}} if own else {}
    if document["kind"] == "Node" and kept != taints:
        patch["spec"] = {"taints": kept}
    return patch or None


def named(claims: Sequence[Document]) -> str:
    """The names of some objects, for a sentence."""
    names = sorted(str(claim["metadata"]["name"]) for claim in claims)
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _count(claims: Sequence[Document]) -> str:
    return "1 NodeClaim" if len(claims) == 1 else f"{len(claims)} NodeClaims"
