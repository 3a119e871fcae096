"""How hard to search. Counted in work that a machine of any speed does alike, so that one problem gives one answer."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from joinery.decisions.optimizer.instance.packing_instance import PackingInstance, is_little
from joinery.decisions.optimizer.linear.highs import Patience
from joinery.objects.answers import Answers

#: Part of the allowance that an instance of some hundred copies has. A second half saves a seventh of a percent, for a
#: third more time. Where copies are few, one bin is a percent; where they are thousands, a percent is worth the time.
_OF_MIDDLING_PLANS = 0.5
#: From so many copies on they count as thousands.
_THOUSANDS = 2_000
#: Rounds of column generation that each part of an instance may take. With half as many 15 parts of 1,000 pods cost a
#: third of a percent more, with five times as many a tenth less, in twice the time.
_LEAST_ROUNDS = 12
#: Seconds for which pods are placed however late it is when that begins: else a run that takes long to begin would
#: place none, and the next one likewise.
_LEAST_PLACING = 0.15
#: The same as a share of the time until placing first began: a processor that many share is as slow afterwards.
_SHARE = 0.2
#: Seconds that follow for each pod on a new node, each new node, and each that is like no other: launch and check. Pods
#: that no rule is about take a tenth of that, but what follows for all of them never takes longer than to place them.
_TO_FOLLOW = (0.00006, 0.0001, 0.001)
#: Seconds for the same, if other nodes are built in their place before that.
_TO_REBUILD = (0.0001, 0.0001, 0.002)


Answer = TypeVar("Answer")


@dataclass(kw_only=True)
class Effort:
    """What a search may use up.

    ``pricing_rounds``: rounds of column generation at most. ``repairs``: tries of local search at most.
    ``allowance``: work for improving one instance, about milliseconds of a slow core; some hundred copies have half of
    it. Dives and local search end when it is used up.
    ``seed``: of everything random.
    ``is_time_up``: the caller's stopwatch. Once it says yes, the best packing so far is the answer, and ``struck``
    tells that it did. None for no limit.
    ``stopwatch``: seconds; ``placing_ends``: what it shows when pods without a place get none any more.
    ``rounds``: of column generation that the instance which is being improved may take.
    ``answers``: what was found before, by whoever asked with as much to use up.
    ``bought``: pods on new nodes by now, those nodes, and how many of them are like no other; what follows for them is
    part of the time.
    """

    pricing_rounds: int = 60
    repairs: int = 40
    allowance: float = 300.0
    seed: int = 0
    is_time_up: Callable[[], bool] | None = None
    stopwatch: Callable[[], float] = lambda: 0.0
    placing_ends: float = math.inf
    answers: Answers = field(default_factory=Answers)
    bought: tuple[int, int, int] = field(default=(0, 0, 0), init=False)
    _is_rebuilding: bool = field(default=False, init=False)
    _placing_took: float = field(default=0.0, init=False)
    rounds: int = field(default=0, init=False)
    struck: bool = field(default=False, init=False)
    _is_late: bool = field(default=False, init=False)
    _is_undivided: bool = field(default=False, init=False)
    _began: float = field(default=0.0, init=False)
    _first: float = field(default=math.inf, init=False)
    _left: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._began = self.stopwatch()
        self.rounds = self.pricing_rounds

    @classmethod
    def until(
        cls,
        limit: float | None,
        stopwatch: Callable[[], float],
        seed: int,
        grace: float = math.inf,
        *,
        answers: Answers | None = None,
    ) -> "Effort":
        """That ends when the stopwatch (seconds) has reached the limit, if there is one.

        Pods are placed for so many seconds (``grace``) longer, without improving anything.
        """
        answers = answers or Answers()
        if limit is None:
            return cls(seed=seed, answers=answers)
        return cls(
            seed=seed,
            answers=answers,
            is_time_up=lambda: stopwatch() >= limit,
            stopwatch=stopwatch,
            placing_ends=limit + grace,
        )

    def begin(self, instance: PackingInstance, share: float = 1.0) -> None:
        """Start improving an instance, with its whole allowance, or with its share of that."""
        is_middling = not is_little(instance) and instance.demands.sum() < _THOUSANDS
        self.rounds = min(self.pricing_rounds, max(_LEAST_ROUNDS, int(self.pricing_rounds * share)))
        self._left = share * self.allowance * (_OF_MIDDLING_PLANS if is_middling else 1.0)

    def use(self, instance: PackingInstance) -> None:
        """Note a round of rounding, or of repairing: solving the relaxation once, and filling bins."""
        # Measured: a millisecond, and one more for each 150 pairs of an item and a bin type.
        self._left -= 1.0 + instance.compatible.size / 150

    def is_over(self) -> bool:
        """Whether time is up, or will be when the nodes that are bought are built and checked."""
        if not self.struck and self.is_time_up is not None:
            self.struck = self.is_time_up() or self._has_no_time_left()
        return self.struck

    def begin_placing(self) -> None:
        """Pods are about to be placed: there is time for some of them, however late it is."""
        if not math.isinf(self.placing_ends):
            now = self.stopwatch()
            self._first = min(self._first, now)
            least = max(_LEAST_PLACING, _SHARE * (self._first - self._began))
            self.placing_ends = max(self.placing_ends, now + self._to_follow + least)
            self._is_late = False

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        """What is bought by now is being improved: others will be built in its place."""
        self._is_rebuilding, self._placing_took = True, self.stopwatch() - self._first
        try:
            yield
        finally:
            self._is_rebuilding = False

    @contextmanager
    def undivided(self) -> Iterator[None]:
        """Whatever is placed meanwhile is placed to its end: half of it would be wrong."""
        before, self._is_undivided = self._is_undivided, True
        try:
            yield
        finally:
            self._is_undivided = before

    def is_late(self) -> bool:
        """Whether it is too late to place anything more."""
        if self._is_undivided:
            return False
        if not self._is_late:
            self._is_late = self._has_no_time_left()
            self.struck |= self._is_late
        return self._is_late

    def _has_no_time_left(self) -> bool:
        return not math.isinf(self.placing_ends) and self.stopwatch() + self._to_follow >= self.placing_ends

    @property
    def _to_follow(self) -> float:
        per_pod, per_node, per_different = _TO_REBUILD if self._is_rebuilding else _TO_FOLLOW
        pods, nodes, different = self.bought
        took = self._placing_took if self._is_rebuilding else self.stopwatch() - self._first
        return min(pods * per_pod + nodes * per_node, max(took, 0.0)) + different * per_different

    def patience(self, work: int | None = None) -> Patience:
        """How long a linear program may take: until time is up, or until it has taken so much work."""
        return Patience(work=work, is_time_up=None if self.is_time_up is None else self.is_over)

    def once(self, question: bytes, answer: Callable[[], Answer], size: int) -> Answer:
        """The answer to a question that always has the same one, found when it is first asked. One that time cut short
        is not kept. ``size``: about how many bytes it takes.
        """
        asked = question, self.seed, self.pricing_rounds, self.repairs, self.allowance
        kept: Answer | None = self.answers.find(asked)
        if kept is not None:
            return kept
        found = answer()
        if not self.is_over():
            self.answers.keep(asked, found, size)
        return found

    def is_spent(self) -> bool:
        """Whether improving should end."""
        return self._left <= 0 or self.is_over()
