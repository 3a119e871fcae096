"""Rounding block by block, again and again: for the whole instance at first, then for what dives leave of it."""

from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.decomposition import Subinstance, decompose
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, cost_of
from joinery.decisions.optimizer.relaxation.assignment import RelaxationSolution
from joinery.decisions.optimizer.relaxation.merged_duals import MergedDuals
from joinery.decisions.optimizer.relaxation.relaxation import Relaxation, relax
from joinery.decisions.optimizer.rounding.rounding import RoundingRule, round_up


class BlockRounding:
    """Rounds an instance of several blocks, for any demands up to the instance's.

    The relaxation of a block is kept and goes on from its last optimum: solving it from nothing, with all its cutting
    planes, takes longer than everything else in a round. ``block``: int64[bin types], see ``decomposition``.
    ``is_swift``: see ``relax``.
    """

    def __init__(
        self, instance: PackingInstance, block: Ints, effort: Effort, random: np.random.Generator, *, is_swift: bool
    ) -> None:
        self._instance, self._block = instance, block
        self._effort, self._random, self._is_swift = effort, random, is_swift
        self._of_block: dict[bytes, tuple[Subinstance, Relaxation]] = {}

    def pack(
        self, demands: Ints, available: Ints, rule: RoundingRule, below: float = np.inf
    ) -> tuple[list[Pattern], MergedDuals | None]:
        """Bins for these demands (int64[items]), from what is ``available`` (int64[bin types]), and the duals of the
        blocks' relaxations.

        None for the duals if copies are left without a bin, or if the bins would cost ``below`` ($/h) or more; then
        there may be no bins.
        """
        instance = replace(self._instance, available=available)
        duals, patterns, is_whole = MergedDuals.empty(instance), list[Pattern](), True
        parts = [self._solved(part) for part in decompose(instance, self._block, demands)]
        # What the blocks packed so far cost, and a bound on what the others will.
        at_least = sum(first.cost for _, _, first in parts if first is not None)
        for part, relaxation, first in parts:
            if first is None:
                is_whole = False
                continue
            most = below - at_least + first.cost
            rounded = round_up(
                part.instance, relaxation, rule, self._random, first=first, effort=self._effort, below=most
            )
            if rounded is None:
                return [], None
            patterns += [part.lift(pattern) for pattern in rounded.patterns]
            at_least += cost_of(part.instance, rounded.patterns) - first.cost
            is_whole = is_whole and not rounded.residual.any()
            duals.add(part, first)
        return patterns, duals if is_whole else None

    def duals(self) -> MergedDuals | None:
        """Those of the blocks' relaxations for all demands; None if one has no optimum, or no time for it."""
        duals = MergedDuals.empty(self._instance)
        for part, _, first in map(self._solved, decompose(self._instance, self._block, self._instance.demands)):
            if first is None:
                return None
            duals.add(part, first)
        return duals

    def _solved(self, part: Subinstance) -> tuple[Subinstance, Relaxation, RelaxationSolution | None]:
        """The part, with all items that its block had at first if it has no others; its relaxation, and the optimum."""
        key = part.bin_types.tobytes()
        if key in self._of_block:
            first, relaxation = self._of_block[key]
            if np.isin(part.items, first.items).all():
                demands = np.zeros(len(first.items), dtype=np.int64)
                demands[np.searchsorted(first.items, part.items)] = part.instance.demands
                available = part.instance.available
                part = replace(first, instance=replace(first.instance, demands=demands, available=available))
                return part, relaxation, relaxation.solve(demands, available)
        relaxation = relax(part.instance, is_swift=self._is_swift, patience=self._effort.patience())
        self._of_block[key] = part, relaxation
        return part, relaxation, relaxation.solve(part.instance.demands)
