"""What commitments pay: before a plan, with it, and what a plan may count on of them.

``paid`` finds plans with it, and ``disruption.paid`` decisions about nodes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property

from msgspec.structs import replace as with_fields

from joinery.decisions.scheduling.commitments import (
    NEGLIGIBLE,
    Commitment,
    Usage,
    coverage,
    is_on_demand,
    saved,
    usage_of,
)
from joinery.decisions.scheduling.interruptions import only
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.labels import CAPACITY_TYPE, INSTANCE_TYPE, ON_DEMAND, ZONE
from joinery.objects.snapshot.offerings import (
    COMMITMENT,
    InstanceType,
    Offering,
    Reservation,
    changed_types,
    price_among,
)

#: What is free counts as so much of its price: then it still counts that less of it is better.
FREE = 1e-3
#: Types whose nodes save so much of the most that a stock can save are as good.
_ABOUT = 0.95


class Ledger:
    """What commitments pay before a plan and with it.

    ``listed``, ``saved_before``: $/h of the on-demand nodes there are, and what commitments pay of it. ``shares``: by
    node, of its price. ``idle_stock``: by name of a commitment, what is left of it now, if anything is; ``idle``: their
    names.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, self._commitments = problem, problem.commitments
        self._before = list(_existing(problem))
        now = coverage(self._before, self._commitments)
        self.saved_before, self.shares = saved(self._before, now), now.shares
        self.listed = sum(usage.price for usage in self._before)
        self.idle_stock = {name: left for name, left in now.left.items() if left > NEGLIGIBLE}
        self.idle = frozenset(self.idle_stock)

    # --- what a plan pays ---

    def accounted(self, plan: Packing, part: float) -> Packing:
        """The plan with what commitments pay of it, and its bounds as bounds of what is paid.

        ``part``: what part of their price those nodes counted as in the bounds that idle commitments cover.
        """
        both = [*self._before, *_usages(plan.launches)]
        covered = saved(both, coverage(both, self._commitments)) - self.saved_before
        # Pods wait for a plan of which nothing is proven yet, and nothing is to be taken off there.
        most = self._most_saved(part) if plan.lower_bound or plan.kept_bound else 0.0
        return replace(
            plan,
            covered=max(0.0, covered),
            lower_bound=max(0.0, plan.lower_bound - most),
            kept_bound=max(0.0, plan.kept_bound - most),
        )

    def _most_saved(self, part: float) -> float:
        """$/h by which a bound of prices may be above one of what is paid: what all stocks can save at most, beyond
        what they save now. Of idle ones a ``part`` of that.
        """
        most = sum(
            one.stock * dearest * (part if one.name in self.idle else 1.0)
            for one, dearest in zip(self._commitments, self._dearest, strict=True)
        )
        now = sum(
            usage.price * (part if self._is_idle_for(usage) else self.shares[usage.node]) for usage in self._before
        )
        return max(0.0, most - now)

    @cached_property
    def _dearest(self) -> Sequence[float]:
        """By commitment, $/h that a unit of the stock can save at most: of what is sold, and of the nodes there are."""
        sold = list(self._on_demand())
        return [
            max((price / rate for kind, zone, price in sold if (rate := one.rate(kind, zone))), default=0.0)
            for one in self._commitments
        ]

    def _on_demand(self) -> Iterator[tuple[str, str, float]]:
        for kind in self._problem.kinds:
            for offering in kind.offerings:
                if offering.capacity_type == ON_DEMAND:
                    yield kind.name, offering.zone, offering.price
        for usage in self._before:
            yield usage.instance_type, usage.zone, usage.price

    def _is_idle_for(self, usage: Usage) -> bool:
        """Whether a commitment that is not used up covers such a node. One that is there is covered wholly then."""
        return any(one.name in self.idle and one.rate(usage.instance_type, usage.zone) for one in self._commitments)

    # --- what a plan may count on ---

    def counting_as(self, part: float) -> Problem:
        """The problem in which all that idle commitments cover costs a part of its price."""
        idle = [one for one in self._commitments if one.name in self.idle]

        def changed(kind: InstanceType, offering: Offering) -> Offering:
            is_covered = offering.capacity_type == ON_DEMAND and any(one.rate(kind.name, offering.zone) for one in idle)
            return with_fields(offering, price=offering.price * part) if is_covered else offering

        names = {name for one in idle for name in one.rates}
        return with_offerings(
            self._problem,
            lambda kind: tuple(changed(kind, one) for one in kind.offerings) if kind.name in names else kind.offerings,
        )

    def is_overdrawn(self, plan: Packing) -> bool:
        """Whether the plan has nodes that an idle commitment covers, and not all of them wholly."""
        return any(self._is_idle_for(usage) and share < 1 - NEGLIGIBLE for usage, share in self._covered(plan))

    def _covered(self, plan: Packing) -> Iterator[tuple[Usage, float]]:
        """The plan's nodes, and what part of each is covered."""
        new = list(_usages(plan.launches))
        shares = coverage([*self._before, *new], self._commitments).shares
        return ((usage, shares[usage.node]) for usage in new)

    def with_stock(self, plan: Packing, problem: Problem, part: float) -> Problem:
        """The problem with so many nodes at a part of their price as what is idle pays for: those of the plan, and for
        the rest of a stock nodes of one type.
        """
        stocks: dict[str, list[tuple[Commitment, int]]] = defaultdict(list)
        unassigned = list(_usages(plan.launches))
        for commitment in self._commitments:
            left, counts = self.idle_stock.get(commitment.name, 0.0), Counter[str]()
            for usage in sorted(unassigned, key=lambda usage: -usage.price):
                rate = commitment.rate(usage.instance_type, usage.zone)
                if rate and rate <= left + NEGLIGIBLE:
                    counts[usage.instance_type] += 1
                    unassigned.remove(usage)
                    left -= rate
            counts.update(self._filling(commitment, left))
            for instance_type, count in counts.items():
                stocks[instance_type].append((commitment, count))
        return with_offerings(problem, lambda kind: (*kind.offerings, *_stocked(kind, stocks[kind.name], part)))

    def _filling(self, commitment: Commitment, left: float) -> Mapping[str, int]:
        """So many nodes of one type as what is left pays for: of those that save about as much the largest."""
        values = {
            (instance_type, rate): int((left + NEGLIGIBLE) / rate) * price
            for instance_type, zone, price in self._on_demand()
            if (rate := commitment.rate(instance_type, zone)) and rate <= left + NEGLIGIBLE
        }
        most = max(values.values(), default=0.0)
        good = [(rate, name) for (name, rate), value in values.items() if value >= _ABOUT * most]
        return {name: int((left + NEGLIGIBLE) / rate) for rate, name in [max(good)]} if good else {}

    def at_prices(self, launches: Iterable[Launch]) -> tuple[Launch, ...]:
        """The launches with the problem's own offerings and prices. What counts on a commitment is launched as nothing
        else, unless minValues ask for more types.
        """
        kinds = {
            pool.metadata.name: {kind.name: kind for kind in self._problem.types_of(pool)}
            for pool in self._problem.snapshot.node_pools
        }
        return tuple(self._at_price(launch, kinds[launch.node_pool]) for launch in launches)

    def _at_price(self, launch: Launch, kinds: Mapping[str, InstanceType]) -> Launch:
        own = launch.offering
        if own.capacity_type != ON_DEMAND:
            return launch
        price = price_among(kinds[own.instance_type].offerings, own.zone, ON_DEMAND)
        offering = replace(own, price=own.price if price is None else price, reservation="")
        return self._narrowed(replace(launch, offering=offering))

    def _narrowed(self, launch: Launch) -> Launch:
        """A launch that counts on a commitment, as nothing that none covers; any other as it is."""
        own = launch.offering
        is_varied = any(one.min_values is not None for one in launch.requirements)
        usage = Usage(launch.name, own.instance_type, own.zone, own.price)
        if own.capacity_type != ON_DEMAND or is_varied or not self._is_idle_for(usage):
            return launch
        zones = [one.values for one in launch.requirements if one.key == ZONE]
        rated = [one for one in self._commitments if one.name in self.idle and one.rate(own.instance_type, own.zone)]
        allowed = [zone for zone in zones[0] if any(one.zone in ("", zone) for one in rated)] if zones else [own.zone]
        requirements = only(launch.requirements, INSTANCE_TYPE, (own.instance_type,))
        requirements = only(requirements, CAPACITY_TYPE, (ON_DEMAND,))
        return replace(launch, instance_types=(own.instance_type,), requirements=only(requirements, ZONE, allowed))

    # --- decisions about nodes ---

    def with_idle_free(self) -> Problem:
        """The problem in which all that idle commitments cover is next to free."""
        return self.counting_as(FREE)

    def covers(self, launches: Iterable[Launch], gone: Container[str]) -> bool:
        """Whether the new nodes that idle commitments cover are covered wholly once these nodes are gone. What counts
        as next to free is not what orders them.
        """
        prices = {(name, zone): price for name, zone, price in self._on_demand()}
        new = [replace(one, price=prices.get((one.instance_type, one.zone), one.price)) for one in _usages(launches)]
        staying = [usage for usage in self._before if usage.node not in gone]
        shares = coverage([*staying, *new], self._commitments).shares
        return all(shares[usage.node] > 1 - NEGLIGIBLE for usage in new if self._is_idle_for(usage))

    def most_paid(self, part: float) -> float:
        """$/h that stocks can save of nodes that come at most, if all nodes go that can: what is left of each, and what
        those use. Of idle ones a ``part`` of that, which is what nodes count as that they cover.
        """
        moving = self._moving()
        units = {
            one.name: min(one.stock, self.idle_stock.get(one.name, 0.0) + self._used_by(moving, one))
            for one in self._commitments
        }
        return sum(
            units[one.name] * dearest * (part if one.name in self.idle else 1.0)
            for one, dearest in zip(self._commitments, self._dearest, strict=True)
        )

    def _moving(self) -> Set[str]:
        """The nodes that can go, and those that commitments may cover in their place: what covers them is free then."""
        names = {view.name for view in self._problem.snapshot.views if view.claim}
        while True:
            freed = [one for one in self._commitments if self._used_by(names, one)]
            more = {u.node for u in self._before if any(one.rate(u.instance_type, u.zone) for one in freed)} - names
            if not more:
                return names
            names |= more

    def _used_by(self, names: Container[str], commitment: Commitment) -> float:
        """How much of a stock these nodes use at most. Other commitments may pay for them, too."""
        rates = (
            commitment.rate(usage.instance_type, usage.zone) or 0.0
            for usage in self._before
            if usage.node in names and self.shares[usage.node] > NEGLIGIBLE
        )
        return min(commitment.stock, sum(rates))


