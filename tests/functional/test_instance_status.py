"""What EC2 says of instances when it is asked, followed through the controllers."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from joinery.controllers.interruption import InterruptionController
from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import ConfigurationError, ConflictError, RefusedError
from joinery.objects.karpenter.labels import DISRUPTED_TAINT, INTERRUPTED_AT, TERMINATION_TIMESTAMP
from joinery.objects.settings import Settings
from joinery.objects.snapshot.claims import moment
from joinery.objects.snapshot.instances import InstanceStatus
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

POLL = Notice(NoticeKind.STATUS_POLL)


def _find(stand: Stand, failed_for: int | None = None, instance: str = "", **given: Any) -> None:
    """From now on EC2 finds that with an instance: of ours, or another."""
    since = None if failed_for is None else stand.world.clock.now() - timedelta(seconds=failed_for)
    name = instance or stand.alive[0]
    stand.world.cloud.statuses[name] = InstanceStatus(name, system_failed=since, **given)


def _poll(stand: Stand) -> Mapping[str, Any]:
    return stand.notify(POLL)


def test_an_instance_whose_check_failed_is_replaced_at_once(running: Stand) -> None:
    """Its deadline is now, because its kubelet will not end its pods."""
    (old,) = running.alive
    _find(running, failed_for=120)
    _poll(running)
    (node,) = running.world.cluster.nodes.values()
    now = running.world.clock.now()
    assert running.claim.is_deleting
    assert INTERRUPTED_AT in running.claim.metadata.annotations
    assert moment(running.claim.metadata.annotations[TERMINATION_TIMESTAMP]) == now
    assert DISRUPTED_TAINT in {taint.key for taint in node.spec.taints}
    assert {"InstanceUnhealthy", "TerminatingOnInterruption"} <= running.event_reasons("NodeClaim")
    assert running.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}
    running.provision()
    for _ in range(20):
        running.wait(5)
        running.live()
    assert old not in running.alive


def test_a_check_that_failed_a_moment_ago_may_still_pass(running: Stand) -> None:
    """An instance that boots anew fails it for a while."""
    _find(running, failed_for=119)
    _poll(running)
    assert not running.claim.is_deleting
    assert running.rung() == set()


def test_a_scheduled_event_retires_the_node_as_a_warning_does(running: Stand) -> None:
    """It leaves time, so the pods' budgets are kept."""
    _find(running, events=("instance-retirement",))
    _poll(running)
    assert running.claim.is_deleting
    assert TERMINATION_TIMESTAMP not in running.claim.metadata.annotations


def test_an_event_that_is_weeks_ahead_leaves_pods_where_they_are_until_they_have_a_place(running: Stand) -> None:
    """No other node can be bought now. Evicted, they would wait for weeks; its start ends that."""
    running.settings = Settings(cluster=running.settings.cluster, max_launches=0)
    starts = running.world.clock.now() + timedelta(hours=1)
    _find(running, events=("instance-retirement",), starts=starts)
    _poll(running)
    for _ in range(4):
        running.wait(60)
        _poll(running)
        with suppress(RefusedError):
            running.provision()
        running.live()
    assert running.claim.is_deleting
    assert moment(running.claim.metadata.annotations[TERMINATION_TIMESTAMP]) == starts
    assert "Evicted" not in running.event_reasons("Pod")
    assert "EC2 has scheduled a change of its instance" in " ".join(running.messages("NodeLeaving").values())
    running.wait(60 * 53 + 40)
    running.live()
    assert "Evicted" in running.event_reasons("Pod")


def test_an_instance_with_both_gets_its_deadline(running: Stand) -> None:
    """Whatever is decided of the event."""
    _find(running, failed_for=300, events=("system-reboot",))
    _poll(running)
    assert TERMINATION_TIMESTAMP in running.claim.metadata.annotations


def test_a_drain_that_is_stuck_on_a_broken_instance_is_forced(running: Stand) -> None:
    """The claim was being deleted already; its deadline was tomorrow."""
    _find(running, events=("instance-retirement",))
    _poll(running)
    _find(running, failed_for=120)
    running.wait(60)
    _poll(running)
    marked = running.claim.metadata.annotations[TERMINATION_TIMESTAMP]
    running.wait(60)
    _poll(running)
    assert running.claim.metadata.annotations[TERMINATION_TIMESTAMP] == marked


def test_instances_of_others_are_left_alone(running: Stand) -> None:
    """EC2 answers for the whole account."""
    _find(running, failed_for=600, instance="i-of-somebody-else")
    assert _poll(running)["statuses"] == 1
    assert not running.claim.is_deleting


def test_a_poll_that_finds_nothing_reads_no_cluster(running: Stand) -> None:
    """It is one every minute, of every cluster."""
    fuse = Fuse()
    watched = Stand(running.world, gateways=fuse.protect(running.gateways))
    assert _poll(watched) == {"notice": "status_poll", "statuses": 0, "answers": []}
    assert fuse.calls == ["cloud.impaired"]


def test_a_poll_that_fails_costs_no_warning_of_its_batch(running: Stand) -> None:
    """A right is missing: the poll says so, and the spot warning beside it is answered."""
    running.world.cloud.fail_next("impaired", ConfigurationError("UnauthorizedOperation"))
    warning = Notice(NoticeKind.SPOT_INTERRUPTED, (running.alive[0],))
    controller = InterruptionController(running.gateways)
    poll, answered = controller.reconcile([POLL, warning], running.invocation())
    assert isinstance(poll, ConfigurationError)
    assert isinstance(answered, Mapping)
    assert running.claim.is_deleting


def test_a_claim_that_could_not_be_retired_is_retired_by_the_next_poll(running: Stand) -> None:
    """EC2 says it again, as long as it is so."""
    _find(running, failed_for=120)
    fuse = Fuse(failing="cluster.delete_node_claim", error=ConflictError("409"))
    with pytest.raises(ConflictError):
        _poll(Stand(running.world, gateways=fuse.protect(running.gateways)))
    assert not running.claim.is_deleting
    _poll(running)
    assert running.claim.is_deleting
