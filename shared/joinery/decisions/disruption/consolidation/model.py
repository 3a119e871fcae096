"""A cluster as an instance of the consolidation problem (``optimizer.consolidation``), and variations of it."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.disruption.candidates import Candidate
from joinery.decisions.optimizer.arrays import Mask
from joinery.decisions.optimizer.consolidation.instance import Consolidation, ConsolidationInstance
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.firstfit.demand import Domains
from joinery.objects.snapshot.nodes import NodeView

#: $/h: savings that are none, and a price of nothing.
NEGLIGIBLE = 1e-6
_SECONDS_AN_HOUR = 3600.0
#: $/h that keeping a drifted node counts as, besides its moves: it goes if its pods have any other place.
MUST_GO = 1e3


@dataclass(frozen=True, eq=False)
class ConsolidationModel:
    """The instance, and what its indices stand for.

    ``nodes``: the nodes by standing bin; ``candidates``: the candidate of each, None for one that only receives.
    ``pods``: by item and standing bin, the names of the pods that would move. ``classes``: by item. ``leaving``: by
    name of a pod that leaves its domain, the one that it gets. ``domains``: by item, those that its pods go to;
    ``coupled``: by item, labels of the rules that count them by domain; ``broken``: those of them that do not
    hold as the cluster stands. ``new``: by type of new bin, the names of its NodePool and instance type. ``forced``:
    $/h that keeping the drifted nodes counts as besides their price.
    ``is_strict``: whether some rule is taken more strictly than it is, so that the bound proves nothing.
    ``immovable``: the standing bins with a pod that nothing else can hold.
    """

    instance: ConsolidationInstance
    nodes: tuple[NodeView, ...]
    candidates: tuple[Candidate | None, ...]
    pods: Mapping[tuple[int, int], tuple[str, ...]]
    classes: tuple[PodClass, ...]
    leaving: Mapping[str, Domains]
    domains: tuple[Domains, ...]
    coupled: tuple[frozenset[int], ...]
    broken: frozenset[int]
    new: tuple[tuple[str, str], ...]
    forced: float
    is_strict: bool
    immovable: frozenset[int] = frozenset()


def unforced(model: ConsolidationModel, gone: Collection[str]) -> ConsolidationModel:
    """The model in which only the drifted nodes among ``gone``, names of claims, must go; itself if those are all."""
    kept = [
        index
        for index in np.flatnonzero(model.instance.may_retire)
        if (one := model.candidates[index]) is not None and one.is_drifted and one.claim.metadata.name not in gone
    ]
    if not kept:
        return model
    bins = model.instance.bins
    costs = bins.costs.copy()
    penalties = MUST_GO + model.instance.moves[kept]
    costs[kept] -= penalties
    instance = replace(model.instance, bins=replace(bins, costs=costs))
    return replace(model, instance=instance, forced=model.forced - float(penalties.sum()))


def kept_but_must_go(model: ConsolidationModel, choice: Consolidation) -> Consolidation:
    """The choice that keeps all but what goes without any search: drifted nodes, and those without pods."""
    keep = ~model.instance.may_retire
    for index in np.flatnonzero(model.instance.may_retire):
        candidate = model.candidates[index]
        keep[index] = candidate is not None and not candidate.is_drifted and bool(candidate.pods)
    return replace(choice, keep=keep, inflow=np.zeros_like(choice.inflow), new=())


def hourly(candidate: Candidate) -> float:
    """$/h: the moves of all pods of the candidate, spread over the time in which they must be repaid.

    That is a second at least: no saving repays them sooner, and the figure stays one to calculate with.
    """
    return candidate.move_price / max(candidate.payback.total_seconds(), 1.0) * _SECONDS_AN_HOUR


@dataclass(frozen=True)
class PlanVariant:
    """What a smaller plan may do. ``going``: the names of the claims that may go; None for all. ``buys``: whether nodes
    may be bought, or pods only go to room that is there.
    """

    going: frozenset[str] | None = None
    buys: bool = True

    def of(self, model: ConsolidationModel) -> ConsolidationInstance:
        """The instance that allows no more. Nodes that stay take what fits beside their pods."""
        instance = model.instance
        if self.going is not None:
            names = (candidate.claim.metadata.name if candidate else None for candidate in model.candidates)
            instance = _with_going(instance, instance.may_retire & np.array([name in self.going for name in names]))
        if not self.buys:
            compatible = instance.bins.compatible.copy()
            compatible[:, len(model.nodes) :] = False
            instance = replace(instance, bins=replace(instance.bins, compatible=compatible))
        return instance


def within(model: ConsolidationModel, choice: Consolidation, room: Callable[[Candidate], int]) -> frozenset[str]:
    """The names of those that the ``choice`` retires, as many of each NodePool as there is room for: drifted ones in
    their order, then the ones with the highest price for what their moves count as. ``room``: how many nodes of a
    candidate's NodePool may go now.
    """
    gain = model.instance.prices - model.instance.moves
    leaving = [
        (candidate, index)
        for index, candidate in enumerate(model.candidates)
        if candidate is not None and model.instance.may_retire[index] and not choice.keep[index]
    ]
    drifted = sorted((one for one in leaving if one[0].is_drifted), key=lambda one: one[0].drift_order)
    others = sorted((one for one in leaving if not one[0].is_drifted), key=lambda one: -gain[one[1]])
    taken: Counter[str] = Counter()
    going = set[str]()
    for candidate, _ in (*drifted, *others):
        pool = candidate.pool.metadata.name
        if taken[pool] < room(candidate):
            taken[pool] += 1
            going.add(candidate.claim.metadata.name)
    return frozenset(going)


def _with_going(instance: ConsolidationInstance, may_retire: Mask) -> ConsolidationInstance:
    """The instance in which these may go (bool[standing bins]), and no others."""
    kept = ~may_retire
    bins = replace(instance.bins, demands=instance.residents[:, may_retire].sum(axis=1))
    return replace(
        instance,
        bins=bins,
        may_retire=may_retire,
        residents=np.where(kept, 0, instance.residents),
        moves=np.where(kept, 0.0, instance.moves),
    )
