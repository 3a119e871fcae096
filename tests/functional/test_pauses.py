"""Off-hours: a NodePool's nodes go when its pause begins, and are there again when it ends."""

import gzip
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, PAUSE, PAUSED
from joinery.objects.karpenter.meta import with_metadata
from simulator.world import World
from tests.functional.stand import Stand

#: The world begins at eight.
PAUSE_AT_TEN = "from 0 10 * * * for 2h"


def _annotate(stand: Stand, annotations: dict[str, str]) -> None:
    pool = stand.world.cluster.node_pools["default"]
    stand.world.cluster.add(with_metadata(pool, annotations=annotations))


def _paused(stand: Stand) -> tuple[str, str] | None:
    """What the NodePool's condition says."""
    conditions = stand.world.cluster.node_pools["default"].status.conditions
    return next(((one.reason, one.message) for one in conditions if one.type == "joinery.dev/Paused"), None)


def _until(stand: Stand, hour: int, minute: int) -> None:
    now = stand.world.clock.now()
    stand.wait((datetime(now.year, now.month, now.day, hour, minute, tzinfo=UTC) - now).total_seconds())


@pytest.fixture
def night(world: World) -> Stand:
    """A node with three pods, of a NodePool that is paused from ten to twelve."""
    stand = Stand(world).with_defaults()
    _annotate(stand, {PAUSE: PAUSE_AT_TEN})
    stand.pods(3)
    stand.settle()
    return stand


def test_nodes_go_when_the_pause_begins_and_say_what_that_saves(night: Stand) -> None:
    """Not before it, and then without a replacement."""
    _until(night, 9, 59)
    night.live()
    night.consolidate()
    assert (len(night.alive), _paused(night)) == (1, None)
    _until(night, 10, 1)
    (name,) = [claim.metadata.name for claim in night.claims]
    outcome = night.consolidate()
    assert outcome["paused"] == 1
    assert outcome["saves"] > 0
    said = night.messages("Paused")[name]
    assert said.startswith("NodePool default is paused until 2026-08-24T12:00:00Z, which saves $0.")
    (key,) = (key for key in night.world.store.documents if "-disruption-" in key)
    recorded = json.loads(gzip.decompress(night.world.store.documents[key]))["joinery"]["result"]
    assert [(one["retire"], one["message"]) for one in recorded["commands"]] == [([name], said)]
    assert recorded["before"] - recorded["after"] == pytest.approx(outcome["saves"], abs=1e-4)
    night.live()
    assert _paused(night) == (
        "Scheduled",
        "nothing is bought for it, and its nodes go: it is paused until 2026-08-24T12:00:00Z",
    )
    for _ in range(6):
        night.wait(20)
        night.live()
    assert night.alive == []


def test_nothing_is_bought_in_a_pause_and_nodes_are_there_when_it_ends(night: Stand) -> None:
    """Pods that wait are told why; five minutes before the end their nodes are bought."""
    _until(night, 10, 1)
    night.consolidate()
    for _ in range(6):
        night.wait(20)
        night.live()
    night.pods(3)
    night.provision()
    assert night.alive == []
    reasons = " ".join(event.message for event in night.world.cluster.events if event.reason == "FailedScheduling")
    assert "NodePool default: it is paused until 2026-08-24T12:00:00Z" in reasons
    _until(night, 11, 54)
    night.provision()
    assert night.alive == []
    _until(night, 11, 56)
    night.settle()
    assert len(night.alive) == 1
    # What has come back for the day does not go once more.
    night.consolidate()
    assert len(night.alive) == 1


@pytest.mark.parametrize(
    ("annotations", "keeps"),
    [
        ({PAUSE: "never"}, True),
        ({PAUSE: PAUSE_AT_TEN, PAUSED: "2026-08-24T10:00:30Z"}, True),
        ({PAUSED: "true"}, False),
        ({PAUSE: f"all {PAUSE_AT_TEN}"}, False),
    ],
)
def test_what_a_person_or_the_cluster_says_counts_too(night: Stand, annotations: dict[str, str], keeps: bool) -> None:
    """Resumed, the nodes stay; paused by hand or with the whole cluster, they go."""
    _annotate(night, annotations)
    _until(night, 10, 1)
    assert night.consolidate().get("paused", 0) == (0 if keeps else 1)


def test_what_protects_a_node_keeps_it_in_a_pause(night: Stand) -> None:
    """The annotation of a pod, as it keeps it from consolidation; and budgets."""
    pods: dict[str, Any] = dict(night.world.cluster.pods)
    pod = next(iter(pods.values()))
    night.world.cluster.add(_annotated(pod, {DO_NOT_DISRUPT: "true"}))
    _until(night, 10, 1)
    assert "paused" not in night.consolidate()
    assert len(night.alive) == 1


def _annotated(pod: Any, annotations: dict[str, str]) -> Any:
    from msgspec.structs import replace

    return replace(pod, metadata=replace(pod.metadata, annotations={**pod.metadata.annotations, **annotations}))
