"""No decision breaks a rule of disruption, whatever the cluster.

Every node is drawn with what protects it, so that the test knows what must stay without asking the code that decides.
Whether the pods that move may be where they go is verification's question (``violations_of``).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.disruption.decide import decide
from joinery.decisions.disruption.decision import DecidedCommand, DisruptionDecision
from joinery.decisions.disruption.validation.verified import violations_of
from joinery.decisions.scheduling.packing import placed_pods
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT, INSTANCE_TYPE
from joinery.objects.kubernetes.core import Pod
from simulator import builders
from simulator.clock import START
from tests.properties import examples
from tests.unit.decisions.disruption.clusters import DAY, Cluster, on

EMPTY, UNDERUTILIZED, DRIFTED = DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED
CONSOLIDATION = {EMPTY, UNDERUTILIZED}
ALL = {*CONSOLIDATION, DRIFTED}
_MINUTE = timedelta(minutes=1)
#: So many vCPUs at so many $/h; on spot for half of that.
TYPES = tuple(
    builders.instance_type(name, price=price, spot=0.5)
    for name, price in (("m7a.large", 0.20), ("m7a.xlarge", 0.40), ("m7a.2xlarge", 0.80))
)
_PRICE = {kind.name: kind.offerings[0].price for kind in TYPES}
_VCPUS = {"m7a.large": "2", "m7a.xlarge": "4", "m7a.2xlarge": "8"}
#: NodePools by name: what they say of disruption, and for what none of their nodes with pods may go.
POOLS: dict[str, tuple[dict[str, Any], set[DisruptionReason]]] = {
    "free": ({"consolidateAfter": "0s"}, set()),
    "empty": ({"consolidateAfter": "0s", "consolidationPolicy": "WhenEmpty"}, {UNDERUTILIZED}),
    "never": ({"consolidateAfter": "Never"}, CONSOLIDATION),
    "static": ({"replicas": 3}, ALL),
}


@dataclass
class Drawn:
    """A cluster, and what is known of it.

    must_stay   for what each node must not go, by its claim; ``drifted``: the claims that have drifted
    pinned      pods that no eviction ends
    closed      nodes that take no pods; ``resting``: those that take none for consolidation
    disrupted   how many nodes of each pool go already; ``most``: how many its budget lets go at once
    """

    cluster: Cluster = field(default_factory=lambda: Cluster(pools=[], types=TYPES))
    must_stay: dict[str, set[DisruptionReason]] = field(default_factory=dict)
    drifted: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)
    closed: set[str] = field(default_factory=set)
    resting: set[str] = field(default_factory=set)
    pool_of: dict[str, str] = field(default_factory=dict)
    disrupted: Counter[str] = field(default_factory=Counter)
    most: dict[str, int] = field(default_factory=dict)


def _ordinary(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    return set()


def _protected_node(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    more["node"]["annotations"] = {DO_NOT_DISRUPT: "true"}
    return ALL


def _protected_pod(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    pods.append(on(f"{name}-protected", name, cpu="10m", annotations={DO_NOT_DISRUPT: "true"}))
    return ALL


def _used_up_budget(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    pods.append(on(f"{name}-guarded", name, cpu="10m", labels={"app": name}))
    drawn.cluster.budgets.append(builders.pdb(name, labels={"app": name}, allowed=0))
    return ALL


def _two_budgets(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    pods.append(on(f"{name}-guarded", name, cpu="10m", labels={"app": name}))
    drawn.cluster.budgets += [builders.pdb(f"{name}-{one}", labels={"app": name}, allowed=1) for one in "ab"]
    return ALL


def _free_budget(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    pods.append(on(f"{name}-guarded", name, cpu="10m", labels={"app": name}))
    drawn.cluster.budgets.append(builders.pdb(name, labels={"app": name}, allowed=1))
    return set()


def _ending(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    """A drifted node goes whatever its pods say, because its time is limited."""
    more["termination_grace_period"] = "1h"
    _protected_pod(drawn, name, pods, more)
    drawn.pinned.add(pods[-1].key)
    return _drifted(drawn, name, pods, more) | CONSOLIDATION


def _limited(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    """That its time is limited lets a node go for drift alone."""
    more["termination_grace_period"] = "1h"
    return _protected_pod(drawn, name, pods, more)


def _booting(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    more["node"]["initialized"] = False
    drawn.closed.add(name)
    return ALL


def _leaving(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    more["deleted"] = START - _MINUTE
    drawn.closed.add(name)
    drawn.disrupted[more["pool"]] += 1
    return ALL


def _not_ready(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    more["node"]["ready"] = False
    drawn.disrupted[more["pool"]] += 1
    return set()


def _drifted(drawn: Drawn, name: str, pods: list[Pod], more: dict[str, Any]) -> set[DisruptionReason]:
    more["drifted"] = True
    drawn.drifted.add(f"claim-{name}")
    return set()


Protection = Callable[[Drawn, str, list[Pod], dict[str, Any]], set[DisruptionReason]]
PROTECTIONS: tuple[Protection, ...] = (
    _protected_node, _protected_pod, _used_up_budget, _two_budgets, _free_budget, _ending, _limited, _booting, _leaving,
    _not_ready, _drifted,
)  # fmt: skip
_CPUS = ("100m", "250m", "500m")


def _drawn(random: Random) -> Drawn:
    """Three to eight nodes with up to three pods each, in pools with a budget each; young ones rest in some of them."""
    drawn = Drawn()
    for pool, (said, _) in POOLS.items():
        drawn.most[pool] = random.choice((0, 1, 2, 3, 8, 8))
        rests = said.get("consolidateAfter") == "0s" and random.random() < 0.3
        budgets = [{"nodes": str(drawn.most[pool])}]
        disruption = said | ({"consolidateAfter": "1h"} if rests else {})
        drawn.cluster.pools.append(builders.node_pool(pool, budgets=budgets, **disruption))
    for index in range(random.randint(3, 8)):
        _add(drawn, random, f"n{index}")
    return drawn


def _add(drawn: Drawn, random: Random, name: str) -> None:
    pool, kind = random.choice(["free", "free", "free", *POOLS]), random.choice(TYPES).name
    pods = [on(f"{name}-{number}", name, cpu=random.choice(_CPUS)) for number in range(random.randint(0, 3))]
    is_young = random.random() < 0.5
    more: dict[str, Any] = {"pool": pool, "instance_type": kind, "quiet": _MINUTE if is_young else DAY}
    more["node"] = {"cpu": _VCPUS[kind]}
    protection = random.choice(PROTECTIONS) if random.random() < 0.5 else _ordinary
    stays = protection(drawn, name, pods, more) | (POOLS[pool][1] if pods or pool != "empty" else set())
    own = next(one for one in drawn.cluster.pools if one.metadata.name == pool)
    if is_young and own.spec.disruption.consolidate_after == "1h":
        stays |= CONSOLIDATION
        drawn.resting.add(name)
    drawn.cluster.machine(name, pods, **more)
    drawn.must_stay[f"claim-{name}"], drawn.pool_of[f"claim-{name}"] = stays, pool


@given(seed=st.integers(0, 2**32), price=st.sampled_from([0.0, 0.01, 0.1]))
@examples(400)
def test_no_decision_breaks_a_rule(seed: int, price: float) -> None:
    """Of candidates, budgets, places, and sums."""
    drawn = _drawn(Random(seed))
    problem = drawn.cluster.problem(move_price=price)
    decision = decide(problem)
    assert not decision.mistakes
    assert not violations_of(problem.packing, decision.commands)
    _assert_all_may_go(drawn, decision.commands)
    _assert_budgets_last(drawn, decision.commands)
    _assert_pods_have_one_place(drawn, decision.commands)
    _assert_sums_are_right(drawn, decision)
    _assert_worth_its_moves(decision)


def _assert_all_may_go(drawn: Drawn, commands: Sequence[DecidedCommand]) -> None:
    """Each node for the command's reason, or along with drifted ones as if it were consolidated; and once."""
    retired = [name for command in commands for name in command.retire]
    assert len(retired) == len(set(retired))
    for command in commands:
        for name in command.retire:
            is_along = command.reason is DRIFTED and name not in drawn.drifted
            assert (UNDERUTILIZED if is_along else command.reason) not in drawn.must_stay[name]


