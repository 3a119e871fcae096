"""Instance types that nobody sells any more: a node of such a type has drifted (Karpenter `InstanceTypeNotFound`).

Disruption judges this, because it reads the catalogue anyway; every other reason is lifecycle's
(``lifecycle.view.drift``). A claim counts after an hour: what was just bought was just sold. Karpenter asks for an
offering of the node's own capacity type. Here any in its zone will do: a reservation ends and leaves an on-demand node,
and a type without a recent spot price is sold all the same.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from joinery.decisions.lifecycle.view.drift import INSTANCE_TYPE_NOT_FOUND, drift_noted, with_drift, without_drift
from joinery.objects.karpenter.drift import Drift
from joinery.objects.karpenter.labels import INSTANCE_TYPE, NODE_POOL, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import is_launched
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot

#: The age from which a claim counts (Karpenter nodeclaim/disruption, `instanceTypeNotFoundCheckDelay`).
_JUDGED_FROM = timedelta(hours=1)


def instance_type_drift(
    snapshot: Snapshot, types: Mapping[str, Sequence[InstanceType]]
) -> Sequence[tuple[NodeClaim, NodeClaim]]:
    """Each claim whose condition ``Drifted`` changes for this reason, as it was read and as it should be.

    ``types``: by name of the node class. A class without any, because it is not ready for instance, says nothing.
    """
    sold = {name: {offered.name: offered for offered in listed} for name, listed in types.items() if listed}
    changes = []
    for claim in snapshot.managed_claims:
        offered = sold.get(claim.spec.node_class_ref.name)
        is_ours = claim.metadata.labels.get(NODE_POOL) in snapshot.pools_by_name and is_launched(claim)
        if is_ours and offered is not None and not claim.is_deleting:
            changes.append((claim, _judged(claim, offered, snapshot)))
    return [(before, after) for before, after in changes if before != after]


def _judged(claim: NodeClaim, offered: Mapping[str, InstanceType], snapshot: Snapshot) -> NodeClaim:
    noted, created = drift_noted(claim), claim.metadata.creation_timestamp
    is_old = created is not None and snapshot.now - created >= _JUDGED_FROM
    if not is_old or _is_sold(claim, offered):
        is_over = noted is not None and noted.reason == INSTANCE_TYPE_NOT_FOUND
        return without_drift(claim) if is_over else claim
    if noted is not None and noted.reason != INSTANCE_TYPE_NOT_FOUND:
        return claim
    name = claim.metadata.labels.get(INSTANCE_TYPE, "")
    return with_drift(claim, Drift(INSTANCE_TYPE_NOT_FOUND, f"nobody sells {name} like it any more"), snapshot.now)


def _is_sold(claim: NodeClaim, offered: Mapping[str, InstanceType]) -> bool:
    labels = claim.metadata.labels
    instance_type = offered.get(labels.get(INSTANCE_TYPE, ""))
    return instance_type is not None and any(it.zone == labels.get(ZONE) for it in instance_type.offerings)
