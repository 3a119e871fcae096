"""From the program's fractions to whole nodes: take the best-filled node there is, as often as the program wants it, and ask anew.

At the program's prices a node is worth what its pods are charged. A node whose pods are charged its full price wastes nothing. So
every round solves the program for the pods that are left, fills nodes in many ways (the program's own mix of items first), and
buys those that waste least. Prices adapt as pods run out, and what one node leaves over the next one takes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Pattern
from joinery.optimizer.relaxation.assignment import RelaxationSolution
from joinery.optimizer.relaxation.relaxation import Relaxation
from joinery.optimizer.rounding.filling import fill, greedy_orders, separated

_NEAR = 0.005
"""Kinds whose reduced cost is at most this share of their price are tried though the program does not buy them."""


@dataclass(frozen=True, kw_only=True)
class RoundingRule:
    """What is bought in a round. ``share``: of the nodes that the program wants of a kind; ``tolerance``: nodes that waste at most so
    much more than the best are bought too; ``noise``: how far the rule of waste is shaken, which finds other packings.
    ``by_opportunity_cost``: what is scarce goes to the pods that would cost most on other nodes. The program's own prices may tell otherwise,
    because it puts parts of pods there. ``keeps_duals``: prices are not asked for anew, which is soon done and dearer.
    """

    share: float = 0.8
    tolerance: float = 0.003
    noise: float = 0.0
    by_opportunity_cost: bool = False
    keeps_duals: bool = False


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Nodes that could be bought, the least wasteful first: kind, pods, what share of the price is well spent, how many at most."""

    bin_types: Ints
    counts: Ints
    value: Floats
    wanted: Floats


def round_up(
    instance: PackingInstance,
    program: Relaxation,
    rule: RoundingRule,
    random: np.random.Generator,
    *,
    effort: Effort,
    first: RelaxationSolution | None = None,
    below: float = np.inf,
) -> tuple[list[Pattern], Ints] | None:
    """Nodes for the instance's pods, and the pods (by item) that are left because the effort was over.

    ``first``: the program's optimum for the whole instance, if it is known. None if the nodes would cost ``below`` or more.
    """
    left, available, spent, patterns = instance.demands.copy(), instance.available, 0.0, list[Pattern]()
    while left.any() and not effort.is_over():
        answer = first if first is not None and (rule.keeps_duals or not patterns) else program.solve(left, available)
        if answer is None:
            break
        if not rule.keeps_duals and spent + answer.cost >= below - 1e-9:
            return None
        effort.use(instance)
        found = _candidates(instance, answer, left, rule, random)
        bought = []
        if instance.is_limited.any():
            free = _outside(instance, program, left, available) if rule.by_opportunity_cost else None
            bought = list(_take(instance, free or found, answer.bins, left, available))
        bought = bought or list(_buy(instance, found, left, rule))
        if not bought:
            break
        for pattern in bought:
            left = left - pattern.counts * pattern.copies
            available = instance.after_buying(available, pattern.bin_type, pattern.copies)
            spent += float(instance.costs[pattern.bin_type]) * pattern.copies
        patterns += bought
    return None if spent >= below - 1e-9 else (patterns, left)


def _candidates(
    instance: PackingInstance, answer: RelaxationSolution, left: Ints, rule: RoundingRule, random: np.random.Generator
) -> _Candidates:
    live = np.flatnonzero(left)
    bin_types, mixes, begun = _mixes(instance, answer, left, live)
    near = np.flatnonzero(answer.reduced_costs <= _NEAR * instance.costs)
    others, orders = greedy_orders(instance, answer.item_duals, near, live)
    every = np.concatenate([bin_types, others])
    empty = np.zeros((len(others), len(left)), dtype=np.int64)
    nodes = fill(instance, every, np.concatenate([mixes, orders]), left, np.concatenate([begun, empty]))
    often = np.concatenate([answer.bins[bin_types], _times(nodes[len(bin_types) :], left)])
    wanted = often * rule.share
    value = (nodes @ answer.item_duals) / instance.costs[every]
    if rule.noise:
        value = value + random.normal(0.0, rule.noise, len(value))
    order = np.lexsort((instance.costs[every], -np.round(value, 9)))
    order = order[nodes[order].any(axis=1)]
    return _Candidates(every[order], nodes[order], value[order], wanted[order])


