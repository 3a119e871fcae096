"""The most that the copies in one bin can be worth: branch and bound over how many of each item it holds.

A bin holds few copies of large items, and then this takes some hundred steps. Of many small items it would take
millions: after ``_STEPS`` of them what is known at the root is the answer, unless HiGHS is asked (``proven_content``),
which takes as long for every bin.
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

import numpy as np

from joinery.decisions.optimizer.arrays import Floats, Ints, Mask
from joinery.decisions.optimizer.instance.packing_instance import PackingInstance
from joinery.decisions.optimizer.linear.highs import Solver
from joinery.decisions.optimizer.linear.rows import RowWriter

_STEPS, _BRANCHES = 2_000, 50
#: What a value may be wrong by as a sum of floats, as a share of it.
_ROUNDING = 1e-9
#: A share of a value so small that it is not sought.
_ENOUGH = 5e-4
#: float64[blends, 1]: of the first resource, the rest of the second.
_BLENDS = np.array([[0.2], [0.4], [0.5], [0.6], [0.8]])


@dataclass(frozen=True, eq=False)
class Together:
    """What may share a bin. ``conflicts``: bool[items, items], the two never. ``members``: bool[items, limits], and
    ``caps``: int64[limits], so many copies of all members of a limit together.
    """

    conflicts: Mask
    members: Mask
    caps: Ints

    @classmethod
    def of(cls, instance: PackingInstance) -> "Together":
        """What is not said of each item alone (``PackingInstance.max_per_bin``)."""
        joint = np.flatnonzero(instance.limit_members.sum(axis=0) > 1)
        return cls(instance.foes, instance.limit_members[:, joint], instance.limit_caps[joint])

    def among(self, items: Ints) -> "Together":
        """The same of these items (indices), in this order."""
        members = self.members[items]
        joint = np.flatnonzero(members.sum(axis=0) > 1)
        return Together(self.conflicts[np.ix_(items, items)], members[:, joint], self.caps[joint])

    def allows(self, counts: Ints) -> bool:
        """Whether a bin may hold these copies (int64[items])."""
        there = counts > 0
        return not self.conflicts[np.ix_(there, there)].any() and bool((counts @ self.members <= self.caps).all())


@dataclass(frozen=True, eq=False)
class BestContent:
    """``value``: $/h that nothing in the bin exceeds, or what was asked for. ``counts``: int64[items], the best copies
    that were found; None if none are worth more than what was asked for. ``is_near``: whether the value is.
    """

    value: float
    counts: Ints | None
    is_near: bool = True


def best_content(prices: Floats, sizes: Ints, room: Ints, most: Ints, above: float, together: Together) -> BestContent:
    """What is worth most in a bin with so much ``room`` (int64[resources]), if it is worth more than ``above`` ($/h).

    ``prices``: float64[items], of a copy. ``sizes``: int64[items, resources]. ``most``: int64[items], copies at most.
    """
    items = np.flatnonzero((most > 0) & (prices > 0))
    if not len(items):
        return BestContent(max(above, 0.0), None)
    above = max(above, 0.0)
    worth, taken, order = _scarcest(prices[items], sizes[items] / np.maximum(room, 1), most[items])
    if worth <= above * (1 + _ENOUGH):
        # Nearly always: in the story of `make demo`, 11,756 times of 11,762.
        return BestContent(max(above, worth) * (1 + _ROUNDING), None)
    items = items[order]
    # Of a resource that all copies leave some of, nothing need be counted.
    scarce = np.flatnonzero(most[items] @ sizes[items] > room)
    search = _Search(
        prices=prices[items].tolist(),
        sizes=sizes[np.ix_(items, scarce)].tolist(),
        taken=taken[order].tolist(),
        most=most[items].tolist(),
        rules=_rules(together.among(items)),
        above=above,
    )
    value = search.run(room[scarce].tolist())
    if search.best is None:
        return BestContent(value, None, search.is_done)
    counts = np.zeros(len(prices), dtype=np.int64)
    counts[items] = search.best
    return BestContent(value, counts, search.is_done)


def proven_content(
    prices: Floats, sizes: Ints, room: Ints, most: Ints, above: float, together: Together
) -> BestContent:
    """The same by integer programming."""
    items, rows = np.flatnonzero((most > 0) & (prices > 0)), RowWriter()
    shares = sizes[items] / np.maximum(room, 1)
    for resource in np.flatnonzero(shares.any(axis=0)):
        rows.add(np.zeros(len(items), dtype=np.int64), np.arange(len(items)), shares[:, resource])
        rows.close_at_most(np.ones(1))
    among = together.among(items)
    for members, cap in zip(among.members.T, among.caps, strict=True):
        rows.add_row(members.astype(np.float64), float(cap))
    for one, other in np.argwhere(np.triu(among.conflicts)):
        # Necessary, and where at most one copy of each fits also enough.
        rows.add(np.zeros(2, dtype=np.int64), np.array([one, other]), 1 / most[items[[one, other]]])
        rows.close_at_most(np.ones(1))
    if not rows.height:
        return BestContent(max(above, float(prices[items] @ most[items])), most if len(items) else None)
    program = rows.program(-prices[items], most[items].astype(np.float64), integers=len(items))
    solver = Solver(program)
    copies = solver.solve_integer(_BRANCHES)
    value = max(above, -solver.integer_bound(_BRANCHES)) * (1 + _ROUNDING)
    counts = np.zeros(len(prices), dtype=np.int64)
    counts[items] = 0 if copies is None else np.round(copies)
    fits = bool((counts @ sizes <= room).all()) and together.allows(counts)
    is_better = fits and float(prices @ counts) > above
    return BestContent(value, counts if is_better else None)


def _scarcest(prices: Floats, shares: Floats, most: Ints) -> tuple[float, Floats, Ints]:
    """The blend of resources that bounds what is in the bin most: $/h of that bound; float64[items], the share of the
    blend that a copy takes; and the items (indices), those first that are worth most for what they take.

    Whatever fits takes no more of any blend than there is, so each blend is a knapsack of one resource, in fractions.
    """
    resources = shares.T
    first, second = resources[0], resources[min(1, len(resources) - 1)]
    taken = np.concatenate([resources, _BLENDS * first + (1 - _BLENDS) * second])
    order = np.argsort(-prices / np.maximum(taken, 1e-12), axis=1, kind="stable")
    of_a_copy, copies = np.take_along_axis(taken, order, axis=1), most[order]
    of_all = of_a_copy * copies
    left = 1.0 - (np.cumsum(of_all, axis=1) - of_all)
    worth = (np.clip(left / np.maximum(of_a_copy, 1e-12), 0, copies) * prices[order]).sum(axis=1)
    best = int(np.argmin(worth))
    return float(worth[best]), taken[best], order[best]


_Rules = tuple[list[int], list[tuple[list[int], int]]]


def _rules(together: Together) -> list[_Rules]:
    """By item, what ``_Search`` asks of the items before it."""
    before = np.tril(together.conflicts, -1)
    limits = [
        (np.flatnonzero(members), int(cap)) for members, cap in zip(together.members.T, together.caps, strict=True)
    ]
    return [
        (
            np.flatnonzero(conflicting).tolist(),
            [(members[members < item].tolist(), cap) for members, cap in limits if item in members],
        )
        for item, conflicting in enumerate(before)
    ]


@dataclass
class _Search:
    """``above``: what the content must be worth more than. ``taken``: the share of the scarcest blend that a copy
    takes. ``rules``: of each item, those before it that it conflicts with, and its limits: the members before it, and
    the cap. ``best``: the best that was found, None if none is.
    """

    prices: list[float]
    sizes: list[list[int]]
    taken: list[float]
    most: list[int]
    rules: list[_Rules]
    above: float
    best: list[int] | None = None
    is_done: bool = False
    _steps: int = 0
    _left_out: float = 0.0

    def __post_init__(self) -> None:
        #: What all copies of the items before each one take of the blend, and what they are worth.
        self._taken_before: list[float] = [0.0, *accumulate(map(mul, self.taken, self.most))]
        self._worth_before: list[float] = [0.0, *accumulate(map(mul, self.prices, self.most))]

    def run(self, room: list[int]) -> float:
        """$/h that nothing in the room exceeds, or ``above``."""
        root = max(self.above, self._at_most(0, 1.0))
        self._branch(0, room, 1.0, 0.0, [0] * len(self.prices))
        self.is_done = self._steps <= _STEPS
        bound = max(self.above, self._left_out) if self.is_done else root
        return bound * (1 + _ROUNDING)

    def _at_most(self, item: int, blend: float) -> float:
        """What copies from this item on are worth at most in so much of the blend: fractions of the densest."""
        until = self._taken_before[item] + blend
        last = bisect_left(self._taken_before, until, item + 1) - 1
        worth = self._worth_before[last] - self._worth_before[item]
        if last == len(self.prices) or self.taken[last] <= 0:
            return worth
        return worth + self.prices[last] * (until - self._taken_before[last]) / self.taken[last]

    def _let_in(self, item: int, counts: list[int]) -> int:
        """How many copies there may be beside those of the items before it."""
        conflicting, limits = self.rules[item]
        most = self.most[item]
        if conflicting and any(counts[other] for other in conflicting):
            return 0
        for members, cap in limits:
            most = min(most, cap - sum(counts[other] for other in members))
        return max(0, most)

    def _branch(self, item: int, room: list[int], blend: float, value: float, counts: list[int]) -> None:
        """The most copies of the item first; without any it goes on with the next one."""
        while True:
            if value > self.above:
                self.above, self.best = value, counts.copy()
            self._steps += 1
            if self._steps > _STEPS:
                return
            most = value + self._at_most(item, blend)
            if most <= self.above * (1 + _ENOUGH):
                self._left_out = max(self._left_out, most)
                return
            sizes, taken, price = self.sizes[item], self.taken[item], self.prices[item]
            fitting = self._let_in(item, counts)
            for have, size in zip(room, sizes, strict=True):
                if size and have // size < fitting:
                    fitting = have // size
            for count in range(fitting, 0, -1):
                counts[item] = count
                left = [have - count * size for have, size in zip(room, sizes, strict=True)]
                self._branch(item + 1, left, max(blend - count * taken, 0.0), value + count * price, counts)
            counts[item] = 0
            item += 1
