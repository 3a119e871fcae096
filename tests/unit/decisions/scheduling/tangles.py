"""Small clusters in which DaemonSets, limits, minValues, reservations,
older names of labels and odd spreads meet, drawn at random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from joinery.decisions.scheduling.problem import Options, Problem
from joinery.objects.karpenter.labels import (
    ARCH,
    AWS_GROUP,
    CAPACITY_TYPE,
    HOSTNAME,
    INSTANCE_TYPE,
    RESERVED,
    SPOT,
    ZONE,
)
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import DaemonSet, Node, Pod
from joinery.objects.snapshot.offerings import InstanceType, Offering, Reservation
from simulator.builders import daemon_set, instance_type, node, node_pool, pod
from tests.unit.decisions.verification.plans import A, B, problem

OLD_ZONE, OLD_ARCH, TIER = "failure-domain.beta.kubernetes.io/zone", "beta.kubernetes.io/arch", "example.com/tier"
FAMILY, SIZE = f"{AWS_GROUP}/instance-family", f"{AWS_GROUP}/instance-size"
GENERATION = f"{AWS_GROUP}/instance-generation"
OVER = (ZONE, OLD_ZONE, ARCH, OLD_ARCH, CAPACITY_TYPE, TIER, HOSTNAME)
_SELECTORS: Sequence[Mapping[str, str]] = (
    {},
    {},
    {},
    {ZONE: A},
    {OLD_ZONE: B},
    {ARCH: "amd64"},
    {OLD_ARCH: "arm64"},
    {CAPACITY_TYPE: SPOT},
    {TIER: "gold"},
    {SIZE: "large"},
)
_MIN_VALUES: Sequence[Mapping[str, int]] = (
    {}, {}, {INSTANCE_TYPE: 3}, {FAMILY: 3, GENERATION: 2}, {FAMILY: 2, SIZE: 2, OLD_ARCH: 2}, {OLD_ZONE: 2, FAMILY: 4},
)  # fmt: skip


def _kinds(draw: st.DrawFn) -> tuple[InstanceType, ...]:
    """Seven types of two architectures, some with little memory; perhaps a reservation or two."""
    listed = [
        instance_type(name, price=price, spot=spot, arch=arch, zones=zones, memory=memory)
        for name, price, spot, arch, zones, memory in (
            ("t4g.medium", 0.03, 0.4, "arm64", (A, B), 1), ("c6g.large", 0.07, None, "arm64", (A, B), 4),
            ("c7a.large", 0.09, 0.5, "amd64", (A, B), 4), ("m7a.large", 0.11, None, "amd64", (A,), 8),
            ("m6g.xlarge", 0.15, 0.6, "arm64", (B,), 16), ("c7a.xlarge", 0.17, 0.6, "amd64", (A, B), 8),
            ("r7a.2xlarge", 0.5, 0.9, "amd64", (A, B), 64),
        )
    ]  # fmt: skip
    for number in range(draw(st.integers(0, 2))):
        place, zone = draw(st.integers(1, len(listed) - 1)), draw(st.sampled_from((A, B)))
        reserved = Offering(
            zone, RESERVED, 1e-8, True, "", Reservation(f"cr-{number}", remaining=draw(st.integers(1, 2)))
        )
        chosen = listed[place]
        ways = tuple(dict.fromkeys((*chosen.labels[CAPACITY_TYPE], RESERVED)))
        listed[place] = replace(
            chosen, offerings=(*chosen.offerings, reserved), labels={**chosen.labels, CAPACITY_TYPE: ways}
        )
    return tuple(listed)


@st.composite
def _daemons(draw: st.DrawFn) -> list[DaemonSet]:
    daemon_sets = []
    for number in range(draw(st.integers(0, 2))):
        where = draw(st.sampled_from(_SELECTORS))
        cpu, memory = draw(st.sampled_from(("0", "100m", "1500m"))), draw(st.sampled_from(("0", "300Mi", "3Gi")))
        daemon_sets.append(daemon_set(f"agent-{number}", cpu=cpu, memory=memory, node_selector=where))
    return daemon_sets


@st.composite
def _pools(draw: st.DrawFn) -> list[NodePool]:
    node_pools = []
    for name in ("one", "two")[: draw(st.integers(1, 2))]:
        least = draw(st.sampled_from(_MIN_VALUES))
        rules: list[Any] = [{"key": key, "operator": "Exists", "minValues": number} for key, number in least.items()]
        rules += draw(
            st.sampled_from(([], [], [f"{CAPACITY_TYPE}=on-demand"], [f"{OLD_ARCH}=amd64"], [f"{TIER}=gold,iron"]))
        )
        node_pools.append(
            node_pool(
                name,
                weight=draw(st.sampled_from((None, 10))),
                labels=draw(st.sampled_from(({}, {}, {TIER: "gold"}))) if f"{TIER}=gold,iron" not in rules else {},
                limits=draw(st.sampled_from(({}, {}, {"cpu": "4"}, {"nodes": "2"}, {"cpu": "9", "memory": "100Gi"}))),
                requirements=rules,
            )
        )
    return node_pools


def _rules(draw: st.DrawFn) -> dict[str, Any]:
    """One rule at most, about pods of the app ``web``."""
    kind, key = draw(st.sampled_from(("", "", "spread", "soft", "apart", "near"))), draw(st.sampled_from(OVER))
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key}
    if kind in ("spread", "soft"):
        how = "DoNotSchedule" if kind == "spread" else "ScheduleAnyway"
        policy = draw(st.sampled_from(("Honor", "Ignore")))
        return {"spread": [{**term, "maxSkew": 1, "whenUnsatisfiable": how, "nodeAffinityPolicy": policy}]}
    side = {"apart": "podAntiAffinity", "near": "podAffinity"}.get(kind)
    return {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}} if side else {}


@st.composite
def _pods(draw: st.DrawFn) -> list[Pod]:
    pods: list[Pod] = []
    for _ in range(draw(st.integers(1, 4))):
        app, rules, where = draw(st.sampled_from(("web", "job"))), _rules(draw), draw(st.sampled_from(_SELECTORS))
        cpu, memory = draw(st.sampled_from(("0", "200m", "1500m"))), draw(st.sampled_from(("0", "256Mi", "3Gi")))
        for _ in range(draw(st.integers(1, 3))):
            name = f"p{len(pods)}"
            pods.append(pod(name, cpu=cpu, memory=memory, labels={"app": app}, node_selector=where, **rules))
    return pods


@st.composite
def _nodes(draw: st.DrawFn) -> list[Node | Pod]:
    """Up to two nodes, which may have older names of labels, others or none, and perhaps a pod."""
    existing: list[Node | Pod] = []
    for number in range(draw(st.integers(0, 2))):
        older = draw(st.sampled_from(({}, {OLD_ZONE: A}, {OLD_ZONE: B, OLD_ARCH: "arm64"}, {TIER: "gold"})))
        zone, memory = draw(st.sampled_from((A, B))), draw(st.sampled_from(("1Gi", "8Gi")))
        existing.append(node(f"n{number}", cpu="2", memory=memory, zone=zone, node_pool="one", labels=older))
        if draw(st.booleans()):
            existing.append(pod(f"old-{number}", cpu="100m", memory="0", labels={"app": "web"}, node=f"n{number}"))
    return existing


@st.composite
def tangles(draw: st.DrawFn) -> Problem:
    """A problem of up to a dozen pods."""
    options = Options(
        only_marked_unschedulable=False,
        launch_types=draw(st.sampled_from((60, 4))),
        best_effort_min_values=draw(st.booleans()),
        node_size=draw(st.sampled_from(("cheapest", "balanced"))),
    )
    objects = [*draw(_pools()), *draw(_daemons()), *draw(_nodes()), *draw(_pods())]
    return problem(*objects, types=_kinds(draw), options=options)
