"""Why a NodePool takes no part in a plan."""

from joinery.decisions.scheduling.pools.pool import Fit, Pool, there_are
from joinery.decisions.scheduling.pools.reserved import used_up
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.karpenter.nodeclass import NodeClass
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.karpenter.validation import validate
from joinery.objects.snapshot.snapshot import Snapshot

#: A static NodePool launches no nodes for pods; its nodes take pods like others (``scheduling.replicas``).
STATIC = Reason(ReasonCode.STATIC, "it has a fixed number of replicas, and launches no nodes for pending pods")


def unusable(node_pool: NodePool, snapshot: Snapshot) -> Reason | None:
    """What in the NodePool itself or its node class keeps it from launching; None if nothing does."""
    if node_pool.metadata.deletion_timestamp is not None:
        return Reason(ReasonCode.DELETING, "it is being deleted")
    if problems := validate(node_pool):
        return Reason(ReasonCode.INVALID, "; ".join(problems))
    ready = next((condition for condition in node_pool.status.conditions if condition.type == "Ready"), None)
    if ready is not None and ready.status == "False":
        return Reason(ReasonCode.NOT_READY, f"it is not ready: {ready.message or ready.reason}")
    pause = snapshot.pauses.get(node_pool.metadata.name)
    if pause is not None:
        return Reason(ReasonCode.PAUSED, f"it is {pause.in_words}")
    return _unusable_class(node_pool, snapshot)


def _unusable_class(node_pool: NodePool, snapshot: Snapshot) -> Reason | None:
    ref = node_pool.spec.template.spec.node_class_ref
    if not snapshot.serves(node_pool):
        return Reason(
            ReasonCode.NODE_CLASS, f"its node class is a {ref.kind}.{ref.group}, which Joinery does not serve"
        )
    node_class = snapshot.classes_by_name.get(ref.name)
    if node_class is not None:
        return _class_problem(node_class)
    # Documents of several kinds may have one name: that of the NodePool is mostly that of its class.
    named = (document for document in snapshot.invalid if (document.kind, document.name) == (ref.kind, ref.name))
    if invalid := next(named, None):
        return Reason(ReasonCode.NODE_CLASS, f"{ref.kind} {ref.name} is invalid: {invalid.reason}")
    return Reason(ReasonCode.NODE_CLASS, f"{ref.kind} {ref.name} does not exist")


def _class_problem(node_class: NodeClass) -> Reason | None:
    subject = f"{node_class.kind} {node_class.metadata.name}"
    if node_class.is_deleting:
        return Reason(ReasonCode.NODE_CLASS, f"{subject} is being deleted")
    for lacking in node_class.unsupported:
        return Reason(ReasonCode.NOT_SUPPORTED, f"{lacking.verdict}: {subject}: {lacking.field}: {lacking.problem}")
    ready = node_class.ready
    if ready is not None and ready.status == "False":
        return Reason(ReasonCode.NODE_CLASS, f"{subject} is not ready: {ready.message or ready.reason}")
    return None


def nothing_for_sale(admitted: Fit, template: Pool) -> Reason:
    """The reason for a NodePool whose requirements leave no instance type with an available offering.

    ``admitted``: what they leave. ``template``: the pool before its requirements were applied to types and offerings.
    """
    ref = template.node_pool.spec.template.spec.node_class_ref
    if key := admitted.conflict:
        allowed = admitted.requirements.get(key)
        return Reason(
            ReasonCode.REQUIREMENTS,
            f"no instance type of {ref.kind} {ref.name} has {key} {allowed}{there_are(template, key)}",
        )
    is_for_sale = bool((admitted.columns & template.unreserved).any())
    if not is_for_sale and (message := used_up(template, admitted.types, admitted.columns, {})):
        return Reason(ReasonCode.RESERVED, message)
    return Reason(ReasonCode.OFFERINGS, "no instance type that it allows has an available offering")


def unmet_min_values(pool: Pool) -> Reason | None:
    """A label of which the pool's types have too few values for minValues; None if there are enough.

    Types that are too small for the DaemonSets count here: otherwise the reason would blame minValues for them.
    """
    lacking = pool.too_few(pool.types | pool.crowded, pool.columns)
    if lacking is None:
        return None
    key, possible = lacking
    return Reason.of(
        ReasonCode.MIN_VALUES,
        "minValues of {label} is {min_values}, and only {possible} of its values can be had",
        label=key,
        min_values=pool.min_values[key],
        possible=possible,
    )
