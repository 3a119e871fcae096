"""What a cluster looks like after the first commands of a DisruptionPlan have been carried out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tools.consolidation.catalogue import Catalogue
from tools.consolidation.documents import Document, is_reschedulable, key_of, name_of, node_name, of_kind
from tools.consolidation.machines import Machine


@dataclass(frozen=True)
class Prefix:
    """The first commands of a plan, summed up.

    launches   nodes to buy; those whose name another launch or claim has are renamed
    existing   pods that go to nodes that stay, by (node, claim)
    retired    names of claims that go
    """

    launches: Sequence[Document]
    existing: Mapping[tuple[str, str], Sequence[str]]
    retired: frozenset[str]
    #: By ``namespace/name``: the name of the node that the pod is to run on.
    target: Mapping[str, str] = field(default_factory=dict)


def prefix_of(objects: Sequence[Document], plan: Document, length: int | None = None) -> Prefix:
    """The first ``length`` commands; all of them by default."""
    commands = plan["commands"][:length]
    launches = list(_named(objects, commands))
    existing: dict[tuple[str, str], list[str]] = {}
    for placement in (placement for command in commands for placement in command["existing"]):
        existing.setdefault((placement["node"], placement["nodeClaim"]), []).extend(placement["pods"])
    target = {pod: node for (node, _), pods in existing.items() for pod in pods}
    target |= {pod: launch["name"] for launch in launches for pod in launch["pods"]}
    retired = frozenset(name for command in commands for name in command["retire"])
    return Prefix(launches, existing, retired, target)


def _named(objects: Sequence[Document], commands: Sequence[Document]) -> Iterator[Document]:
    taken = {name_of(item) for kind in ("Node", "NodeClaim") for item in of_kind(objects, kind)}
    for number, command in enumerate(commands):
        for launch in command["launch"]:
            name = launch["name"] if launch["name"] not in taken else f"{launch['name']}-{number}"
            taken.add(name)
            yield {**launch, "name": name}


def kept(objects: Sequence[Document], prefix: Prefix) -> list[Document]:
    """The objects without retired claims, their nodes and what goes with a node; pods that move are pending again.

    A pod that needs a new node and gets none is pending too, so that whoever judges the result misses it.
    """
    gone = retired_nodes(objects, prefix.retired)
    left: list[Document] = []
    for item in objects:
        match item["kind"]:
            case "NodeClaim" if name_of(item) in prefix.retired:
                continue
            case "Node" | "CSINode" if name_of(item) in gone:
                continue
            case "Pod" if node_name(item) in gone or key_of(item) in prefix.target:
                if is_reschedulable(item):
                    left.append(_unbound(item))
            case _:
                left.append(item)
    return left


def retired_nodes(objects: Sequence[Document], retired: frozenset[str]) -> set[str]:
    """The names of the nodes of the claims."""
    claims = [claim for claim in of_kind(objects, "NodeClaim") if name_of(claim) in retired]
    providers = {claim.get("status", {}).get("providerID") for claim in claims} - {None, ""}
    return {name_of(node) for node in of_kind(objects, "Node") if node.get("spec", {}).get("providerID") in providers}


def _unbound(pod: Document) -> Document:
    spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {**pod, "spec": spec, "status": {"phase": "Pending", "conditions": [unschedulable]}}


def plan_of(objects: Sequence[Document], plan: Document, prefix: Prefix) -> Document:
    """The prefix as one Plan document: where the pods go that ``kept`` leaves pending.

    Pods that were pending before, and that no command places, are not the plan's concern.
    """
    hourly = sum(launch["offering"]["price"] for launch in prefix.launches)
    existing = [{"node": node, "nodeClaim": claim, "pods": pods} for (node, claim), pods in prefix.existing.items()]
    pending = [key_of(pod) for pod in of_kind(objects, "Pod") if not node_name(pod) and is_reschedulable(pod)]
    return {
        "apiVersion": "joinery.dev/v1",
        "kind": "Plan",
        "now": plan["now"],
        "existing": existing,
        "launch": list(prefix.launches),
        "unschedulable": [{"pod": pod, "reasons": []} for pod in pending if pod not in prefix.target],
        "relaxed": [],
        "cost": {"hourly": hourly, "lowerBound": hourly, "gap": 0.0},
    }


def applied(
    objects: Sequence[Document], plan: Document, catalogue: Catalogue, length: int | None = None
) -> list[Document]:
    """The cluster after the first ``length`` commands, with everything bound and every launch a node at work."""
    prefix = prefix_of(objects, plan, length)
    bound = [
        _bound(item, prefix.target, plan["now"]) if item["kind"] == "Pod" else item for item in kept(objects, prefix)
    ]
    pools = {name_of(pool): pool for pool in of_kind(objects, "NodePool")}
    made = [_node(launch, pools[launch["nodePool"]], catalogue, plan["now"]) for launch in prefix.launches]
    return bound + [item for documents in made for item in documents]


def _bound(pod: Document, target: Mapping[str, str], now: str) -> Document:
    """An evicted pod's successor, which is a new pod of the same name; any other pod as it is."""
    node = target.get(key_of(pod))
    if node is None:
        return pod
    conditions = [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in ("PodScheduled", "Ready")]
    return {
        **pod,
        "metadata": {**pod["metadata"], "creationTimestamp": now},
        "spec": {**pod["spec"], "nodeName": node},
        "status": {"phase": "Running", "startTime": now, "conditions": conditions},
    }


def _node(launch: Document, pool: Document, catalogue: Catalogue, now: str) -> list[Document]:
    """The Node and the NodeClaim of a launch, as they are once initialised.

    Whatever its pool's ``consolidateAfter``, the node may be consolidated at once: that is the hardest case for the
    promise that nobody takes back what was just bought.
    """
    made = Machine(
        node=launch["name"],
        claim=launch["name"],
        offering=launch["offering"],
        labels=launch["labels"],
        taints=launch["taints"],
        requirements=launch["requirements"],
        conditions=("Consolidatable",),
        created=now,
    )
    return made.documents(pool, catalogue)
