"""Who a claim was launched for, and who stands in for a pod that is gone."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.lifecycle.state.cluster import state_of
from joinery.objects.annotations.plans import MOST_BYTES, expected, needs, planned_pods, remembered
from joinery.objects.karpenter.labels import PLANNED_TAINT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START


def _claim(*pods: Pod, name: str = "claim-1", conditions: tuple[str, ...] = ("Launched",), **rest: Any) -> NodeClaim:
    """A claim that was launched for these pods."""
    kept = remembered([pod.key for pod in pods], {pod.key: pod for pod in pods})
    return builders.node_claim(name, annotations=kept, conditions=conditions, **rest)


def _web(name: str, **rest: Any) -> Pod:
    return builders.pod(name, **{"owner": "web", **rest})


def _expected(claim: NodeClaim, *pods: Pod, **rest: Any) -> tuple[str, ...]:
    return expected([claim], rest.get("nodes", ()), pods)["claim-1"]


def test_a_twin_takes_the_place_of_a_pod_that_is_gone() -> None:
    """A ReplicaSet recreates what was evicted, under another name."""
    claim = _claim(_web("web-a"), _web("web-b"))
    assert _expected(claim, _web("web-b"), _web("web-c")) == ("default/web-c", "default/web-b")


def test_a_pod_that_is_being_deleted_has_given_up_its_place() -> None:
    """Its successor is there as soon as it is asked to go."""
    claim = _claim(_web("web-a", node="old"))
    assert _expected(claim, _web("web-a", node="old", deleted=START), _web("web-b")) == ("default/web-b",)


def test_a_pod_of_a_stateful_set_keeps_its_place_while_it_stops() -> None:
    """It comes back under its own name."""
    owner = builders.owner("StatefulSet", "db")
    old = builders.pod("db-0", node="old", owner=owner, deleted=START)
    assert _expected(_claim(old), old, builders.pod("db-1", owner=owner)) == ("default/db-0",)


@pytest.mark.parametrize(
    "other",
    [
        builders.pod("other-1", owner="other"),
        _web("web-b", cpu="2"),
        _web("web-b", node_selector={"disk": "ssd"}),
        _web("web-b", namespace="elsewhere"),
        _web("web-b", node="node-9"),
        _web("web-b", phase="Failed"),
        builders.pod("web-b"),
    ],
)
def test_only_a_twin_stands_in(other: Pod) -> None:
    """Same owner, same needs, still waiting: anybody else was not bought for."""
    assert _expected(_claim(_web("web-a")), other) == ("default/web-a",)


def test_a_pod_that_nobody_recreates_has_no_twin() -> None:
    """However alike another one is."""
    assert _expected(_claim(builders.pod("a")), builders.pod("b")) == ("default/a",)


def test_what_steering_wrote_makes_no_difference() -> None:
    """The pod that is gone tolerated its node's taint already."""
    let_in = {"key": PLANNED_TAINT, "operator": "Equal", "value": "claim-1", "effect": "NoSchedule"}
    assert needs(_web("web-a", tolerations=[let_in])) == needs(_web("web-b"))


def test_once_a_node_is_open_to_all_its_plan_is_history() -> None:
    """Its room is counted as it is, for whoever fits."""
    claim = _claim(_web("web-a"), conditions=("Launched", "Registered", "Initialized"), node="node-1")
    kept = builders.node("node-1", taints=[{"key": PLANNED_TAINT, "value": "claim-1", "effect": "NoSchedule"}])
    assert _expected(claim, _web("web-b"), nodes=[builders.node("node-1")]) == ("default/web-a",)
    assert _expected(claim, _web("web-b"), nodes=[kept]) == ("default/web-b",)


def test_a_twin_that_has_arrived_holds_its_place() -> None:
    """The next one is expected where there is room yet: else nobody would be let in there, and a node be bought."""
    conditions = ("Launched", "Registered", "Initialized")
    claims = [_claim(_web(f"web-{i}"), name=f"claim-{i}", conditions=conditions, node=f"node-{i}") for i in (1, 2)]
    taints = [{"key": PLANNED_TAINT, "value": claim.metadata.name, "effect": "NoSchedule"} for claim in claims]
    nodes = [builders.node(f"node-{i}", taints=[taint]) for i, taint in enumerate(taints, start=1)]
    pods = [_web("web-3", node="node-1"), _web("web-4")]
    assert expected(claims, nodes, pods) == {"claim-1": ("default/web-3",), "claim-2": ("default/web-4",)}


