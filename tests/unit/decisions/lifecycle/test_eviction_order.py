"""Large pods choose their new place before small ones do, and nobody waits for that for long."""

from datetime import timedelta
from typing import Any

from joinery.decisions.lifecycle.draining.finalization import finalize
from joinery.decisions.lifecycle.state.cluster import state_of
from joinery.decisions.lifecycle.state.eviction_order import LONGEST_WAIT, awaiting_larger
from joinery.objects.actions import Evict
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, INTERRUPTED_AT, REPLACEMENT_LAUNCHED, RETIRED_FOR, ZONE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.snapshot.instances import Instance
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

BEGUN = START - timedelta(seconds=10)


def _going(name: str = "claim-a", *, since: Any = BEGUN, retired: bool = True, **given: Any) -> NodeClaim:
    """A claim that is given up, and whose pods have a place elsewhere."""
    annotations = {REPLACEMENT_LAUNCHED: since.isoformat(), **({RETIRED_FOR: "Underutilized"} if retired else {})}
    annotations |= given.pop("annotations", {})
    return builders.node_claim(name, node=name, annotations=annotations, deleted=since, **given)


def _node() -> Node:
    return builders.node("s", cpu="16", memory="64Gi")


#: A node with room of every kind.
STAYING = [(_node(), ())]


def _pod(name: str, cpu: str = "1", memory: str = "1Gi", **given: Any) -> Pod:
    return builders.pod(name, node="n", cpu=cpu, memory=memory, **given)


def test_pods_of_one_size_go_together() -> None:
    """So does one that is nearly as large."""
    pods = (_pod("a", "1"), _pod("b", "1"), _pod("c", "850m"))
    assert awaiting_larger([(_going(), pods)], STAYING, START) == frozenset()


def test_small_pods_wait_for_large_ones_of_any_node() -> None:
    """Three quarters are small: where one pod of 700m has its only place, one of 500m must not come first."""
    large, small = (_pod("large", "2"),), (_pod("small", "1500m"),)
    waiting = awaiting_larger([(_going("a"), large), (_going("b"), small)], STAYING, START)
    assert waiting == {"default/small"}


def test_nobody_waits_for_a_drain_that_is_said_to_begin_tomorrow() -> None:
    """Somebody edited the annotation: small pods would wait until then."""
    large, small = (_pod("large", "2"),), (_pod("small", "1500m"),)
    edited = _going("a", since=START + timedelta(days=1)), _going("b", since=START + timedelta(days=1))
    assert awaiting_larger([(edited[0], large), (edited[1], small)], STAYING, START) == frozenset()


def test_what_the_nodes_that_stay_are_short_of_counts() -> None:
    """A pod with much memory is large where memory is short, whatever its CPU; else one with much CPU is."""
    pods = (_pod("cpu", "2", "1Gi"), _pod("memory", "100m", "8Gi"))
    without_cpu = [(_node(), (_pod("x", "14", "1Gi"),))]
    without_memory = [(_node(), (_pod("x", "1", "48Gi"),))]
    assert awaiting_larger([(_going(), pods)], without_cpu, START) == {"default/memory"}
    assert awaiting_larger([(_going(), pods)], without_memory, START) == {"default/cpu"}


def test_a_pod_of_one_zone_chooses_before_a_larger_one_that_may_go_anywhere() -> None:
    """It has the only place there is for it, and the other has more."""
    staying = [(builders.node(zone, cpu="4", memory="16Gi", zone=zone), ()) for zone in ("us-east-1a", "us-east-1b")]
    picky, free = _pod("picky", "1500m", node_selector={ZONE: "us-east-1b"}), _pod("free", "2")
    assert awaiting_larger([(_going(), (free, picky))], staying, START) == {"default/free"}


