"""From a packing to a cheaper one by column generation: seek patterns that the master problem would rather buy, then
dive.

The method is Gilmore and Gomory's (1961 and 1963, "A linear programming approach to the cutting-stock problem", parts
I and II). Vance, Barnhart, Johnson and Nemhauser (1994, "Solving binary cutting stock problems by column generation
and branch-and-bound") went on to whole numbers by branching. Here there is no time to branch, and pricing is
heuristic, so the master's optimum is no bound: bounds are proven elsewhere (``bounds``).

The duals of a master with few columns lead anywhere. They are held in a box around the assignment relaxation's, which
are nearly right (``master``), and the box is widened when the search at the present width dries up.
"""

from collections.abc import Callable

import numpy as np

from joinery.decisions.optimizer import tuning
from joinery.decisions.optimizer.arrays import Ints
from joinery.decisions.optimizer.columns.diving import PartialPacking, dive
from joinery.decisions.optimizer.columns.master import MasterSolution, RestrictedMaster
from joinery.decisions.optimizer.columns.pricing import PricingHeuristic
from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.instance.patterns import Pattern, Patterns, cost_of
from joinery.decisions.optimizer.relaxation.merged_duals import MergedDuals

#: Bins for residual demands (int64[items]), from what is available (int64[bin types]), that cost less than so many $/h;
#: or None.
Finish = Callable[[Ints, Ints, float], list[Pattern] | None]


def generate_and_dive(
    instance: PackingInstance,
    duals: MergedDuals,
    best: list[Pattern],
    finish: Finish,
    effort: Effort,
    random: np.random.Generator,
    known: Patterns | None = None,
) -> tuple[list[Pattern], Patterns]:
    """A packing of the same items that costs no more than ``best``, and the columns that it was chosen from. ``finish``
    packs the few items that dives leave. ``known``: columns; with these none are generated.
    """
    master = RestrictedMaster(instance, duals.item_duals)
    master.add_columns(
        Patterns(np.array([pattern.bin_type for pattern in best]), np.array([pattern.counts for pattern in best]))
    )
    if known is not None:
        master.add_columns(known)
        solution = master.solve(instance.demands, instance.available)
    else:
        solution = _generate(instance, master, duals, effort, random)
    if solution is None:
        return best, master.columns
    start = PartialPacking(instance, (), instance.demands, instance.available).with_whole(master.columns, solution)
    for threshold in tuning.DIVE_THRESHOLDS:
        packing = dive(master, start, threshold)
        # A little less than is left of the best cost, so that an equal packing does not replace it.
        below = cost_of(instance, best) * (1 - 1e-9) - cost_of(instance, packing.patterns)
        rest = finish(packing.residual, packing.available, below) if packing.residual.any() else []
        if rest is not None and cost_of(instance, rest) < below:
            best = [*packing.patterns, *rest]
        if cost_of(instance, best) <= solution.cost * tuning.GOOD_ENOUGH or effort.is_spent():
            break
    return best, master.columns


def _generate(
    instance: PackingInstance,
    master: RestrictedMaster,
    duals: MergedDuals,
    effort: Effort,
    random: np.random.Generator,
) -> MasterSolution | None:
    """The master's optimum over all columns that were found; None if time was up."""
    near = np.flatnonzero(duals.reduced_costs <= tuning.NEAR_FOR_GENERATION * instance.costs)
    pricing = PricingHeuristic(instance, instance.sizes @ duals.capacity_duals.T, near)
    widths = iter(tuning.BOX_WIDTHS)
    width, before = next(widths), np.inf
    for _ in range(effort.rounds):
        solution = master.solve(instance.demands, instance.available, width)
        if solution is None or effort.is_over():
            return None
        fresh = master.add_columns(pricing.of_negative_reduced_cost(master, solution, random))
        most = before - tuning.LITTLE_GAIN * abs(solution.objective)
        is_slow = fresh < tuning.FEW_NEW_COLUMNS or solution.objective > most
        before = solution.objective
        if is_slow:
            width, before = next(widths, 0.0), np.inf
            if not width:
                break
    return master.solve(instance.demands, instance.available)
