"""Nodes that are old enough are replaced and retired."""

from joinery.apis.labels import RETIRED_FOR
from joinery.doorbell.gateway import Bell
from tests.functional.fuse import Fuse
from tests.functional.stand import Stand

DAY = 24 * 3600


def test_an_old_node_is_replaced_before_it_is_drained(stand: Stand) -> None:
    """Thirty days after it was made; its pods count as pending from then on."""
    stand.pods(3)
    stand.settle()
    stand.wait(30 * DAY)
    stand.rung()
    assert stand.expire() == {"expired": 1}
    assert stand.rung() == {Bell.PROVISIONING, Bell.LIFECYCLE}
    stand.live()
    assert "Evicted" not in stand.told("Pod")
    assert stand.provision()["launched"] == 1
    stand.live()
    assert "Evicted" in stand.told("Pod")


def test_an_expired_claim_is_marked_before_it_is_deleted(stand: Stand) -> None:
    """The mark is what keeps its pods where they are until they have another place."""
    stand.pods(1)
    stand.settle()
    stand.wait(30 * DAY)
    stand.expire()
    assert stand.claim.metadata.annotations[RETIRED_FOR] == "Expired"
    assert stand.claim.is_deleting


def test_a_young_node_is_left_alone(stand: Stand) -> None:
    """The minute's run writes nothing and wakes nobody."""
    stand.pods(1)
    stand.settle()
    stand.wait(29 * DAY)
    stand.rung()
    assert (stand.expire(), stand.rung()) == ({"expired": 0}, set())


def test_expiration_reads_no_pods(stand: Stand) -> None:
    """How old a claim is, and when its reservation ends, is written on claims and classes."""
    fuse = Fuse()
    stand.gateways = fuse.protect(stand.gateways)
    stand.expire()
    assert fuse.calls == ["cluster.claims_snapshot"]


def test_a_node_is_expired_once(stand: Stand) -> None:
    """While it drains, the next minutes have nothing to do."""
    stand.pods(1)
    stand.settle()
    stand.wait(30 * DAY)
    stand.expire()
    assert stand.expire() == {"expired": 0}
