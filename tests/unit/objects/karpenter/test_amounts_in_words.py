"""Amounts as a person reads them: in the unit of whoever wrote them, and never a row of nine digits."""

import pytest

from joinery.objects.kubernetes.quantity import in_words


@pytest.mark.parametrize(
    ("resource", "value", "said"),
    [
        ("memory", 8 * 2**30, "8Gi"),
        ("memory", 1536 * 2**20, "1536Mi"),
        ("memory", 256_000_000, "256M"),
        ("ephemeral-storage", 20_000_000_000, "20G"),
        ("memory", 262_529_280, "250.4Mi"),
        ("memory", 7_942_028 * 2**10, "7.6Gi"),
        ("memory", 640, "640"),
        ("memory", 0, "0"),
        ("cpu", 265, "265m"),
        ("nvidia.com/gpu", 8, "8"),
    ],
)
def test_an_amount_is_exact_where_that_is_short_and_rounded_where_not(resource: str, value: int, said: str) -> None:
    """The sum of what DaemonSets request is seldom a round number; ``256M`` is what many a manifest says."""
    assert in_words(resource, value) == said
