"""Patterns: bins with what is on them."""

import numpy as np

from joinery.decisions.optimizer.instance.patterns import Pattern


def test_a_pattern_keeps_none_of_the_candidates_that_it_was_chosen_from() -> None:
    """A row of their matrix would: with a thousand items that is megabytes for each bin."""
    candidates = np.ones((600, 1000), dtype=np.int64)
    pattern = Pattern(0, candidates[7])
    assert pattern.counts.base is None
    assert pattern.counts.tolist() == candidates[7].tolist()
