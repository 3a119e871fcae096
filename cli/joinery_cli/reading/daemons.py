"""DaemonSets that files leave out: a plan without them fills nodes with pods that a cluster would not let in there.

A manifest of a Deployment has no DaemonSets beside it, and ``kubectl get pods,nodes`` prints none. Each node of EKS
runs three at least, which take a seventh of the smallest nodes' CPU.
"""

from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING

from joinery.decisions.scheduling.constraints.resources import PODS, requests_of
from joinery.objects.kubernetes.core import DaemonSet, Pod
from joinery.objects.kubernetes.quantity import texts
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.notices import UserNotice, note, warning
from joinery_cli.reading.documents import Document, documents

if TYPE_CHECKING:
    from joinery_cli.options import Daemons


def documents_of(daemons: "Daemons") -> Iterator[Document]:
    """The DaemonSets as objects of a file."""
    name = f"{daemons.value}-daemons.yaml"
    yield from documents(name, (resources.files("joinery_cli.reading") / "data" / name).read_bytes())


def added(daemon_sets: list[DaemonSet]) -> UserNotice:
    """What each node runs beside the files' own: ``kube-proxy (cpu 100m)``."""
    listed = ", ".join(f"{one.metadata.name} ({_requested(one)})" for one in daemon_sets)
    return note(f"planned on each node as well, as EKS's add-ons: {listed or 'nothing that the files lack'}")


def _requested(daemon_set: DaemonSet) -> str:
    asked = requests_of(Pod(metadata=daemon_set.metadata, spec=daemon_set.spec.template.spec))
    return ", ".join(f"{name} {amount}" for name, amount in texts(asked).items() if name != PODS)


def without_daemons(snapshot: Snapshot) -> Iterator[UserNotice]:
    """A warning where nodes would be bought as if nothing but pods of the files ran on them."""
    if snapshot.node_pools and not snapshot.daemon_sets and (snapshot.nodes or snapshot.pods):
        yield warning(
            "the files have no DaemonSet: nodes are planned as if none ran on them, and every node of EKS runs some. "
            "--daemons eks adds those (aws-node, kube-proxy, ebs-csi-node); all of a cluster's: kubectl get daemonsets "
            "-A -o json > daemons.json, and -f daemons.json"
        )
