"""What copies on a bin of each type are worth at most, at prices of the copies: the values of knapsacks.

They make the cuts of ``benders``. A value is the best pattern's, or a bound on it, in the cheapest way that will do:

1. the knapsack in fractions, for all bin types in one linear program. Its duals bound each value, whatever the solver
   makes of them (weak duality, bin type by bin type);
2. where greedy filling comes that far, nothing better is to be had;
3. elsewhere the patterns worth more than the greedily filled ones are listed (``listing``), as many as may be.
"""

from dataclasses import replace

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints
from joinery.decisions.optimizer.bounds.compact import CompactFormulation
from joinery.decisions.optimizer.bounds.listing import list_patterns
from joinery.decisions.optimizer.bounds.pattern_duals import PatternDuals
from joinery.decisions.optimizer.linear.highs import LinearProgram, Solver
from joinery.decisions.optimizer.linear.rows import RowWriter
from joinery.decisions.optimizer.rounding.filling import fill, greedy_orders

#: A value bounded within this share is not worth listing patterns for.
_ENOUGH = 1e-3
#: Where patterns are too many to be listed, only those that are worth more are: by this share of the way from what
#: greedy filling comes to up to the bound.
_SHARES = (0.0, 0.7)
#: Where more items and bin types are compatible, values are bounded by fractions: listing takes too long.
_FEW_PAIRS = 800
#: Bins that are filled in part while patterns are listed, times the items.
_WIDTH = 60_000
#: What a value may be wrong by as a sum of floats, as a share of it.
_ROUNDING = 1e-9
_NO_ROWS: Floats = np.zeros(0)


class BinValues:
    """The values of the bins of a formulation."""

    def __init__(self, formulation: CompactFormulation) -> None:
        self._formulation, self._instance = formulation, formulation.constrained.instance
        self._rows = RowWriter()
        self._capacity_rows = self._capacities()
        self._limit_rows = [self._limit(limit.items, limit.cap) for limit in self._instance.cardinality_limits]
        self._solver = Solver(self._program(np.zeros(len(self._instance.demands))), grows=True, exact=True)

    def of(self, prices: Floats) -> Floats:
        """float64[bin types], $/h. ``prices``: float64[items], of one copy; those below zero are left out of bins."""
        prices = np.maximum(prices, 0.0)
        duals = self._duals(prices)
        if self._formulation.pair_count > _FEW_PAIRS:
            return duals.bin_costs * (1 + _ROUNDING)
        least = self._filled(prices)
        for share in _SHARES:
            is_open = duals.bin_costs > least * (1 + _ENOUGH)
            if not is_open.any():
                break
            threshold = least + share * (duals.bin_costs - least)
            listed = self._listed(duals, np.where(is_open, threshold, np.inf))
            if listed is not None:
                return np.where(is_open, np.maximum(listed, threshold), duals.bin_costs) * (1 + _ROUNDING)
        values: Floats = duals.bin_costs * (1 + _ROUNDING)
        return values

    def in_fractions(self, prices: Floats) -> Floats:
        """float64[bin types]: a bound on each value, by the knapsack in fractions."""
        return self._duals(np.maximum(prices, 0.0)).bin_costs

    def _capacities(self) -> slice:
        formulation, instance = self._formulation, self._instance
        sizes, capacities = instance.sizes / instance.scale, instance.capacities / instance.scale
        pairs = np.arange(formulation.pair_count)
        for number, resource in enumerate(formulation.resources):
            asks = sizes[formulation.items, resource] > 0
            first = number * formulation.bin_type_count
            rows = first + formulation.bin_types[asks]
            self._rows.add(rows, pairs[asks], sizes[formulation.items[asks], resource])
        return self._rows.close_at_most(capacities[:, formulation.resources].T.reshape(-1))

    def _limit(self, members: Ints, cap: int) -> slice:
        is_member = np.isin(self._formulation.items, members)
        self._rows.add(self._formulation.bin_types[is_member], np.flatnonzero(is_member), 1.0)
        return self._rows.close_at_most(np.full(self._formulation.bin_type_count, float(cap)))

    def _program(self, prices: Floats) -> LinearProgram:
        formulation = self._formulation
        most = formulation.max_per_bin[formulation.items, formulation.bin_types].astype(np.float64)
        return self._rows.program(-prices[formulation.items], most)

    def _duals(self, prices: Floats) -> PatternDuals:
        """What prices a bin's own rows; ``bin_costs`` are the bounds that follow."""
        formulation, instance = self._formulation, self._instance
        self._solver.set_costs(-prices[formulation.items])
        solution = self._solver.solve(_NO_ROWS, _NO_ROWS)
        own = np.zeros(self._rows.height) if solution is None else np.maximum(-solution.duals, 0.0)
        capacity_duals = np.zeros(instance.capacities.shape)
        by_resource = own[self._capacity_rows].reshape(len(formulation.resources), formulation.bin_type_count)
        capacity_duals[:, formulation.resources] = by_resource.T
        capacity_duals = capacity_duals / instance.scale
        limit_duals = np.array([own[rows] for rows in self._limit_rows])
        limit_duals = limit_duals.reshape(len(self._limit_rows), formulation.bin_type_count)
        item_duals = np.where(formulation.max_per_bin > 0, prices[:, None], 0.0)
        taken = instance.sizes @ capacity_duals.T + instance.limit_members @ limit_duals
        item_row_duals = np.maximum(item_duals - taken, 0.0)
        charged = (instance.capacities * capacity_duals).sum(axis=1) + instance.limit_caps @ limit_duals
        return PatternDuals(
            coupling=_NO_ROWS,
            base=0.0,
            bin_costs=charged + (item_row_duals * formulation.max_per_bin).sum(axis=0),
            item_duals=item_duals,
            capacity_duals=capacity_duals,
            item_row_duals=item_row_duals,
            limit_duals=limit_duals,
            conflict_duals=np.zeros(formulation.bin_type_count),
            infeasibility=0.0,
        )

    def _filled(self, prices: Floats) -> Floats:
        """float64[bin types]: what greedily filled bins are worth."""
        instance, demands = self._instance, self._formulation.constrained.max_items
        every, worth = np.arange(len(instance.costs)), np.flatnonzero(prices > 0)
        bin_types, orders = greedy_orders(instance, prices, every, worth)
        paid = fill(instance, bin_types, orders, demands) @ prices
        best: Floats = paid.reshape(-1, len(every)).max(axis=0, initial=0.0)
        return best

    def _listed(self, duals: PatternDuals, threshold: Floats) -> Floats | None:
        """float64[bin types]: the best pattern worth ``threshold`` or more, zero without one; None if they are too
        many.
        """
        most, instance = self._formulation.max_per_bin, self._instance
        within = replace(duals, bin_costs=threshold)
        listed = list_patterns(instance, most, within, 0.0, _WIDTH // len(instance.demands))
        if not listed.is_complete:
            return None
        best = np.zeros(len(threshold))
        bin_types = listed.patterns.bin_types
        np.maximum.at(best, bin_types, threshold[bin_types] - listed.reduced_costs)
        return best
