"""``joinery pause`` and ``resume``: one annotation, beside whatever schedule there is; and what ``disrupt`` says."""

from datetime import UTC, datetime

import pytest

from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.labels import INSTANCE_TYPE, PAUSE, PAUSED
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.pause import pauses
from joinery.objects.kubernetes.references import Reference
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.pausing import meant, notes_of_pauses, paused, resumed
from joinery_cli.sources import SAMPLE
from simulator.builders import instance_type, node, node_claim, node_pool
from simulator.kubernetes.objects import InMemoryObjects
from tests.cli.conftest import CLUSTER, NOW, Run, Write, pod_document

NIGHT = "from 0 20 * * * for 11h"
BY_HAND = f'{{name: default, annotations: {{{PAUSED}: "true"}}}}'
LATE = datetime(2026, 1, 12, 21, tzinfo=UTC)
POOL = Reference("NodePool", "default")


def _cluster() -> InMemoryObjects:
    objects = InMemoryObjects()
    metadata = {"name": "default", "annotations": {PAUSE: NIGHT}}
    objects.apply({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata})
    objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}})
    return objects


def _is_paused(objects: InMemoryObjects, now: datetime) -> bool:
    stored = objects.read(POOL)
    assert stored is not None
    pool = with_metadata(node_pool(), annotations=stored["metadata"]["annotations"])
    return "default" in pauses([pool], now)


def test_a_person_pauses_and_resumes_beside_a_schedule() -> None:
    """Paused by day, resumed in the night, and the next night is paused as the schedule says."""
    objects, noon = _cluster(), datetime(2026, 1, 12, 12, tzinfo=UTC)
    (where,) = meant(objects, ["default"], [], everything=False)
    assert paused(objects, where) == "NodePool default: paused until joinery resume"
    assert _is_paused(objects, noon)
    assert resumed(objects, where, LATE).startswith("NodePool default: runs again")
    assert not _is_paused(objects, LATE)
    assert _is_paused(objects, datetime(2026, 1, 13, 21, tzinfo=UTC))
    stored = objects.read(POOL)
    assert stored is not None
    assert stored["metadata"]["annotations"][PAUSE] == NIGHT


@pytest.mark.parametrize(("length", "minutes"), [("5m", 0), ("6m", 1), ("7m", 2)])
def test_a_pause_that_is_too_short_for_a_run_between_is_warned_of(
    run: Run, write: Write, length: str, minutes: int
) -> None:
    """It ends five minutes before its window, and is looked at about once a minute."""
    schedule = f"from 0 20 * * * for {length}"
    pool = with_metadata(node_pool(), annotations={PAUSE: schedule})
    looks = (datetime(2026, 1, 12, 20, minute, 30, tzinfo=UTC) for minute in range(10))
    assert sum("default" in pauses([pool], look) for look in looks) == minutes
    named = CLUSTER.replace("{name: default}", f"{{name: default, annotations: {{{PAUSE}: {schedule}}}}}", 2)
    said = run("plan", "-f", write("cluster.yaml", named), "--now", NOW, "--catalog", str(SAMPLE)).err
    assert ("NodePool default: joinery.dev/pause: so short a pause may do nothing" in said) is (minutes < 2)


def test_what_is_so_already_is_not_written() -> None:
    """Whoever watches an object sees what has changed, and nothing else."""
    objects, noon = _cluster(), datetime(2026, 1, 12, 12, tzinfo=UTC)
    before = list(objects.writes)
    assert resumed(objects, POOL, noon) == "NodePool default: runs already"
    assert objects.writes == before
    paused(objects, POOL)
    before = list(objects.writes)
    assert paused(objects, POOL) == "NodePool default: is paused already, until joinery resume"
    assert objects.writes == before
    assert resumed(objects, POOL, noon) == "NodePool default: runs again"
    stored = objects.read(POOL)
    assert stored is not None
    assert stored["metadata"]["annotations"] == {PAUSE: NIGHT}


def test_a_pause_of_the_whole_cluster_is_left_by_one() -> None:
    """Another NodePool says it; the one that is resumed says that it runs."""
    objects = _cluster()
    metadata = {"name": "other", "annotations": {PAUSE: f"all {NIGHT}"}}
    objects.apply({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata})
    web = Reference("Namespace", "web")
    assert "runs again; a schedule" in resumed(objects, web, LATE)
    assert resumed(objects, web, LATE) == "Namespace web: runs already"


@pytest.mark.parametrize("kind", ["NodePool.v1beta1", "Provisioner"])
def test_objects_of_older_apis_are_paused_too(kind: str) -> None:
    """By the same command; the functions read their annotations as those of a NodePool."""
    objects = InMemoryObjects()
    objects.create({"kind": kind, "metadata": {"name": "old", "annotations": {}}})
    (where,) = meant(objects, ["old"], [], everything=False)
    assert where == Reference(kind, "old") == meant(objects, [], [], everything=True)[0]
    paused(objects, where)
    stored = objects.read(where)
    assert stored is not None
    assert stored["metadata"]["annotations"] == {PAUSED: "true"}


def test_all_node_pools_and_a_namespace_s_buffers_can_be_meant() -> None:
    """Nothing is written where one of them is not there."""
    objects = _cluster()
    assert meant(objects, [], ["web"], everything=True) == [POOL, Reference("Namespace", "web")]
    before = list(objects.writes)
    for names, problem in (([], "which NodePool"), (["other"], "there is no NodePool other: nothing was changed")):
        with pytest.raises(ConfigurationError, match=problem):
            meant(objects, names, [], everything=False)
    assert objects.writes == before


def test_a_plan_says_that_a_node_pool_is_paused(run: Run, write: Write) -> None:
    """As the reason of each pod that waits for it."""
    path = write("c.yaml", CLUSTER.replace("NodePool\nmetadata: {name: default}", f"NodePool\nmetadata: {BY_HAND}"))
    pod = write("pod.json", pod_document())
    outcome = run("plan", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE), "-f", path, "-f", pod)
    (left,) = outcome.document["unschedulable"]
    assert "NodePool default: it is paused until somebody resumes it" in " ".join(left["reasons"])


def test_disrupt_says_what_a_pause_saves() -> None:
    """Which nodes of a paused NodePool go now by its budgets, for how many dollars, and why others stay."""
    pool = with_metadata(node_pool(budgets=[{"nodes": "1"}]), annotations={PAUSE: NIGHT})
    claims = [node_claim(name, node=name) for name in ("a", "b")]
    nodes = [node(name) for name in ("a", "b")]
    snapshot = Snapshot(now=LATE, node_pools=(pool,), nodes=tuple(nodes), node_claims=tuple(claims))
    kind = instance_type(nodes[0].metadata.labels[INSTANCE_TYPE])
    (note,) = notes_of_pauses(snapshot, {kind.name: kind.offerings})
    assert "is paused until 2026-01-13T07:00:00Z: 1 of its 2 nodes goes now, which saves $0" in str(note)
    assert "in the whole pause; others stay for now: the budget 1 allows 1 of 2 nodes" in str(note)
