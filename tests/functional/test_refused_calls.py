"""Calls that are refused for good: each is asked ever less often and told once, and nothing else waits for it."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.lifecycle.conditions.refused import REFUSED
from joinery.gateways.doorbell.gateway import Bell
from joinery.gateways.ec2.gateway import LaunchFailure, LaunchRequest, LaunchResult
from joinery.gateways.kubernetes.gateway import Event
from joinery.objects.errors import ConfigurationError, DeniedError, JoineryError
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.snapshot.offerings import OfferingKey
from simulator import builders
from tests.functional.disrupting import disrupt, running
from tests.functional.fuse import wired
from tests.functional.stand import APART, Stand

#: Calls of one kind about one object in an hour, and of lifecycle's runs: sixty are the schedule's.
_MOST_CALLS, _MOST_RUNS = 40, 90
_POOL = OfferingKey("m5.xlarge", "us-east-1a", "spot")
_DENIED = 'admission webhook "policy" denied the request: not by Joinery'


class _Refusing:
    """Wires on which calls of one method about some objects, or all, are refused for good once it has begun.

    ``asked``: how often, by object.
    """

    def __init__(self, method: str, error: JoineryError, *names: str) -> None:
        self.asked: Counter[str] = Counter()
        self.has_begun = False
        self._method, self._error, self._names = method, error, names

    def through(self, name: str, go: Callable[[], Any], about: Any = None) -> Any:
        """One call. EC2 refuses a call for many instances because of one of them."""
        refused = [each for each in _names(about) if not self._names or each in self._names]
        if name != self._method or not refused or not self.has_begun:
            return go()
        self.asked.update(refused)
        raise self._error


def _names(about: Any) -> list[str]:
    if isinstance(about, list | tuple):
        return [str(each) for each in about]
    if about is None or isinstance(about, str):
        return [about] if about else []
    if isinstance(about, LaunchRequest):
        return [about.token]
    metadata = getattr(about, "metadata", None)
    return [getattr(about, "key", "") or metadata.name] if metadata else []


def _protected(code: str = "OperationNotPermitted") -> ConfigurationError:
    error = ConfigurationError(f"terminating instances: {code}: modify its 'disableApiTermination' attribute")
    error.code = code
    return error


def _behind(stand: Stand, refusing: _Refusing) -> Stand:
    return Stand(stand.world, gateways=wired(stand.world.gateways, refusing.through))


def _hour(stand: Stand, *doors: Callable[[], object], minutes: int = 60) -> int:
    """Let an hour pass, in which the schedule wakes these doors, and lifecycle's ticks wake it again. Its runs."""
    runs = 0
    for _ in range(minutes):
        for door in doors:
            _run(door)
        until = stand.world.clock.now() + timedelta(minutes=1)
        while stand.world.clock.now() < until:
            stand.rung()
            _run(stand.live)
            runs += 1
            is_ticking = Bell.LIFECYCLE in stand.rung()
            left = (until - stand.world.clock.now()).total_seconds()
            stand.wait(min(5.0, left) if is_ticking else left)
            stand.world.cluster.end_grace()
    return runs


def _run(door: Callable[[], object]) -> None:
    with suppress(JoineryError):
        door()


def _told(stand: Stand, reason: str) -> list[Event]:
    return [event for event in stand.world.recorder.events if event.reason == reason]


def test_one_instance_that_ec2_does_not_end_keeps_no_other_from_ending(stand: Stand) -> None:
    """Its claim says how far it has come, what is in the way and what helps."""
    running(stand, 10)
    protected, *others = stand.alive
    refusing = _Refusing("cloud.terminate", _protected(), protected)
    behind, refusing.has_begun = _behind(stand, refusing), True
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.api.delete(pod)
    for claim in stand.claims:
        stand.world.cluster.delete_node_claim(claim)
    behind.live()
    stand.wait(6)
    _run(behind.live)
    assert stand.alive == [protected]
    runs = _hour(behind)
    (claim,) = stand.claims
    assert claim.status.provider_id.endswith(protected)
    assert claim.is_true("Drained")
    assert claim.is_true("VolumesDetached")
    assert not claim.is_true("InstanceTerminating")
    condition = claim.condition(REFUSED)
    assert condition is not None
    remedy = f"aws ec2 modify-instance-attribute --instance-id {protected} --no-disable-api-termination"
    assert (condition.reason, condition.message.endswith(remedy)) == ("TerminateInstance", True)
    assert runs <= _MOST_RUNS
    assert refusing.asked[protected] <= _MOST_CALLS
    (event,) = _told(stand, "Refused")
    assert (event.name, event.message.endswith(remedy)) == (claim.metadata.name, True)
    assert len(others) == 9


