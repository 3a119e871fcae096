"""What a NodePool lists for pods that choose nothing else (annotation ``joinery.dev/overrides``)."""

from collections.abc import Iterator, Sequence

from joinery.decisions.verification.launch_options import LaunchOption
from joinery.decisions.verification.nodes import FinalNode
from joinery.decisions.verification.predicates import LabelRequirement, unmet
from joinery.decisions.verification.templates import left_of_defaults
from joinery.decisions.verification.violation import Violation, ViolationCode, misplaced
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import NodeSelectorRequirement, PodSpec


def check_defaults(pool: NodePool, node: FinalNode, options: Sequence[LaunchOption]) -> Iterator[Violation]:
    """Pods that choose nothing else are bought nothing else, whatever EC2 picks of the launch."""
    for pod_class in node.planned if pool.defaults else ():
        rules = left_of_defaults(pool, _choices(pod_class.pod.spec))
        broken = next((rule for option in options for labels in option.nodes if (rule := unmet(rules, labels))), None)
        if broken is not None:
            message = f"the NodePool's default {broken.key} {broken.operator} {','.join(broken.values)} holds for it"
            yield misplaced(ViolationCode.REQUIREMENTS, pod_class, node, message)


def _choices(spec: PodSpec) -> Iterator[LabelRequirement]:
    """All that the pod may have chosen by: what it selects, requires in some term or prefers, and where a volume is."""
    yield from (NodeSelectorRequirement(key=key, operator="In", values=[v]) for key, v in spec.node_selector.items())
    required, affinity = spec.required_node_affinity, spec.affinity and spec.affinity.node_affinity
    for term in required.node_selector_terms if required else ():
        yield from term.match_expressions
    for preferred in affinity.preferred_during_scheduling_ignored_during_execution if affinity else ():
        yield from preferred.preference.match_expressions
    if any(volume.persistent_volume_claim or volume.ephemeral for volume in spec.volumes):
        yield NodeSelectorRequirement(key=keys.ZONE, operator="In", values=[])
