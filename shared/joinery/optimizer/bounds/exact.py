"""The least that a small constrained can cost: proven, and often with the nodes that cost just that.

Three looks, each at what the one before has left. The placement program (``placement``) proves a bound with fractions of nodes. At its
prices a kind, or an item on a kind, that costs more than the gap to the best plan known is in no better one. If the nodes that could be
in one can be listed (``enumeration``), a program over them knows what really fits on a node; if not, whole numbers of nodes are
sought in the placement program.
"""

from dataclasses import dataclass

import numpy as np

from joinery.optimizer.arrays import Floats, Ints, Mask
from joinery.optimizer.bounds.branch_and_bound import CLOSE, BranchAndBound, IntegerProgram
from joinery.optimizer.bounds.compact import CompactFormulation
from joinery.optimizer.bounds.duality import dual_feasible, reduced_costs
from joinery.optimizer.bounds.enumeration import TooManyPatternsError, enumerate_patterns, pattern_duals
from joinery.optimizer.bounds.pattern_program import PatternFormulation
from joinery.optimizer.instance.patterns import Pattern, Patterns
from joinery.optimizer.instance.side_constraints import ConstrainedInstance

SMALL_PAIRS = 4_000
"""Tasks of no more pairs of an item and a kind that admits it are small."""
SMALL_DEMAND = 200
_ALLOWANCE = 150.0
"""About milliseconds of a slow core that branching may take."""
_PACE = 250
"""So many coefficients does a slow core solve again in a millisecond."""
_FEWEST = 4


@dataclass(frozen=True, eq=False)
class ExactResult:
    """Nothing costs less than ``bound``. ``patterns``: nodes that cost just that, if they cost less than the plan that was known and were
    found. ``is_tight``: either the plan that was known or other nodes cost just that.
    """

    bound: float
    patterns: tuple[Pattern, ...] | None = None
    is_tight: bool = False


def is_small(constrained: ConstrainedInstance) -> bool:
    """Whether an answer is worth the time: a node more or less is a large part of a plan for few pods."""
    return int(constrained.demands.sum()) <= SMALL_DEMAND and int(constrained.instance.compatible.sum()) <= SMALL_PAIRS


def solve_exactly(constrained: ConstrainedInstance, cutoff: float, *, is_thorough: bool = True) -> ExactResult:
    """The least that the constrained can cost, or as much as could be proven of it; ``cutoff``: the price of a plan that is known.
    ``is_thorough``: also where nodes cannot be listed.
    """
    placement, prover = _looked_at(constrained, cutoff)
    bound = prover.solve_root()
    if bound >= cutoff * (1 - CLOSE):
        return ExactResult(bound, is_tight=True)
    bin_types, admits = _left(placement, prover.duals, cutoff - bound)
    some = constrained.restrict(bin_types, admits)
    placement, prover = _looked_at(some, cutoff)
    bound = min(max(bound, prover.solve_root()), cutoff)
    try:
        listed = enumerate_patterns(placement, pattern_duals(placement, prover.duals))
    except TooManyPatternsError:
        return ExactResult(max(bound, prover.solve().bound) if is_thorough else bound)
    answer = _over_patterns(some, listed, cutoff)
    patterns = answer.patterns and tuple(
        Pattern(int(bin_types[pattern.bin_type]), pattern.counts, pattern.copies) for pattern in answer.patterns
    )
    return ExactResult(max(bound, answer.bound), patterns, answer.is_tight)


def _looked_at(constrained: ConstrainedInstance, cutoff: float) -> tuple[CompactFormulation, BranchAndBound]:
    placement = CompactFormulation(constrained, cutoff)
    return placement, _prover(placement.program, cutoff)


def _prover(question: IntegerProgram, cutoff: float) -> BranchAndBound:
    return BranchAndBound(question, cutoff, max(_FEWEST, int(_ALLOWANCE * _PACE / len(question.relaxation.values))))


def _left(placement: CompactFormulation, prices: Floats, gap: float) -> tuple[Ints, Mask]:
    """The kinds that could be in a better plan, and what they could hold there: one node, or one pod, may not cost the gap."""
    program = placement.program.relaxation
    beyond = reduced_costs(program, dual_feasible(program, prices))
    bin_types: Ints = np.flatnonzero(beyond[: placement.bin_type_count] <= gap * (1 + 1e-6) + 1e-9)
    admits = np.zeros(placement.constrained.instance.compatible.shape, dtype=np.bool_)
    near = beyond[placement.bin_type_count : placement.bin_type_count + placement.pair_count] <= gap * (1 + 1e-6) + 1e-9
    admits[placement.items[near], placement.bin_types[near]] = True
    return bin_types, admits[:, bin_types]


def _over_patterns(constrained: ConstrainedInstance, listed: Patterns, cutoff: float) -> ExactResult:
    """The least price of these nodes, in whole numbers."""
    program = PatternFormulation(constrained, listed, cutoff)
    proof = _prover(program.program, cutoff).solve()
    if proof.bound >= cutoff * (1 - CLOSE):
        return ExactResult(proof.bound, is_tight=True)
    nodes = None if proof.values is None else program.patterns(proof.values)
    return ExactResult(proof.bound, nodes, nodes is not None)