def _assert_budgets_last(drawn: Drawn, commands: Sequence[DecidedCommand]) -> None:
    """Nodes that go already, or are not Ready, use them up too."""
    retired = Counter(drawn.pool_of[name] for command in commands for name in command.retire)
    for pool, count in retired.items():
        assert drawn.disrupted[pool] + count <= drawn.most[pool]


def _assert_pods_have_one_place(drawn: Drawn, commands: Sequence[DecidedCommand]) -> None:
    """All that move, on a node that stays and takes pods; those that no eviction ends stay until their node's end."""
    on_claim: dict[str, set[str]] = defaultdict(set)
    for pod in drawn.cluster.pods:
        on_claim[f"claim-{pod.spec.node_name}"].add(pod.key)
    retired = {name for command in commands for name in command.retire}
    for command in commands:
        needed = set().union(*(on_claim[name] for name in command.retire))
        placed = list(placed_pods(command.existing, command.launches))
        assert len(placed) == len(set(placed))
        assert sorted(command.pods) == sorted(needed)
        assert needed - drawn.pinned <= set(placed) <= needed
        assert all(launch.pods for launch in command.launches)
        assert command.reason is not EMPTY or not needed
        for to in command.existing:
            assert to.node_claim not in retired
            assert to.node not in drawn.closed
            assert to.node not in drawn.resting or command.reason is DRIFTED


def _assert_sums_are_right(drawn: Drawn, decision: DisruptionDecision) -> None:
    """By what each node and each offering costs."""
    kinds = {claim.metadata.name: claim.metadata.labels[INSTANCE_TYPE] for claim in drawn.cluster.claims}
    price = {name: _PRICE[kind] for name, kind in kinds.items()}
    for command in decision.commands:
        bought = sum(launch.offering.price for launch in command.launches)
        assert command.savings == pytest.approx(sum(price[name] for name in command.retire) - bought)
        assert command.pods or not command.move_price
    commands = decision.commands
    assert decision.before == pytest.approx(sum(price.values()))
    assert decision.after == pytest.approx(decision.before - sum(command.savings for command in commands))
    reached = decision.after + sum(command.move_price for command in commands)  # repaid within an hour
    assert decision.moves == pytest.approx(reached - decision.after)
    assert decision.lower_bound <= reached + 1e-6
    assert decision.gap == pytest.approx(reached / decision.lower_bound - 1 if decision.lower_bound else 0, abs=1e-6)


def _assert_worth_its_moves(decision: DisruptionDecision) -> None:
    """Each command, the best of them first; and more evictions only for less money."""
    worth = []
    for command in decision.commands:
        if command.reason is not DRIFTED:
            assert command.savings > 0
            assert command.savings >= command.move_price - 1e-6
            worth.append(command.savings / command.move_price if command.move_price else math.inf)
    assert all(one >= other - 1e-6 for one, other in pairwise(worth))
    assert any(point.is_chosen for point in decision.curve)
    assert all(one.pods < other.pods and one.hourly >= other.hourly for one, other in pairwise(decision.curve))
