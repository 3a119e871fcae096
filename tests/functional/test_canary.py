"""A new AMI goes onto one node first; the others follow, or stay, by how that one does."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import cache

import pytest

from joinery.objects.annotations.canaries import CanaryOutcome
from joinery.objects.karpenter.disruption import CanaryRule
from joinery.objects.karpenter.labels import CANARIES, CANARY, CANARY_APPROVED, DISRUPTION_COMMAND
from joinery.objects.karpenter.nodeclaim import NodeClaim
from simulator import builders
from simulator.kubernetes.resources import with_metadata
from tests.functional.canarying import NEW, NODES, Rollout
from tests.functional.crashing import assert_nothing_is_left_behind
from tests.functional.fuse import Fuse, crashes

PARTS = 4
SHORT = CanaryRule(timedelta(minutes=1))


@pytest.fixture
def rollout() -> Rollout:
    """Three nodes that have drifted."""
    story = Rollout()
    story.publish()
    return story


def _goes_on(story: Rollout) -> bool:
    """Whether all nodes have moved in the end."""
    for _ in range(60):
        story.run(1, seconds=20)
        if not story.outdated and len(story.stand.claims) == NODES:
            return True
    return False


def test_one_node_moves_first_and_the_others_when_it_ran_well(rollout: Rollout) -> None:
    """Budgets would let all three go at once."""
    rollout.run(1)
    marked = [claim for claim in rollout.stand.claims if DISRUPTION_COMMAND in claim.metadata.annotations]
    assert len(marked) == 1
    assert "is on trial" in rollout.stand.messages("DisruptionBlocked")["default"]
    rollout.canary()
    rollout.run(20)
    assert len(rollout.moved) == 1
    assert rollout.verdict is None
    assert _goes_on(rollout)
    assert "ran well" in rollout.stand.messages("CanaryPassed")["default"]


def test_a_node_that_does_not_get_ready_halts_the_drift(
    rollout: Rollout, counted: Callable[[], dict[str, float]]
) -> None:
    """The command is rolled back, an Event and a metric say why, and no other node is tried."""
    rollout.run(70, boots=False)
    assert rollout.verdict is not None
    assert rollout.verdict.outcome is CanaryOutcome.FAILED
    assert "was not fit for pods" in rollout.stand.messages("CanaryFailed")["default"]
    assert counted()["joinery_canaries_failed_total"] > 0
    rollout.run(20)
    assert len(rollout.outdated) == NODES
    assert not rollout.moved
    assert "has failed its trial" in rollout.stand.messages("DisruptionBlocked")["default"]


def test_a_verdict_that_does_not_say_why_is_a_whole_sentence(rollout: Rollout) -> None:
    """A person may write one, to keep an image away."""
    (node_class,) = rollout.world.cluster.node_classes.values()
    said = json.dumps([{"image": NEW, "outcome": "Failed", "at": "2026-08-24T09:00:00Z"}])
    rollout.world.cluster.add(with_metadata(node_class, annotations={CANARIES: said}))
    rollout.run(5)
    blocked = rollout.stand.messages("DisruptionBlocked").values()
    assert any(text.endswith(f"would boot {NEW}, which has failed its trial") for text in blocked)


def test_a_pod_that_crashes_on_the_canary_alone_halts_the_drift(rollout: Rollout) -> None:
    """The others of its Deployment run well on nodes with the image before."""
    canary = rollout.canary()
    rollout.crash(rollout.pods_on(canary)[0])
    rollout.run(10)
    assert rollout.verdict is not None
    assert rollout.verdict.outcome is CanaryOutcome.FAILED
    assert canary.metadata.name in rollout.verdict.why
    rollout.run(80)
    assert len(rollout.outdated) == NODES - 1


def test_a_pod_that_crashes_everywhere_halts_nothing(rollout: Rollout) -> None:
    """A release that is broken is no fault of an image."""
    rollout.canary()
    for pod in list(rollout.world.cluster.pods.values()):
        rollout.crash(pod)
    rollout.run(5)
    assert rollout.verdict is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(CANARY, "off"), (CANARY_APPROVED, NEW)],
    ids=["no trial for this class", "this image is approved"],
)
def test_a_person_may_let_the_drift_go_on(rollout: Rollout, key: str, value: str) -> None:
    """By an annotation of the node class."""
    rollout.run(70, boots=False)
    assert rollout.verdict is not None
    rollout.annotate(key, value)
    assert _goes_on(rollout)


def test_an_image_is_tried_again_when_a_person_removes_the_verdict(rollout: Rollout) -> None:
    """What kept the node from getting ready may have been something else."""
    rollout.run(70, boots=False)
    assert rollout.verdict is not None
    rollout.annotate(CANARIES, None)
    assert _goes_on(rollout)
    assert rollout.verdict is None or rollout.verdict.outcome is CanaryOutcome.PASSED


def test_pods_that_wait_get_a_node_with_the_new_image_and_that_is_the_canary(rollout: Rollout) -> None:
    """A pod without a node is worse off than one on a new image; and no second node has to be tried."""
    rollout.world.cluster.add(builders.pod("newcomer", cpu="3"))
    rollout.stand.provision()
    (canary,) = [claim for claim in rollout.stand.claims if claim.status.image_id == NEW]
    rollout.run(10)
    assert [claim.metadata.name for claim in rollout.moved] == [canary.metadata.name]


def test_a_failed_image_keeps_consolidation_from_buying_and_not_from_deleting(rollout: Rollout) -> None:
    """Pods must not come to a bad image for money either. A node without pods goes all the same."""
    rollout.run(70, boots=False)
    assert rollout.verdict is not None
    rollout.world.cluster.add(builders.pod("alone", cpu="3"))
    rollout.run(6)
    assert len(rollout.moved) == 1
    rollout.world.cluster.api.delete(rollout.world.cluster.pods["default/alone"])
    rollout.run(12)
    assert not rollout.moved
    assert len(rollout.outdated) == NODES


def test_static_pools_try_an_image_too() -> None:
    """Their drifted nodes are replaced by another door, under the same rule."""
    story = Rollout(replicas=NODES)
    story.publish()
    story.run(1)
    assert story.stand.messages("DisruptionBlocked")
    story.run(30)
    assert len(story.moved) == 1
    assert _goes_on(story)


class _Story(Rollout):
    """The whole story, with a fuse.

    ``begun``: how many writes there were before the image was published. ``most``: how many nodes had it at once before
    any had run with it for the soak time.
    """

    begun = most = 0

    def play(self, number: int = 0) -> None:
        self.begun = len(self.fuse.writes)
        if number:
            self.fuse.kill_after(number)
        self.publish()
        for _ in range(80):
            self.run(1, seconds=20)
            if not any(map(self._has_soaked, self.moved)):
                self.most = max(self.most, len(self.moved))
            if not self.outdated and len(self.stand.claims) == NODES:
                return
        raise AssertionError(f"it does not end after {self.fuse.writes[self.begun :]}")

    def _has_soaked(self, claim: NodeClaim) -> bool:
        fit = claim.condition("Initialized")
        since = fit.last_transition_time if fit is not None and fit.status == "True" else None
        return since is not None and self.world.clock.now() - since >= SHORT.soak


@cache
def _undisturbed() -> tuple[str, ...]:
    """What it writes once the image is published, if nothing kills it."""
    story = _Story(Fuse(), canary=SHORT)
    story.play()
    return tuple(story.fuse.writes[story.begun :])


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_a_crash_after_any_write_moves_no_second_node_too_soon(part: int, pytestconfig: pytest.Config) -> None:
    """And in the end all nodes have moved, and none costs money for nobody."""
    writes = _undisturbed()
    for number in crashes(writes, pytestconfig)[part::PARTS]:
        story = _Story(Fuse(), canary=SHORT)
        story.play(number)
        text = f"killed after write {number}: {writes[number - 1]}"
        assert story.most <= 1, text
        assert_nothing_is_left_behind(story.stand, text)
