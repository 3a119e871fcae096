"""NodePools that may launch nothing: at all, or for pending pods (Karpenter `Provisioner.Schedule`)."""

from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.predicates import allows, possible_values
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.nodeclass import NodeClassRef
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import validate


def why_closed(state: FinalState, pool: NodePool) -> str:
    """Why the pool may launch nothing for pending pods, or the empty string."""
    return "the NodePool is static" if pool.is_static else why_unusable(state, pool)


def why_unusable(state: FinalState, pool: NodePool) -> str:
    """Why the pool may launch nothing at all, or the empty string."""
    name = pool.metadata.name
    if pool.metadata.deletion_timestamp is not None:
        return "the NodePool is being deleted"
    if validate(pool) or any(bad.kind == "NodePool" and bad.name == name for bad in state.problem.snapshot.invalid):
        return "the NodePool failed validation"
    if any(c.type == "Ready" and c.status == "False" for c in pool.status.conditions):
        return "the NodePool is not ready"
    if name in state.problem.snapshot.pauses:
        return "the NodePool is paused"
    if _contradicts_itself(pool):
        return "the NodePool's requirements and labels contradict each other"
    return _why_no_class(state, pool.spec.template.spec.node_class_ref)


def _contradicts_itself(pool: NodePool) -> bool:
    template = pool.spec.template
    for key in {keys.canonical(r.key) for r in template.spec.requirements}:
        rules = [r for r in template.spec.requirements if keys.canonical(r.key) == key]
        label = template.metadata.labels.get(key)
        values = [label] if label is not None else possible_values(rules, ())
        if not any(all(allows(rule, value) for rule in rules) for value in values):
            return True
    return False


def _why_no_class(state: FinalState, ref: NodeClassRef) -> str:
    node_class = state.problem.snapshot.classes_by_name.get(ref.name)
    if node_class is None:
        return f"there is no {ref.kind} {ref.name}"
    if any(c.type == "Ready" and c.status == "False" for c in node_class.status.conditions):
        return f"{ref.kind} {ref.name} is not ready"
    if node_class.unsupported:
        return f"{ref.kind} {ref.name} asks for what is not supported"
    return ""
