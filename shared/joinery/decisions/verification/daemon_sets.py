"""DaemonSets: which pods they put on a node, by the DaemonSet controller's own rule, and what those take of it.

The DaemonSet controller looks at a node's labels, name and taints only, and tolerates the taints of unfit nodes
by itself (k8s.io/kubernetes `daemon.NodeShouldRunDaemonPod`, `util.AddOrUpdateDaemonPodTolerations`).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property

import msgspec

from joinery.decisions.verification.nodes import DECIDED_BY_OFFERING, EquivalenceClass, FinalNode
from joinery.decisions.verification.predicates import refused_taint, requests_of
from joinery.decisions.verification.selections import NodeSelections
from joinery.objects.karpenter import labels as keys
from joinery.objects.kubernetes.core import DaemonSet, NodeSelectorTerm, Pod, Toleration
from joinery.objects.kubernetes.quantity import Resources, total
from joinery.objects.snapshot.pods import is_terminal
from joinery.objects.snapshot.snapshot import Snapshot

_DAEMON_TOLERATIONS = [
    Toleration(key=f"node.kubernetes.io/{condition}", operator="Exists", effect=effect)
    for condition, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("network-unavailable", "NoSchedule"),
    )
]


class DaemonSets:
    """The live DaemonSets of the cluster.

    ``pods``: by ``namespace/name`` of the DaemonSet, the class of the pods that it makes. ``nodes_of``: what the
    NodePool of a name may buy that has room for so much, the largest first.
    """

    def __init__(
        self,
        pods: Iterable[tuple[str, EquivalenceClass]],
        nodes_of: Callable[[str, Resources], Iterable[FinalNode]],
    ) -> None:
        self._pods = list(pods)
        self._nodes_of = nodes_of
        self._too_large: dict[tuple[int, str], bool] = {}
        self._by_kind: dict[object, list[EquivalenceClass]] = {}
        self._requests: dict[int, Resources] = {}
        self._selections = NodeSelections()

    @property
    def classes(self) -> list[EquivalenceClass]:
        """One class for each DaemonSet."""
        return [pod_class for _, pod_class in self._pods]

    @cached_property
    def most(self) -> Resources:
        """What the pods of all DaemonSets take, which is more than any node runs."""
        return total(pod_class.requests for pod_class in self.classes)

    @cached_property
    def depend_on_offering(self) -> bool:
        """Whether the offering of an instance type (zone, capacity type, reservation)
        may decide which of them run on its nodes.
        """
        return any(keys.canonical(key) in DECIDED_BY_OFFERING for key in self._keys)

    def on(self, node: FinalNode) -> Sequence[EquivalenceClass]:
        """The classes of the pods that the node will run. Nodes that are alike share one list."""
        pool = node.labels.get(keys.NODE_POOL, "")
        kind = (
            tuple(node.labels.get(key) for key in self._keys),
            node.taints,
            node.name if self._depend_on_name else "",
            pool,
        )
        if kind not in self._by_kind:
            running = (pod_class for pod_class in self.classes if self._runs(pod_class.pod, node))
            self._by_kind[kind] = [pod_class for pod_class in running if not self._is_too_large(pod_class, pool)]
        return self._by_kind[kind]

    def _is_too_large(self, pod_class: EquivalenceClass, pool: str) -> bool:
        """Whether no node that the NodePool may buy has room for the pod: kube-scheduler puts it on none of them."""
        key = pod_class.index, pool
        if key not in self._too_large:
            nodes = self._nodes_of(pool, pod_class.requests)
            self._too_large[key] = bool(pool) and not any(self._runs(pod_class.pod, node) for node in nodes)
        return self._too_large[key]

    def requests_on(self, node: FinalNode) -> Resources:
        """What those pods take. Nodes that run the same ones share one object."""
        classes = self.on(node)
        return self._requests.setdefault(id(classes), total(pod_class.requests for pod_class in classes))

    def missing(self, node: FinalNode, running: frozenset[str]) -> Iterator[EquivalenceClass]:
        """The classes of the pods that the node will run and does not run yet;
        ``running``: DaemonSets that have theirs there.
        """
        left = [pod_class for name, pod_class in self._pods if name not in running]
        wanted = self.on(node) if left else ()
        return (pod_class for pod_class in left if pod_class in wanted)

    def _runs(self, daemon: Pod, node: FinalNode) -> bool:
        is_selected = self._selections.of(daemon.spec).selects(node.labels, node.name)
        return is_selected and refused_taint(node.taints, daemon.spec.tolerations) is None

    @cached_property
    def _keys(self) -> list[str]:
        """The labels that decide which DaemonSets run on a node."""
        return sorted({key for pod_class in self.classes for key in _selected_keys(pod_class.pod)})

    @cached_property
    def _depend_on_name(self) -> bool:
        return keys.HOSTNAME in self._keys or any(
            term.match_fields for pod_class in self.classes for term in _terms(pod_class.pod)
        )


def daemon_pods(
    snapshot: Snapshot, class_of: Callable[[Pod], EquivalenceClass]
) -> Iterator[tuple[str, EquivalenceClass]]:
    """The name of each live DaemonSet, and the class of the pods that it makes."""
    newest = _newest_daemons(snapshot.daemon_pods)
    for daemon_set in snapshot.daemons:
        if daemon_set.metadata.deletion_timestamp is None:
            name = _name(daemon_set)
            pod = _daemon_pod(daemon_set, newest.get(name))
            with suppress(ValueError):  # a quantity that cannot be read: its pods run nowhere
                requests_of(pod)
                yield name, class_of(pod)


def _newest_daemons(pods: Iterable[Pod]) -> dict[str, Pod]:
    """The youngest living pod of every DaemonSet, by ``namespace/name``; ``pods``: the oldest first."""
    return {
        f"{pod.metadata.namespace or 'default'}/{owner.name}": pod
        for pod in pods
        if not is_terminal(pod) and pod.metadata.deletion_timestamp is None
        for owner in pod.metadata.owner_references
    }


def _daemon_pod(daemon_set: DaemonSet, live: Pod | None) -> Pod:
    """The pod that the DaemonSet controller makes, before it is pinned to a node;
    it takes what the newest one takes.
    """
    template = daemon_set.spec.template
    meta = msgspec.structs.replace(
        template.metadata,
        namespace=daemon_set.metadata.namespace or "default",
        name=f"daemon-{daemon_set.metadata.name}",
    )
    tolerations = [*template.spec.tolerations, *_DAEMON_TOLERATIONS]
    spec = msgspec.structs.replace(template.spec, tolerations=tolerations)
    if live is not None:
        took = {
            name: getattr(live.spec, name)
            for name in ("containers", "init_containers", "overhead", "resources", "resource_claims")
        }
        spec = msgspec.structs.replace(spec, **took)
    return Pod(metadata=meta, spec=spec)


def _name(daemon_set: DaemonSet) -> str:
    return f"{daemon_set.metadata.namespace or 'default'}/{daemon_set.metadata.name}"


def _terms(pod: Pod) -> list[NodeSelectorTerm]:
    required = pod.spec.required_node_affinity
    return required.node_selector_terms if required else []


def _selected_keys(pod: Pod) -> set[str]:
    return set(pod.spec.node_selector) | {e.key for term in _terms(pod) for e in term.match_expressions}
