"""Which Node is a claim's, where that is not plain: the Node has vanished, has a double, or has another provider ID.

A claim and its Node know each other by the provider ID. Three things go wrong with that:

- The **Node vanishes**: somebody removed it with its finalizer, or etcd was restored from a backup. The instance runs
  on, but no pod can be bound to it. The claim goes back to where it was before its Node joined (``registration``), its
  room does not count (``state.nodes``), and it is given up after fifteen minutes (``liveness``). If its kubelet
  registers before that, the new Node is registered as any other.
- **Two Nodes have one provider ID**: an instance has one kubelet, so this one was started under another name. The Node
  that it left behind is never Ready again, and Kubernetes keeps it as long as the instance exists. It is deleted.
- **A claim's provider ID was changed**, by a person or a tool. A Node's cannot be changed (Kubernetes
  `ValidateNodeUpdate`), so the Node that names the claim as its owner is right.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from joinery.apis.core import Node
from joinery.apis.labels import TERMINATION_FINALIZER
from joinery.apis.nodeclaim import NodeClaim
from joinery.commands import Announce, Command, DeleteNode, UpdateClaim, UpdateNode
from joinery.lifecycle.view.view import View
from joinery.state.claims import with_status
from joinery.state.nodes import is_ready, unfinalized

#: How long a Node that its kubelet left behind must have been without sign of life. A kubelet that has just been
#: started under another name is not Ready at first, while the Node under its old name still is, for forty seconds
#: (kube-controller-manager `--node-monitor-grace-period`).
SILENT = timedelta(minutes=5)


def restored(view: View, claim: NodeClaim) -> tuple[Command, ...]:
    """The commands that give the claim its own provider ID back; none for a claim that has it."""
    node = view.owned_node(claim)
    if node is None or node.spec.provider_id in ("", claim.status.provider_id):
        return ()
    text = f"its provider ID was changed to {claim.status.provider_id or 'nothing'}, but its Node is {_named(node)}"
    return (
        Announce("ProviderIDRestored", text, claim),
        UpdateClaim(claim, with_status(claim, provider_id=node.spec.provider_id), text),
    )


def left_behind(view: View, claim: NodeClaim) -> Iterable[Command]:
    """The commands that delete what the instance's kubelet left behind under other names."""
    nodes = view.nodes_of(claim)
    if len(nodes) < 2 or not is_ready(nodes[0]):
        return
    for node in nodes[1:]:
        if _is_silent(node, view.snapshot.now):
            text = f"its instance is the node {nodes[0].metadata.name} now"
            yield Announce("NodeLeftBehind", f"the Node {node.metadata.name} is deleted: {text}", claim)
            if TERMINATION_FINALIZER in node.metadata.finalizers:
                # Nothing is to be drained: no kubelet runs the pods that are bound to it.
                yield UpdateNode(node, unfinalized(node), text)
            yield DeleteNode(node, text)


def _named(node: Node) -> str:
    return f"{node.metadata.name} with {node.spec.provider_id}"


def _is_silent(node: Node, now: datetime) -> bool:
    ready = next((condition for condition in node.status.conditions if condition.type == "Ready"), None)
    since = ready.last_transition_time if ready is not None and ready.status != "True" else None
    return since is not None and now - since >= SILENT
