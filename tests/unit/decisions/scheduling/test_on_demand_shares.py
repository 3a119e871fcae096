"""Shares on demand: which pods at the gate are kept to on-demand capacity, and which run where they may."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from joinery.decisions.scheduling.on_demand_shares import on_demand_shares, with_shares
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND_SHARE
from joinery.objects.kubernetes.core import Pod
from joinery.objects.policies import OnDemandShare, on_demand_share_of
from simulator import builders

GATE = {"name": ON_DEMAND_SHARE}


def gated(
    name: str, share: str = "2 + 30%", *, owner: Any = "web-1", gates: Sequence[Any] = (GATE,), **spec: Any
) -> Pod:
    """A pod that waits at the gate."""
    annotations = {ON_DEMAND_SHARE: share} if share else {}
    return builders.pod(
        name, annotations=annotations, owner=owner, scheduling_gates=list(gates), unschedulable=False, **spec
    )


def on_demand(pods: Iterable[Pod]) -> list[str]:
    """The names of those that are kept to on-demand capacity."""
    kept = []
    for pod in pods:
        required = pod.spec.required_node_affinity
        expressions = (
            [one for term in required.node_selector_terms for one in term.match_expressions] if required else []
        )
        if any((one.key, one.values) == (CAPACITY_TYPE, ["on-demand", "reserved"]) for one in expressions):
            kept.append(pod.metadata.name)
    return kept


@pytest.mark.parametrize(
    ("text", "pods", "expected"),
    [("2", 1, 1), ("2", 10, 2), ("30%", 10, 3), ("30%", 1, 1), ("2 + 30%", 10, 5), ("0", 9, 0), ("100%", 9, 9)],
)
def test_a_share_is_a_base_and_of_the_rest_a_percentage_rounded_up(text: str, pods: int, expected: int) -> None:
    """As EC2 Auto Scaling rounds ("Allocation strategies": in favor of On-Demand)."""
    assert on_demand_share_of(text).of(pods) == expected


@pytest.mark.parametrize("text", ["", "x", "2 +", "+ 30%", "2 30%", "101%", "-1", "1.5", "2 + 3"])
def test_anything_else_is_no_share(text: str) -> None:
    """The message shows the three forms."""
    with pytest.raises(ValueError, match=r"2 \+ 30%"):
        on_demand_share_of(text)


def test_of_ten_new_pods_two_and_three_tenths_of_the_rest_run_on_demand() -> None:
    """All of them lose the gate, by name in one order."""
    pods = with_shares([gated(f"p{number}") for number in range(10)])
    assert on_demand(pods) == ["p0", "p1", "p2", "p3", "p4"]
    assert not any(pod.spec.scheduling_gates for pod in pods)


def test_pods_that_run_already_count() -> None:
    """One of the two on demand is gone, so the pod that is made in its place is the next."""
    running = with_shares([gated(f"p{number}", "2") for number in range(5)])
    assert on_demand(with_shares([*running[1:], gated("p9", "2")])) == ["p1", "p9"]
    assert on_demand(with_shares([*running[:4], gated("p9", "2")])) == ["p0", "p1"]


def test_workloads_are_counted_apart() -> None:
    """Each ReplicaSet has its own share, and so has a pod that nobody owns."""
    pods = [
        gated("a", "1", owner="web-1"),
        gated("b", "1", owner="web-2"),
        gated("c", "1", owner=None),
        gated("d", "1"),
    ]
    assert on_demand(with_shares(pods)) == ["a", "b", "c"]


def test_pods_that_end_count_no_more() -> None:
    """Neither one that is being deleted nor one that has finished."""
    done = replace(with_shares([gated("a", "1")])[0], status=replace(gated("a").status, phase="Succeeded"))
    assert on_demand(with_shares([done, gated("b", "1")])) == ["a", "b"]


def test_every_term_of_a_pod_s_own_affinity_is_narrowed() -> None:
    """The API server lets terms of a gated pod become narrower, and none be added."""
    terms = [
        {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}
        for zone in ("us-east-1a", "us-east-1b")
    ]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    (pod,) = with_shares([gated("p", "1", affinity=affinity)])
    required = pod.spec.required_node_affinity
    assert required
    assert [[one.key for one in term.match_expressions] for term in required.node_selector_terms] == (
        [["topology.kubernetes.io/zone", CAPACITY_TYPE]] * 2
    )


def test_a_pod_that_only_spot_may_serve_is_let_through_as_it_is() -> None:
    """Another one of its workload runs on demand."""
    spot = gated("a", "1", node_selector={CAPACITY_TYPE: "spot"})
    pods = with_shares([spot, gated("b", "1")])
    assert on_demand(pods) == ["b"]
    assert not pods[0].spec.scheduling_gates


def test_a_pod_that_is_on_demand_by_itself_counts() -> None:
    """A node selector says the same."""
    pods = with_shares([gated("a", "1", node_selector={CAPACITY_TYPE: "on-demand"}), gated("b", "1")])
    assert on_demand(pods) == []


def test_the_gate_of_somebody_else_stays() -> None:
    """Kueue's, for example; and a pod at that gate alone is nobody's business here."""
    other = {"name": "kueue.x-k8s.io/admission"}
    pods = with_shares([gated("a", "1", gates=[GATE, other]), gated("b", "1", gates=[other], owner="other-1")])
    assert [[gate.name for gate in pod.spec.scheduling_gates] for pod in pods] == [[other["name"]]] * 2
    assert on_demand(pods) == ["a"]


@pytest.mark.parametrize(("share", "said"), [("half", "'half' is neither a number"), ("", "has no such annotation")])
def test_a_pod_whose_annotation_says_nothing_stays_at_the_gate_and_hears_why(share: str, said: str) -> None:
    """Its neighbours go on."""
    shares = on_demand_shares([gated("a", share), gated("b", "1")])
    assert [update.before.metadata.name for update in shares.let_through] == ["b"]
    (fault,) = shares.faults
    assert (fault.reason, fault.subject) == ("InvalidOnDemandShare", gated("a", share))
    assert said in fault.message


@given(st.integers(0, 5), st.integers(0, 100), st.lists(st.booleans(), max_size=12), st.randoms())
def test_whatever_comes_and_goes_the_share_is_kept_once_all_is_made_anew(
    base: int, percent: int, stays: list[bool], random: Any
) -> None:
    """Pods that go are made again at the gate; those on demand are then as many as the share says, or more."""
    text = f"{base} + {percent}%"
    pods = list(with_shares([gated(f"p{number:02}", text) for number in range(len(stays))]))
    random.shuffle(pods)
    after = with_shares(
        [pod if keep else gated(f"q{n:02}", text) for n, (pod, keep) in enumerate(zip(pods, stays, strict=True))]
    )
    assert len(on_demand(after)) == OnDemandShare(base, percent).of(len(stays))
