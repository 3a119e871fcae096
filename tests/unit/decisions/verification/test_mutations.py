"""Right plans, spoiled at random: verification agrees with a tiny check that looks at every pair of pods."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, Packing, Unplaced
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from joinery.objects.karpenter.meta import Taint
from joinery.objects.kubernetes.core import Pod
from simulator.builders import node_pool, pod
from tests.properties import examples
from tests.unit.decisions.verification.plans import A, B, C, launch, packing, problem, violated

ZONES = (A, B, C)
CPU_ROOM = 1920  # millicores that an m7a.large of the builders leaves to pods
APPS = ("red", "blue")


@dataclass(frozen=True)
class Wish:
    """A pod in words: its application, size, and at most one rule."""

    app: str
    cpu: int
    rule: str
    zone: str

    def pod(self, name: str) -> Pod:
        selects = {"matchLabels": {"app": self.app}}
        term = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": selects, "topologyKey": ZONE}]}
        host = {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": selects, "topologyKey": HOSTNAME}]}
        spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selects}
        rules: dict[str, dict[str, Any]] = {
            "none": {},
            "zone": {"node_selector": {ZONE: self.zone}},
            "spread": {"spread": [spread]},
            "apart-zone": {"affinity": {"podAntiAffinity": term}},
            "apart-host": {"affinity": {"podAntiAffinity": host}},
            "near": {"affinity": {"podAffinity": term}},
        }
        return pod(name, labels={"app": self.app}, cpu=f"{self.cpu}m", memory="64Mi", **rules[self.rule])


WISHES = st.builds(
    Wish,
    app=st.sampled_from(APPS),
    cpu=st.sampled_from((100, 500, 900)),
    rule=st.sampled_from(("none", "zone", "spread", "apart-zone", "apart-host", "near")),
    zone=st.sampled_from(ZONES),
)


@st.composite
def _placed(draw: st.DrawFn) -> tuple[list[Wish], list[int], list[str]]:
    """Up to five pods, thrown onto up to four nodes of one type, each pinned to a zone."""
    wishes = draw(st.lists(WISHES, min_size=1, max_size=5))
    zones = draw(st.lists(st.sampled_from(ZONES), min_size=1, max_size=4))
    return wishes, [draw(st.integers(0, len(zones) - 1)) for _ in wishes], zones


def _is_right(wishes: list[Wish], nodes: list[int], zones: list[str]) -> bool:
    """The rules pod by pod and pair by pair, and every order of binding: slow, and plain to see through."""
    load = Counter[int]()
    for wish, node in zip(wishes, nodes, strict=True):
        load[node] += wish.cpu
    if any(cpu > CPU_ROOM for cpu in load.values()):
        return False
    everyone = range(len(wishes))
    return all(_may_stay(i, wishes, nodes, zones) for i in everyone) and _can_be_bound(wishes, nodes, zones)


def _may_stay(me: int, wishes: list[Wish], nodes: list[int], zones: list[str]) -> bool:
    zone = [zones[node] for node in nodes]
    same_app = [other for other in range(len(wishes)) if other != me and wishes[other].app == wishes[me].app]
    for other in same_app:
        for one in (wishes[me], wishes[other]):
            if one.rule == "apart-zone" and zone[me] == zone[other]:
                return False
            if one.rule == "apart-host" and nodes[me] == nodes[other]:
                return False
    match wishes[me].rule:
        case "zone":
            return zone[me] == wishes[me].zone
        case "near":
            return not same_app or any(zone[other] == zone[me] for other in same_app)
        case "spread":
            counts = Counter(zone[other] for other in same_app)
            return counts[zone[me]] + 1 - min(counts[z] for z in ZONES) <= 1
    return True


def _can_be_bound(wishes: list[Wish], nodes: list[int], zones: list[str]) -> bool:
    """Whether in some order every pod that needs a neighbour finds one, or nobody of its kind anywhere."""
    return any(_works(order, wishes, nodes, zones) for order in permutations(range(len(wishes))))


def _works(order: tuple[int, ...], wishes: list[Wish], nodes: list[int], zones: list[str]) -> bool:
    for turn, me in enumerate(order):
        before = [zones[nodes[other]] for other in order[:turn] if wishes[other].app == wishes[me].app]
        if wishes[me].rule == "near" and before and zones[nodes[me]] not in before:
            return False
    return True


def _world(wishes: list[Wish]) -> Problem:
    return problem(node_pool(), *(wish.pod(f"p{i}") for i, wish in enumerate(wishes)))


def _plan(asked: Problem, nodes: list[int], zones: list[str]) -> Packing:
    launches = []
    for index, zone in enumerate(zones):
        pods = [f"default/p{i}" for i, node in enumerate(nodes) if node == index]
        if pods:
            launches.append(launch(asked, *pods, name=f"n{index}", zone=zone))
    return packing(*launches)


@examples(300)
@given(_placed())
def test_verification_agrees_with_looking_at_every_pair(placed: tuple[list[Wish], list[int], list[str]]) -> None:
    """On any placement of a few pods, classes and counts give the answer that pods and pairs give."""
    wishes, nodes, zones = placed
    asked = _world(wishes)
    wrong = verify(asked, _plan(asked, nodes, zones))
    assert (wrong == ()) == _is_right(wishes, nodes, zones), wrong


SPOILERS = ("drop a pod", "repeat a pod", "lower the price", "raise the price", "forget requests", "swap the type",
            "lift the bound", "sell elsewhere", "name another pool", "add a taint", "allow a small type",
            "give a pod up", "use one name twice", "place it on nothing")  # fmt: skip


def _spoil(plan: Packing, how: str, pick: int) -> Packing:
    index = pick % len(plan.launches)
    chosen = plan.launches[index]
    match how:
        case "lift the bound":
            return replace(plan, lower_bound=plan.hourly + 1)
        case "give a pod up":
            without = replace(chosen, pods=chosen.pods[1:])
            left = (*plan.unplaced, Unplaced(chosen.pods[0], ()))
            return replace(plan, launches=_with(plan, index, without), unplaced=left)
        case "use one name twice":
            return replace(plan, launches=(*plan.launches, replace(chosen, pods=())))
        case "place it on nothing":
            return replace(plan, existing=(*plan.existing, ExistingPlacement("nowhere", "", chosen.pods[:1])))
    return replace(plan, launches=_with(plan, index, _spoiled(chosen, how)))


def _with(plan: Packing, index: int, launch: Launch) -> tuple[Launch, ...]:
    return (*plan.launches[:index], launch, *plan.launches[index + 1 :])


def _spoiled(chosen: Launch, how: str) -> Launch:
    offering = chosen.offering
    match how:
        case "drop a pod":
            return replace(chosen, pods=chosen.pods[1:])
        case "repeat a pod":
            return replace(chosen, pods=(*chosen.pods, chosen.pods[0]))
        case "lower the price":
            return replace(chosen, offering=replace(offering, price=offering.price * 0.9))
        case "raise the price":
            return replace(chosen, offering=replace(offering, price=offering.price * 1.1))
        case "forget requests":
            return replace(chosen, requests={**chosen.requests, "cpu": 0})
        case "name another pool":
            return replace(chosen, node_pool="elsewhere")
        case "add a taint":
            return replace(chosen, taints=(Taint(key="a", effect="NoSchedule"),))
        case "allow a small type":
            return replace(chosen, instance_types=(*chosen.instance_types, "t4g.nano"))
        case "swap the type":
            return replace(chosen, offering=replace(offering, instance_type="m9z.large"))
    return replace(chosen, offering=replace(offering, zone="us-east-1z"))


@examples(100)
@given(st.lists(WISHES, min_size=1, max_size=8), st.sampled_from(SPOILERS), st.integers(0, 7))
def test_what_the_packing_core_plans_is_right_until_it_is_spoiled(wishes: list[Wish], how: str, pick: int) -> None:
    """Every plan of the core passes, and none passes once one of its launches is tampered with."""
    asked = _world(wishes)
    plan = solve(asked)
    assert verify(asked, plan) == ()
    if plan.launches:
        assert violated(asked, _spoil(plan, how, pick)) != set()
