"""Extended resources that devices serve (KEP-5004, on by default since Kubernetes 1.36): what pods ask for like
``nvidia.com/gpu: 2``, and get from the driver of a DeviceClass that bears the name (``extendedResourceName``).

No node advertises such a resource, so as a number it would fit nowhere. Here it is read as a claim for so many devices
of the class, which is what the scheduler makes of it. Where some node does advertise it, a device plugin serves it, and
it counts as a number everywhere: the scheduler looks at each node, but of a node to be bought nobody can say which of
the two it will have.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from msgspec.structs import replace as with_fields

from joinery.objects.kubernetes.core import (
    Container,
    DaemonSet,
    ObjectMeta,
    Pod,
    PodResourceClaim,
    ResourceRequirements,
)
from joinery.objects.kubernetes.dynamic_resources import (
    DeviceAlternative,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.pod_groups import PodGroup
from joinery.objects.snapshot.snapshot import Snapshot

#: A DeviceClass is asked for by this and its name, too (API ``ResourceDeviceClassPrefix``).
_BY_CLASS = "deviceclass.resource.kubernetes.io/"


def asks_for_extended(group: PodGroup) -> bool:
    """Whether some pod of the group asks for a resource that devices might serve."""
    said = (name for pod in group.pods for one in _containers(pod) for name in one.resources.requests)
    return any("/" in name for name in said)


def read_as_claims(snapshot: Snapshot) -> Snapshot:
    """The snapshot with claims in place of resources that devices serve; itself where there are none."""
    by_name = _by_name(snapshot.device_classes)
    if not by_name:
        return snapshot
    advertised = {name for node in snapshot.nodes for name, has in _amounts(node.status.allocatable).items() if has > 0}
    served = {name: one for name, one in by_name.items() if name not in advertised}
    templates: dict[str, ResourceClaimTemplate] = {}
    pods = tuple(_claiming(pod, served, templates) for pod in snapshot.pods)
    daemon_sets = tuple(_of_claiming(daemon_set, served, templates) for daemon_set in snapshot.daemon_sets)
    if not templates:
        return snapshot
    return replace(
        snapshot,
        pods=pods,
        daemon_sets=daemon_sets,
        resource_claim_templates=(*snapshot.resource_claim_templates, *templates.values()),
    )


def _by_name(classes: Iterable[DeviceClass]) -> Mapping[str, str]:
    """The class of each resource; of several that bear one name the youngest, as the scheduler has it."""
    in_order = sorted(classes, key=lambda one: (str(one.metadata.creation_timestamp or ""), one.metadata.name))
    named = {one.spec.extended_resource_name: one.metadata.name for one in in_order if one.spec.extended_resource_name}
    return {f"{_BY_CLASS}{one.metadata.name}": one.metadata.name for one in in_order} | named


def _claiming(pod: Pod, served: Mapping[str, str], templates: dict[str, ResourceClaimTemplate]) -> Pod:
    """The pod with claims in place of what it asks of these resources."""
    asked = {name for one in _containers(pod) for name in (*one.resources.requests, *one.resources.limits)}
    counts = {name: count for name in served if name in asked and (count := _count(pod, name))}
    if not counts:
        return pod
    references = [PodResourceClaim(name=name, resource_claim_template_name=f"{name}={counts[name]}") for name in counts]
    for reference, (name, count) in zip(references, counts.items(), strict=True):
        template = _template(pod.metadata.namespace, reference, served[name], count)
        templates[template.key] = template
    spec = with_fields(
        pod.spec,
        containers=[_without(one, counts) for one in pod.spec.containers],
        init_containers=[_without(one, counts) for one in pod.spec.init_containers],
        resource_claims=[*pod.spec.resource_claims, *references],
    )
    return with_fields(pod, spec=spec)


def _of_claiming(
    daemon_set: DaemonSet, served: Mapping[str, str], templates: dict[str, ResourceClaimTemplate]
) -> DaemonSet:
    template = daemon_set.spec.template
    asked = Pod(metadata=ObjectMeta(namespace=daemon_set.metadata.namespace or "default"), spec=template.spec)
    claiming = _claiming(asked, served, templates)
    if claiming is asked:
        return daemon_set
    return with_fields(
        daemon_set, spec=with_fields(daemon_set.spec, template=with_fields(template, spec=claiming.spec))
    )


def _template(namespace: str, reference: PodResourceClaim, of_class: str, count: int) -> ResourceClaimTemplate:
    asked = DeviceRequest(name="devices", exactly=DeviceAlternative(device_class_name=of_class, count=count))
    return ResourceClaimTemplate(
        metadata=ObjectMeta(name=reference.resource_claim_template_name or "", namespace=namespace),
        spec=ResourceClaimTemplateSpec(spec=ResourceClaimSpec(devices=DeviceClaim(requests=[asked]))),
    )


def _count(pod: Pod, name: str) -> int:
    """How many the pod has at a time. Init containers use those of the others; sidecars have their own."""
    sidecars = [one for one in pod.spec.init_containers if one.restart_policy == "Always"]
    at_first = [one for one in pod.spec.init_containers if one.restart_policy != "Always"]
    together = sum(_asked(one.resources).get(name, 0) for one in (*pod.spec.containers, *sidecars))
    return max(together, *(_asked(one.resources).get(name, 0) for one in at_first), 0)


def _containers(pod: Pod) -> Iterable[Container]:
    return (*pod.spec.containers, *pod.spec.init_containers)


def _asked(resources: ResourceRequirements) -> Mapping[str, int]:
    return {**_amounts(resources.limits), **_amounts(resources.requests)}


def _amounts(said: Mapping[str, str | int | float]) -> Mapping[str, int]:
    """Those of extended resources. A file may say anything; what is no amount is reported elsewhere."""
    with suppress(ValueError):
        return amounts({name: amount for name, amount in said.items() if "/" in name})
    return {}


def _without(container: Container, names: Mapping[str, int]) -> Container:
    resources = container.resources
    kept = {
        field: {name: amount for name, amount in getattr(resources, field).items() if name not in names}
        for field in ("requests", "limits")
    }
    return with_fields(container, resources=with_fields(resources, **kept))
