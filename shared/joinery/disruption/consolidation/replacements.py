"""What replaces nodes must be worth it whichever type EC2 gives.

A launch allows several instance types, and EC2 takes one that it has (EC2 API CreateFleet). None is allowed with which
the command would not repay its moves in time. So every command lowers the cluster's price by what its moves demand,
whatever EC2 gives, and no chain of commands can come back to where it began (Karpenter, consolidation:
`RemoveInstanceTypeOptionsByPriceAndMinValues`, which asks for a lower price only).

A spot node that is replaced by one on spot needs a choice of types that are all cheaper: with few, EC2 would give the
cheapest, which it takes back soonest, and each next one would be replaced again (Karpenter, SpotToSpotConsolidation).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import SPOT
from joinery.disruption.candidates import Candidate
from joinery.disruption.consolidation.model import hourly
from joinery.disruption.disruptions import Disruption
from joinery.disruption.problem import DisruptionProblem
from joinery.scheduling.packing import Launch
from joinery.state.offerings import InstanceType

_NEGLIGIBLE = 1e-9
_EMPTY = "WhenEmpty"


class Replacements:
    """The launches of commands, with the prices of one problem."""

    def __init__(self, problem: DisruptionProblem) -> None:
        self._options = problem.options
        self._types: dict[str, Mapping[str, InstanceType]] = {
            pool.metadata.name: {
                kind.name: kind
                for kind in problem.packing.instance_types.get(pool.spec.template.spec.node_class_ref.name, ())
            }
            for pool in problem.packing.snapshot.node_pools
        }

    def affordable(self, command: Disruption, candidates: Iterable[Candidate]) -> Disruption:
        """The command, whose launches allow no type with which it would not repay the moves of its candidates."""
        if command.reason is DisruptionReason.DRIFTED or not command.launches:
            return command
        # Every launch might end with its dearest type.
        spare = max(0.0, command.savings - sum(map(hourly, candidates))) / len(command.launches)
        return replace(command, launches=tuple(self._limited(launch, spare) for launch in command.launches))

    def objection(self, command: Disruption, candidates: Sequence[Candidate]) -> str:
        """Why these nodes may not be replaced by these launches, as a sentence; empty if they may."""
        is_saving = command.reason is DisruptionReason.UNDERUTILIZED and bool(command.launches)
        strict = next((one.pool for one in candidates if one.pool.spec.disruption.consolidation_policy == _EMPTY), None)
        if is_saving and strict is not None:
            return f"NodePool {strict.metadata.name} gives up empty nodes only ({_EMPTY}), and one would be bought"
        on_spot = [launch for launch in command.launches if launch.offering.capacity_type == SPOT]
        is_drift = command.reason is DisruptionReason.DRIFTED
        if is_drift or not on_spot or any(candidate.capacity_type != SPOT for candidate in candidates):
            return ""
        if not self._options.spot_to_spot:
            return "spot nodes are not replaced by cheaper ones on spot (spot to spot is off)"
        if len(candidates) > 1:
            return ""
        (candidate,) = candidates
        cheaper = min(self._cheaper(launch, candidate.price - hourly(candidate)) for launch in on_spot)
        if cheaper >= self._options.spot_types:
            return ""
        return (
            f"a spot node is replaced by one on spot only where {self._options.spot_types} types are so much cheaper "
            f"that its moves are repaid in time, and {cheaper} are"
        )

    def _limited(self, launch: Launch, spare: float) -> Launch:
        if any(requirement.min_values is not None for requirement in launch.requirements):
            return launch
        most = launch.offering.price + spare + _NEGLIGIBLE
        kept = tuple(name for name in launch.instance_types if self._price(launch, name) <= most)
        return replace(launch, instance_types=kept) if launch.offering.instance_type in kept else launch

    def _cheaper(self, launch: Launch, price: float) -> int:
        return sum(self._price(launch, name) < price - _NEGLIGIBLE for name in launch.instance_types)

    def _price(self, launch: Launch, name: str) -> float:
        """$/h of a type where the launch is expected; infinite where it is not sold."""
        kind = self._types.get(launch.node_pool, {}).get(name)
        price = kind.price(launch.offering.zone, launch.offering.capacity_type) if kind else None
        return float("inf") if price is None else price
