"""The curve of cost against evictions falls, and the chosen point is on it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.disruption.consolidation.curve import merged
from joinery.decisions.disruption.decision import CurvePoint
from tests.properties import examples

_POINT = st.builds(CurvePoint, st.integers(0, 9), st.integers(1, 9).map(float))
_POINTS = st.lists(_POINT, max_size=8)


@given(points=_POINTS, chosen=_POINT.map(lambda point: replace(point, is_chosen=True)))
@examples(100)
def test_more_evictions_always_cost_less(points: list[CurvePoint], chosen: CurvePoint) -> None:
    """Whatever was looked at."""
    curve = merged((*points, chosen), ())
    assert chosen in curve
    assert [point.pods for point in curve] == sorted({point.pods for point in curve})
    prices = [point.hourly for point in curve]
    assert prices == sorted(set(prices), reverse=True)


def test_points_of_other_prices_fill_the_gaps() -> None:
    """Between the prefixes of the commands, and beyond the chosen one."""
    own = (CurvePoint(0, 9.0), CurvePoint(6, 4.0, is_chosen=True))
    more = (CurvePoint(3, 6.0), CurvePoint(4, 7.0), CurvePoint(9, 3.0))
    assert [point.pods for point in merged(own, more)] == [0, 3, 6, 9]
