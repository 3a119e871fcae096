"""A cluster as an instance of the consolidation problem (``optimizer.consolidation``), and variations of it."""

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, replace

import numpy as np

from joinery.decisions.disruption.candidates import Candidate
from joinery.decisions.optimizer.arrays import Mask
from joinery.decisions.optimizer.consolidation.instance import Consolidation, ConsolidationInstance
from joinery.decisions.scheduling.firstfit.demand import Domains
from joinery.objects.snapshot.nodes import NodeView

NEGLIGIBLE = 1e-6
"""$/h: savings that are none, and a price of nothing."""
_SECONDS_AN_HOUR = 3600.0
MUST_GO = 1e3
"""$/h that keeping a drifted node counts as, besides its moves: it goes if its pods have any other place."""


@dataclass(frozen=True, eq=False)
class Model:
    """The instance, and what its indices stand for.

    ``nodes``: the nodes by standing bin; ``candidates``: the candidate of each, None for one that only receives.
    ``pods``: by item and standing bin, the names of the pods that would move. ``domains``: by item, those that its pods
    stay in; ``coupled``: by item, labels of the rules that count them by domain; ``broken``: those of them that do not
    hold as the cluster stands. ``new``: by type of new bin, the names of its NodePool and instance type. ``forced``:
    $/h that keeping the drifted nodes counts as besides their price.
    ``is_strict``: whether something is taken more strictly than it must be. ``immovable``: the standing bins with a pod
    that nothing else can hold.
    """

    instance: ConsolidationInstance
    nodes: tuple[NodeView, ...]
    candidates: tuple[Candidate | None, ...]
    pods: Mapping[tuple[int, int], tuple[str, ...]]
    domains: tuple[Domains, ...]
    coupled: tuple[frozenset[int], ...]
    broken: frozenset[int]
    new: tuple[tuple[str, str], ...]
    forced: float
    is_strict: bool
    immovable: frozenset[int] = frozenset()


def unforced(model: Model, gone: Collection[str]) -> Model:
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


def kept_but_must_go(model: Model, choice: Consolidation) -> Consolidation:
    """The choice that keeps all but what goes without any search: drifted nodes, and those without pods."""
    keep = ~model.instance.may_retire
    for index in np.flatnonzero(model.instance.may_retire):
        candidate = model.candidates[index]
        keep[index] = candidate is not None and not candidate.is_drifted and bool(candidate.pods)
    return replace(choice, keep=keep, inflow=np.zeros_like(choice.inflow), new=())


def hourly(candidate: Candidate) -> float:
    """$/h: the moves of all pods of the candidate, spread over the time in which they must be repaid.

    That is a second at least: no saving repays them sooner, and the figure stays one to reckon with.
    """
    return candidate.move_price / max(candidate.payback.total_seconds(), 1.0) * _SECONDS_AN_HOUR


def limited(model: Model, choice: Consolidation, left: Callable[[Candidate], int]) -> ConsolidationInstance:
    """The instance in which only so many nodes of each NodePool may go as budgets leave: of those that the ``choice``
    retires, drifted ones in their order, then the ones with the highest price for what their moves count as. ``left``:
    nodes of a candidate's NodePool that may go now.
    """
    instance = model.instance
    gain = instance.prices - instance.moves
    leaving = [
        (candidate, index)
        for index, candidate in enumerate(model.candidates)
        if candidate is not None and instance.may_retire[index] and not choice.keep[index]
    ]
    drifted = sorted((one for one in leaving if one[0].is_drifted), key=lambda one: one[0].drift_order)
    others = sorted((one for one in leaving if not one[0].is_drifted), key=lambda one: -gain[one[1]])
    may_retire = np.zeros_like(instance.may_retire)
    taken: Counter[str] = Counter()
    for candidate, index in (*drifted, *others):
        pool = candidate.pool.metadata.name
        if taken[pool] < left(candidate):
            taken[pool] += 1
            may_retire[index] = True
    return _of(instance, may_retire)


def without(model: Model, names: Container[str]) -> ConsolidationInstance:
    """The instance in which these candidates, names of claims, stay, and take what fits beside their pods."""
    may_retire = model.instance.may_retire.copy()
    for index, candidate in enumerate(model.candidates):
        may_retire[index] &= candidate is not None and candidate.claim.metadata.name not in names
    return _of(model.instance, may_retire)


def _of(instance: ConsolidationInstance, may_retire: Mask) -> ConsolidationInstance:
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


def without_new(model: Model) -> ConsolidationInstance:
    """The instance in which nothing is bought: pods go to room that is there."""
    bins = model.instance.bins
    compatible = bins.compatible.copy()
    compatible[:, len(model.nodes) :] = False
    return replace(model.instance, bins=replace(bins, compatible=compatible))
