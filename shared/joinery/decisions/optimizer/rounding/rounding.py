"""From the relaxation's fractions to whole bins: buy the best filled bin, as often as the relaxation wants it, and
solve it anew.

At the relaxation's duals a bin is worth what its items are priced at, and never more than it costs. One whose items
are priced at its full cost wastes nothing. So every round solves the relaxation for the demands that are left, fills
bins in many ways (the relaxation's own mix first), and buys those that waste least. The duals adapt as items run out,
and what one bin leaves over the next one takes. This is a diving heuristic: fix some variables, solve again (Sadykov,
Vanderbeck, Pessoa, Tahiri and Uchoa 2019, "Primal heuristics for branch and price: the assets of diving methods").
Only that what is fixed is not a variable of the relaxation but a whole bin made from it: rounding x_k up would leave
its items' fractions to be packed by nobody.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.optimizer.relaxation.assignment import RelaxationSolution
from joinery.decisions.optimizer.relaxation.relaxation import Relaxation
from joinery.decisions.optimizer.rounding.filling import fill, greedy_orders, without_conflicts


@dataclass(frozen=True, kw_only=True)
class RoundingRule:
    """What is bought in a round.

    ``share``: of the bins of a type that the relaxation wants. Less than all: once most are bought another mix may
    suit the rest, and the next solve tells.
    ``tolerance``: bins whose share of waste is at most so much above the best's are bought in the same round; each
    round costs a solve.
    ``noise``: standard deviation of an error that is added to every bin's value, which makes other packings.
    ``by_opportunity_cost``: bins of limited supplies go to the items that would cost most elsewhere. The relaxation's
    own duals may say otherwise, because it puts fractions of items there.
    ``keeps_duals``: never solve again. That is soon done, and dearer.
    """

    share: float = 0.8
    tolerance: float = 0.003
    noise: float = 0.0
    by_opportunity_cost: bool = False
    keeps_duals: bool = False


class Rounded(NamedTuple):
    """``patterns``: the bins bought.

    ``residual``: int64[items], copies that have no bin because the effort was over.
    """

    patterns: list[Pattern]
    residual: Ints


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Bins that could be bought, the least wasteful first.

    ``bin_types``: int64[bins]; ``counts``: int64[bins, items]; ``value``: float64[bins], the share of the cost that
    the items' duals pay for; ``wanted``: float64[bins], how many like it to buy at most.
    """

    bin_types: Ints
    counts: Ints
    value: Floats
    wanted: Floats


def round_up(
    instance: PackingInstance,
    relaxation: Relaxation,
    rule: RoundingRule,
    random: np.random.Generator,
    *,
    effort: Effort,
    first: RelaxationSolution | None = None,
    below: float = np.inf,
) -> Rounded | None:
    """Whole bins for the instance's demands; None if they would cost ``below`` ($/h) or more.

    ``first``: the relaxation's optimum for the whole instance, if it was solved already.
    """
    residual, available, spent, patterns = instance.demands.copy(), instance.available, 0.0, list[Pattern]()
    while residual.any() and not effort.is_over():
        is_first = first is not None and (rule.keeps_duals or not patterns)
        solution = first if is_first else relaxation.solve(residual, available)
        if solution is None:
            break
        # What is bought and the bound on the rest: no way of going on from here is cheaper. Old duals bound nothing.
        if not rule.keeps_duals and spent + solution.cost >= below - 1e-9:
            return None
        effort.use(instance)
        candidates = _candidates(instance, solution, residual, rule, random)
        bought = []
        if instance.is_limited.any():
            freed = (
                _by_opportunity_cost(instance, relaxation, residual, available) if rule.by_opportunity_cost else None
            )
            bought = list(_take_limited(instance, freed or candidates, solution.bins, residual, available))
        bought = bought or list(_take_best(instance, candidates, residual, rule))
        if not bought:
            break
        for pattern in bought:
            residual = residual - pattern.counts * pattern.copies
            available = instance.after_buying(available, pattern.bin_type, pattern.copies)
            spent += float(instance.costs[pattern.bin_type]) * pattern.copies
        patterns += bought
    return None if spent >= below - 1e-9 else Rounded(patterns, residual)


def _candidates(
    instance: PackingInstance,
    solution: RelaxationSolution,
    residual: Ints,
    rule: RoundingRule,
    random: np.random.Generator,
) -> _Candidates:
    """The relaxation's own bins, and greedily filled ones of all types that are nearly bought."""
    items = np.flatnonzero(residual)
    of_mixes, mix_orders, begun = _mixes(instance, solution, residual, items)
    near = np.flatnonzero(solution.reduced_costs <= tuning.NEAR_FOR_ROUNDING * instance.costs)
    of_greed, orders = greedy_orders(instance, solution.item_duals, near, items)
    bin_types = np.concatenate([of_mixes, of_greed])
    empty = np.zeros((len(of_greed), len(residual)), dtype=np.int64)
    counts = fill(instance, bin_types, np.concatenate([mix_orders, orders]), residual, np.concatenate([begun, empty]))
    # A bin made from a mix may be bought as often as the relaxation wants its type; any other one as often as items
    # last.
    copies = np.concatenate([solution.bins[of_mixes], _copies_possible(counts[len(of_mixes) :], residual)])
    value = (counts @ solution.item_duals) / instance.costs[bin_types]
    if rule.noise:
        value = value + random.normal(0.0, rule.noise, len(value))
    # Values are rounded so that equal bins tie on every machine. Of equals the cheapest, which commits to least.
    order = np.lexsort((instance.costs[bin_types], -np.round(value, 9)))
    order = order[counts[order].any(axis=1)]
    return _Candidates(bin_types[order], counts[order], value[order], (copies * rule.share)[order])


