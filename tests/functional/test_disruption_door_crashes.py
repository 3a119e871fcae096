"""The disruption door is killed after every write of its own and of whoever carries its commands out.

Two stories: an empty node goes, and a node is replaced. After each kill the doors are rung again, as the schedules do,
and in the end everything is as it is without a kill: every pod has a node, and no instance lives for nobody.

A telling takes a quarter of a second of the processor. So `make soak` kills after every write, and `make test` after
one in ten, as with the other doors (`fuse.crashes`).
"""

from functools import cache

import pytest

from simulator import builders
from tests.functional.crashing import PODS, Story, assert_nothing_is_left_behind
from tests.functional.deciding import Retiring, emptying
from tests.functional.fuse import Fuse, crashes

PARTS = 6


class _Disruption(Story):
    """``begun``: how many writes there were before the door was first called."""

    begun = 0


class _Emptiness(_Disruption):
    """A fourth node, whose only pod ends."""

    def tell(self) -> None:
        alone = builders.pod("alone", cpu="3", labels={"app": "web"}, affinity={}, owner="other")
        self.world.cluster.add(alone)
        self._until(lambda: len(self.stand.alive) == PODS + 1 and self._is_settled())
        self.world.cluster.api.delete(self.world.cluster.pods["default/alone"])
        self.stand.wait(60)
        self.begun = len(self.fuse.writes)
        for _ in range(30):
            self.fuse.outlives(lambda: self.stand.consolidate(emptying))
            self.fuse.outlives(self.stand.live)
            self.stand.wait(10)
            if len(self.stand.claims) == len(self.stand.alive) == PODS:
                return
        raise AssertionError(f"the empty node stays after {self.fuse.writes[self.begun :]}")

    def _is_settled(self) -> bool:
        running = [pod for pod in self.world.cluster.pods.values() if pod.spec.node_name]
        claims = self.stand.claims
        return len(running) >= PODS and all(claim.is_true("Ready") and not claim.is_deleting for claim in claims)


class _Replacement(_Disruption):
    """One of three nodes is replaced by another, for whatever reason a decision may have."""

    def tell(self) -> None:
        self._until(self._is_settled)
        # By then every node has paid for itself, and may go.
        self.stand.wait(3600)
        self.begun = len(self.fuse.writes)
        (old, *_) = sorted(claim.metadata.name for claim in self.stand.claims)
        decide = Retiring(old)
        for _ in range(60):
            if old in self.world.cluster.node_claims:
                self.fuse.outlives(lambda: self.stand.consolidate(decide))
            self._until(lambda: True)
            self.stand.wait(20)
            if old not in self.world.cluster.node_claims and self._is_settled():
                return
        raise AssertionError(f"the node is not replaced after {self.fuse.writes[self.begun :]}")


STORIES: dict[str, type[_Disruption]] = {"an empty node": _Emptiness, "a replacement": _Replacement}


@cache
def _undisturbed(name: str) -> _Disruption:
    story = STORIES[name](Fuse())
    story.tell()
    return story


@pytest.mark.parametrize(("name", "launches"), [("an empty node", PODS + 1), ("a replacement", PODS + 1)])
def test_undisturbed_so_many_instances_are_launched(name: str, launches: int) -> None:
    """What every disturbed telling is compared with."""
    story = _undisturbed(name)
    assert len(story.launched) == launches
    assert len(story.stand.alive) == len(story.stand.claims) == PODS


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", STORIES)
def test_a_crash_after_any_write_costs_time_alone(name: str, part: int, pytestconfig: pytest.Config) -> None:
    """At most one replacement is bought in vain: its command was rolled back, and it went as it came."""
    undisturbed = _undisturbed(name)
    writes = undisturbed.fuse.writes[undisturbed.begun :]
    for number in crashes(writes, pytestconfig)[part::PARTS]:
        story = STORIES[name](Fuse(after=undisturbed.begun + number))
        story.tell()
        told = f"killed after write {number}: {writes[number - 1]}"
        assert len(story.launched) <= len(undisturbed.launched) + 1, told
        assert_nothing_is_left_behind(story.stand, told)