def _outside(instance: PackingInstance, program: Relaxation, left: Ints, available: Ints) -> _Candidates | None:
    """Nodes of scarce kinds for what is worth most where nothing is scarce; None if some pods have nothing else."""
    answer = program.solve(left, np.where(instance.is_limited, 0, available))
    if answer is None:
        return None
    bin_types, orders = greedy_orders(
        instance, answer.item_duals, np.flatnonzero(instance.is_limited), np.flatnonzero(left)
    )
    counts = fill(instance, bin_types, orders, left)
    value = counts @ answer.item_duals
    order = np.argsort(-value, kind="stable")
    order = order[counts[order].any(axis=1)]
    return _Candidates(bin_types[order], counts[order], value[order], np.zeros(len(order)))


def _mixes(instance: PackingInstance, answer: RelaxationSolution, left: Ints, live: Ints) -> tuple[Ints, Ints, Ints]:
    """The program's own nodes: the whole part of the mix on each kind, to be filled up by the largest fractions or by worth.

    Returns kinds, sequences and the pods that are on already, by row.
    """
    used = np.flatnonzero(answer.bins > 1e-6)
    mix = (answer.assigned[:, used] / answer.bins[used]).T
    whole = separated(instance, np.minimum(np.floor(mix + 1e-9).astype(np.int64), left), answer.item_duals)
    fraction, item_duals = (mix - whole)[:, live], answer.item_duals[live]
    ways = (
        -fraction - 1e-3 * item_duals / (item_duals.max(initial=0.0) + 1e-9),
        -item_duals * (mix[:, live] > 1e-9) - 1e-6 * item_duals,
    )
    orders = np.concatenate([live[np.argsort(way, axis=1, kind="stable")] for way in ways])
    return np.tile(used, len(ways)), orders, np.tile(whole, (len(ways), 1))


def _times(counts: Ints, left: Ints) -> Floats:
    """How often each node could be bought with the pods that are left."""
    often: Floats = np.where(counts > 0, left // np.maximum(counts, 1), np.inf).min(axis=1, initial=np.inf)
    return np.where(np.isfinite(often), often, 0.0)


def _take(
    instance: PackingInstance, found: _Candidates, wanted: Floats, left: Ints, available: Ints
) -> Iterator[Pattern]:
    """Of what is scarce, the best candidate of each kind that the program wants (by kind), as often as it is there."""
    taken: set[int] = set()
    for bin_type, counts in zip(found.bin_types, found.counts, strict=True):
        often = min(int(_times(counts[None], left)[0]), int(available[bin_type]), int(np.ceil(wanted[bin_type] - 1e-6)))
        if instance.is_limited[bin_type] and int(bin_type) not in taken and often > 0:
            yield Pattern(int(bin_type), counts, often)
            left, available = left - counts * often, instance.after_buying(available, int(bin_type), often)
            taken.add(int(bin_type))


def _buy(instance: PackingInstance, found: _Candidates, left: Ints, rule: RoundingRule) -> Iterator[Pattern]:
    """The best candidate in any case, and others nearly as good of which the program wants whole ones; one of a kind."""
    taken: set[int] = set()
    best = None
    for bin_type, counts, value, wanted in zip(found.bin_types, found.counts, found.value, found.wanted, strict=True):
        if best is not None and value < best - rule.tolerance:
            return
        often = int(_times(counts[None], left)[0])
        if instance.is_limited[bin_type] or int(bin_type) in taken or not often or (best is not None and wanted < 1):
            continue
        times = max(1, min(often, int(wanted + 1e-9)))
        yield Pattern(int(bin_type), counts, times)
        left = left - counts * times
        taken.add(int(bin_type))
        best = value if best is None else best