def test_a_plan_and_steering_see_the_same_pods() -> None:
    """Whoever the room is kept for in a plan is let in onto the node."""
    claim, twin = _claim(_web("web-a")), _web("web-b")
    snapshot = Snapshot(now=START, node_claims=(claim,), pods=(twin,))
    (node,) = snapshot.views
    assert node.planned == state_of(snapshot, ()).expected["claim-1"] == (twin.key,)


def test_a_claim_remembers_no_more_than_the_api_server_takes() -> None:
    """Annotations of an object have 256 KiB; the pods beyond that are served without being kept for."""
    pods = [_web(f"{'x' * 240}-{number:04}", namespace="n" * 63) for number in range(2000)]
    claim = _claim(*pods)
    assert sum(map(len, claim.metadata.annotations.values())) <= MOST_BYTES
    assert planned_pods(claim) == tuple(pod.key for pod in pods[: len(planned_pods(claim))])
    assert len(planned_pods(claim)) > 300


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", '{"a/b": 3}', '{"a/b": [7, "x", -1]}'])
def test_an_unreadable_memory_is_none(text: str) -> None:
    """Somebody may have edited it."""
    claim = builders.node_claim(
        "claim-1", annotations={"joinery.dev/planned-pods": '["default/a"]', "joinery.dev/planned-needs": text}
    )
    assert _expected(claim, _web("web-b")) == ("default/a",)


@dataclass(frozen=True)
class _World:
    claims: tuple[NodeClaim, ...]
    pods: tuple[Pod, ...]


@st.composite
def _worlds(draw: st.DrawFn) -> _World:
    """Claims for pods of two ReplicaSets, of whose pods some are gone and some came back under other names."""
    owners = st.sampled_from(["a", "b"])
    plans = draw(st.lists(st.lists(owners, max_size=4), max_size=4))
    planned = [[_web(f"old-{i}-{j}", owner=o) for j, o in enumerate(plan)] for i, plan in enumerate(plans)]
    claims = tuple(_claim(*pods, name=f"claim-{i}") for i, pods in enumerate(planned))
    alive = [pod for pods in planned for pod in pods if draw(st.booleans())]
    new = [_web(f"new-{i}", owner=o) for i, o in enumerate(draw(st.lists(owners, max_size=6)))]
    return _World(claims, tuple(draw(st.permutations(alive + new))))


def _by_owner(pods: list[Pod]) -> Counter[str]:
    return Counter(pod.metadata.owner_references[0].name for pod in pods)


@given(_worlds())
def test_places_and_twins_are_matched_one_for_one(world: _World) -> None:
    """Nobody is expected twice, nobody who lives loses a place, and no place stays free while a twin waits."""
    known = {pod.key: pod for pod in world.pods}
    before = [key for claim in world.claims for key in planned_pods(claim)]
    after = [key for keys in expected(world.claims, (), world.pods).values() for key in keys]
    kept = [old for old, new in zip(before, after, strict=True) if old in known and old == new]
    assert kept == [key for key in before if key in known]
    assert max(Counter(after).values(), default=1) == 1
    free = [old for old in before if old not in known]
    twins = [known[key] for key in after if key in known and key not in before]
    waiting = _by_owner([pod for pod in world.pods if pod.metadata.name.startswith("new")])
    places = Counter(
        pods_owner for claim in world.claims for key, pods_owner in _owners_of(claim).items() if key in free
    )
    assert _by_owner(twins) == +Counter({owner: min(waiting[owner], places[owner]) for owner in ("a", "b")})


def _owners_of(claim: NodeClaim) -> dict[str, str]:
    """The ReplicaSet of each planned pod, told by its UID."""
    groups = json.loads(claim.metadata.annotations["joinery.dev/planned-needs"])
    names = planned_pods(claim)
    uid = {builders.owner("ReplicaSet", name).uid: name for name in ("a", "b")}
    return {names[i]: uid[group.partition("/")[0]] for group, indices in groups.items() for i in indices}
