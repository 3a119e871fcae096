"""Filter plugins: why a node cannot take a pod, in kube-scheduler's words.

Each filter returns the reason, or the empty string if the node passes.
"""

from collections.abc import Callable, Iterator

from joinery.objects.karpenter.labels import canonical
from joinery.objects.kubernetes.core import (
    ContainerPort,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    TopologySelectorTerm,
)
from simulator.actors.kubescheduler.topology import Topology
from simulator.actors.kubescheduler.view import NodeInfo, View, host_ports, repelling_taints, requests, tolerates
from simulator.kubernetes.selectors import node_matches

WAIT = "WaitForFirstConsumer"


def reason(pod: Pod, info: NodeInfo, topology: Topology, view: View) -> str:
    """The first reason why the pod cannot go there, or nothing."""
    for plugin in _PLUGINS:
        why = plugin(pod, info, view)
        if why:
            return why
    return topology.reason(info)


def _taints(pod: Pod, info: NodeInfo, view: View) -> str:
    for taint in repelling_taints(info.node):
        if not tolerates(pod.spec.tolerations, taint):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    return ""


def matches_node_affinity(pod: Pod, info: NodeInfo) -> bool:
    """nodeSelector and required node affinity both hold."""
    if any(info.labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return affinity is None or node_matches(affinity.required_during_scheduling_ignored_during_execution, info.node)


def _node_affinity(pod: Pod, info: NodeInfo, view: View) -> str:
    return "" if matches_node_affinity(pod, info) else "node(s) didn't match Pod's node affinity/selector"


def _resources(pod: Pod, info: NodeInfo, view: View) -> str:
    for name, asked in sorted(requests(pod).items()):
        if asked > 0 and asked + info.requested.get(name, 0) > info.allocatable.get(name, 0):
            return "Too many pods" if name == "pods" else f"Insufficient {name}"
    return ""


def _ports(pod: Pod, info: NodeInfo, view: View) -> str:
    wanted = host_ports(pod)
    taken = [port for other in info.pods for port in host_ports(other)] if wanted else []
    clash = any(_clashes(one, other) for one in wanted for other in taken)
    return "node(s) didn't have free ports for the requested pod ports" if clash else ""


def _clashes(one: ContainerPort, other: ContainerPort) -> bool:
    if (one.host_port, one.protocol) != (other.host_port, other.protocol):
        return False
    anywhere = ("", "0.0.0.0")
    return one.host_ip == other.host_ip or one.host_ip in anywhere or other.host_ip in anywhere


def claims_of(pod: Pod, view: View) -> Iterator[tuple[str, PersistentVolumeClaim | None]]:
    """The pod's PersistentVolumeClaims by key; None for one that does not exist.

    Ephemeral ones are named after the pod.
    """
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.metadata.name}-{volume.name}"
        else:
            continue
        key = f"{pod.metadata.namespace or 'default'}/{name}"
        yield key, view.volume_claims.get(key)


def _volumes(pod: Pod, info: NodeInfo, view: View) -> str:
    for key, claim in claims_of(pod, view):
        why = f'persistentvolumeclaim "{key}" not found' if claim is None else _volume(claim, info, view)
        if why:
            return why
    return ""


def _volume(claim: PersistentVolumeClaim, info: NodeInfo, view: View) -> str:
    if claim.spec.volume_name:
        volume = view.volumes.get(claim.spec.volume_name)
        affinity = volume.spec.node_affinity if volume else None
        if affinity is not None and not node_matches(affinity.required, info.node):
            return "node(s) didn't match PersistentVolume's node affinity"
        return ""
    storage = view.storage_classes.get(claim.spec.storage_class_name or "")
    if storage is None or storage.volume_binding_mode != WAIT:
        return "pod has unbound immediate PersistentVolumeClaims"
    return "" if _provisions(storage, info) else "node(s) did not have enough free storage"


def _provisions(storage: StorageClass, info: NodeInfo) -> bool:
    return not storage.allowed_topologies or any(_reaches(term, info) for term in storage.allowed_topologies)


def _reaches(term: TopologySelectorTerm, info: NodeInfo) -> bool:
    return all(
        info.labels.get(canonical(expression.key)) in expression.values for expression in term.match_label_expressions
    )


def _volume_limits(pod: Pod, info: NodeInfo, view: View) -> str:
    """EBS volumes a node can attach, as its CSINode says; each claim counts once."""
    csi = view.csi_nodes.get(info.name)
    limit = next((driver.allocatable.count for driver in csi.spec.drivers if driver.allocatable), None) if csi else None
    wanted = {key for key, _ in claims_of(pod, view)}
    if limit is None or not wanted:
        return ""
    attached = {key for other in info.pods for key, _ in claims_of(other, view)}
    return "node(s) exceed max volume count" if len(attached | wanted) > limit else ""


_PLUGINS: tuple[Callable[[Pod, NodeInfo, View], str], ...] = (
    _taints,
    _node_affinity,
    _ports,
    _resources,
    _volume_limits,
    _volumes,
)
