"""Whether a NodePool's nodes join the cluster: its condition NodeRegistrationHealthy, without a function's memory."""

import pytest

from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.labels import REGISTRATIONS
from joinery.objects.karpenter.meta import Condition
from joinery.objects.karpenter.nodepool import NodePool
from simulator.latency import Killed
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand


def _pool(stand: Stand) -> NodePool:
    return stand.world.cluster.node_pools["default"]


def _health(stand: Stand) -> Condition:
    (condition,) = [each for each in _pool(stand).status.conditions if each.type == "NodeRegistrationHealthy"]
    return condition


def _fails(stand: Stand) -> None:
    """A node that never joins: launched, given up after fifteen minutes, and gone."""
    stand.pods(1)
    stand.provision()
    stand.wait(15 * 60)
    _end(stand)


def _end(stand: Stand) -> None:
    for _ in range(3):
        stand.live()
        stand.wait(31)
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.remove(pod)
    assert stand.claims == []


def _joins(stand: Stand) -> None:
    """A node that joins, and is retired again."""
    stand.pods(1)
    stand.settle()
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.remove(pod)
    stand.world.cluster.delete_node_claim(stand.claim)
    stand.live()
    stand.wait(6)
    _end(stand)


def test_nothing_is_known_of_a_pool_that_has_launched_nothing(stand: Stand) -> None:
    """Its condition is there, and Unknown; ``Ready`` does not depend on it."""
    ready = {each.type: each.status for each in _pool(stand).status.conditions}
    assert (ready["NodeRegistrationHealthy"], ready["Ready"]) == ("Unknown", "True")


def test_a_node_that_joins_makes_its_pool_healthy(stand: Stand) -> None:
    """Nothing is written into annotations as long as nothing fails, and provisioning is not woken for it."""
    stand.pods(1)
    stand.provision()
    stand.boot()
    stand.live()
    stand.rung()
    stand.live()
    assert (_health(stand).status, Bell.PROVISIONING in stand.rung()) == ("True", False)
    assert REGISTRATIONS not in _pool(stand).metadata.annotations


def test_one_failure_is_bad_luck_and_two_of_four_are_not(stand: Stand) -> None:
    """The reason is that of the last; the pool stays Ready, and goes on launching."""
    _fails(stand)
    assert _health(stand).status == "Unknown"
    _fails(stand)
    assert (_health(stand).status, _health(stand).reason) == ("False", "RegistrationFailed")
    stand.pods(1)
    assert stand.provision()["launches"] == 1


def test_failures_are_forgotten_when_four_others_have_followed(stand: Stand) -> None:
    """With three successes one of the last four is a failure: that is healthy. With four nothing is remembered."""
    for _ in range(2):
        _fails(stand)
    for _ in range(2):
        _joins(stand)
    assert _health(stand).status == "False"
    _joins(stand)
    assert _health(stand).status == "True"
    assert REGISTRATIONS in _pool(stand).metadata.annotations
    _joins(stand)
    assert REGISTRATIONS not in _pool(stand).metadata.annotations


def test_a_failure_counts_once_however_often_it_is_seen(stand: Stand) -> None:
    """The claim that failed is there for some runs more, while its instance ends."""
    stand.pods(1)
    stand.provision()
    stand.wait(15 * 60)
    for _ in range(4):
        stand.live()
        stand.wait(5)
    assert _pool(stand).metadata.annotations[REGISTRATIONS].count("RegistrationFailed") == 1
    assert _health(stand).status == "Unknown"


def test_a_failure_outlives_a_run_that_is_killed_anywhere(stand: Stand) -> None:
    """After each of its writes: the failure is written before its claim goes, and is not counted twice."""
    _fails(stand)
    stand.pods(1)
    stand.provision()
    stand.wait(15 * 60)
    for after in range(1, 12):
        fuse = Fuse(after=after)
        try:
            Stand(stand.world, gateways=fuse.protect(stand.gateways)).live()
        except Killed:
            continue
    _end(stand)
    assert _health(stand).status == "False"
    assert _pool(stand).metadata.annotations[REGISTRATIONS].count("RegistrationFailed") == 2


def test_a_pool_that_cannot_be_written_loses_no_failure(stand: Stand) -> None:
    """The failing claim is still there with the next run."""
    _fails(stand)
    stand.pods(1)
    stand.provision()
    stand.wait(15 * 60)
    fuse = Fuse(failing="cluster.update_node_pool", error=UnavailableError("throttled"))
    with pytest.raises(UnavailableError):
        Stand(stand.world, gateways=fuse.protect(stand.gateways)).live()
    _end(stand)
    assert _health(stand).status == "False"


def test_a_changed_pool_begins_anew(stand: Stand) -> None:
    """What failed may have been mended: Unknown, and nothing is remembered."""
    for _ in range(2):
        _fails(stand)
    pool = _pool(stand)
    metadata = pool.metadata.model_copy(update={"generation": pool.metadata.generation + 1})
    stand.world.cluster.add(pool.model_copy(update={"metadata": metadata}))
    stand.live()
    assert (_health(stand).status, REGISTRATIONS in _pool(stand).metadata.annotations) == ("Unknown", False)
    _fails(stand)
    assert _health(stand).status == "Unknown"


def test_an_annotation_that_somebody_has_spoilt_stops_nothing(stand: Stand) -> None:
    """It counts as empty."""
    for text in ("nonsense", '[{"claim":"a","at":"2026-01-01T00:00:00"}]', "[1]"):
        pool = _pool(stand)
        metadata = pool.metadata.model_copy(update={"annotations": {REGISTRATIONS: text}})
        stand.world.cluster.add(pool.model_copy(update={"metadata": metadata}))
        stand.live()
        assert REGISTRATIONS not in _pool(stand).metadata.annotations


def test_a_node_that_vanished_and_was_given_up_is_no_failure_to_register(stand: Stand) -> None:
    """It had joined: user data and AMI are right."""
    stand.pods(1)
    stand.settle()
    (node,) = stand.world.cluster.nodes.values()
    stand.wait(60)
    stand.world.cluster.remove(node)
    stand.live()
    stand.wait(15 * 60)
    _end(stand)
    assert _health(stand).status == "True"
    assert REGISTRATIONS not in _pool(stand).metadata.annotations


def test_a_drift_that_fails_is_tried_ever_less_often(stand: Stand) -> None:
    """Instances that never join are paid for: four in the first three hours, where each quarter of an hour had one."""
    stand.pods(3)
    stand.grow_old(7200)
    pool = _pool(stand)
    labelled = pool.spec.template.metadata.model_copy(update={"labels": {"team": "a"}})
    template = pool.spec.template.model_copy(update={"metadata": labelled})
    stand.world.cluster.add(pool.model_copy(update={"spec": pool.spec.model_copy(update={"template": template})}))
    launched = set()
    for _ in range(180):
        stand.live()
        stand.consolidate()
        launched |= {claim.metadata.name for claim in stand.claims}
        stand.wait(60)
    assert len(launched) - 1 == 4
    assert "did not join the cluster" in stand.messages("DisruptionBlocked")["default"]