def _busy(stand: Stand) -> None:
    """A node joins, one ends, one is drained whose pod would come back, and an instance runs that nobody knows."""
    running(stand, 2)
    stand.world.cloud.launch(replace(stand.world.cloud.requests[0], token="nobody-knows", count=1))
    stand.world.cluster.delete_node_claim(stand.claims[0])
    stand.world.cluster.add(builders.pod("waiting", cpu="900m", labels={"app": "web"}, affinity=APART))
    stand.world.cluster.add(builders.node_pool("late"))
    stand.provision()
    stand.boot()


@pytest.mark.parametrize(
    ("method", "event", "error"),
    [
        ("cloud.terminate", "Refused", _protected()),
        ("cloud.tag", "Refused", _protected("UnauthorizedOperation")),
        ("cluster.update_node", "Refused", ConfigurationError(_DENIED)),
        ("cluster.delete_node", "Refused", ConfigurationError(_DENIED)),
        ("cluster.update_node_claim", "Refused", ConfigurationError(_DENIED)),
        ("cluster.update_node_pool", "Refused", DeniedError("no right (403)")),
        ("cluster.evict", "FailedEviction", ConfigurationError(_DENIED)),
        ("cluster.tolerate", "Refused", DeniedError("no right (403)")),
    ],
)
def test_whatever_is_refused_for_good_is_asked_ever_less_often(
    stand: Stand, method: str, event: str, error: JoineryError
) -> None:
    """And told once, by an Event about an object that a person knows. It was asked 390 times in half an hour."""
    refusing = _Refusing(method, error)
    behind = _behind(stand, refusing)
    _busy(behind)
    refusing.has_begun = True
    runs = _hour(behind, minutes=30)
    assert 1 < max(refusing.asked.values()) <= _MOST_CALLS / 2
    assert runs <= _MOST_RUNS
    assert set(Counter(each.uid for each in _told(stand, event)).values()) == {1}


def test_what_is_granted_after_all_is_done_and_no_longer_said(stand: Stand) -> None:
    """Somebody has removed the termination protection."""
    running(stand, 1)
    refusing = _Refusing("cloud.terminate", _protected())
    behind, refusing.has_begun = _behind(stand, refusing), True
    stand.world.cluster.delete_node_claim(stand.claim)
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.api.delete(pod)
    _hour(behind, minutes=10)
    assert stand.claim.condition(REFUSED) is not None
    refusing.has_begun = False
    _hour(behind, minutes=6)
    assert (stand.alive, stand.claims) == ([], [])


def test_a_process_to_come_knows_what_was_refused(stand: Stand) -> None:
    """The next run may be another process: it does not begin anew with ten seconds."""
    running(stand, 1)
    refusing = _Refusing("cluster.update_node", ConfigurationError(_DENIED))
    refusing.has_begun = True
    stand.world.cluster.delete_node_claim(stand.claim)
    for _ in range(30):
        _hour(_behind(Stand(stand.world), refusing), minutes=0)
        _run(_behind(stand, refusing).live)
        stand.wait(60)
    assert sum(refusing.asked.values()) <= _MOST_CALLS / 2


@pytest.mark.parametrize(("method", "most"), [("cloud.launch", 10), ("cloud.prepare", 12)])
def test_what_is_asked_outside_of_chains_waits_alike(stand: Stand, method: str, most: int) -> None:
    """CreateFleet was asked every five seconds for each claim, and EC2 for each node class."""
    refusing = _Refusing(method, _protected("UnauthorizedOperation"))
    behind, refusing.has_begun = _behind(stand, refusing), True
    stand.pods(1)
    _hour(behind, stand.provision if method == "cloud.prepare" else behind.provision, minutes=15)
    assert 2 < refusing.asked.total() <= most
    assert len(_told(stand, "Refused")) == 1


