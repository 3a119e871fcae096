"""What files that hold a part of a cluster lack: nodes without their pods, and the like.

Nothing is wrong with any object of such files, and what is decided from them may be wrong all the same.
"""

from collections.abc import Iterator

from joinery.decisions.scheduling.constraints.budgets import is_fully_blocking
from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.karpenter.labels import AUTO_MODE, COMPUTE_TYPE, NODE_POOL, PROVISIONER_NAME
from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.gangs import FIELDS, KUEUE, KUEUE_GROUP, KUEUE_TOTAL, GangKey, in_gangs
from joinery.objects.snapshot.pods import is_active
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import UserNotice, some_of, warning

_ALL = (
    f"All that is needed: kubectl get nodes,pods,nodeclaims,nodepools,{NODE_CLASS.plural},pdb -A -o json > "
    "cluster.json, and -f cluster.json"
)


def pods_without_nodes(snapshot: Snapshot) -> Iterator[UserNotice]:
    """``kubectl get pods`` says where a pod runs, and not what room there is beside it."""
    there = {node.metadata.name for node in snapshot.nodes}
    lost = [pod for pod in snapshot.pods if pod.spec.node_name and pod.spec.node_name not in there and is_active(pod)]
    if not lost:
        return
    nodes = sorted({pod.spec.node_name for pod in lost})
    pods = "1 pod is" if len(lost) == 1 else f"{len(lost):,} pods are"
    where, its = ("a node that is", "its") if len(nodes) == 1 else (f"{len(nodes):,} nodes that are", "their")
    yield warning(
        f"{pods} on {where} not in the files ({some_of(nodes)}): {its} room is unknown, and may be bought anew. {_ALL}"
    )


def pods_without_groups(snapshot: Snapshot) -> Iterator[UserNotice]:
    """A plan lets such pods wait, and most often the cluster has what a file lacks."""
    missing = [key for key, gang in snapshot.gangs.items() if gang.minimum is None and key.field in FIELDS]
    if missing:
        many = f"{len(missing):,} PodGroups that pods name are"
        groups, their = ("1 PodGroup that pods name is", "its") if len(missing) == 1 else (many, "their")
        kinds = ",".join(dict.fromkeys(f"podgroups.{FIELDS[key.field].group}" for key in missing))
        names = some_of([f"{key.namespace}/{key.name}{_elsewhere(key, snapshot)}" for key in missing])
        yield warning(
            f"{groups} not in the files ({names}): {their} pods wait. kubectl get {kinds} -A "
            "-o json > podgroups.json, and -f podgroups.json"
        )


def _elsewhere(key: GangKey, snapshot: Snapshot) -> str:
    """Where there is a PodGroup of that name, which is not the pods': in another namespace, or of another API."""
    for field, api in FIELDS.items():
        for group in getattr(snapshot, field):
            if group.metadata.name == key.name:
                of_api = "" if field == key.field else f" of {api.group}"
                return f"; there is {group.metadata.namespace or 'default'}/{key.name}{of_api}"
    return ""


def groups_without_total(snapshot: Snapshot) -> Iterator[UserNotice]:
    """Kueue's webhook takes no such pod, so in a cluster none has the label where Kueue is at work."""
    pods = [
        pod.key
        for group in snapshot.pod_groups
        for key, pod in group.derived(in_gangs)
        if key.field == KUEUE and key not in snapshot.gangs and KUEUE_TOTAL not in pod.metadata.annotations
    ]
    if pods:
        lack = "1 pod has" if len(pods) == 1 else f"{len(pods):,} pods have"
        yield warning(
            f"{lack} {KUEUE_GROUP} without the annotation {KUEUE_TOTAL} ({some_of(pods)}): Kueue refuses them, and they"
            " are planned one by one"
        )


def nodes_without_claims(snapshot: Snapshot) -> Iterator[UserNotice]:
    """``kubectl get nodes`` is a third of what a decision about nodes is made from, and ``nodeclaims`` another."""
    claimed = {claim.status.provider_id for claim in snapshot.node_claims}
    lacking = [
        node.metadata.name for node in snapshot.nodes if _is_launched(node) and node.spec.provider_id not in claimed
    ]
    if lacking:
        many = f"{len(lacking):,} nodes of NodePools have"
        nodes, them = ("1 node of a NodePool has", "it") if len(lacking) == 1 else (many, "them")
        yield warning(
            f"{nodes} no NodeClaim in the files ({some_of(lacking)}): nothing is decided about {them}. {_ALL}"
        )


def claims_without_nodes(snapshot: Snapshot) -> Iterator[UserNotice]:
    """The other way round."""
    there = {node.metadata.name for node in snapshot.nodes}
    lacking = [one for one in snapshot.managed_claims if one.status.node_name and one.status.node_name not in there]
    if lacking:
        claims = "1 NodeClaim has" if len(lacking) == 1 else f"{len(lacking):,} NodeClaims have"
        yield warning(
            f"{claims} a Node that is not in the files ({some_of([one.metadata.name for one in lacking])}): nothing is "
            f"decided about what has no Node. {_ALL}"
        )


def nodes_without_pods(snapshot: Snapshot) -> Iterator[UserNotice]:
    """A node of a real cluster runs a DaemonSet's pods at least; without any it is about to go because it is empty."""
    there = {node.metadata.name for node in snapshot.nodes}
    claimed = any(claim.status.node_name in there for claim in snapshot.managed_claims)
    if claimed and not any(pod.spec.node_name in there for pod in snapshot.pods):
        yield warning(f"no pod in the files is on any of their nodes, so that each counts as empty. {_ALL}")


def budgets_without_status(snapshot: Snapshot) -> Iterator[UserNotice]:
    """Budgets as a person writes them: what they allow a cluster has to say."""
    silent = [
        f"{budget.metadata.namespace}/{budget.metadata.name}"
        for budget in snapshot.disruption_budgets
        if budget.status.disruptions_allowed is None and not budget.metadata.uid and not is_fully_blocking(budget)
    ]
    if silent:
        allow = "PodDisruptionBudget allows" if len(silent) == 1 else "PodDisruptionBudgets allow"
        yield warning(
            f"{len(silent):,} {allow} no eviction ({some_of(silent)}), because the files say of none: "
            "status.disruptionsAllowed is what kubectl get pdb -A -o json has, and a manifest has not"
        )


def _is_launched(node: Node) -> bool:
    """Whether a NodePool launched it; of EKS Auto Mode's nodes nothing would be decided with their claims either."""
    labels = node.metadata.labels
    return bool(labels.get(NODE_POOL) or labels.get(PROVISIONER_NAME)) and labels.get(COMPUTE_TYPE) != AUTO_MODE
