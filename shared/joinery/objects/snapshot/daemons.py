"""DaemonSets of other groups than apps (OpenKruise's), inferred from their pods.

Nobody reads those objects: they are of many kinds, and rarely installed. But new nodes run their pods too, so a node
that is bought without room for them is too small.

A pod of such a DaemonSet says what it requests, tolerates and selects by ``nodeSelector``. What its template demanded
by affinity is not in it any more: its controller has put the node's name in that place (kube-controller-manager
``ReplaceDaemonSetPodNodeNameNodeAffinity``). So the nodes that run one tell where it belongs: in the NodePools of which
most nodes do, and in new ones if it is in all.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from joinery.objects.karpenter.labels import NODE_POOL
from joinery.objects.kubernetes.core import (
    Affinity,
    DaemonSet,
    DaemonSetSpec,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    Pod,
    PodSpec,
    PodTemplateSpec,
)
from joinery.objects.snapshot.pods import controller_of, is_active, is_daemon

_KUBERNETES_OWN = "apps/"


def inferred_from_pods(pods: Iterable[Pod], nodes: Sequence[Node]) -> tuple[DaemonSet, ...]:
    """The DaemonSets of other groups, as templates of the pods that they will make. Those that run on no node of ours
    are left out.
    """
    running: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        if is_daemon(pod) and pod.spec.node_name and is_active(pod):
            owner = controller_of(pod)
            if owner is not None and not owner.api_version.startswith(_KUBERNETES_OWN):
                running[pod.metadata.namespace, owner.name].append(pod)
    return tuple(made for name, own in sorted(running.items()) for made in _daemon_set(name, own, nodes))


def _daemon_set(name: tuple[str, str], pods: Sequence[Pod], nodes: Sequence[Node]) -> Iterator[DaemonSet]:
    newest = max(pods, key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.metadata.name))
    among = [node for node in nodes if _is_selected(newest.spec, node.metadata.labels)]
    pools, runs = Counter(map(_pool, among)), {pod.spec.node_name for pod in pods}
    running = Counter(_pool(node) for node in among if node.metadata.name in runs)
    at_home = sorted(pool for pool, number in pools.items() if pool and 2 * running[pool] >= number)
    if at_home:
        spec = replace(newest.spec, node_name="", affinity=_in(at_home) if len(at_home) < len(pools) else None)
        template = PodTemplateSpec(metadata=ObjectMeta(labels=newest.metadata.labels), spec=spec)
        yield DaemonSet(metadata=ObjectMeta(namespace=name[0], name=name[1]), spec=DaemonSetSpec(template=template))


def _is_selected(spec: PodSpec, labels: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in spec.node_selector.items())


def _pool(node: Node) -> str:
    """The NodePool's name; empty for a node of nobody."""
    return node.metadata.labels.get(NODE_POOL, "")


def _in(pools: Sequence[str]) -> Affinity:
    rule = NodeSelectorRequirement(key=NODE_POOL, operator="In", values=list(pools))
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[rule])])
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=required))
