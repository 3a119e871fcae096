"""The cheapest bins of listed patterns, in whole numbers: branch and bound with a proof at every leaf.

The method is Land and Doig's (1960, "An automatic method of solving discrete programming problems"). A branch splits
the packings into those with up to some number of bins of a kind and those with more, so together the leaves cover every
packing, and the least of their bounds is a bound on the whole.

What is loose about fractions is that a bin is whole. So branches are first on how many bins of some size and more there
are, then on how copies are dealt out over zones, then on what is on bins. A branch on one pattern alone hardly changes
anything, since another like it takes its place. Vance (1998, "Branch-and-price algorithms for the one-dimensional
cutting stock problem") compares ways to branch. From the best leaf the search goes down to the end, which finds
packings; then it goes on from the best leaf again.

HiGHS over the same patterns solves few of these programs: it takes its time for cuts and heuristics of its own, and
knows no sums to branch on. Where patterns are few it finds packings that take long here: of equal copies, which may be
dealt out in many ways at the same cost.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.bounds.pattern_program import CLOSE, Branches, PatternProgram
from joinery.decisions.optimizer.instance.patterns import Pattern
from joinery.decisions.optimizer.instance.side_constraints import ConstrainedInstance

#: A number of bins so near to a whole one is one.
_WHOLE = 1e-6
#: Patterns that the first program has.
_BEGUN_WITH = 100
#: No more than that are given to HiGHS to find a packing.
_FEW_PATTERNS = 300


@dataclass(frozen=True, eq=False)
class Cheapest:
    """``bound``: no packing of these patterns costs less than this, or the cutoff. ``cost``: of ``packing``, or the
    cutoff if none that is cheaper was found. ``solves``: linear programs that it took.
    """

    bound: float
    cost: float
    packing: tuple[Pattern, ...] | None
    solves: int


@dataclass(order=True)
class _Leaf:
    """An open leaf of the tree. Leaves compare by bound, then by age, so that the search is deterministic."""

    bound: float
    number: int
    branches: Branches = field(compare=False)
    values: Floats = field(compare=False)
    is_complete: bool = field(compare=False)


class BranchAndBound:
    """The search over ``patterns``, the most promising of which come first. ``cutoff``: $/h of a known packing, what
    costs as much is of no interest.

    ``solves``: so many linear programs may be solved, about. Work is counted, not timed, so that plans are the same
    everywhere.
    """

    def __init__(self, program: PatternProgram, solves: int, *, is_thorough: bool = True) -> None:
        constrained = program.constrained
        self._program, self._is_thorough = program, is_thorough
        program.activate_first(_BEGUN_WITH)
        self._bins: Ints = np.flatnonzero(program.bin_types >= 0)
        # Copies of each demand that are on a bin of a listed pattern.
        self._contents = program.counts @ (constrained.demand_of[:, None] == np.arange(len(constrained.demands)))
        self._contents[: program.first_pattern] = 0
        self._sums = _sums_of_bins(constrained, np.unique(program.bin_types[self._bins]))
        self._are_dealt = constrained.limits_items
        self._solves, self._cost, self._numbers = solves, program.cutoff, 0
        self._best: tuple[Pattern, ...] | None = None
        # What is left unsolved may cost no more than that.
        self._unsolved = program.cutoff

    def solve(self) -> Cheapest:
        """The cheapest packing, or the best bound that the allowed work proves."""
        leaves = [leaf] if (leaf := self._leaf({}, 0.0)) else []
        while leaves and not self._is_dear(leaves[0].bound) and self._program.solves < self._solves:
            leaves += self._dived(heapq.heappop(leaves))
            heapq.heapify(leaves)
        if self._is_thorough and leaves and not self._is_dear(leaves[0].bound) and self._program.size <= _FEW_PATTERNS:
            self._try_all_at_once()
        bound = min(self._cost, self._unsolved, leaves[0].bound if leaves else self._cost)
        return Cheapest(bound, self._cost, self._best, self._program.solves)

    def _try_all_at_once(self) -> None:
        """A packing that HiGHS finds."""
        values = self._program.whole(self._cost * (1 - CLOSE))
        if values is not None:
            self._take(values)

    def _take(self, values: Floats) -> bool:
        """Take these whole numbers for the best packing, if they are one."""
        packing, cost = self._program.packing(values), float(self._program.costs @ np.round(values))
        if packing is not None and not self._is_dear(cost):
            self._cost, self._best = cost, packing
        return packing is not None

    def _is_dear(self, bound: float) -> bool:
        return bound >= self._cost * (1 - CLOSE)

    def _dived(self, leaf: _Leaf) -> Iterator[_Leaf]:
        """The leaves that are left beside the way down from this one."""
        below: _Leaf | None = leaf
        while below is not None:
            leaf, below = below, None
            if self._program.solves >= self._solves:
                yield leaf
                break
            branch = self._branch(leaf)
            if branch is None:
                self._end(leaf)
                break
            children = sorted(filter(None, (self._leaf(branches, leaf.bound) for branches in branch)))
            below = children[0] if children else None
            yield from children[1:]

    def _end(self, leaf: _Leaf) -> None:
        """A leaf in whole numbers: a packing, unless it leaves out some copy."""
        if not leaf.is_complete or not self._take(leaf.values):
            self._unsolved = min(self._unsolved, leaf.bound)

    def _leaf(self, branches: Branches, parent_bound: float) -> _Leaf | None:
        """Solve the program between these branches; None if nothing below the known cost is there."""
        solution = self._program.solve(branches)
        if solution is None:
            self._unsolved = min(self._unsolved, parent_bound)
            return None
        self._numbers += 1
        bound = max(parent_bound, solution.bound)
        if self._is_dear(bound):
            return None
        return _Leaf(bound, self._numbers, branches, solution.values, solution.is_complete)

    def _branch(self, leaf: _Leaf) -> tuple[Branches, Branches] | None:
        """The leaf's packings with fewer bins of some kind, and those with more; None if all bins are whole."""
        for numbers, counted in self._kinds(leaf.values):
            distance = np.abs(numbers - np.round(numbers))
            for kind in np.argsort(-distance, kind="stable"):
                if distance[kind] <= _WHOLE:
                    break
                of_kind = counted(int(kind)).astype(np.int16).tobytes()
                low, high = leaf.branches.get(of_kind, (-np.inf, np.inf))
                below = min(max(float(np.floor(numbers[kind] + _WHOLE)), low), high - 1)
                if low <= below:
                    return {**leaf.branches, of_kind: (low, below)}, {**leaf.branches, of_kind: (below + 1, high)}
        return None

    def _kinds(self, values: Floats) -> Iterator[tuple[Floats, Callable[[int], Mask | Ints]]]:
        """How many bins, or copies, there are of each kind, and what each column counts for one. The kinds to branch on
        first come first.
        """
        program, bins, every = self._program, self._bins, np.arange(len(values))
        by_type = np.bincount(program.bin_types[bins], weights=values[bins], minlength=self._sums.shape[1])
        yield (
            (self._sums @ by_type).astype(np.float64),
            lambda kind: (program.bin_types >= 0) & self._sums[kind][program.bin_types],
        )
        if self._are_dealt:
            # How many copies are in each zone.
            yield values @ program.counts, lambda kind: program.counts[:, kind]
        # What is on bins of listed patterns.
        counts, used = self._contents.T, np.flatnonzero(values > 0)
        here, most = counts[:, used], int(counts.max(initial=0))
        at_least = np.array([(here >= copies) @ values[used] for copies in range(1, most + 1)])
        yield at_least.ravel(), lambda kind: counts[kind % len(counts)] >= kind // len(counts) + 1
        beside = ((here > 0) * values[used]) @ (here > 0).T
        yield beside.ravel(), lambda kind: (counts[kind % len(counts)] > 0) & (counts[kind // len(counts)] > 0)
        yield values, lambda kind: every == kind


def _sums_of_bins(constrained: ConstrainedInstance, used: Ints) -> Mask:
    """bool[kinds, bin types]: bins of some size and more, all or those that admit the same items; and of each type.
    ``used``: bin types (indices) that there may be bins of.
    """
    instance = constrained.instance
    # A size is a cost, to a power of two.
    sizes = np.round(np.log2(np.maximum(instance.costs, 1e-9)))
    _, group = np.unique(instance.compatible, axis=1, return_inverse=True)
    is_used = np.isin(np.arange(len(sizes)), used)
    kinds = [is_used & (sizes >= size) for size in np.unique(sizes[used])]
    kinds += [kind & (group.ravel() == number) for number in np.unique(group.ravel()[used]) for kind in kinds]
    kinds += [np.arange(len(sizes)) == one for one in used]
    distinct: Mask = np.unique(np.array(kinds), axis=0)
    return distinct