def test_a_pod_with_a_number_that_nobody_can_hold_keeps_no_other_waiting() -> None:
    """Older API servers store any text as a value of node affinity. This is asked for all drains together."""
    expressions = [
        {"key": "tier", "operator": "NotIn", "values": ["9" * 5000]},
        {"key": "tier", "operator": "Gt", "values": ["1"]},
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pods = (_pod("odd", "2", affinity=affinity), _pod("large", "2"), _pod("small", "1500m"))
    assert awaiting_larger([(_going(), pods)], STAYING, START) == {"default/small"}


def test_room_behind_a_taint_is_room_for_those_who_tolerate_it() -> None:
    """A node that was bought for others has no place for anybody else."""
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    staying = [
        (builders.node("open", cpu="8", memory="32Gi"), ()),
        (builders.node("db", cpu="64", memory="256Gi", taints=[taint]), ()),
    ]
    database = _pod("database", "3", tolerations=[{"key": "dedicated", "operator": "Exists"}])
    assert awaiting_larger([(_going(), (database, _pod("web", "1500m")))], staying, START) == {"default/database"}


def test_a_pod_whose_place_is_a_new_node_neither_waits_nor_is_waited_for() -> None:
    """None of the nodes that stay is for it, so it takes nobody's place."""
    elsewhere = _pod("elsewhere", "4", node_selector={ZONE: "us-east-1f"})
    assert awaiting_larger([(_going(), (elsewhere, _pod("small", "1")))], STAYING, START) == frozenset()


def test_pods_that_end_take_no_room_of_nodes_that_stay() -> None:
    """Nor does a node with more requested than it can allocate owe its neighbours anything."""
    pods = (_pod("cpu", "2", "1Gi"), _pod("memory", "100m", "24Gi"))
    full = (
        _node(),
        (_pod("x", "14", "1Gi", deleted=START), _pod("y", "1", "1Gi"), _pod("z", "1", "1Gi", phase="Failed")),
    )
    overfull = (_node(), (_pod("x", "100", "1Gi"),))
    assert awaiting_larger([(_going(), pods)], [full, overfull], START) == {"default/cpu"}


def test_when_the_large_ones_are_on_their_way_the_next_follow() -> None:
    """A pod that ends is waited for by nobody; its successor has its place by now."""
    pods = (_pod("large", "2", deleted=START), _pod("small", "500m"), _pod("tiny", "100m"))
    assert awaiting_larger([(_going(), pods)], STAYING, START) == {"default/tiny"}


def test_nobody_waits_for_a_pod_that_is_not_evicted() -> None:
    """It must not be disrupted, or its node still waits for its replacement."""
    protected = (_pod("large", "2", annotations={DO_NOT_DISRUPT: "true"}),)
    waits = builders.node_claim("w", node="w", annotations={RETIRED_FOR: "Underutilized"}, deleted=BEGUN)
    drains = [(_going("a"), protected), (waits, (_pod("other", "2"),)), (_going("b"), (_pod("small", "500m"),))]
    assert awaiting_larger(drains, STAYING, START) == frozenset()


def test_nobody_waits_for_longer_than_a_minute() -> None:
    """The large one may have a budget that keeps it for days, and the small one may wait for many large ones."""
    late = START - LONGEST_WAIT
    large, small = (_pod("large", "2"),), (_pod("small", "500m"),)
    assert awaiting_larger([(_going("a", since=late), large), (_going("b"), small)], STAYING, START) == frozenset()
    assert awaiting_larger([(_going("a"), large), (_going("b", since=late), small)], STAYING, START) == frozenset()


def test_a_node_that_must_go_soon_waits_for_nobody() -> None:
    """EC2 takes it, it has a deadline, or a person has deleted it."""
    large, small = (_pod("large", "2"),), (_pod("small", "500m"),)
    hurried = (
        _going("b", annotations={INTERRUPTED_AT: BEGUN.isoformat()}),
        _going("b", termination_grace_period="5m"),
        _going("b", retired=False),
    )
    for claim in hurried:
        assert awaiting_larger([(_going("a"), large), (claim, small)], STAYING, START) == frozenset()


def test_a_drain_evicts_those_whose_turn_it_is() -> None:
    """The others are asked in a later tick, which comes; that they were not asked is no stall."""
    claim = _going("n")
    pods = (_pod("large", "2"), _pod("small", "500m"))
    for listed, evicted in ((pods, ["large"]), (pods[1:], ["small"])):
        node = builders.node("n", provider_id=claim.status.provider_id)
        snapshot = Snapshot(now=START, node_claims=(claim,), nodes=(node, _node()), pods=listed)
        instance = Instance("i-n", "m7a.xlarge", "us-east-1a", "on-demand", "running", BEGUN)
        step = finalize(state_of(snapshot, (instance,)), claim)
        assert [command.pod.metadata.name for command in step.commands if isinstance(command, Evict)] == evicted
        assert step.in_progress
