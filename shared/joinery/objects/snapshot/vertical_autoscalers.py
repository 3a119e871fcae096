"""What a VerticalPodAutoscaler makes of a pod that is created: its containers request what it recommends by now.

Its admission plugin does so for each pod of its target (kubernetes/autoscaler, vertical-pod-autoscaler/pkg/admission).
So a pod that leaves its node may come back larger or smaller than it is, and than its template says. A pod that was
resized in place comes back so too: the recommendation counts, and not what the node has given it.
"""

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from joinery.objects.kubernetes.core import Container, Pod, ResourceRequirements
from joinery.objects.kubernetes.verticalautoscaler import VerticalPodAutoscaler
from joinery.objects.snapshot.pod_groups import PodGroup
from joinery.objects.snapshot.pods import controller_of

FIELD = "vertical_autoscalers"
#: What it writes on pods that it has set (vertical-pod-autoscaler/pkg/utils/annotations).
VPA_UPDATES, VPA_IN_PLACE = "vpaUpdates", "vpaInPlaceUpdated"
_TEMPLATE_HASH = "pod-template-hash"

#: By kind, namespace and name of the target.
Autoscalers = Mapping[tuple[str, str, str], VerticalPodAutoscaler]


def was_set(pod: Pod) -> bool:
    """Whether one has set what the pod requests."""
    annotations = pod.metadata.annotations
    return VPA_UPDATES in annotations or VPA_IN_PLACE in annotations


def is_wanted(groups: Iterable[PodGroup]) -> bool:
    """Whether a cluster has to be asked for them: some pod was set by one."""
    return any(group.derived(_has_set) for group in groups)


def _has_set(group: PodGroup) -> bool:
    return any(map(was_set, group.pods))


def by_target(autoscalers: Iterable[VerticalPodAutoscaler]) -> Autoscalers:
    """Those that act, by what they are about."""
    return {
        (one.spec.target_ref.kind, one.metadata.namespace or "default", one.spec.target_ref.name): one
        for one in autoscalers
        if one.acts
    }


def recommended(pod: Pod, autoscalers: Autoscalers) -> Pod:
    """The pod as it is made, if one of them is about it."""
    autoscaler = next((autoscalers[key] for key in _targets(pod) if key in autoscalers), None)
    if autoscaler is None:
        return pod
    containers = [_set(container, autoscaler) for container in pod.spec.containers]
    if containers == pod.spec.containers:
        return pod
    return replace(pod, spec=replace(pod.spec, containers=containers))


def _targets(pod: Pod) -> Iterable[tuple[str, str, str]]:
    """Who keeps the pod, and its Deployment, whose name its ReplicaSet's begins with."""
    owner, namespace = controller_of(pod), pod.metadata.namespace or "default"
    if owner is None:
        return
    yield owner.kind, namespace, owner.name
    revision = pod.metadata.labels.get(_TEMPLATE_HASH, "")
    if owner.kind == "ReplicaSet" and revision and owner.name.endswith(f"-{revision}"):
        yield "Deployment", namespace, owner.name.removesuffix(f"-{revision}")


def _set(container: Container, autoscaler: VerticalPodAutoscaler) -> Container:
    target = autoscaler.target_of(container.name)
    if not target:
        return container
    # Limits grow with the requests, or there are none: what is planned goes by the requests.
    resources: ResourceRequirements = replace(
        container.resources,
        requests={**container.resources.requests, **target},
        limits={name: limit for name, limit in container.resources.limits.items() if name not in target},
    )
    return replace(container, resources=resources)
