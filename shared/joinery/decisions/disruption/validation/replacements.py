"""What replaces nodes must be worth it whichever type EC2 gives.

A launch allows several instance types and zones, and EC2 takes one that it has (EC2 API CreateFleet), not always the
cheapest. None is allowed with which the command would not repay its moves in time: no zone where the expected type is
too dear, and no type that is too dear in one of the other zones. Nor is another capacity type, as on-demand where spot
runs out: such a launch fails. So every command lowers the cluster's price by what its moves demand, whatever EC2 gives,
and no chain of commands can come back to where it began (Karpenter, consolidation: `WorstLaunchPrice`, which is asked
to be lower only).

minValues do not widen that: where what is left has too few values of a label, nothing is bought, nor are they lowered
to save money (Karpenter ``RemoveInstanceTypeOptionsByPriceAndMinValues``).

Nodes that go together might be replaced by one of their own types. It has to cost less than the one that it would be,
which could have stayed, and its pods with it (Karpenter ``filterOutSameInstanceType``).

A spot node that is replaced by one on spot needs a choice of types that are all cheaper: with few, EC2 would give the
cheapest, which it takes back soonest, and each next one would be replaced again. And it is of the cheapest of these, as
many as there have to be: so what comes has not as many below it (Karpenter, SpotToSpotConsolidation).
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from types import MappingProxyType

from joinery.decisions.disruption.candidates import Candidate
from joinery.decisions.disruption.consolidation.model import hourly
from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.constraints.requirements import ValueSet, read
from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import CAPACITY_TYPE, SPOT, ZONE, ZONE_ID, canonical
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.offerings import InstanceType, Offering

_NEGLIGIBLE = 1e-9
_EMPTY = "WhenEmpty"
#: What an offering decides, and not its type.
_OF_OFFERINGS = MappingProxyType(
    {
        ZONE: attrgetter("zone"),
        ZONE_ID: attrgetter("zone_id"),
        CAPACITY_TYPE: attrgetter("capacity_type"),
    }
)


class Replacements:
    """The launches of commands, with the prices of one problem."""

    def __init__(self, problem: DisruptionProblem) -> None:
        self._options = problem.options
        self._types: dict[str, Mapping[str, InstanceType]] = {
            pool.metadata.name: {kind.name: kind for kind in problem.packing.types_of(pool)}
            for pool in problem.packing.snapshot.node_pools
        }
        self._min_values = {pool.metadata.name: _min_values(pool) for pool in problem.packing.snapshot.node_pools}
        self._offered: dict[tuple[str, str, ValueSet, ValueSet], Sequence[Offering]] = {}
        self._zone_prices: dict[int, Mapping[str, float]] = {}
        self._rules = _LaunchRequirements()
        self._known: dict[Hashable, tuple[Launch, Launch]] = {}
        self._type_names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def affordable(self, command: DecidedCommand, candidates: Sequence[Candidate]) -> DecidedCommand:
        """The command, whose launches allow nothing with which it would not repay the moves of its candidates."""
        if command.reason is DisruptionReason.DRIFTED or not command.launches:
            return command
        # Every launch might end with its dearest type. Where moves cost nothing, it has to be cheaper all the same.
        count = len(command.launches)
        demanded = max(sum(map(hourly, candidates)), 2 * _NEGLIGIBLE * count)
        spare = max(0.0, command.savings - demanded) / count
        kept_instead = _KeptInstead(candidates)
        launches = tuple(
            self._limited(launch, min(launch.offering.price + spare + _NEGLIGIBLE, kept_instead.price(launch)))
            for launch in command.launches
        )
        is_spot_to_spot = len(candidates) == 1 and candidates[0].capacity_type == SPOT
        return replace(command, launches=tuple(map(self._cheapest, launches)) if is_spot_to_spot else launches)

    def objection(self, command: DecidedCommand, candidates: Sequence[Candidate]) -> Objection | None:
        """Why these nodes may not be replaced by these launches."""
        is_saving = command.reason is DisruptionReason.UNDERUTILIZED and bool(command.launches)
        strict = next((one.pool for one in candidates if one.pool.spec.disruption.consolidation_policy == _EMPTY), None)
        if is_saving and strict is not None:
            why = f"NodePool {strict.metadata.name} gives up empty nodes only ({_EMPTY}), and one would be bought"
            return Objection(ObjectionCode.POLICY, why)
        if command.reason is DisruptionReason.DRIFTED:
            return None
        too_few = next(filter(None, map(self._too_few, command.launches)), None)
        return too_few or self._objection_on_spot(command, candidates)

    def _objection_on_spot(self, command: DecidedCommand, candidates: Sequence[Candidate]) -> Objection | None:
        on_spot = [launch for launch in command.launches if launch.offering.capacity_type == SPOT]
        if not on_spot or any(candidate.capacity_type != SPOT for candidate in candidates):
            return None
        if not self._options.spot_to_spot:
            why = "spot nodes are not replaced by cheaper ones on spot (spot to spot is off)"
            return Objection(ObjectionCode.POLICY, why)
        if len(candidates) > 1:
            return None
        (candidate,) = candidates
        most = candidate.price - hourly(candidate) - _NEGLIGIBLE
        prices = ([self._worst_price(launch, name) for name in launch.instance_types] for launch in on_spot)
        cheaper = min(sum(price < most for price in listed) for listed in prices)
        if cheaper >= self._options.spot_types:
            return None
        wanted = f"{self._options.spot_types} types are so much cheaper that its moves are repaid in time"
        why = f"a spot node is replaced by one on spot only where {wanted}, and {cheaper} are"
        return Objection(ObjectionCode.POLICY, why)

    def _limited(self, launch: Launch, most: float) -> Launch:
        """The launch, which costs at most so much. Thousands differ in name and pods only, so it is found once."""
        asked = launch.node_pool, id(launch.requirements), launch.instance_types, launch.offering, most
        known = self._known.get(asked)
        if known is None:
            known = self._known[asked] = launch, self._within(launch, most)
        return replace(launch, requirements=known[1].requirements, instance_types=known[1].instance_types)

    def _within(self, launch: Launch, most: float) -> Launch:
        # Who asks for both capacity types may get the dearer.
        if CAPACITY_TYPE not in self._min_values[launch.node_pool]:
            launch = self._rules.narrowed(launch, CAPACITY_TYPE, {launch.offering.capacity_type})
        zones = {zone for zone, price in self._prices(launch, launch.offering.instance_type).items() if price <= most}
        limited = self._rules.narrowed(launch, ZONE, zones)
        kept = tuple(
            name
            for name in launch.instance_types
            if self._worst_price(limited, name) <= most and any(it.available for it in self._sold(limited, name))
        )
        return replace(limited, instance_types=self._type_names.setdefault(kept, kept))

    def _cheapest(self, launch: Launch) -> Launch:
        """The launch of as few types as a spot node needs to choose from, and as minValues ask for."""
        if launch.offering.capacity_type != SPOT:
            return launch
        names = launch.instance_types
        shorter = (
            replace(launch, instance_types=names[:count]) for count in range(self._options.spot_types, len(names))
        )
        return next((one for one in shorter if not self._too_few(one)), launch)

    def _too_few(self, launch: Launch) -> Objection | None:
        """Of which label the launch allows too few values for minValues."""
        pool = f"minValues of NodePool {launch.node_pool}"
        if launch.min_values_relaxed:
            why = f"{pool} would have to be lowered, which is not done to save money"
            return Objection(ObjectionCode.POLICY, why)
        for key, least in self._min_values[launch.node_pool].items():
            count = len(self._values(launch, key))
            if count < least:
                why = f"{pool} want {least} values of {key} to replace it, and {count} are cheap enough"
                return Objection(ObjectionCode.POLICY, why)
        return None

    def _values(self, launch: Launch, key: str) -> set[str]:
        """The values of a label that nodes of the launch may have."""
        if value_of := _OF_OFFERINGS.get(key):
            sold = (offering for name in launch.instance_types for offering in self._sold(launch, name))
            return {value_of(offering) for offering in sold if offering.available}
        types = self._types[launch.node_pool]
        return {value for name in launch.instance_types for value in types[name].labels.get(key, ())}

    def _worst_price(self, launch: Launch, name: str) -> float:
        """$/h of a type in the dearest zone that the launch allows; infinite where it is not sold."""
        return max(self._prices(launch, name).values(), default=float("inf"))

    def _prices(self, launch: Launch, name: str) -> Mapping[str, float]:
        """$/h of a type by the zones that the launch allows, under the dearest of its capacity types."""
        sold = self._sold(launch, name)
        if id(sold) not in self._zone_prices:
            prices: dict[str, float] = {}
            for offering in sold:
                prices[offering.zone] = max(offering.price, prices.get(offering.zone, 0.0))
            self._zone_prices[id(sold)] = prices
        return self._zone_prices[id(sold)]

    def _sold(self, launch: Launch, name: str) -> Sequence[Offering]:
        """The offerings of a type that the launch allows, also those that EC2 is out of: it may have them by then."""
        zones, capacity_types = self._rules.places(launch)
        asked = launch.node_pool, name, zones, capacity_types
        if asked not in self._offered:
            kind = self._types[launch.node_pool].get(name)
            offerings = kind.offerings if kind else ()
            self._offered[asked] = [
                one for one in offerings if zones.has(one.zone) and capacity_types.has(one.capacity_type)
            ]
        return self._offered[asked]


class _LaunchRequirements:
    """The requirements of launches, of which thousands share one object: it is read once, and narrowed once."""

    def __init__(self) -> None:
        # What has been asked about stays alive, so that nothing else has its identity.
        self._places: dict[int, tuple[tuple[Requirement, ...], ValueSet, ValueSet]] = {}
        self._narrowed: dict[tuple[int, str, frozenset[str]], tuple[Launch, Launch]] = {}

    def places(self, launch: Launch) -> tuple[ValueSet, ValueSet]:
        """The zones and capacity types that the launch allows."""
        known = self._places.get(id(launch.requirements))
        if known is None:
            allowed = read(launch.requirements)
            known = launch.requirements, allowed.get(ZONE), allowed.get(CAPACITY_TYPE)
            self._places[id(launch.requirements)] = known
        return known[1:]

    def narrowed(self, launch: Launch, key: str, values: Iterable[str]) -> Launch:
        """The launch, which allows these values of a label only."""
        asked = id(launch.requirements), key, frozenset(values)
        if asked not in self._narrowed:
            self._narrowed[asked] = launch, _narrowed(launch, key, asked[2])
        return replace(launch, requirements=self._narrowed[asked][1].requirements)


class _KeptInstead:
    """The nodes of a command, any of which might be kept instead of buying another one of its type."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._prices: dict[str, set[float]] = defaultdict(set)
        for one in candidates if len(candidates) > 1 else ():
            self._prices[one.instance_type].add(one.price)

    def price(self, launch: Launch) -> float:
        """What the launch has to stay below, $/h: the price of the cheapest node that it might be another one of."""
        alike = (price for name, prices in self._prices.items() if name in launch.instance_types for price in prices)
        # What costs no more than is expected cannot have been kept for all pods, or it would have been.
        prices = [price for price in alike if price > launch.offering.price + _NEGLIGIBLE]
        return min(prices) - _NEGLIGIBLE if prices else float("inf")


def _narrowed(launch: Launch, key: str, values: Iterable[str]) -> Launch:
    """The launch, which allows these values of a label only."""
    rules = [rule for rule in launch.requirements if canonical(rule.key) != key]
    least = next((rule.min_values for rule in launch.requirements if canonical(rule.key) == key), None)
    rules.append(Requirement(key=key, operator="In", values=sorted(values), min_values=least))
    return replace(launch, requirements=tuple(sorted(rules, key=lambda rule: rule.key)))


def _min_values(pool: NodePool) -> Mapping[str, int]:
    """By label, how many values of it a launch has to allow. Where several requirements say one, the largest."""
    rules = [rule for rule in pool.spec.template.spec.requirements if rule.min_values is not None]
    return {canonical(rule.key): rule.min_values or 0 for rule in sorted(rules, key=lambda rule: rule.min_values or 0)}
