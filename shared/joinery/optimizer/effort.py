"""How hard to search. Counted in work that a machine of any speed does alike, so that one problem gives one answer."""

from collections.abc import Callable
from dataclasses import dataclass, field

from joinery.optimizer.instance.packing_instance import PackingInstance


@dataclass(kw_only=True)
class Effort:
    """``pricing_rounds``: how often patterns are sought at most; ``repairs``: of local search, which ends when ``allowance`` (about
    milliseconds of a slow core) is used up, as buying whole patterns in other ways does. ``is_time_up``: the caller's stopwatch;
    once it says so, the best packing so far is the answer, and ``struck`` says that it did.
    """

    pricing_rounds: int = 60
    repairs: int = 40
    allowance: float = 300.0
    seed: int = 0
    is_time_up: Callable[[], bool] = lambda: False
    struck: bool = field(default=False, init=False)
    _left: float = field(default=0.0, init=False)

    def begin(self) -> None:
        """Start on a instance, with the whole allowance."""
        self._left = self.allowance

    def use(self, instance: PackingInstance) -> None:
        """Note one round over a instance: solving its program again, and filling nodes."""
        self._left -= 1.0 + instance.compatible.size / 150

    def is_over(self) -> bool:
        """Whether the stopwatch says that time is up."""
        self.struck = self.struck or self.is_time_up()
        return self.struck

    def is_spent(self) -> bool:
        """Whether improving should end."""
        return self._left <= 0 or self.is_over()
