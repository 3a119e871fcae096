"""How hard to search. Counted in work that a machine of any speed does alike, so that one problem gives one answer."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from joinery.optimizer.instance.packing_instance import PackingInstance, is_little
from joinery.optimizer.linear.patience import Patience

_OF_MIDDLING_PLANS = 0.5
"""Part of the allowance that an instance of some hundred copies has. A second half saves a seventh of a percent, for a
third more time. Where copies are few, one bin is a percent; where they are thousands, a percent is worth the time.
"""
_THOUSANDS = 2_000
"""From so many copies on they count as thousands."""


@dataclass(kw_only=True)
class Effort:
    """What a search may use up.

    ``pricing_rounds``: rounds of column generation at most. ``repairs``: tries of local search at most.
    ``allowance``: work for improving one instance, about milliseconds of a slow core; some hundred copies have half of
    it. Dives and local search end when it is used up.
    ``seed``: of everything random.
    ``is_time_up``: the caller's stopwatch. Once it says yes, the best packing so far is the answer, and ``struck``
    tells that it did. None for no limit.
    ``is_placing_over``: likewise; once it says yes, what has no place by then gets none.
    """

    pricing_rounds: int = 60
    repairs: int = 40
    allowance: float = 300.0
    seed: int = 0
    is_time_up: Callable[[], bool] | None = None
    is_placing_over: Callable[[], bool] | None = None
    struck: bool = field(default=False, init=False)
    _is_late: bool = field(default=False, init=False)
    _left: float = field(default=0.0, init=False)

    @classmethod
    def until(cls, limit: float | None, stopwatch: Callable[[], float], seed: int, grace: float = math.inf) -> "Effort":
        """That ends when the stopwatch (seconds) has reached the limit, if there is one.

        Pods are placed for so many seconds (``grace``) longer, without improving anything.
        """
        if limit is None:
            return cls(seed=seed)
        return cls(
            seed=seed,
            is_time_up=lambda: stopwatch() >= limit,
            is_placing_over=None if math.isinf(grace) else lambda: stopwatch() >= limit + grace,
        )

    def begin(self, instance: PackingInstance) -> None:
        """Start improving an instance, with its whole allowance."""
        is_middling = not is_little(instance) and instance.demands.sum() < _THOUSANDS
        self._left = self.allowance * (_OF_MIDDLING_PLANS if is_middling else 1.0)

    def use(self, instance: PackingInstance, *, rounds: int = 1) -> None:
        """Note so many rounds of rounding, or what takes as long: solving the relaxation once, and filling bins."""
        # Measured: a millisecond, and one more for each 150 pairs of an item and a bin type.
        self._left -= rounds * (1.0 + instance.compatible.size / 150)

    def is_over(self) -> bool:
        """Whether the stopwatch says that time is up."""
        if not self.struck and self.is_time_up is not None:
            self.struck = self.is_time_up()
        return self.struck

    def is_late(self) -> bool:
        """Whether it is too late to place anything more."""
        if not self._is_late and self.is_placing_over is not None:
            self._is_late = self.is_placing_over()
            self.struck |= self._is_late
        return self._is_late

    def patience(self, work: int | None = None) -> Patience:
        """How long a linear program may take: until time is up, or until it has taken so much work."""
        return Patience(work=work, is_time_up=None if self.is_time_up is None else self.is_over)

    def is_spent(self) -> bool:
        """Whether improving should end."""
        return self._left <= 0 or self.is_over()
