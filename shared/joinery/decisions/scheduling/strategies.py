"""Other strategies than the usual one, each with whom it is for.

First-fit settles one class after another, and each choice of domains is final. What suits one class may leave the next
without a place, or make it dear. No single strategy is right for all, so a few are tried where they might help.

- Without DaemonSets: for spreads that count DaemonSets' pods. Often every domain gets as many nodes anyway.
- Dealt ahead of neighbours: for pods that must be near others and spread over zones too. The others go where few are.
- Closed to zones without neighbours: for the same pods, if those that they must be near are in some zones only.
- Closed to what is unbuyable: for pods that are left because a spread waits for a domain that nothing can be bought in.
- In small plans with pods left: cautious on hosts, neighbours next, gathered, backwards, shuffled. They may place more.
- In small plans, for the price, also where pods are left: where what fits is cheapest, or gathered, where pods were
  dealt to one domain rather than another without need; and more of that kind where the price is far above its bound.
- Dealt as the bound's proof would: in small plans, and in larger ones whose price is far above their bound.
"""

from collections.abc import Iterator
from dataclasses import replace

from joinery.decisions.scheduling.attempt import Attempt, Strategy
from joinery.decisions.scheduling.firstfit.options import (
    Manner,
    both_near_and_spread,
    manners_for_left,
    manners_for_much,
    manners_for_price,
    zones_without_neighbours,
)
from joinery.decisions.scheduling.firstfit.unforeseen import unbuyable

_SMALL = 40
"""Pods up to which strategies are tried that are seldom better:
a plan for more costs too much time to be made several times.
"""


def alternatives(strategy: Strategy, usual: Attempt) -> Iterator[Strategy]:
    """What to try for pods that a strategy, in its ``usual`` attempt, leaves or, if it leaves none, for a lower price.

    Most promising first.
    """
    left, work = tuple(usual.packer.left), usual.work
    if work.topology.counting_daemons:
        yield replace(strategy, manner=Manner(ignores_daemons=True))
    if any(both_near_and_spread(pod_class, work.topology) for pod_class in left):
        yield replace(strategy, manner=Manner(dealing="ahead"))
        if without_neighbours := zones_without_neighbours(work.possible, work.topology):
            yield replace(strategy, closed=without_neighbours)
    if out_of_reach := unbuyable(work, left, usual.packer.bought):
        yield replace(strategy, closed=strategy.closed | out_of_reach)
    if left and len(work.pending) <= _SMALL:
        yield from (replace(strategy, manner=manner) for manner in manners_for_left(left, work.topology))
    if not left:
        yield from cheaper_alternatives(strategy, usual)


def cheaper_alternatives(strategy: Strategy, usual: Attempt) -> Iterator[Strategy]:
    """What to try for a lower price alone, whether or not the ``usual`` attempt leaves pods."""
    if len(usual.work.pending) <= _SMALL:
        yield from (replace(strategy, manner=manner) for manner in manners_for_price(usual.packer.bought))
        if usual.is_far:
            yield from (replace(strategy, manner=manner) for manner in manners_for_much(usual.packer.bought))
    if (len(usual.work.pending) <= _SMALL or usual.is_far) and (dealt := usual.dealt_for_less):
        yield replace(strategy, dealt=dealt)


def repairs(attempt: Attempt) -> Iterator[Strategy]:
    """What to try for a packing that opened domains which a spread of its pods had not counted.

    Either they are counted from the start, or nothing is bought in them, where that is possible.
    """
    yield replace(attempt.strategy, unforeseen=attempt.unforeseen)
    if attempt.closable:
        yield replace(attempt.strategy, closed=attempt.closable)
