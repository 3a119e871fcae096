"""How near a plan is to the best possible, in sentences that are true and no more than that. One place, so that table and page agree."""

from collections.abc import Iterator

from joinery.cli.figures import TELLING, money
from joinery.scheduling.packing import Packing

_TOLD = 0.0005
"""Less than that is nothing, of a tenth of a percent."""


def nearness(packing: Packing) -> Iterator[str]:
    """Of a plan that buys something: what is proven, what preferences cost of it, and why a weak bound is weak."""
    yield f"Proven lower bound {money(packing.lower_bound)}/h{_within(packing)}"
    preferences = packing.kept_bound / packing.lower_bound - 1 if packing.lower_bound > 0 else 0.0
    if packing.gap < TELLING and preferences >= _TOLD:
        yield f"Preferences kept cost at least {preferences:.1%} of that{_with_them(packing.kept_gap)}"
    if packing.weaknesses and packing.gap < TELLING:
        yield f"The bound is weak here: {'; '.join(packing.weaknesses)}"


def _within(packing: Packing) -> str:
    if packing.gap >= TELLING:
        return ""
    if packing.gap < _TOLD:
        return ": nothing cheaper is possible"
    return f": at most {packing.gap:.1%} above the best possible"


def _with_them(gap: float) -> str:
    return ": with them nothing is cheaper" if gap < _TOLD else f": with them at most {gap:.1%} above the best"
