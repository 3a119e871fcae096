"""Moments in sentences for people."""

from datetime import datetime

import pytest

from joinery.objects.wording import rfc3339


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("2026-03-04T12:00:00.75Z", "2026-03-04T12:00:00Z"),
        ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:59"),
    ],
)
def test_a_moment_is_told_as_kubectl_shows_it(written: str, said: str) -> None:
    """To the second, so that it can be looked for in an object, and given to ``--now``; whatever moment it is."""
    assert rfc3339(datetime.fromisoformat(written)) == said
