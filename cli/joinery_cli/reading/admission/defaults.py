"""What the API server would have written into an object before anyone read it.

Objects from a cluster carry these defaults already; objects from a person's file do not, and a plan for the file should
be the plan for what ``kubectl apply`` makes of it. Applying them twice changes nothing.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from joinery.objects.karpenter.labels import BIND_COMPLETED
from joinery.objects.kubernetes.core import (
    Affinity,
    Container,
    ContainerPort,
    LabelSelector,
    LabelSelectorRequirement,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
)

_T = TypeVar("_T")


def namespaced(meta: ObjectMeta) -> ObjectMeta:
    """Metadata of a namespaced object: no namespace means ``default``."""
    return meta if meta.namespace else replace(meta, namespace="default")


def pod_defaults(pod: Pod) -> Pod:
    """Namespace, requests from limits, host ports of the host's network, label keys merged into pod affinity."""
    meta, spec = namespaced(pod.metadata), _merged_affinity(spec_defaults(pod.spec), pod.metadata.labels)
    return pod if meta is pod.metadata and spec is pod.spec else replace(pod, metadata=meta, spec=spec)


def claim_defaults(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """A claim that names its volume, and says that it is bound or has no status, is bound: people write claims without
    the volume controller's annotation, and tools that tidy exports take it out.
    """
    if not claim.spec.volume_name or claim.status.phase not in ("", "Bound"):
        return claim
    annotations = {BIND_COMPLETED: "yes", **claim.metadata.annotations}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


def spec_defaults(spec: PodSpec) -> PodSpec:
    """Requests from limits and host ports of containers; the same spec where nothing is to be done.

    Requests of the pod itself are left to the packing core: they depend on what the containers ask for.
    """
    containers = _each(spec.containers, lambda c: _container(c, spec.host_network))
    init = _each(spec.init_containers, lambda c: _container(c, spec.host_network))
    if containers is spec.containers and init is spec.init_containers:
        return spec
    return replace(spec, containers=containers, init_containers=init)


def _container(container: Container, host_network: bool) -> Container:
    resources = _requested(container.resources)
    ports = _each(container.ports, _host_port) if host_network else container.ports
    if resources is container.resources and ports is container.ports:
        return container
    return replace(container, resources=resources, ports=ports)


def _requested(resources: ResourceRequirements) -> ResourceRequirements:
    """A limit without a request is a request too."""
    if resources.limits.keys() <= resources.requests.keys():
        return resources
    return replace(resources, requests={**resources.limits, **resources.requests})


def _host_port(port: ContainerPort) -> ContainerPort:
    return port if port.host_port else replace(port, host_port=port.container_port)


def _merged_affinity(spec: PodSpec, labels: dict[str, str]) -> PodSpec:
    affinity = spec.affinity
    if affinity is None or not (affinity.pod_affinity or affinity.pod_anti_affinity):
        return spec
    merged = Affinity(
        node_affinity=affinity.node_affinity,
        pod_affinity=_merged_terms(affinity.pod_affinity, labels),
        pod_anti_affinity=_merged_terms(affinity.pod_anti_affinity, labels),
    )
    return spec if merged == affinity else replace(spec, affinity=merged)


def _merged_terms(side: PodAffinity | None, labels: dict[str, str]) -> PodAffinity | None:
    if side is None:
        return None
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=[
            _merged_term(term, labels) for term in side.required_during_scheduling_ignored_during_execution
        ],
        preferred_during_scheduling_ignored_during_execution=[
            replace(weighted, pod_affinity_term=_merged_term(weighted.pod_affinity_term, labels))
            for weighted in side.preferred_during_scheduling_ignored_during_execution
        ],
    )


def _merged_term(term: PodAffinityTerm, labels: dict[str, str]) -> PodAffinityTerm:
    """(Mis)matchLabelKeys become expressions of the selector, where the pod has the label."""
    selector = term.label_selector
    if selector is None:
        return term
    wanted = [("In", key) for key in term.match_label_keys] + [("NotIn", key) for key in term.mismatch_label_keys]
    expressions = [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for operator, key in wanted
        if key in labels
    ]
    missing = [e for e in expressions if e not in selector.match_expressions]
    if not missing:
        return term
    merged = LabelSelector(
        match_labels=selector.match_labels, match_expressions=[*selector.match_expressions, *missing]
    )
    return replace(term, label_selector=merged)


def _each(listed: list[_T], change: Callable[[_T], Any]) -> list[_T]:
    """The list with every element changed; the very same list where none was."""
    changed = [change(one) for one in listed]
    return listed if all(new is old for new, old in zip(changed, listed, strict=True)) else changed
