"""How near a plan is to the best possible, in sentences that are true and no more than that.

One place, so that table and page agree.
"""

from collections.abc import Iterator

from joinery.decisions.scheduling.packing import Kept, Packing
from joinery_cli.view.figures import MOST_GAP, NEGLIGIBLE, ONE_PRICE, money

_WHOSE = {
    Kept.PREFERENCES: "Pods' preferences",
    Kept.WEIGHTS: "NodePools' weights",
    Kept.SHARES: "Shares on demand",
    Kept.SIZES: "Nodes' sizes",
}


def nearness(packing: Packing) -> Iterator[str]:
    """Of a plan that buys something: what is proven, what of the gap is due to preferences, weights and node sizes, and
    why a weak bound is weak.
    """
    # One price is shown as one figure: two sums of it may be rounded to either side.
    bound = packing.paid if packing.gap < ONE_PRICE else packing.lower_bound
    subject = " of what is paid" if packing.covered > 0 else ""
    yield f"Proven lower bound{subject} {money(bound)}/h{_within(packing)}"
    of_kept, above = packing.kept_bound - packing.lower_bound, packing.paid - packing.lower_bound
    if packing.gap < MOST_GAP and of_kept > NEGLIGIBLE * packing.lower_bound:
        part = min(of_kept / above, 1.0)
        costs = (f"{_WHOSE[one]} cost about {money(cost)}/h" for one, cost in packing.kept.items() if cost > 0)
        yield f"{' and '.join(costs)}, {_part(part)} of that: with them kept, {_with_them(packing.kept_gap)}"
    if packing.weaknesses and packing.gap < MOST_GAP:
        yield f"The bound is weak here: {'; '.join(packing.weaknesses)}"


def _within(packing: Packing) -> str:
    if packing.gap >= MOST_GAP:
        return ""
    if packing.gap < ONE_PRICE or (packing.gap < NEGLIGIBLE and money(packing.lower_bound) == money(packing.paid)):
        return ": nothing cheaper is possible"
    if packing.gap < NEGLIGIBLE:
        return ": less than 0.1% above the best possible"
    return f": at most {packing.gap:.1%} above the best possible"


def _part(part: float) -> str:
    return "all" if part > 1 - NEGLIGIBLE else f"at least {part:.0%}"


def _with_them(gap: float) -> str:
    return "nothing is cheaper" if gap < NEGLIGIBLE else f"at most {gap:.1%} above the best"