def _by_opportunity_cost(
    instance: PackingInstance, relaxation: Relaxation, residual: Ints, available: Ints
) -> _Candidates | None:
    """Bins of limited supplies, filled with what would cost most without them;
    None if some items can be nowhere else.
    """
    solution = relaxation.solve(residual, np.where(instance.is_limited, 0, available))
    if solution is None:
        return None
    limited, items = np.flatnonzero(instance.is_limited), np.flatnonzero(residual)
    bin_types, orders = greedy_orders(instance, solution.item_duals, limited, items)
    counts = fill(instance, bin_types, orders, residual)
    value = counts @ solution.item_duals
    order = np.argsort(-value, kind="stable")
    order = order[counts[order].any(axis=1)]
    return _Candidates(bin_types[order], counts[order], value[order], np.zeros(len(order)))


def _mixes(
    instance: PackingInstance, solution: RelaxationSolution, residual: Ints, items: Ints
) -> tuple[Ints, Ints, Ints]:
    """The relaxation's own bins: what it assigns to a type, divided by its bins of the type, rounded down.

    Each is to be filled up in two ways: by the fractions that rounding took off, and by dual. Returns the bin types
    (int64[bins]), the orders (int64[bins, items]) and the copies that are on already (int64[bins, all items]).
    """
    bought = np.flatnonzero(solution.bins > 1e-6)
    mix = (solution.assigned[:, bought] / solution.bins[bought]).T
    whole = np.minimum(np.floor(mix + 1e-9).astype(np.int64), residual)
    whole = without_conflicts(instance, whole, solution.item_duals)
    fraction, duals = (mix - whole)[:, items], solution.item_duals[items]
    keys = (
        -fraction - 1e-3 * duals / (duals.max(initial=0.0) + 1e-9),
        -duals * (mix[:, items] > 1e-9) - 1e-6 * duals,
    )
    orders = np.concatenate([items[np.argsort(key, axis=1, kind="stable")] for key in keys])
    return np.tile(bought, len(keys)), orders, np.tile(whole, (len(keys), 1))


def _copies_possible(counts: Ints, residual: Ints) -> Floats:
    """float64[bins]: how often each bin could be bought before one of its items runs out; 0 for an empty one."""
    copies: Floats = np.where(counts > 0, residual // np.maximum(counts, 1), np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(copies), copies, 0.0)


def _take_limited(
    instance: PackingInstance, candidates: _Candidates, wanted: Floats, residual: Ints, available: Ints
) -> Iterator[Pattern]:
    """Of limited supplies, the best candidate of each type that the relaxation wants, as often as there are bins and
    items.

    ``wanted``: float64[bin types]. They are taken before anything is bought: they cost next to nothing, and what they
    hold decides what has to be bought.
    """
    taken: set[int] = set()
    for bin_type, counts in zip(candidates.bin_types, candidates.counts, strict=True):
        copies = int(_copies_possible(counts[None], residual)[0])
        copies = min(copies, int(available[bin_type]), int(np.ceil(wanted[bin_type] - 1e-6)))
        if instance.is_limited[bin_type] and int(bin_type) not in taken and copies > 0:
            yield Pattern(int(bin_type), counts, copies)
            residual = residual - counts * copies
            available = instance.after_buying(available, int(bin_type), copies)
            taken.add(int(bin_type))


def _take_best(
    instance: PackingInstance, candidates: _Candidates, residual: Ints, rule: RoundingRule
) -> Iterator[Pattern]:
    """The best candidate in any case, and others nearly as good of which whole bins are wanted; one of each type.

    One of each type, because all candidates of a type want the same items, and the second would be made of what the
    first left.
    """
    taken: set[int] = set()
    best = None
    for bin_type, counts, value, wanted in zip(
        candidates.bin_types, candidates.counts, candidates.value, candidates.wanted, strict=True
    ):
        if best is not None and value < best - rule.tolerance:
            return
        copies = int(_copies_possible(counts[None], residual)[0])
        if instance.is_limited[bin_type] or int(bin_type) in taken or not copies or (best is not None and wanted < 1):
            continue
        copies = max(1, min(copies, int(wanted + 1e-9)))
        yield Pattern(int(bin_type), counts, copies)
        residual = residual - counts * copies
        taken.add(int(bin_type))
        best = value if best is None else best
