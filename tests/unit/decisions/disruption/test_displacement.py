"""Displaced pods: a consolidation moved them, kube-scheduler filled their room otherwise, and a node was bought."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.moves import MovePrice, MovePrices
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.planning import plan
from joinery.objects.annotations import disruption
from joinery.objects.annotations.displacement import (
    MOST_MOVES,
    MOST_OWNERS,
    Displacement,
    Move,
    displacement_of,
    encoded,
    moves_of,
    with_moves,
)
from joinery.objects.annotations.disruption import CommandRecord
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import (
    BOUGHT_FOR_DISPLACED,
    DISRUPTION_COMMAND,
    DISRUPTION_PRICE,
    MOVED_LATELY,
    PAYBACK,
)
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Pod
from joinery.objects.kubernetes.decoding import decode_each
from joinery.objects.snapshot.claims import annotated as with_annotations
from simulator import builders
from simulator.clock import START
from tests.unit.decisions.disruption.clusters import Cluster, annotated, on

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
WEB = builders.owner("ReplicaSet", "web-1")
#: $/h of what was bought for displaced pods.
PRICE = 0.40


# --- what a claim was bought for ---


def _draining(reason: DisruptionReason, *, is_deleting: bool = True, moved: Sequence[int] = (1,)) -> Cluster:
    """A pod of ``web-1`` waits, and another node is being retired for that reason by a command that ``moved`` so many
    such pods.
    """
    cluster = Cluster()
    cluster.machine("n", [on("web-a")], deleted=START if is_deleting else None)
    record = CommandRecord("c", reason, START, START + HOUR, ("claim-n",), moves=(WEB.uid,), moved_pods=tuple(moved))
    cluster.claims = [with_annotations(cluster.claims[0], {DISRUPTION_COMMAND: disruption.encoded(record)})]
    cluster.pods = [builders.pod("web-b", owner=WEB, cpu="3")]
    return cluster


def _all_bought(cluster: Cluster, now: datetime = START) -> Sequence[NodeClaim]:
    problem = cluster.problem(now=now).packing
    return claims_of(plan(problem).packing, problem.snapshot)


def _bought(cluster: Cluster, now: datetime = START) -> NodeClaim:
    (claim,) = _all_bought(cluster, now)
    return claim


def _waiting(*names: str) -> list[Pod]:
    """Pods of ``web-1``, each of which fills a node."""
    return [builders.pod(name, owner=WEB, cpu="3") for name in names]


def _after(before: Displacement) -> Cluster:
    """The same, where the node that goes had been bought for displaced pods itself."""
    cluster = _draining(DisruptionReason.UNDERUTILIZED)
    cluster.claims = [with_annotations(cluster.claims[0], {BOUGHT_FOR_DISPLACED: encoded(before)})]
    return cluster


@pytest.mark.parametrize("reason", [DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED])
def test_a_claim_for_pods_that_a_consolidation_moved_says_so(reason: DisruptionReason) -> None:
    """With their owners, because the pods come back under other names, and what it costs."""
    displacement = displacement_of(_bought(_draining(reason)))
    assert displacement == Displacement((WEB.uid,), 0.16)


@pytest.mark.parametrize(
    "cluster",
    [
        _draining(DisruptionReason.DRIFTED),
        _draining(DisruptionReason.EXPIRED),
        _draining(DisruptionReason.UNDERUTILIZED, is_deleting=False),
        Cluster(pods=[builders.pod("web-b", owner=WEB)]),
    ],
    ids=["drifted", "expired", "not drained yet", "no command"],
)
def test_other_claims_do_not(cluster: Cluster) -> None:
    """Nothing was to be saved, or nobody has been evicted yet: whoever waits is new."""
    assert displacement_of(_bought(cluster)) is None


def test_how_often_it_was_in_vain_is_handed_on() -> None:
    """The node that was bought last time is often the one that goes next."""
    again = displacement_of(_bought(_after(Displacement((WEB.uid, "other"), 0.5, tries=2))))
    assert again == Displacement((WEB.uid,), 0.16, tries=3)
    assert displacement_of(_bought(_after(Displacement(("other",), 0.5, tries=2)))) == Displacement((WEB.uid,), 0.16)


def test_a_drain_that_is_over_is_remembered_for_minutes() -> None:
    """It takes seconds, and its claims are gone when kube-scheduler gives up on the last pod."""
    cluster = _draining(DisruptionReason.UNDERUTILIZED)
    pool = with_moves(cluster.pools[0], cluster.claims, START)
    assert with_moves(pool, cluster.claims, START + MINUTE) == pool
    cluster = Cluster(pools=[with_moves(pool, (), START + MINUTE)], pods=cluster.pods)
    assert displacement_of(_bought(cluster, START + 9 * MINUTE)) == Displacement((WEB.uid,), 0.16)
    assert displacement_of(_bought(cluster, START + 11 * MINUTE)) is None
    assert MOVED_LATELY not in with_moves(pool, (), START + 11 * MINUTE).metadata.annotations


def test_what_is_remembered_is_that_of_the_nodes_of_the_pool() -> None:
    """And where it was in vain before, how often."""
    cluster = _after(Displacement((WEB.uid,), 0.5, tries=2))
    other = with_moves(builders.node_pool("other"), cluster.claims, START)
    assert MOVED_LATELY not in other.metadata.annotations
    cluster = Cluster(pools=[with_moves(cluster.pools[0], cluster.claims, START)], pods=cluster.pods)
    assert displacement_of(_bought(cluster)) == Displacement((WEB.uid,), 0.16, tries=3)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '[{"at":"2026-08-24T09:00:00","owner":"uid-replicaset-web-1"}]',
        '[{"at":"2999-01-01T00:00:00Z","owner":"uid-replicaset-web-1"}]',
        '[{"at":"2026-08-24T09:00:00Z","owner":"uid-replicaset-web-1","tries":31}]',
        '[{"at":"2026-08-24T09:00:00Z","owner":"uid-replicaset-web-1","tries":-1}]',
    ],
)
def test_a_memory_that_somebody_has_edited_is_forgotten(text: str) -> None:
    """Without a time zone, of a time to come, of more tries than there can be."""
    pool = annotated(builders.node_pool(), {MOVED_LATELY: text})
    cluster = Cluster(pools=[pool], pods=[builders.pod("web-b", owner=WEB, cpu="3")])
    assert displacement_of(_bought(cluster)) is None
    assert MOVED_LATELY not in with_moves(pool, (), START).metadata.annotations


@pytest.mark.parametrize(
    ("moved", "waiting", "marked"), [((1,), 3, 0), ((3,), 3, 3), ((), 1, 1), ((), 2, 0), ((-4,), 1, 0)]
)
def test_no_more_pods_are_displaced_than_were_moved(moved: Sequence[int], waiting: int, marked: int) -> None:
    """The workload grows, and its nodes would have been bought anyway. An older version does not say how many."""
    cluster = _draining(DisruptionReason.UNDERUTILIZED, moved=moved)
    cluster.pods = _waiting(*(f"web-{number}" for number in range(waiting)))
    assert sum(displacement_of(claim) is not None for claim in _all_bought(cluster)) == marked


def test_pods_that_were_bought_for_are_not_displaced_again() -> None:
    """A workload that grows pod by pod while its nodes are drained."""
    cluster = _draining(DisruptionReason.UNDERUTILIZED, moved=(2,))
    cluster.pods = []
    for name, is_displaced in (("web-b", True), ("web-c", True), ("web-d", False)):
        cluster.pods += _waiting(name)
        claim = _bought(cluster)
        assert (displacement_of(claim) is not None) is is_displaced
        cluster.claims.append(with_metadata(claim, name=name, creation_timestamp=START + MINUTE))


def test_all_nodes_of_a_command_say_the_same_of_its_moves() -> None:
    """They begin to be drained one after another, which makes their pods no more. Another command's are others."""
    cluster = _draining(DisruptionReason.UNDERUTILIZED, moved=(2,))
    (claim,) = cluster.claims
    record = disruption.record_of(claim)
    assert record is not None
    first = replace(record, candidates=("claim-n", "claim-m"))
    claims = [
        with_annotations(
            with_metadata(claim, name=name, deletion_timestamp=START + later),
            {DISRUPTION_COMMAND: disruption.encoded(of)},
        )
        for name, later, of in (
            ("claim-n", timedelta(), first),
            ("claim-m", MINUTE, first),
            ("claim-o", MINUTE, replace(record, id="d", candidates=("claim-o",))),
        )
    ]
    pool = cluster.pools[0]
    for there in (claims[:1], claims, claims[1:]):
        pool = with_moves(pool, there, START + 2 * MINUTE)
    remembered = decode_each(pool.metadata.annotations[MOVED_LATELY], Move)
    assert [(move.at - START, move.pods) for move in remembered] == [(MINUTE, 2), (MINUTE, 2)]


