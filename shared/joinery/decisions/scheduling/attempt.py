"""One packing from beginning to end, made by one strategy, and how it ranks among others for the same problem."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.firstfit.demand import Dealt
from joinery.decisions.scheduling.firstfit.firstfit import FirstFit
from joinery.decisions.scheduling.firstfit.options import USUAL, FirstFitOptions
from joinery.decisions.scheduling.firstfit.unforeseen import Place, closable, closed, unforeseen_domains
from joinery.decisions.scheduling.firstfit.workspace import Usage, Workspace
from joinery.decisions.scheduling.launches import launches_of
from joinery.decisions.scheduling.optimise.bound import WEAK, Bounds, bounds
from joinery.decisions.scheduling.optimise.dealing import dealt_for_less
from joinery.decisions.scheduling.optimise.improve import cheaper
from joinery.decisions.scheduling.packing import ExistingPlacement, Packing, Relaxed, Unplaced
from joinery.decisions.scheduling.pool_shares import SharesKept, keep_shares, on_demand_alone
from joinery.decisions.scheduling.pools.pool import Pool
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.decisions.scheduling.topology.rule_groups import UnforeseenDomain

_UNTRIED = Reason(ReasonCode.TIME_LIMIT, "time was up before it was tried; the next run tries it again")
_UNEXPLAINED = Reason(ReasonCode.TIME_LIMIT, "nothing takes it now, and time was up before it was known why")
#: A plan this close to its bound, as a share, is as cheap as any.
_PROVEN = 1e-6


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """How a packing is made.

    options      in which order classes are placed, and how they are dealt out over domains
    unforeseen   domains that earlier packings opened without having counted them: they are counted from the start
    staying      pods without another place than on a node that is going: they stay, and count there
    closed       places in which nothing may be bought
    dealt        by demand, how its pods are divided over domains, where that is known already
    on_demand    NodePools of which nothing is bought on spot
    own_devices  whether claims that a node could serve by itself get no devices of several nodes
    """

    options: FirstFitOptions = USUAL
    unforeseen: frozenset[UnforeseenDomain] = frozenset()
    staying: frozenset[str] = frozenset()
    closed: frozenset[Place] = frozenset()
    dealt: Dealt = field(default_factory=dict)
    on_demand: frozenset[str] = frozenset()
    own_devices: bool = False


@dataclass(frozen=True, kw_only=True)
class PackingAttempt:
    """A packing that still lacks its bound, and what was learnt by making it.

    strategy, effort, packer   what made it
    usage        what it takes of limits and reservations
    is_uneven    whether DaemonSets' pods of its new nodes break a spread
    unforeseen   domains that it opened without having counted them
    closable     those of them in which nothing need be bought
    staying      pods that it leaves on a node that is going, where rules count them until the node is gone
    shares       what shares on demand of NodePools make of it
    """

    problem: Problem
    strategy: Strategy
    effort: Effort
    packing: Packing
    packer: FirstFit
    usage: Usage
    is_uneven: bool
    unforeseen: frozenset[UnforeseenDomain]
    closable: frozenset[Place]
    staying: frozenset[str]
    shares: SharesKept

    @property
    def work(self) -> Workspace:
        """The problem as it was compiled for it, with its counts."""
        return self.packer.work

    @cached_property
    def bounds(self) -> Bounds:
        """What nodes for these pods can cost at least.

        Places that this strategy closed are open to others, so they count; and so does spot.
        """
        is_narrower = self.strategy.closed or self.strategy.on_demand
        pools = Workspace(self.problem).pools if is_narrower else self.work.pools
        # What sizes are wanted is known of the types that the strategy buys; of others it is not worth another proof.
        keeps_sizes = not is_narrower
        return self._bounds(pools, self.packing.hourly, keeps_sizes=keeps_sizes)

    def _bounds(self, pools: Sequence[Pool], price: float, *, keeps_sizes: bool = False) -> Bounds:
        # What the plan does not keep is no rule for others.
        shares = {} if self.shares.lacking else self.problem.snapshot.pool_shares
        bought = self.packer.bought
        return bounds(self.work, bought, pools, price, self.effort, shares=shares, keeps_sizes=keeps_sizes)

    @property
    def is_cheapest(self) -> bool:
        """Whether nothing is cheaper that keeps what this keeps, and no share on demand is short."""
        # Devices of several nodes bind pods to their place, and what is proven is proven of pods so bound.
        if self.work.claims.has_choice and self.packing.launches:
            return False
        return not self.shares.lacking and self.packing.hourly <= self.bounds.keeping * (1 + _PROVEN)

    @cached_property
    def dealt_for_less(self) -> Dealt:
        """How its pods could be dealt out over domains at less cost; empty where no way is known."""
        return dealt_for_less(self.work, self.packer.nodes, self.effort)

    @property
    def is_far(self) -> bool:
        """Whether the price is far above what is proven, so that more ways of packing are worth their time."""
        return self.packing.hourly > self.bounds.keeping * (1 + WEAK)

    def bounded(self, at: Problem | None = None) -> Packing:
        """The packing with its bounds. ``at``: the same problem with the prices that they are of, if others than nodes
        were chosen by.
        """
        proven = self.bounds if at is None else self._bounds_at(at)
        if self.shares.relaxed:
            # The second bound keeps preferences for spot that these nodes have given up.
            proven = Bounds(hard=proven.hard, keeping=proven.hard, weaknesses=proven.weaknesses)
        return replace(
            self.packing,
            lower_bound=proven.hard,
            kept_bound=proven.keeping,
            kept=proven.kept,
            weaknesses=proven.weaknesses,
        )

    def _bounds_at(self, other: Problem) -> Bounds:
        pools = Workspace(other).pools
        prices = {pool.name: pool.market.prices for pool in pools}
        bought = self.packer.bought
        price = sum(float(prices[node.pool.name][node.cheapest(), node.columns].min()) for node in bought)
        return self._bounds(pools, price)

    def rank(self, *, by_price: bool = True) -> "Rank":
        """How this packing compares with others of the same problem.

        ``by_price``: whether price is to decide at last.
        """
        packing = self.packing
        weights = Counter[int]()
        for node in self.packer.bought:
            weights[node.pool.weight] += len(node.pods)
        return Rank(
            is_wrong=bool(self.unforeseen) or self.is_uneven,
            left=self.packer.left_by_priority,
            short=self.shares.lacking,
            given_up=sum(len(relaxed.dropped) for relaxed in packing.relaxed),
            not_on_existing=-sum(len(placement.pods) for placement in packing.existing),
            by_weight=[(-weight, -count) for weight, count in sorted(weights.items(), reverse=True)],
            with_lowered=sum(len(launch.pods) for launch in packing.launches if launch.min_values_relaxed),
            cost=round(packing.hourly + packing.resilience_cost, 9) if by_price else 0,
            nodes=len(packing.launches) if by_price else 0,
        )


class Rank(NamedTuple):
    """What a plan owes its users, in the order of importance. Lower is better.

    is_wrong          whether a spread may not hold
    left              pods without a place: (-priority, count), highest priority first
    short             nodes more that should be on demand, by the shares of their NodePools
    given_up          preferences that were dropped
    not_on_existing   minus the number of pods on existing capacity
    by_weight         pods on new nodes: (-weight, -count) of their NodePools, heaviest first
    with_lowered      pods on new nodes whose minValues were lowered: BestEffort does it where it must, not for money
    cost              $/h, with what preferred node sizes and a choice of types for spot add; 0 if it is not to decide
    nodes             how many are bought; 0 likewise
    """

    is_wrong: bool
    left: list[tuple[int, int]]
    short: int
    given_up: int
    not_on_existing: int
    by_weight: list[tuple[int, int]]
    with_lowered: int
    cost: float
    nodes: int


def attempt(problem: Problem, strategy: Strategy, effort: Effort) -> PackingAttempt:
    """Place pods first-fit, look for cheaper nodes for the same pods, and place what finds room then."""
    packer = first_fit(problem, strategy, effort)
    work = packer.work
    better = None if problem.options.first_fit_only else cheaper(work, packer.nodes, packer.deferred, effort)
    if better is not None:
        packer.resume(better.buyer, better.waiting)
    else:
        packer.place_deferred()
    packer.place_leftovers()
    usage = packer.usage
    shares = keep_shares(problem.snapshot.pool_shares, packer.bought)
    relaxed = {**packer.relaxed, **shares.relaxed}
    packing = Packing(
        existing=_existing(work),
        launches=launches_of(work, packer.bought),
        unplaced=_unplaced(work, packer, usage, effort),
        relaxed=tuple(Relaxed(pod, relaxed[pod]) for pod in sorted(relaxed)),
        pool_reasons=work.rejected_pools,
        method="assignment" if better else "first-fit",
        limit_struck=effort.struck,
        passed_over=strategy.closed,
        resilience_cost=better.resilience_cost if better else 0.0,
        share_cost=shares.cost,
    )
    unforeseen = unforeseen_domains(work, packer.bought, packing.launches)
    return PackingAttempt(
        problem=problem,
        strategy=strategy,
        effort=effort,
        packing=packing,
        packer=packer,
        usage=usage,
        is_uneven=_is_uneven(packer, strategy),
        unforeseen=unforeseen,
        closable=closable(work, unforeseen),
        staying=_staying(work, packer),
        shares=shares,
    )


def first_fit(problem: Problem, strategy: Strategy, effort: Effort) -> FirstFit:
    """Large pods first, which packs best.

    Where room is limited and pods are left, small ones first if that places more, and there is time.
    """
    packer = _packed(problem, strategy, effort)
    has_limited_room = not packer.work.pools or any(pool.limits for pool in packer.work.pools)
    if packer.left and has_limited_room and not effort.is_over():
        smallest_first = replace(strategy, options=replace(strategy.options, smallest_first=True))
        other = _packed(problem, smallest_first, effort)
        if other.left_by_priority < packer.left_by_priority:
            return other
    return packer


def _packed(problem: Problem, strategy: Strategy, effort: Effort) -> FirstFit:
    asked = on_demand_alone(problem, strategy.on_demand) if strategy.on_demand else problem
    asked = closed(asked, strategy.closed) if strategy.closed else asked
    work = Workspace(asked, strategy.unforeseen, strategy.staying, own_devices=strategy.own_devices)
    defers = not problem.options.first_fit_only
    packer = FirstFit(work, strategy.options, defers=defers, effort=effort, dealt=strategy.dealt)
    packer.run()
    return packer


def _is_uneven(packer: FirstFit, strategy: Strategy) -> bool:
    """Whether rules over domains may not hold. With ``strategy.dealt``, pods that came earlier are checked too."""
    topology = packer.work.topology
    if topology.is_uneven or (strategy.dealt and topology.is_broken):
        return True
    # A new node may bring DaemonSets' pods that a spread counts into one domain or another.
    keys = {spread.rule.key for spread in topology.daemons.spreads}
    nodes = packer.bought if keys else ()
    return any(not keys <= {key for batch in node.placed for key in batch.domains} for node in nodes)


def _staying(work: Workspace, packer: FirstFit) -> frozenset[str]:
    """Pods without a new place whose node is going, if any rule about pods is theirs or looks at them."""
    return frozenset(
        name
        for pod_class, names in _without_place(work, packer)
        for name in names
        if name not in work.waiting and work.topology.concerns(pod_class)
    )


def _existing(work: Workspace) -> tuple[ExistingPlacement, ...]:
    return tuple(ExistingPlacement(node.view.node, node.view.claim, node.pods) for node in work.nodes if node.placed)


def _unplaced(work: Workspace, packer: FirstFit, usage: Usage, effort: Effort) -> tuple[Unplaced, ...]:
    left = _without_place(work, packer)
    if not left:
        return ()
    # What explains is imported for a pod without a place: most plans have none.
    from joinery.decisions.scheduling.explain.reasons import reasons_for

    unplaced = []
    for pod_class, names in left:
        if pod_class.problems or not effort.is_late():
            reasons = reasons_for(work, usage, pod_class)
        else:
            reasons = (_UNEXPLAINED if pod_class in packer.tried else _UNTRIED,)
        unplaced += [Unplaced(name, reasons) for name in names]
    return tuple(sorted(unplaced, key=lambda pod: pod.pod))


def _without_place(work: Workspace, packer: FirstFit) -> list[tuple[PodClass, Sequence[str]]]:
    """What first-fit has left, and the classes that have a problem of their own."""
    return [*packer.left.items(), *((pod_class, pod_class.names) for pod_class in work.classes if pod_class.problems)]
