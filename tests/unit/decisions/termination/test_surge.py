"""How the rollout stands that brings a pod's successor, or why there can be none."""

from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.termination.surge import Obstacle, Owners, Progress, assess
from joinery.objects.karpenter.labels import REVISION
from joinery.objects.kubernetes.core import ObjectMeta, OwnerReference
from joinery.objects.kubernetes.rollouts import (
    Deployment,
    DeploymentSpec,
    DeploymentStatus,
    DeploymentStrategy,
    ReplicaSet,
    RollingUpdate,
)
from simulator import builders

POD = builders.pod(owner="web-1", node="n1")
DONE = DeploymentStatus(observed_generation=4, replicas=3, updated_replicas=3, available_replicas=3)


def owners(*, revision: str = "2", status: DeploymentStatus = DONE, replicas: int = 3, **spec: Any) -> Owners:
    """A Deployment in its second rollout, and a ReplicaSet of one of its rollouts."""
    replica_set = ReplicaSet(metadata=ObjectMeta(name="web-1", annotations={REVISION: revision}))
    metadata = ObjectMeta(name="web", generation=4, annotations={REVISION: "2"})
    deployment = Deployment(metadata=metadata, spec=DeploymentSpec(replicas=replicas, **spec), status=status)
    return Owners(replica_set, deployment)


def rolling(surge: str | int, unavailable: str | int) -> DeploymentStrategy:
    """A rolling update within these limits."""
    return DeploymentStrategy(rolling_update=RollingUpdate(max_surge=surge, max_unavailable=unavailable))


def test_a_pod_of_the_newest_replica_set_needs_a_restart() -> None:
    """Nothing else would replace it."""
    assert assess(POD, owners(), was_begun=False) is Progress.TO_BEGIN


def test_a_pod_of_an_older_replica_set_is_being_replaced() -> None:
    """By the restart that we sent, or by a rollout of the user's."""
    assert assess(POD, owners(revision="1"), was_begun=True) is Progress.BEGUN
    assert assess(POD, owners(revision="1"), was_begun=False) is Progress.BEGUN


@pytest.mark.parametrize(("was_begun", "progress"), [(True, Progress.BEGUN), (False, Progress.BUSY)])
def test_a_change_that_its_controller_has_not_seen_is_waited_for(was_begun: bool, progress: Progress) -> None:
    """Right after our restart it looks so; and after a change of the user's, which may replace the pod or not."""
    unseen = owners(status=replace(DONE, observed_generation=3))
    assert assess(POD, unseen, was_begun) is progress


@pytest.mark.parametrize(
    "behind", [{"updated_replicas": 2}, {"replicas": 4}, {"available_replicas": 2}], ids=lambda field: next(iter(field))
)
def test_a_rollout_under_way_ends_first(behind: dict[str, int]) -> None:
    """Its own new pod is on the node that goes: it is restarted for, but not in the middle."""
    assert assess(POD, owners(status=replace(DONE, **behind)), was_begun=False) is Progress.BUSY


def test_what_was_undone_is_not_begun_again() -> None:
    """The pod is of the newest ReplicaSet once more."""
    assert assess(POD, owners(), was_begun=True) is Obstacle.UNDONE


@pytest.mark.parametrize(
    ("spec", "obstacle"),
    [
        ({"paused": True}, Obstacle.PAUSED),
        ({"strategy": DeploymentStrategy(type="Recreate")}, Obstacle.RECREATE),
        ({"strategy": rolling(0, 1)}, Obstacle.NO_SURGE),
        ({"strategy": rolling("0%", 1)}, Obstacle.NO_SURGE),
        ({"strategy": rolling(1, 3)}, Obstacle.ALL_UNAVAILABLE),
        ({"strategy": rolling(1, "100%")}, Obstacle.ALL_UNAVAILABLE),
        ({"strategy": rolling(1, 1), "replicas": 1}, Obstacle.ALL_UNAVAILABLE),
        ({"strategy": rolling("1%", "99%")}, Progress.TO_BEGIN),
        ({"strategy": rolling(f"{'9' * 5000}%", "0%")}, Progress.TO_BEGIN),
        ({"strategy": rolling("1%", f"{'9' * 400}%")}, Obstacle.ALL_UNAVAILABLE),
        ({"strategy": rolling(1, 2)}, Progress.TO_BEGIN),
        ({"replicas": 1}, Progress.TO_BEGIN),
    ],
)
def test_a_strategy_decides_whether_a_successor_can_come_first(spec: dict[str, Any], obstacle: Any) -> None:
    """Percentages of ``maxSurge`` are rounded up and of ``maxUnavailable`` down, as the Deployment controller does."""
    assert assess(POD, owners(**spec), was_begun=False) is obstacle


@pytest.mark.parametrize("kind", ["StatefulSet", "Job", "DaemonSet"])
def test_other_owners_have_no_rollout_with_two_pods_for_one(kind: str) -> None:
    """And neither has a pod that nobody owns."""
    owned = replace(POD, metadata=replace(POD.metadata, owner_references=[builders.owner(kind, "web")]))
    assert assess(owned, Owners(), was_begun=False) is Obstacle.NOT_A_DEPLOYMENT
    assert assess(builders.pod(), Owners(), was_begun=False) is Obstacle.NOT_A_DEPLOYMENT


def test_an_owner_that_is_not_its_controller_does_not_count() -> None:
    """Somebody may add owner references for garbage collection."""
    other = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web-1")
    pod = replace(POD, metadata=replace(POD.metadata, owner_references=[other]))
    assert assess(pod, owners(), was_begun=False) is Obstacle.NOT_A_DEPLOYMENT


def test_what_could_not_be_read_is_told_apart() -> None:
    """A right that is missing stays so, a server that does not answer will; and a ReplicaSet may be nobody's."""
    assert assess(POD, Owners(is_refused=True), was_begun=False) is Obstacle.UNREADABLE
    assert assess(POD, Owners(is_unknown=True), was_begun=False) is Progress.UNKNOWN
    assert assess(POD, Owners(replica_set=ReplicaSet()), was_begun=False) is Obstacle.NO_DEPLOYMENT
