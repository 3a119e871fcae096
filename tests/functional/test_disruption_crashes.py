"""A disruption command survives a crash at any write: it is completed or rolled back, and nothing is left behind.

The story: three pods that may not share a node; a command replaces two of their nodes. It is told once for every write
from the command's start to the deletion of the last claim (in `make test` for one in five), and the process is killed
right after that write. What follows is the end of every claim (`test_crash_safety`).
"""

from functools import cache

import pytest

from joinery.apis.labels import DISRUPTED_TAINT, DISRUPTION_COMMAND, REPLACES
from tests.functional.disrupting import disrupt
from tests.functional.fuse import Fuse, crashes
from tests.functional.test_crash_safety import PODS, Story

PARTS = 4


class _Disruption(Story):
    """``begun``: how many writes there were before the command was started."""

    begun = 0

    def tell(self) -> None:
        self._until(self._is_settled)
        self.begun = len(self.fuse.writes)
        candidates = sorted(self.stand.claims, key=lambda claim: claim.metadata.name)[:2]
        self.fuse.outlives(lambda: disrupt(self.stand, *candidates))
        # Nobody starts the command again: what was begun has to come to an end by itself.
        for _ in range(2):
            self._until(self._is_clean)

    def _is_clean(self) -> bool:
        marks = {DISRUPTION_COMMAND, REPLACES}
        taints = (taint.key for node in self.world.cluster.nodes.values() for taint in node.spec.taints)
        is_marked = any(marks & set(claim.metadata.annotations) for claim in self.stand.claims)
        return self._is_settled() and not is_marked and DISRUPTED_TAINT not in taints


@cache
def _undisturbed() -> _Disruption:
    story = _Disruption(Fuse())
    story.tell()
    return story


def test_undisturbed_two_nodes_are_replaced() -> None:
    """What every disturbed telling is compared with."""
    story = _undisturbed()
    assert len(story.launched) == PODS + 2
    assert len(story.stand.alive) == len(story.stand.claims) == PODS


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_a_crash_after_any_write_leaves_nothing_behind(part: int, pytestconfig: pytest.Config) -> None:
    """Every pod has a node, each instance that lives has its claim, and no node costs money for nobody."""
    undisturbed = _undisturbed()
    writes = undisturbed.fuse.writes[undisturbed.begun :]
    while writes[-1] != "cluster.delete_node_claim":
        writes.pop()
    for number in crashes(writes, pytestconfig)[part::PARTS]:
        story = _Disruption(Fuse(after=undisturbed.begun + number))
        story.tell()
        told = f"killed after write {number}: {writes[number - 1]}"
        assert len(story.launched) <= PODS + 2, told
        owned = {claim.status.provider_id.rpartition("/")[2] for claim in story.stand.claims}
        assert set(story.stand.alive) == owned, told
        assert len(owned) == PODS, told
