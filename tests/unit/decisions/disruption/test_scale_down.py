"""Static NodePools with more nodes than they are to have: which go."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.disruption.moves import eviction_cost
from joinery.decisions.disruption.scale_down import lifetime_remaining, scale_down
from joinery.objects.actions import Announce, DeleteClaim
from joinery.objects.karpenter.labels import DISRUPTION_COST, DO_NOT_DISRUPT, POD_DELETION_COST
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import core
from joinery.objects.snapshot.snapshot import Invalid, Snapshot
from simulator import builders
from simulator.clock import START
from tests.properties import examples

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
_FIELDS = {core.Node: "nodes", core.Pod: "pods", NodeClaim: "node_claims", NodePool: "node_pools"}


def _snapshot(*objects: Any, **fields: Any) -> Snapshot:
    for one in objects:
        name = _FIELDS[type(one)]
        fields[name] = (*fields.get(name, ()), one)
    return Snapshot(now=START, **fields)


def _gone(*objects: Any, **fields: Any) -> list[str]:
    chains = scale_down(_snapshot(*objects, **fields))
    return [command.claim.metadata.name for chain in chains for command in chain if isinstance(command, DeleteClaim)]


def _machine(name: str, *pods: core.Pod, zone: str = ZONES[0], **given: Any) -> Sequence[Any]:
    """A claim with its node and pods."""
    claim = {key: given.pop(key) for key in ("created", "conditions", "node_pool") if key in given}
    return (
        builders.node_claim(name, node=f"n-{name}", zone=zone, **claim),
        builders.node(f"n-{name}", zone=zone, **given),
        *pods,
    )


def _pod(name: str, node: str, **given: Any) -> core.Pod:
    return builders.pod(name, node=f"n-{node}", **given)


def _one_too_many(*machines: Sequence[Any]) -> list[str]:
    pool = builders.node_pool(replicas=len(machines) - 1)
    return _gone(pool, *(one for machine in machines for one in machine))


def test_what_nobody_uses_goes_first_and_what_is_protected_last() -> None:
    """Unlaunched, unfit, empty, used, protected."""
    machines = [
        [builders.node_claim("unlaunched", conditions=())],
        _machine("starting", initialized=False, conditions=("Launched", "Registered")),
        _machine("empty", builders.pod("agent", node="n-empty", owner="DaemonSet/agent")),
        _machine("used", _pod("web", "used")),
        _machine("kept", annotations={DO_NOT_DISRUPT: "true"}),
        _machine("protected", _pod("batch", "protected", annotations={DO_NOT_DISRUPT: "true"})),
    ]
    flat = [one for machine in reversed(machines) for one in machine]
    order = ["unlaunched", "starting", "empty", "used", "kept", "protected"]
    for replicas in range(len(order) + 1):
        assert _gone(builders.node_pool(replicas=replicas), *flat) == order[: len(order) - replicas]


def test_a_node_that_is_not_ready_goes_before_one_that_is() -> None:
    """Its pods do not run anyway."""
    assert _one_too_many(_machine("ready"), _machine("broken", _pod("web", "broken"), ready=False)) == ["broken"]


def test_a_protected_daemon_pod_protects_its_node() -> None:
    """It asked for it (Karpenter static deprovisioning)."""
    agent = _pod("agent", "one", owner="DaemonSet/agent", annotations={DO_NOT_DISRUPT: "true"})
    assert _one_too_many(_machine("one", agent), _machine("two", _pod("web", "two"))) == ["two"]


def test_fewer_and_cheaper_pods_go_first() -> None:
    """Priority and deletion cost weigh, and a node that expires soon is cheaper."""
    two = _machine("two", _pod("a", "two"), _pod("b", "two"))
    one = _machine("one", _pod("c", "one"))
    dear = _machine("dear", _pod("d", "dear", priority=200_000_000))
    assert _one_too_many(two, one) == ["one"]
    assert _one_too_many(two, dear) == ["two"]
    old = _machine("old", _pod("e", "old"), _pod("f", "old"), created=START - timedelta(hours=700))
    assert _one_too_many(one, old) == ["old"]


def test_a_drifted_node_goes_before_its_equals() -> None:
    """It would be replaced anyway."""
    drifted = ("Launched", "Registered", "Initialized", "Drifted")
    assert _one_too_many(_machine("a"), _machine("b", conditions=drifted)) == ["b"]


def test_of_equal_nodes_those_in_the_fullest_zone_go_first() -> None:
    """So that what stays is spread evenly."""
    machines = [_machine(f"{zone[-1]}{number}", zone=zone) for zone in ZONES for number in range(3)]
    extra = _machine("c9", zone=ZONES[2])
    pool = builders.node_pool(replicas=5)
    gone = _gone(pool, *(one for machine in (*machines, extra) for one in machine))
    assert Counter(name[0] for name in gone) == {"c": 3, "b": 1, "a": 1}
    assert gone[0].startswith("c")


def test_only_static_pools_with_too_many_nodes_give_any_up() -> None:
    """And none that is being deleted: its claims go with it."""
    claim = builders.node_claim("c-1", node="n-1")
    assert _gone(builders.node_pool(replicas=1), claim) == []
    assert _gone(builders.node_pool(replicas=2), claim) == []
    assert _gone(builders.node_pool(), claim) == []
    assert _gone(builders.foreign(builders.node_pool(replicas=0)), builders.foreign(claim)) == []
    going = builders.node_pool(replicas=0)
    going = going.model_copy(update={"metadata": going.metadata.model_copy(update={"deletion_timestamp": START})})
    assert _gone(going, claim) == []


def test_what_goes_already_is_not_counted_and_what_cannot_be_read_is() -> None:
    """An unreadable claim has its instance, but nothing can be said of it, so another one goes."""
    claims = [builders.node_claim("c-1", node="n-1"), builders.node_claim("c-2", node="n-2", deleted=START)]
    unreadable = (Invalid("NodeClaim", "c-3", "spoiled", node_pool="default"),)
    assert _gone(builders.node_pool(replicas=1), *claims) == []
    assert _gone(builders.node_pool(replicas=1), *claims, invalid=unreadable) == ["c-1"]
    assert _gone(builders.node_pool(replicas=0), *claims, invalid=unreadable) == ["c-1"]


def test_it_is_said_why() -> None:
    """On the claim, as an Event."""
    claims = [builders.node_claim(f"c-{number}", node=f"n-{number}") for number in range(3)]
    (chain, _) = scale_down(_snapshot(builders.node_pool(replicas=1), *claims))
    announcement, deletion = chain
    assert isinstance(announcement, Announce)
    assert isinstance(deletion, DeleteClaim)
    assert announcement.reason == "ScaledDown"
    assert deletion.reason == announcement.message == "NodePool default has 3 nodes, and replicas is 1"


@pytest.mark.parametrize(
    ("deletion_cost", "priority", "cost"),
    [
        ("0", 0, 1.0),
        (str(2**27), 0, 2.0),
        (str(-(2**27)), 0, 0.0),
        (str(2**31 - 1), 0, 10.0),
        (str(-(2**31)), 0, -10.0),
        ("much", 0, 1.0),
        ("nan", 0, 1.0),
        ("0", 2**25, 2.0),
        ("0", 2_000_001_000, 10.0),
        ("0", -(2**26), -1.0),
    ],
)
def test_an_eviction_costs_what_karpenter_says(deletion_cost: str, priority: int, cost: float) -> None:
    """Neutral is 1; what is no number is ignored."""
    pod = builders.pod("web", annotations={POD_DELETION_COST: deletion_cost}, priority=priority)
    assert eviction_cost(pod, {}) == pytest.approx(cost)


def test_a_disruption_cost_counts_instead_of_a_deletion_cost() -> None:
    """Karpenter v1.15 reads a name of its own first: the other one tells ReplicaSets in which order to shrink."""
    costs = {POD_DELETION_COST: str(2**27), DISRUPTION_COST: str(2**28)}
    assert eviction_cost(builders.pod("web", annotations=costs), {}) == pytest.approx(3)
    unreadable = {**costs, DISRUPTION_COST: "much"}
    assert eviction_cost(builders.pod("web", annotations=unreadable), {}) == pytest.approx(1)


@pytest.mark.parametrize(
    ("expire_after", "hours", "left"), [("Never", 9999, 1.0), ("10h", 0, 1.0), ("10h", 4, 0.6), ("10h", 40, 0.0)]
)
def test_a_claim_has_a_share_of_its_lifetime_left(expire_after: str, hours: int, left: float) -> None:
    """Between 0 and 1."""
    claim = builders.node_claim("c", expire_after=expire_after, created=START - timedelta(hours=hours))
    assert lifetime_remaining(claim, START) == pytest.approx(left)


@given(st.lists(st.tuples(st.sampled_from(ZONES), st.integers(0, 2)), max_size=9), st.integers(0, 9))
@examples(30)
def test_exactly_the_excess_goes_and_no_used_node_before_an_empty_one(
    nodes: list[tuple[str, int]], replicas: int
) -> None:
    """Whatever there is."""
    machines = [
        _machine(f"c{number}", *(_pod(f"p{number}-{i}", f"c{number}") for i in range(pods)), zone=zone)
        for number, (zone, pods) in enumerate(nodes)
    ]
    gone = _gone(builders.node_pool(replicas=replicas), *(one for machine in machines for one in machine))
    assert len(gone) == len(set(gone)) == max(0, len(nodes) - replicas)
    pods = [nodes[int(name[1:])][1] for name in gone]
    assert pods == sorted(pods)
