"""What replaces nodes must be worth it whichever type EC2 gives.

A launch allows several instance types and zones, and EC2 takes one that it has (EC2 API CreateFleet), not always the
cheapest. None is allowed with which the command would not repay its moves in time: no zone where the expected type is
too dear, and no type that is too dear in one of the other zones. Nor is another capacity type, as on-demand where spot
runs out: such a launch fails. So every command lowers the cluster's price by what its moves demand, whatever EC2 gives,
and no chain of commands can come back to where it began (Karpenter, consolidation: `WorstLaunchPrice`, which is asked
to be lower only).

A spot node that is replaced by one on spot needs a choice of types that are all cheaper: with few, EC2 would give the
cheapest, which it takes back soonest, and each next one would be replaced again (Karpenter, SpotToSpotConsolidation).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import CAPACITY_TYPE, SPOT, ZONE, canonical
from joinery.apis.meta import Requirement
from joinery.disruption.candidates import Candidate
from joinery.disruption.consolidation.model import hourly
from joinery.disruption.disruptions import Disruption
from joinery.disruption.problem import DisruptionProblem
from joinery.scheduling.constraints.requirements import read
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
        """The command, whose launches allow nothing with which it would not repay the moves of its candidates."""
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
        zones = {zone for zone, price in self._prices(launch, launch.offering.instance_type).items() if price <= most}
        asked = [rule for rule in launch.requirements if canonical(rule.key) not in (CAPACITY_TYPE, ZONE)]
        asked += [_one_of(CAPACITY_TYPE, {launch.offering.capacity_type}), _one_of(ZONE, zones)]
        limited = replace(launch, requirements=tuple(sorted(asked, key=lambda rule: rule.key)))
        kept = tuple(name for name in launch.instance_types if self._worst_price(limited, name) <= most)
        return replace(limited, instance_types=kept) if launch.offering.instance_type in kept else launch

    def _cheaper(self, launch: Launch, price: float) -> int:
        return sum(self._worst_price(launch, name) < price - _NEGLIGIBLE for name in launch.instance_types)

    def _worst_price(self, launch: Launch, name: str) -> float:
        """$/h of a type in the dearest zone that the launch allows; infinite where it is not sold."""
        return max(self._prices(launch, name).values(), default=float("inf"))

    def _prices(self, launch: Launch, name: str) -> Mapping[str, float]:
        """$/h of a type by the zones that the launch allows, under the capacity type that is expected."""
        kind, zones = self._types.get(launch.node_pool, {}).get(name), read(launch.requirements).get(ZONE)
        sold = (it for it in kind.offerings if it.capacity_type == launch.offering.capacity_type) if kind else ()
        return {offering.zone: offering.price for offering in sold if zones.has(offering.zone)}


def _one_of(key: str, values: Iterable[str]) -> Requirement:
    return Requirement(key=key, operator="In", values=sorted(values))