def with_offerings(problem: Problem, offerings_of: Callable[[InstanceType], tuple[Offering, ...]]) -> Problem:
    def of_all(_: str, kinds: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        return tuple(
            kind if (offerings := offerings_of(kind)) == kind.offerings else replace(kind, offerings=offerings)
            for kind in kinds
        )

    return replace(problem, instance_types=changed_types(problem.instance_types, of_all))


def _stocked(kind: InstanceType, stocks: Iterable[tuple[Commitment, int]], part: float) -> Iterator[Offering]:
    """For each commitment so many nodes of the type, in whichever zones it covers."""
    for commitment, count in stocks:
        reservation = Reservation(f"{commitment.name}/{kind.name}", COMMITMENT, remaining=count)
        for offering in kind.offerings:
            is_sold = offering.capacity_type == ON_DEMAND and offering.available and not offering.reservation
            if is_sold and commitment.zone in ("", offering.zone):
                yield with_fields(offering, price=offering.price * part, reservation=reservation)


def _usages(launches: Iterable[Launch]) -> Iterator[Usage]:
    """The on-demand nodes of a plan; to AWS one in a capacity reservation is one too, and it is paid for here."""
    for launch in launches:
        offering = launch.offering
        if offering.capacity_type == ON_DEMAND:
            yield Usage(f"launch/{launch.name}", offering.instance_type, offering.zone, offering.price)


def _existing(problem: Problem) -> Iterator[Usage]:
    """The on-demand nodes that there are and that stay, whoever made them, as far as their price is known."""
    kinds = {kind.name: kind for kind in problem.kinds}
    for view in problem.snapshot.views:
        if not view.is_leaving and is_on_demand(view):
            usage = usage_of(view, 0.0)
            kind = kinds.get(usage.instance_type)
            price = kind.price(usage.zone, ON_DEMAND) if kind else None
            if price is not None:
                yield replace(usage, price=price)


def stocks_left(problem: Problem, plan: Packing) -> Mapping[str, float]:
    """By name of a commitment, what the nodes there are and those of the plan leave of its stock."""
    return coverage([*_existing(problem), *_usages(plan.launches)], problem.commitments).left
