"""A disruption command survives a crash at any write: it is completed or rolled back, and nothing is left behind.

The story: three pods that may not share a node; a command replaces two of their nodes, before or after these end. It is
told once for every write from the command's start (in `make test` for one in ten), and the process is killed right
after that write.
"""

from collections.abc import Callable
from functools import cache

import pytest

from joinery.objects.karpenter.labels import DISRUPTED_TAINT, DISRUPTION_COMMAND, PLANNED_TAINT, REPLACES
from tests.functional.crashing import PODS, Story, assert_nothing_is_left_behind
from tests.functional.disrupting import disrupt, end_first
from tests.functional.fuse import Fuse, crashes

PARTS = 4
#: How the command begins.
STARTS: dict[str, Callable[..., object]] = {"replaced first": disrupt, "ended first": end_first}


class _Disruption(Story):
    """``begun``: how many writes there were before the command was started by ``start``."""

    def __init__(self, fuse: Fuse, start: Callable[..., object]) -> None:
        super().__init__(fuse)
        self.begun = 0
        self._start = start

    def tell(self) -> None:
        self._until(self._is_settled)
        self.begun = len(self.fuse.writes)
        candidates = sorted(self.stand.claims, key=lambda claim: claim.metadata.name)[:2]
        self.fuse.outlives(lambda: self._start(self.stand, *candidates))
        # Nobody starts the command again: what was begun has to come to an end by itself.
        for _ in range(2):
            self._until(self._is_clean)

    def _is_clean(self) -> bool:
        marks, transient = {DISRUPTION_COMMAND, REPLACES}, {DISRUPTED_TAINT, PLANNED_TAINT}
        taints = {taint.key for node in self.world.cluster.nodes.values() for taint in node.spec.taints}
        is_marked = any(marks & set(claim.metadata.annotations) for claim in self.stand.claims)
        return self._is_settled() and not is_marked and not transient & taints


@cache
def _undisturbed(start: str) -> _Disruption:
    story = _Disruption(Fuse(), STARTS[start])
    story.tell()
    return story


@pytest.mark.parametrize("start", STARTS)
def test_undisturbed_two_nodes_are_replaced(start: str) -> None:
    """What every disturbed telling is compared with."""
    story = _undisturbed(start)
    assert len(story.launched) == PODS + 2
    assert len(story.stand.alive) == len(story.stand.claims) == PODS


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("start", STARTS)
def test_a_crash_after_any_write_leaves_nothing_behind(start: str, part: int, pytestconfig: pytest.Config) -> None:
    """Every pod has a node, nothing is bought twice, and no node costs money for nobody."""
    undisturbed = _undisturbed(start)
    writes = undisturbed.fuse.writes[undisturbed.begun :]
    for number in crashes(writes, pytestconfig)[part::PARTS]:
        story = _Disruption(Fuse(after=undisturbed.begun + number), STARTS[start])
        story.tell()
        told = f"killed after write {number}: {writes[number - 1]}"
        assert len(story.launched) <= PODS + 2, told
        assert_nothing_is_left_behind(story.stand, told)
