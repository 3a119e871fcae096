"""A node that is smaller than its instance type: somebody is told, and nothing else is done."""

from msgspec.structs import replace

from joinery.objects.karpenter.meta import Condition
from joinery.objects.kubernetes.core import Node
from tests.functional.stand import Stand


def _verdict(stand: Stand) -> Condition:
    condition = stand.claim.condition("ConsistentStateFound")
    assert condition is not None
    return condition


def _resize(stand: Stand, cpu: str) -> None:
    (node,) = stand.world.cluster.nodes.values()
    capacity = {**node.status.capacity, "cpu": cpu}
    stand.world.cluster.add(replace(node, status=replace(node.status, capacity=capacity)))


def _told(stand: Stand) -> int:
    return [event.reason for event in stand.world.cluster.events].count("FailedConsistencyCheck")


def test_a_node_is_as_large_as_it_should_be(stand: Stand) -> None:
    """Said in the write that makes it initialized, and not again."""
    stand.pods(1)
    stand.settle()
    assert (_verdict(stand).status, _told(stand)) == ("True", 0)
    before = stand.claim.status.conditions
    stand.wait(3600)
    stand.live()
    assert stand.claim.status.conditions == before


def test_a_node_that_lacks_a_tenth_is_told_of(stand: Stand) -> None:
    """An Event and the condition say what is missing; the node stays in use."""
    stand.pods(1)
    stand.settle()
    stand.wait(600)
    _resize(stand, "3")
    stand.live()
    assert (_verdict(stand).status, _verdict(stand).reason) == ("False", "ConsistencyCheckFailed")
    assert _verdict(stand).message.startswith("expected 4 of cpu, but node ip-")
    assert (stand.claim.is_true("Ready"), _told(stand)) == (True, 1)


def test_a_claim_is_told_of_once_in_ten_minutes_at_most(stand: Stand) -> None:
    """However its node changes in between: the verdict itself remembers when it was made."""
    stand.pods(1)
    stand.settle()
    for number in range(20):
        stand.wait(60)
        _resize(stand, "4" if number % 2 else "3")
        stand.live()
    assert _told(stand) <= 2


def test_a_verdict_that_lasts_is_told_once(stand: Stand) -> None:
    """The condition stays for whoever looks."""
    stand.pods(1)
    stand.settle()
    stand.wait(600)
    _resize(stand, "3")
    for _ in range(5):
        stand.live()
        stand.wait(700)
    assert (_told(stand), _verdict(stand).status) == (1, "False")
    _resize(stand, "4")
    stand.live()
    assert _verdict(stand).status == "True"


def test_what_no_pod_asked_for_may_be_missing(stand: Stand) -> None:
    """Only resources that the node was bought for count."""
    stand.pods(1)
    stand.settle()
    stand.wait(600)
    (node,) = stand.world.cluster.nodes.values()
    capacity = {**node.status.capacity, "ephemeral-storage": "1"}
    small: Node = replace(node, status=replace(node.status, capacity=capacity))
    stand.world.cluster.add(small)
    stand.live()
    assert _verdict(stand).status == "True"
