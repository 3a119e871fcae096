"""What the Lease promises, in every form of the ``Cluster`` gateway."""

from datetime import timedelta

import pytest

from joinery.errors import ConflictError
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