def test_what_a_node_pool_remembers_is_bounded() -> None:
    """However many commands there are: it has other annotations, and the API server takes 256 KiB."""
    cluster = _draining(DisruptionReason.UNDERUTILIZED)
    claims = []
    for number in range(3):
        owners = tuple(f"{number:08d}-0000-4000-8000-{owner:012d}" for owner in range(MOST_OWNERS))
        name = f"claim-{number}"
        record = CommandRecord(
            name, DisruptionReason.EMPTY, START, START + HOUR, (name,), moves=owners, moved_pods=(9,) * MOST_OWNERS
        )
        marks = {DISRUPTION_COMMAND: disruption.encoded(record)}
        claims.append(with_annotations(with_metadata(cluster.claims[0], name=name), marks))
    text = with_moves(cluster.pools[0], claims, START).metadata.annotations[MOVED_LATELY]
    assert len(decode_each(text, Move)) == MOST_MOVES
    assert len(text) < 64 << 10
    assert all(len(claim.metadata.annotations[DISRUPTION_COMMAND]) < 64 << 10 for claim in claims)


def test_an_owner_that_has_no_uid_of_kubernetes_is_not_remembered() -> None:
    """The API server looks at the length of none, and a command could not be written."""
    absurd = replace(WEB, uid="x" * 100_000)
    assert moves_of([builders.pod("a", owner=absurd), builders.pod("b", owner=WEB), builders.pod("c", owner=WEB)]) == {
        WEB.uid: 2
    }
    pool = annotated(builders.node_pool(), {MOVED_LATELY: f'[{{"at":"2026-08-24T09:00:00Z","owner":"{absurd.uid}"}}]'})
    assert MOVED_LATELY not in with_moves(pool, (), START).metadata.annotations


