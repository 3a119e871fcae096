"""What the Lease promises, in every form of the ``Cluster`` gateway."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.gateways.kubernetes.api_errors import Response
from joinery.gateways.kubernetes.leases import LeaseObject
from joinery.gateways.kubernetes.transport import Transport
from joinery.objects.errors import ConfigurationError, ConflictError, UnavailableError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster
from simulator.kubernetes.kubeapi import KubernetesApi
from tests.gateways.clusters import Form

LEASE = "joinery-decisions"


def test_a_lease_has_one_holder(form: Form) -> None:
    """Whoever comes second is refused while the first holds it."""
    form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    with pytest.raises(ConflictError, match="held by a"):
        form.cluster.acquire_lease(LEASE, holder="b", seconds=60)


def test_a_released_lease_is_free(form: Form) -> None:
    """Giving it back lets the next one in at once."""
    form.cluster.release_lease(form.cluster.acquire_lease(LEASE, holder="a", seconds=60))
    assert form.cluster.acquire_lease(LEASE, holder="b", seconds=60).holder == "b"


def test_the_lease_of_a_killed_holder_ends(form: Form) -> None:
    """Its duration fences a function that died: after it, and not before, another may take over."""
    form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    form.clock.advance(timedelta(seconds=59))
    with pytest.raises(ConflictError):
        form.cluster.acquire_lease(LEASE, holder="b", seconds=60)
    form.clock.advance(timedelta(seconds=2))
    assert form.cluster.acquire_lease(LEASE, holder="b", seconds=60).holder == "b"


def test_a_late_release_does_not_free_another_s_lease(form: Form) -> None:
    """A holder that was fenced returns what it no longer has: harmless."""
    late = form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    form.clock.advance(timedelta(seconds=61))
    form.cluster.acquire_lease(LEASE, holder="b", seconds=60)
    form.cluster.release_lease(late)
    with pytest.raises(ConflictError, match="held by b"):
        form.cluster.acquire_lease(LEASE, holder="c", seconds=60)


def test_a_holder_may_take_its_lease_again(form: Form) -> None:
    """Taking it again renews it."""
    form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    form.clock.advance(timedelta(seconds=50))
    form.cluster.acquire_lease(LEASE, holder="a", seconds=60)
    form.clock.advance(timedelta(seconds=50))
    with pytest.raises(ConflictError):
        form.cluster.acquire_lease(LEASE, holder="b", seconds=60)


def test_nobody_is_believed_to_hold_it_for_years(form: Form) -> None:
    """Somebody edited the Lease. No run lasts longer than our own would hold it."""
    form.cluster.acquire_lease(LEASE, holder="a", seconds=2**31 - 1)
    form.clock.advance(timedelta(seconds=61))
    assert form.cluster.acquire_lease(LEASE, holder="b", seconds=60).holder == "b"


@pytest.mark.parametrize(
    ("renewed", "is_held"),
    [("2026-01-01T00:00:10Z", True), ("2027-02-01T00:00:00Z", False), ("9999-12-31T23:59:59Z", False)],
)
def test_a_holder_whose_clock_is_far_ahead_holds_nothing(renewed: str, is_held: bool) -> None:
    """Clocks differ by seconds. With one that is a year ahead nobody would decide for a year."""
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 60, "renewTime": renewed}
    lease = msgspec.json.decode(json.dumps({"spec": spec}), type=LeaseObject)
    assert lease.is_held(datetime(2026, 1, 1, tzinfo=UTC), 60) == is_held


class _LosesOneWrite(Transport):
    """Requests to a simulated API server. ``write``: which of the writes, from 1, is lost on its way to the server, or
    ``is_done`` and only its answer is lost.
    """

    def __init__(self, cluster: InMemoryCluster, write: int, *, is_done: bool) -> None:
        self._api = KubernetesApi(cluster)
        self._left = write
        self._is_done = is_done

    def ask(self, method: str, path: str, body: object = None, **options: Any) -> Response:
        """What the server answers. Raises ``UnavailableError`` once."""
        self._left -= method != "GET"
        is_lost = method != "GET" and self._left == 0
        if is_lost and not self._is_done:
            raise UnavailableError("connection reset")
        document = {} if body is None else json.loads(msgspec.json.encode(body))
        code, answered = self._api.answer(method, path, document)
        if is_lost:
            raise UnavailableError("read timed out")
        return Response(code, msgspec.json.encode(answered))


def _of(transport: Callable[[InMemoryCluster], Transport]) -> KubernetesCluster:
    clock = Clock()
    return KubernetesCluster(transport(InMemoryCluster(clock)), now=clock.now, node_class=EC2NodeClass)


def test_a_lease_that_was_taken_without_an_answer_can_be_given_back() -> None:
    """Its holder takes it again, so that it knows what to release: nobody has to wait for its time to end."""
    cluster = _of(lambda stored: _LosesOneWrite(stored, 1, is_done=True))
    cluster.release_lease(cluster.acquire_lease(LEASE, holder="a", seconds=60))
    assert cluster.acquire_lease(LEASE, holder="b", seconds=60).holder == "b"


@pytest.mark.parametrize("is_done", [False, True], ids=["the request is lost", "the answer is lost"])
def test_a_lease_is_given_back_though_a_request_is_lost(is_done: bool) -> None:
    """It is given back once more: nobody has to wait for its time to end."""
    cluster = _of(lambda stored: _LosesOneWrite(stored, 2, is_done=is_done))
    cluster.release_lease(cluster.acquire_lease(LEASE, holder="a", seconds=60))
    assert cluster.acquire_lease(LEASE, holder="b", seconds=60).holder == "b"


def test_a_lease_that_is_not_there_is_a_persons_to_make() -> None:
    """It comes with the rights, and nobody in the group joinery may make one."""
    for cluster in (InMemoryCluster(Clock()), _of(lambda stored: _LosesOneWrite(stored, 0, is_done=True))):
        with pytest.raises(ConfigurationError, match="Lease kube-system/joinery-other does not exist"):
            cluster.acquire_lease("joinery-other", holder="a", seconds=60)
