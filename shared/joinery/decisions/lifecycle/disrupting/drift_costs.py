"""Replacing drifted nodes may raise the bill. Nothing checks whether it pays, so an Event says what it costs.

Most drift costs nothing: the same type is bought again. It does cost where the NodePool now requires dearer types, or
where the old node was on spot or in a reservation that has no more room.
"""

from collections.abc import Iterable, Mapping, Sequence

from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand
from joinery.decisions.lifecycle.state.drift import drift_noted
from joinery.objects.actions import Announce
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.offerings import InstanceType

#: $/h: prices this far apart count as equal.
_NEGLIGIBLE = 1e-6


def added_cost(command: NewCommand, hourly: float, types: Mapping[str, Sequence[InstanceType]]) -> float:
    """$/h that a command for drift adds to the bill; 0 where it adds nothing, and where a price is not known.

    ``hourly``: $/h of its replacements. ``types``: by name of the node class, with the prices of what is sold.
    """
    if command.reason is not DisruptionReason.DRIFTED:
        return 0.0
    before = [_price(claim, types) for claim in command.candidates]
    if None in before:
        return 0.0
    more = hourly - sum(filter(None, before))
    return more if more > _NEGLIGIBLE else 0.0


def dearer_events(command: NewCommand, more: float) -> Iterable[Announce]:
    """Events about it. ``more``: $/h, above 0."""
    for claim in command.candidates:
        noted = drift_noted(claim)
        why = f" ({noted.reason}: {noted.message})" if noted else ""
        text = f"to replace it for drift{why} costs ${more:.4f}/h more"
        yield Announce("DriftCostsMore", text, claim)


def _price(claim: NodeClaim, types: Mapping[str, Sequence[InstanceType]]) -> float | None:
    """$/h of the claim's node, by its labels; None where nobody knows."""
    labels = claim.metadata.labels
    sold = types.get(claim.spec.node_class_ref.name, ())
    own = next((kind for kind in sold if kind.name == labels.get(INSTANCE_TYPE)), None)
    return own.price(labels.get(ZONE, ""), labels.get(CAPACITY_TYPE, "")) if own else None
