"""Dives that seek new columns on the way down, for instances of few copies.

The columns of the master's optimum are right for all demands together. Once some bins are bought, the best patterns for
what is left are mostly not among them: a pattern that fits a fraction of the demands leaves odd copies, which cost a
bin of their own. So after each bin the master is priced anew for the residual demands, as in the diving heuristic of
Sadykov, Vanderbeck, Pessoa, Tahiri and Uchoa (2019, "Primal heuristics for branch and price: the assets of diving
methods"). Where copies are few that takes hundredths of a second; where they are thousands it takes as long as
packing them ten times over, and gains nothing (``generation`` dives there).
"""

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.columns.diving import ROUNDING
from joinery.decisions.optimizer.columns.master import MasterSolution, RestrictedMaster
from joinery.decisions.optimizer.columns.pricing import PricingHeuristic
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns, cost_of
from joinery.decisions.optimizer.relaxation.merged_duals import MergedDuals


def descend(
    instance: PackingInstance, duals: MergedDuals, best: list[Pattern], effort: Effort, random: np.random.Generator
) -> list[Pattern]:
    """A packing of the same items that costs no more than ``best``. ``duals``: of the instance's relaxation."""
    # Bins of every type are filled: for few copies the relaxation is a poor guide to what is bought in whole bins.
    pricing = PricingHeuristic(instance, instance.sizes @ duals.capacity_duals.T, np.arange(len(instance.costs)))
    master = RestrictedMaster(instance, duals.item_duals)
    master.add_columns(
        Patterns(np.array([pattern.bin_type for pattern in best]), np.array([pattern.counts for pattern in best]))
    )
    demands, available = instance.demands, instance.available
    rounds = effort.rounds
    solution = _generated(master, pricing, demands, available, rounds, random) if rounds else None
    least = np.inf if solution is None else solution.cost
    for number in range(tuning.DIVES):
        below = cost_of(instance, best)
        if solution is None or effort.is_over() or below <= least * tuning.GOOD_ENOUGH:
            break
        best = _Descent(instance, master, pricing, below, rounds).run(solution, number, random) or best
        solution = master.solve(demands, available)
    return best


class _Descent:
    """One dive. It ends without a packing once that would cost ``below`` ($/h) or more. ``rounds``: of pricing at most.

    ``patterns``: the bins bought so far. ``residual``: int64[items], copies left. ``available``: int64[bin types].
    """

    def __init__(
        self, instance: PackingInstance, master: RestrictedMaster, pricing: PricingHeuristic, below: float, rounds: int
    ) -> None:
        self._instance, self._master, self._pricing = instance, master, pricing
        self._below, self._rounds = below, rounds
        self._residual, self._available = instance.demands.copy(), instance.available
        self._patterns: list[Pattern] = []
        self._spent = 0.0

    def run(
        self, solution: MasterSolution | None, begin_with: int, random: np.random.Generator
    ) -> list[Pattern] | None:
        """All bins; None if there are none so cheap. ``begin_with``: which of the bins that the master wants most."""
        while solution is not None and self._spent + solution.cost < self._below - 1e-9:
            if not self._buy_whole(solution) and not self._buy_most_wanted(solution, begin_with):
                return None
            begin_with = 0
            if not self._residual.any():
                return self._patterns if self._spent < self._below - 1e-9 else None
            solution = _generated(self._master, self._pricing, self._residual, self._available, self._rounds, random)
        return None

    def _buy_whole(self, solution: MasterSolution) -> bool:
        """Whatever is wanted in whole numbers, as long as its copies are all left; whether that was anything."""
        columns, before = self._master.columns, len(self._patterns)
        for index in np.flatnonzero(solution.copies >= 1 - ROUNDING):
            for _ in range(int(solution.copies[index] + ROUNDING)):
                is_all_left = (columns.counts[index] <= self._residual).all()
                if (len(self._patterns) > before and not is_all_left) or not self._buy(columns, int(index)):
                    break
        return len(self._patterns) > before

    def _buy_most_wanted(self, solution: MasterSolution, begin_with: int) -> bool:
        """One bin of the pattern that is wanted most; whether there was any."""
        order = np.argsort(-solution.copies, kind="stable")
        if begin_with < len(order) and solution.copies[order[begin_with]] > tuning.WORTH_BEGINNING_WITH:
            order = order[begin_with:]
        wanted = (int(index) for index in order if solution.copies[index] > ROUNDING)
        return any(self._buy(self._master.columns, index) for index in wanted)

    def _buy(self, columns: Patterns, index: int) -> bool:
        """One bin of a column, with as much of it as is left; whether that is anything, and there is such a bin."""
        bin_type, counts = int(columns.bin_types[index]), np.minimum(columns.counts[index], self._residual)
        if not counts.any() or self._available[bin_type] <= 0:
            return False
        self._patterns.append(Pattern(bin_type, counts))
        self._residual = self._residual - counts
        self._available = self._instance.after_buying(self._available, bin_type, 1)
        self._spent += float(self._instance.costs[bin_type])
        return True


def _generated(
    master: RestrictedMaster,
    pricing: PricingHeuristic,
    demands: Ints,
    available: Ints,
    rounds: int,
    random: np.random.Generator,
) -> MasterSolution | None:
    """The master's optimum for these demands, over all columns that so many rounds of pricing find."""
    pricing, least, stale = pricing.with_demands(demands), np.inf, 0
    for _ in range(rounds):
        solution = master.solve(demands, available)
        if solution is None:
            return None
        stale = 0 if solution.cost <= least * (1 - tuning.LITTLE_GAIN) else stale + 1
        least = min(least, solution.cost)
        if stale >= tuning.STALE_ROUNDS:
            break
        if not master.add_columns(pricing.of_negative_reduced_cost(master, solution, random)):
            break
    return master.solve(demands, available)
