"""Decided commands as those that are started: with their NodeClaims, those to retire and those to write."""

from collections.abc import Sequence

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.annotations.displacement import moves_of
from joinery.objects.annotations.disruption import Readiness
from joinery.objects.snapshot.snapshot import Snapshot


def new_commands(disruptions: Sequence[DecidedCommand], snapshot: Snapshot) -> Sequence[NewCommand]:
    """Each with its candidates, and with complete claims for its replacements."""
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    pods = {pod.key: pod for pod in snapshot.pods}
    # All at once: then no two have one name, and those that are alike share a CreateFleet call.
    launches = tuple(launch for disruption in disruptions for launch in disruption.launches)
    replacements = iter(claims_of(Packing(launches=launches), snapshot))
    return [
        NewCommand(
            reason=disruption.reason,
            candidates=tuple(claims[name] for name in disruption.retire),
            replacements=tuple(next(replacements) for _ in disruption.launches),
            waits_for=Readiness.WRITTEN if disruption.terminates_first else Readiness.INITIALIZED,
            savings=disruption.savings,
            move_price=disruption.move_price,
            moves=moves_of(pods[name] for name in disruption.pods if name in pods),
        )
        for disruption in disruptions
    ]
