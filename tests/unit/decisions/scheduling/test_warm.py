"""A process that has planned before comes to the same plan as one that has just begun: it only takes less time."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from joinery.decisions.capping import plan_within_caps
from joinery.decisions.planning import Plan
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.known import Known
from joinery.objects.snapshot.nodes import NodeView, cordoned
from joinery.objects.snapshot.pods import bound_to
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.builders import EPOCH, node, node_claim
from tests.properties import examples
from tests.unit.decisions.scheduling.worlds import RULES, ZONES, Wish, World, wishes, worlds

Fields = dict[str, Any]


def _without_first_pod(fields: Fields, _: Wish) -> Fields:
    return {**fields, "pods": fields["pods"][1:]}


def _with_a_pod(fields: Fields, wish: Wish) -> Fields:
    return {**fields, "pods": (*fields["pods"], wish.pod(f"new-{len(fields['pods'])}"))}


def _bound(fields: Fields, _: Wish) -> Fields:
    """The first pod that waits is bound to the first node."""
    first = next((pod for pod in fields["pods"] if not pod.spec.node_name), None)
    if first is None or not fields["nodes"]:
        return fields
    return _with(fields, first, bound_to(first, fields["nodes"][0].metadata.name))


def _evicted(fields: Fields, _: Wish) -> Fields:
    """The first pod that is bound is asked to go."""
    first = next((pod for pod in fields["pods"] if pod.spec.node_name), None)
    if first is None:
        return fields
    return _with(fields, first, with_fields(first, metadata=with_fields(first.metadata, deletion_timestamp=EPOCH)))


def _nominated(fields: Fields, _: Wish) -> Fields:
    """kube-scheduler has nominated the last pod for the last node."""
    last = fields["pods"][-1] if fields["pods"] else None
    if last is None or last.spec.node_name or not fields["nodes"]:
        return fields
    there = with_fields(last.status, nominated_node_name=fields["nodes"][-1].metadata.name)
    return _with(fields, last, with_fields(last, status=there))


def _cordoned(fields: Fields, _: Wish) -> Fields:
    return {**fields, "nodes": (*map(cordoned, fields["nodes"][:1]), *fields["nodes"][1:])}


def _without_first_node(fields: Fields, _: Wish) -> Fields:
    return {**fields, "nodes": fields["nodes"][1:]}


def _with_a_node(fields: Fields, wish: Wish) -> Fields:
    name = f"joined-{len(fields['nodes'])}"
    claim = node_claim(f"claim-{name}", node=name, node_pool=fields["node_pools"][0].metadata.name)
    pool = fields["node_pools"][0].metadata.name
    joined = node(name, zone=ZONES[0], node_pool=pool, provider_id=claim.status.provider_id)
    return {**fields, "nodes": (*fields["nodes"], joined), "node_claims": (*fields["node_claims"], claim)}


def _leaving(fields: Fields, _: Wish) -> Fields:
    """The first claim is deleted."""
    going = (
        claim.model_copy(update={"metadata": claim.metadata.model_copy(update={"deletion_timestamp": EPOCH})})
        for claim in fields["node_claims"][:1]
    )
    return {**fields, "node_claims": (*going, *fields["node_claims"][1:])}


def _with(fields: Fields, before: Pod, after: Pod) -> Fields:
    return {**fields, "pods": tuple(after if pod is before else pod for pod in fields["pods"])}


Change = Callable[[Fields, Wish], Fields]
_CHANGES: tuple[Change, ...] = (
    _without_first_pod, _with_a_pod, _bound, _evicted, _nominated, _cordoned, _without_first_node, _with_a_node,
    _leaving,
)  # fmt: skip
_NAMES = ("pods", "nodes", "node_claims", "node_pools")


def _planned(problem: Problem, fields: Fields, known: Known) -> tuple[Plan, Snapshot]:
    known.pods = fields["pods"]
    snapshot = replace(problem.snapshot, **fields, known=known)
    return plan_within_caps(replace(problem, snapshot=snapshot)).proven(), snapshot


@examples(60)
@given(
    world=worlds(most=5, copies=3, rules=tuple(RULES)),
    changes=st.lists(st.tuples(st.sampled_from(_CHANGES), wishes()), min_size=1, max_size=6),
)
def test_a_plan_of_a_warm_process_is_that_of_a_cold_one(world: World, changes: list[tuple[Change, Wish]]) -> None:
    """Whatever has happened since its last plan."""
    problem, known = world.problem, Known()
    fields: Fields = {name: getattr(problem.snapshot, name) for name in _NAMES}
    fields = _with_a_node(fields, world.wishes[0])
    _planned(problem, fields, known)
    for change, wish in changes:
        fields = change(fields, wish)
        (warm, read), (cold, anew) = _planned(problem, fields, known), _planned(problem, fields, Known())
        assert read.views == anew.views
        assert warm == cold


def test_a_node_keeps_its_view_until_something_about_it_changes() -> None:
    """The Node, its claim, or its pods; what was derived from the views of others need not be worked out again."""
    pod = Wish("red", 200, 1, "none", "", tolerates=False, port=0).pod("pod-1")
    claim, known = node_claim("claim-1", node="node-1"), Known()
    fields: Fields = {"nodes": (node("node-1"), node("node-2")), "node_claims": (claim,), "pods": ()}
    first, second = _views(fields, known)
    assert not first.is_leaving
    for change in (_leaving, _cordoned, lambda now, _: {**now, "pods": (bound_to(pod, "node-1"),)}):
        fields = change(fields, Wish("red", 200, 1, "none", "", tolerates=False, port=0))
        changed, same = sorted(_views(fields, known), key=lambda view: view.name)
        assert changed != first
        assert same is second
        first = changed


def _views(fields: Fields, known: Known) -> tuple[NodeView, ...]:
    known.pods = fields["pods"]
    return Snapshot(now=EPOCH, known=known, **fields).views


def test_what_is_imagined_is_not_taken_for_the_cluster() -> None:
    """A decision asks what would be if pods were elsewhere. The next run reads the cluster as it is."""
    pod = Wish("red", 200, 1, "none", "", tolerates=False, port=0).pod("pod-1")
    there, known = (bound_to(pod, "node-1"),), Known()
    known.pods = there
    real = Snapshot(now=EPOCH, nodes=(node("node-1"),), pods=there, known=known)
    views = real.views
    assert replace(real, pods=()).views[0].pods == ()
    assert replace(real, now=EPOCH).views[0] is views[0]