def test_a_pool_of_which_every_claim_is_refused_is_tried_ever_less_often(stand: Stand) -> None:
    """Whatever the names of its claims: it was 126 times an hour. Its pods are told why, and it is told once."""
    refusing = _Refusing("cluster.create_node_claim", ConfigurationError(_DENIED))
    behind, refusing.has_begun = _behind(stand, refusing), True
    stand.pods(3)
    _hour(behind, behind.provision, minutes=30)
    assert 2 < refusing.asked.total() <= _MOST_CALLS / 2
    assert [(event.kind, event.name) for event in _told(stand, "Refused")] == [("NodePool", "default")]
    assert _DENIED in stand.messages("FailedScheduling")["pod-0"]
    before, pool = refusing.asked.total(), stand.world.cluster.node_pools["default"]
    spec = pool.spec.model_copy(update={"weight": 7})
    stand.world.cluster.api.update(pool.model_copy(update={"spec": spec}))
    _run(behind.provision)
    assert refusing.asked.total() > before


def test_what_spoils_claims_keeps_its_own_pods_waiting_and_no_others(stand: Stand) -> None:
    """A policy that denies claims for big pods: a pod like the others is served by the next run."""
    stand.pods(2, cpu="3500m")
    refusing = _Refusing("cluster.create_node_claim", ConfigurationError(_DENIED))

    def through(name: str, go: Callable[[], Any], about: Any = None) -> Any:
        return refusing.through(name, go, about) if _is_big(about) else go()

    behind, refusing.has_begun = Stand(stand.world, gateways=wired(stand.gateways, through)), True
    _hour(behind, behind.provision, minutes=20)
    assert 2 < refusing.asked.total() <= _MOST_CALLS
    stand.world.cluster.add(builders.pod("small", cpu="500m"))
    _run(behind.provision)
    assert set(stand.messages("Nominated")) == {"small"}


def _is_big(about: Any) -> bool:
    return isinstance(about, NodeClaim) and amounts(about.spec.resources.requests).get("cpu", 0) > 3000


def test_launches_that_ec2_refuses_pool_by_pool_wait_for_claims_alike(stand: Stand) -> None:
    """CreateFleet accepts the call, and a policy of the organization denies all that it names. It was asked each tick.

    What asks for something else is launched.
    """
    denied = LaunchResult((), (LaunchFailure(_POOL, "UnauthorizedOperation", "with an explicit deny", False),))
    asked: list[str] = []

    def through(name: str, go: Callable[[], Any], about: Any = None) -> Any:
        if name != "cloud.launch" or about.labels.get("team") != "a":
            return go()
        asked.append(about.token)
        return denied

    stand.world.cluster.add(builders.node_pool("open", requirements=[{"key": "team", "operator": "Exists"}], weight=9))
    stand.live()
    behind = Stand(stand.world, gateways=wired(stand.gateways, through))
    stand.world.cluster.add(builders.pod("denied", node_selector={"team": "a"}))
    _hour(behind, behind.provision, minutes=20)
    assert 2 < len(asked) <= _MOST_CALLS / 2
    (event,) = _told(stand, "Refused")
    assert (event.kind, event.name, "with an explicit deny" in event.message) == ("NodePool", "open", True)
    stand.world.cluster.add(builders.pod("free", node_selector={"team": "b"}))
    _run(behind.provision)
    assert len(stand.alive) == 1


def test_the_same_words_about_one_object_are_told_once(stand: Stand) -> None:
    """A policy denies each update of a claim, and there are many: that it joins, that it serves, that it drifts."""
    refusing = _Refusing("cluster.update_node_claim", ConfigurationError(_DENIED))
    behind = _behind(stand, refusing)
    running(behind, 1)
    refusing.has_begun = True
    stand.world.cluster.add(builders.node_pool("default", labels={"new": "label"}))
    _hour(behind, behind.consolidate, minutes=10)
    stand.world.cluster.delete_node_claim(stand.claim)
    _hour(behind, minutes=10)
    assert len(_told(stand, "Refused")) == 1


def test_what_replaces_a_node_that_may_not_be_deleted_waits_without_ticks(stand: Stand) -> None:
    """It is kept for pods that do not come: lifecycle ran every five seconds for that."""
    refusing = _Refusing("cluster.delete_node_claim", ConfigurationError(_DENIED))
    behind = _behind(stand, refusing)
    (candidate,) = running(behind, 1)
    assert not disrupt(behind, candidate).why_not
    refusing.has_begun = True
    behind.boot()
    _hour(behind, minutes=5)
    assert _hour(behind, minutes=10) <= 15
    assert 1 < refusing.asked[candidate.metadata.name] <= 12