def test_pods_of_other_owners_are_not_displaced() -> None:
    """A scale-up of something else while a node is drained."""
    cluster = _draining(DisruptionReason.UNDERUTILIZED)
    cluster.pods = [builders.pod("api", owner="api-1", cpu="3"), builders.pod("alone", cpu="500m")]
    assert displacement_of(_bought(cluster)) is None


def test_a_command_names_a_bounded_number_of_owners() -> None:
    """The API server takes 256 KiB of annotations."""
    pods = [builders.pod(f"p{number}", owner=f"rs-{number}") for number in range(MOST_OWNERS + 1)]
    assert len(moves_of(pods)) == MOST_OWNERS


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"owners":[]}', '{"owners":["x"],"price":0}', '{"owners":1,"price":1}'),
        *('{"owners":["x"],"price":1,"tries":0}', '{"owners":["x"],"price":1,"tries":31}'),
    ],
)
def test_an_annotation_that_cannot_be_read_stands_for_none(text: str) -> None:
    """Anybody may edit it."""
    assert displacement_of(builders.node_claim("c", annotations={BOUGHT_FOR_DISPLACED: text})) is None


# --- what it means for the next move ---


def _cluster(*ages: timedelta, price: float = PRICE, tries: int = 1) -> Cluster:
    """Two nodes of which one would do. Nodes of that price were bought for displaced pods of ``web-1`` so long ago."""
    cluster = Cluster(pools=[builders.node_pool(budgets=[{"nodes": "100%"}])])
    cluster.types = (builders.instance_type("m7a.xlarge", price=PRICE, spot=None),)
    cluster.machine("n", [on("web", cpu="1")])
    cluster.machine("m", [on("api", "m", owner="api-1", cpu="1")])
    text = encoded(Displacement((WEB.uid,), price, tries))
    cluster.claims += [
        builders.node_claim(f"bought-{i}", annotations={BOUGHT_FOR_DISPLACED: text}, created=START - age, conditions=())
        for i, age in enumerate(ages)
    ]
    return cluster


