"""The whole search for a instance: which kinds matter, whole nodes from the program, patterns, and local search."""

from dataclasses import replace

import numpy as np

from joinery.optimizer.arrays import Ints
from joinery.optimizer.bounds.exact import ExactResult, is_small, solve_exactly
from joinery.optimizer.columns.generation import generate_and_dive
from joinery.optimizer.effort import Effort
from joinery.optimizer.instance.decomposition import decompose
from joinery.optimizer.instance.packing_instance import PackingInstance
from joinery.optimizer.instance.patterns import Pattern, cost_of
from joinery.optimizer.instance.side_constraints import unconstrained
from joinery.optimizer.local_search import destroy_and_repair
from joinery.optimizer.relaxation.core import CoreSelection
from joinery.optimizer.relaxation.merged_duals import MergedDuals
from joinery.optimizer.relaxation.relaxation import relax
from joinery.optimizer.rounding.rounding import RoundingRule, round_up

_SORTS = 50
"""So many sorts of kind are considered after the first look."""
_GOOD_ENOUGH = 1.002
"""A packing this close to what the program says is possible is not improved."""
_FEW_PAIRS = 5_000
"""Patterns are sought for instances of no more pairs of an item and a kind that admits it: the work grows with them, and where there
are more (many small demands in many zones) it triples to save one percent.
"""
_LISTED = 16
"""Of no more pods the cheapest nodes are mostly soon listed, before anything else improves the packing."""
_HASTY = RoundingRule(share=1.0, tolerance=0.2, keeps_duals=True)
"""A packing to start from is soon found, and patterns make up for it; what is scarce is dealt out with more care."""


def pack(instance: PackingInstance, block: Ints, effort: Effort, survey: CoreSelection | None = None) -> list[Pattern]:
    """Nodes for the pods of the instance, nearly the cheapest. Pods may be left over where the effort was over before.

    ``place``: by kind; nodes of one place are packed by themselves at first. ``survey``: of the instance, if there is one already.
    """
    bin_types = (survey or CoreSelection(instance)).core(_SORTS)
    few = instance.restrict(np.arange(len(instance.demands)), bin_types, instance.demands)
    random = np.random.default_rng(effort.seed)
    rule = _HASTY if _is_small(few) and not few.is_limited.any() else RoundingRule()
    start, duals = _started(few, block[bin_types], rule, effort, random)
    best = _among(bin_types, start)
    if instance.demands.sum() <= _LISTED:
        answer = _least(instance, best, effort)
        if answer is not None and answer.is_tight:
            return list(answer.patterns or best)
    if duals is not None and _is_small(few):  # of more bin_types, nodes taken apart would gain nothing in the time
        best = _among(bin_types, _improved(few, block[bin_types], start, duals, effort, random))
    answer = _least(instance, best, effort)
    return list((answer and answer.patterns) or best)


def _among(bin_types: Ints, patterns: list[Pattern]) -> list[Pattern]:
    """Shapes of some kinds as those of the whole instance."""
    return [Pattern(int(bin_types[pattern.bin_type]), pattern.counts, pattern.copies) for pattern in patterns]


def _least(instance: PackingInstance, best: list[Pattern], effort: Effort) -> ExactResult | None:
    """The very cheapest nodes, where they are few enough to be listed."""
    constrained, packed = unconstrained(instance), sum(int(pattern.counts.sum()) * pattern.copies for pattern in best)
    if effort.is_over() or packed < instance.demands.sum() or not is_small(constrained):
        return None
    return solve_exactly(constrained, cost_of(instance, best), is_thorough=False)


def _improved(
    instance: PackingInstance,
    block: Ints,
    best: list[Pattern],
    duals: MergedDuals,
    effort: Effort,
    random: np.random.Generator,
) -> list[Pattern]:
    """A packing of the same pods that costs no more: by patterns, and by packing the pods of some nodes again."""

    def finish(left: Ints, available: Ints, below: float) -> list[Pattern] | None:
        rest = replace(instance, available=available)
        patterns, found = _rounded(rest, block, left, RoundingRule(), effort, random, below)
        return None if found is None else patterns

    enough = duals.cost * _GOOD_ENOUGH
    effort.begin()
    if cost_of(instance, best) > enough:
        best = generate_and_dive(instance, duals, best, finish, effort, random)
    return destroy_and_repair(instance, block, best, duals, enough, effort, random)


def _started(
    instance: PackingInstance, block: Ints, rule: RoundingRule, effort: Effort, random: np.random.Generator
) -> tuple[list[Pattern], MergedDuals | None]:
    """A packing to start from, the better of two where some kinds are scarce and do not do; and what the programs say."""
    best, duals = _rounded(instance, block, instance.demands, rule, effort, random)
    if (
        duals is not None
        and instance.is_limited.any()
        and not all(instance.is_limited[pattern.bin_type] for pattern in best)
    ):
        other, found = _rounded(
            instance, block, instance.demands, replace(rule, by_opportunity_cost=True), effort, random
        )
        if found is not None and cost_of(instance, other) < cost_of(instance, best):
            best = other
    return best, duals


def _rounded(
    instance: PackingInstance,
    block: Ints,
    demands: Ints,
    rule: RoundingRule,
    effort: Effort,
    random: np.random.Generator,
    below: float = np.inf,
) -> tuple[list[Pattern], MergedDuals | None]:
    """Nodes for so many pods, place by place, and what the programs say of them; None if pods are left over, or if the nodes would
    cost ``below`` or more.
    """
    duals, patterns, is_whole = MergedDuals.empty(instance), list[Pattern](), True
    parts = [
        (part, relax(part.instance, is_swift=not _is_small(instance))) for part in decompose(instance, block, demands)
    ]
    answers = [program.solve(part.instance.demands) for part, program in parts]
    solve_exactly = sum(answer.cost for answer in answers if answer is not None)
    for (part, program), first in zip(parts, answers, strict=True):
        if first is None:
            is_whole = False
            continue
        most = below - solve_exactly + first.cost
        found = round_up(part.instance, program, rule, random, first=first, effort=effort, below=most)
        if found is None:
            return [], None
        bought, left = found
        patterns += [part.lift(pattern) for pattern in bought]
        solve_exactly += cost_of(part.instance, bought) - first.cost
        is_whole = is_whole and not left.any()
        duals.add(part, first)
    return patterns, duals if is_whole else None


def _is_small(instance: PackingInstance) -> bool:
    return int(instance.compatible.sum()) <= _FEW_PAIRS
