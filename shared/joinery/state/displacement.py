"""Displaced pods: a consolidation had planned room for them on nodes there are, and a node had to be bought after all.

A plan says where the pods of a node that goes have room; kube-scheduler decides where their successors run. It may fill
that room with others of them, or with pods that came meanwhile. Then one has no room, and provisioning buys a node for
it, as if nothing had been saved. A command names the owners of the pods that it moves. A claim that is bought for pods
of these owners, while the nodes of the command are being drained, says so until it is gone
(``joinery.dev/bought-for-displaced``). ``disruption.moves`` charges the next move of such pods with it.

Anybody may edit an annotation. One that cannot be read stands for none.
"""

from collections.abc import Iterable, Mapping

import msgspec

from joinery.apis.core import Pod
from joinery.apis.decoding import decoder
from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import BOUGHT_FOR_DISPLACED
from joinery.apis.nodeclaim import NodeClaim
from joinery.state.disruption import record_of
from joinery.state.pods import controller_of

#: The most owners that a command names, so that its annotation stays far below what the API server takes. Those of a
#: larger one that are left out are not charged; it moves pods by the thousand.
MOST_OWNERS = 1000
#: $/h. No node costs that, so somebody has written it.
_ABSURD = 1e6
_SAVING = frozenset({DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED})


class Displacement(msgspec.Struct, frozen=True, rename="camel"):
    """What a claim was bought for.

    ``owners``: UIDs of the controllers of the pods. ``price``: $/h of the node, as planned, and of those before it that
    were given up in vain.
    """

    owners: tuple[str, ...]
    price: float


def owners_of(pods: Iterable[Pod]) -> tuple[str, ...]:
    """The UIDs of those who recreate the pods, at most ``MOST_OWNERS``."""
    owners = {owner.uid for pod in pods if (owner := controller_of(pod))}
    return tuple(sorted(owners)[:MOST_OWNERS])


def owners_moved(claims: Iterable[NodeClaim]) -> Mapping[str, float]:
    """Whose pods consolidation is moving at this moment: those of nodes that it is draining.

    By UID of the owner, $/h for which these nodes had been bought for its displaced pods themselves; 0 as a rule.
    """
    owners: dict[str, float] = {}
    for claim in claims:
        record = record_of(claim) if claim.is_deleting else None
        if record is not None and record.reason in _SAVING:
            earlier = displacement_of(claim)
            for owner in record.moves:
                before = earlier.price if earlier and owner in earlier.owners else 0.0
                owners[owner] = max(before, owners.get(owner, 0.0))
    return owners


def displaced(pods: Iterable[Pod], moved: Mapping[str, float], price: float) -> Displacement | None:
    """What a claim for these pods at $/h is bought for; None if none of them is displaced.

    ``moved``: ``owners_moved``. What a node that goes had been bought for is handed on, or nobody would know how often
    it was in vain.
    """
    owners = owners_of(pod for pod in pods if not pod.spec.node_name) if moved else ()
    earlier = {owner: moved[owner] for owner in owners if owner in moved}
    return Displacement(tuple(earlier), price + max(earlier.values())) if earlier else None


def displacement_of(claim: NodeClaim) -> Displacement | None:
    """What the claim's node was bought for; None where that was nothing of the kind."""
    text = claim.metadata.annotations.get(BOUGHT_FOR_DISPLACED)
    if text is None:
        return None
    try:
        displacement: Displacement = decoder(Displacement).decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return displacement if 0 < displacement.price < _ABSURD else None


def encoded(displacement: Displacement) -> str:
    """The value of the annotation."""
    return msgspec.json.encode(displacement).decode()
