"""The pods that stand for a buffer in plans (Karpenter virtualpods).

They look like the pods that the room is for, so that plans find them the nodes that those will find. They are nowhere
created. They have the lowest priority that there is: in every plan, all others come first.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec.structs import replace

from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.karpenter.labels import BUFFER_NAME, BUFFER_NAMESPACE, CAPACITY_TYPE, FAKE_POD
from joinery.objects.kubernetes.core import (
    Affinity,
    Condition,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
)
from joinery.objects.kubernetes.node_affinity import with_rule
from joinery.objects.snapshot.gangs import COSCHEDULING_GROUP, KUEUE_GROUP

_OF_GANGS = (COSCHEDULING_GROUP, KUEUE_GROUP)
#: The least that 32 bits hold.
PRIORITY = -(2**31)
#: Nobody evicts a pod that has not begun, so no PodDisruptionBudget counts it.
_WAITS = PodStatus(phase="Pending", conditions=[Condition(type="PodScheduled", status="False", reason="Unschedulable")])


def virtual_pods(
    buffer: CapacityBuffer, template: PodTemplateSpec, count: int, types: Sequence[str], now: datetime
) -> tuple[Pod, ...]:
    """So many pods of the template. ``types``: the capacity types of their nodes, in place of what it asks for."""
    annotations = {FAKE_POD: "true", BUFFER_NAME: buffer.metadata.name, BUFFER_NAMESPACE: buffer.namespace}
    # Room for one pod makes no gang whole.
    labels = {key: value for key, value in template.metadata.labels.items() if key not in _OF_GANGS}
    lone = PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=replace(template.spec, scheduling_group=None))
    named = (f"capacity-buffer-{buffer.metadata.name}", buffer.namespace, buffer.metadata.uid)
    return virtual_pods_of(named, lone, count, annotations, now, types)


def virtual_pods_of(
    named: tuple[str, str, str],
    template: PodTemplateSpec,
    count: int,
    annotations: dict[str, str],
    now: datetime,
    types: Sequence[str] = (),
) -> tuple[Pod, ...]:
    """So many pods of the template. ``named``: how their names begin, their namespace, how their UIDs begin."""
    name, namespace, uid = named
    spec = virtual_spec(template.spec, types)
    return tuple(
        Pod(
            metadata=ObjectMeta(
                name=f"{name}-{number}",
                namespace=namespace,
                uid=f"{uid}-{number}",
                creation_timestamp=now,
                labels=template.metadata.labels,
                annotations=annotations,
            ),
            spec=spec,
            status=_WAITS,
        )
        for number in range(1, count + 1)
    )


def virtual_spec(spec: PodSpec, types: Sequence[str]) -> PodSpec:
    """The spec of a virtual pod: without claims for volumes, which nobody will make, and held back by nothing."""
    volumes = [one for one in spec.volumes if not one.persistent_volume_claim and not one.ephemeral]
    bare = replace(spec, node_name="", volumes=volumes, scheduling_gates=[], priority=PRIORITY, priority_class_name="")
    return _of_types(bare, types) if types else bare


def _of_types(spec: PodSpec, types: Sequence[str]) -> PodSpec:
    """The spec for nodes of these capacity types, whatever it asked for or preferred of them."""
    own = NodeSelectorRequirement(key=CAPACITY_TYPE, operator="In", values=list(types))
    affinity = spec.affinity or Affinity()
    of_nodes = affinity.node_affinity or NodeAffinity()
    required = with_rule(spec.required_node_affinity, own)
    preferred = [
        replace(one, preference=_silent(one.preference))
        for one in of_nodes.preferred_during_scheduling_ignored_during_execution
    ]
    changed = NodeAffinity(
        required_during_scheduling_ignored_during_execution=replace(
            required, node_selector_terms=[_silent(term, but=own) for term in required.node_selector_terms]
        ),
        preferred_during_scheduling_ignored_during_execution=[
            one for one in preferred if one.preference.match_expressions or one.preference.match_fields
        ],
    )
    return replace(
        spec,
        node_selector={key: value for key, value in spec.node_selector.items() if key != CAPACITY_TYPE},
        affinity=replace(affinity, node_affinity=changed),
    )


def _silent(term: NodeSelectorTerm, but: NodeSelectorRequirement | None = None) -> NodeSelectorTerm:
    """The term without what it says of capacity types, ``but`` for this."""
    expressions = [one for one in term.match_expressions if one is but or one.key != CAPACITY_TYPE]
    return replace(term, match_expressions=expressions)


def as_admitted(template: PodTemplateSpec, running: Iterable[Pod]) -> PodTemplateSpec:
    """The template as a running pod of it shows it: with the containers and the overhead that admission adds."""
    newest = _newest(running)
    if newest is None:
        return template
    spec, shown = template.spec, newest.spec
    own = {container.name for container in (*spec.containers, *spec.init_containers)}
    made = replace(
        spec,
        containers=[*spec.containers, *(one for one in shown.containers if one.name not in own)],
        init_containers=[*spec.init_containers, *(one for one in shown.init_containers if one.name not in own)],
        overhead=spec.overhead or shown.overhead,
    )
    return replace(template, spec=made)


def template_of(running: Iterable[Pod]) -> PodTemplateSpec | None:
    """What pods look like that are there, by the newest of them; None where there is none."""
    newest = _newest(running)
    if newest is None:
        return None
    return PodTemplateSpec(metadata=ObjectMeta(labels=newest.metadata.labels), spec=newest.spec)


def _newest(pods: Iterable[Pod]) -> Pod | None:
    return max(pods, key=lambda pod: (str(pod.metadata.creation_timestamp or ""), pod.key), default=None)