def _price(cluster: Cluster, pod: int = 0, **options: Any) -> MovePrice:
    problem = cluster.problem(**options)
    view = next(view for view in problem.packing.snapshot.views if view.node == cluster.pods[pod].spec.node_name)
    price = MovePrices(problem).price(cluster.pods[pod], view, PRICE)
    assert price.dollars == pytest.approx(sum(part.dollars for part in price.parts))
    return price


@pytest.mark.parametrize(
    ("age", "dollars"), [(timedelta(), 0.40), (6 * HOUR, 0.30), (18 * HOUR, 0.10), (24 * HOUR, 0), (99 * HOUR, 0)]
)
def test_the_next_move_counts_what_may_have_to_be_bought_again(age: timedelta, dollars: float) -> None:
    """An hour of the node, and ever less of it: after a day the room may be there."""
    assert _price(_cluster(age)).dollars == pytest.approx(0.01 + dollars)


@pytest.mark.parametrize(
    ("age", "dollars"), [(timedelta(), 1.20), (24 * HOUR, 0.80), (60 * HOUR, 0.20), (72 * HOUR, 0), (999 * HOUR, 0)]
)
def test_three_tries_in_vain_are_held_against_it_for_three_days(age: timedelta, dollars: float) -> None:
    """Or each day would have its attempt, for ever."""
    assert _price(_cluster(age, tries=3)).dollars == pytest.approx(0.01 + dollars)


def test_pods_of_one_workload_on_a_node_share_what_may_have_to_be_bought_again() -> None:
    """One node is for all of them, those that end already not counted. Pods of others have no part in it."""
    cluster = _cluster(6 * HOUR)
    cluster.pods += [
        on("web-c", cpu="1"),
        on("web-d", cpu="100m", deleted=START),
        on("api-c", owner="api-1", cpu="100m"),
    ]
    assert _price(cluster).dollars == pytest.approx(0.01 + 0.15)


def test_purchases_add_up() -> None:
    """So what is in vain is tried ever less often."""
    assert _price(_cluster(6 * HOUR, 18 * HOUR)).dollars == pytest.approx(0.01 + 0.30 + 0.10)


def test_a_purchase_at_a_time_to_come_counts_as_one_of_now() -> None:
    """The API server has another clock."""
    assert _price(_cluster(-HOUR)).dollars == pytest.approx(0.01 + 0.40)


def test_other_pods_cost_what_they_did() -> None:
    """Their moves were not in vain."""
    assert _price(_cluster(timedelta()), pod=1).dollars == 0.01


def test_the_payback_time_counts() -> None:
    """What is bought again costs money for as long as savings are computed."""
    cluster = _cluster(timedelta())
    cluster.pools = [annotated(cluster.pools[0], {PAYBACK: "3h"})]
    assert _price(cluster).dollars == pytest.approx(0.01 + 3 * 0.40)


def test_free_moves_and_prices_of_a_pods_own_stand() -> None:
    """The question is then what the cluster could cost; or somebody has said what the move is worth."""
    cluster = _cluster(timedelta())
    assert _price(cluster, move_price=0.0).dollars == 0
    cluster.pods[0] = on("web", cpu="1", annotations={DISRUPTION_PRICE: "0.02"})
    assert _price(cluster).dollars == 0.02


# --- what is decided ---


def _decided(cluster: Cluster) -> DisruptionDecision:
    cluster.claims = cluster.claims[:2] + [claim for claim in cluster.claims[2:] if not claim.is_true("Launched")]
    return decide(cluster.problem())


def test_a_node_is_not_given_up_for_what_its_pods_may_cost_again() -> None:
    """The one whose pod was not displaced goes instead, if it can."""
    assert _decided(_cluster()).commands
    (command,) = _decided(_cluster(MINUTE)).commands
    assert command.retire == ("claim-m",)
    both = _cluster(MINUTE)
    both.pods[1] = on("web-c", "m", cpu="1")
    assert not _decided(both).commands


def test_it_is_tried_again_when_the_odds_are_good_enough() -> None:
    """After some hours; or if what is saved is more than what may have to be bought."""
    for cluster in (_cluster(HOUR), _cluster(MINUTE, price=0.30)):
        cluster.pods[1] = on("web-c", "m", cpu="1")
        assert _decided(cluster).commands
