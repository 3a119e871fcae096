"""Pods that no plan has a place for: there is none, as far as one more pod on one node can tell."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from joinery.apis.core import Pod
from joinery.apis.labels import HOSTNAME, ZONE
from joinery.planning import plan
from joinery.scheduling.packing import Launch, Packing
from joinery.scheduling.problem import Problem
from joinery.verification.verify import verify
from simulator.builders import daemon_set, node, node_pool, pod
from tests.properties import examples
from tests.unit.verification.plans import A, B, C, launch, problem

ZONES = (A, B, C)
ABOUT_PODS = {"PodAffinity", "PodAntiAffinity", "TopologySpread", "Resources", "NodeAffinity"}
APPS = ("red", "green", "blue")


@dataclass(frozen=True)
class Rule:
    """What a kind of pods demands: to be ``near``, ``apart`` or ``spread``, over what, by which pods (all but those it
    names, if ``is_not``).
    """

    kind: str
    key: str
    app: str
    is_not: bool
    skew: int
    least: int | None

    def fields(self) -> dict[str, Any]:
        operator = "NotIn" if self.is_not else "In"
        selector = {"matchExpressions": [{"key": "app", "operator": operator, "values": [self.app]}]}
        if self.kind == "spread":
            return {"maxSkew": self.skew, "topologyKey": self.key, "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": selector, "minDomains": self.least if self.key == ZONE else None}  # fmt: skip
        everywhere: dict[str, Any] = {"namespaceSelector": {}} if self.is_not else {}
        return {"topologyKey": self.key, "labelSelector": selector, **everywhere}


@dataclass(frozen=True)
class Kind:
    """Pods of one description."""

    app: str
    count: int
    rules: tuple[Rule, ...]
    zone: str

    def pods(self) -> Iterator[Pod]:
        sides = {"near": "podAffinity", "apart": "podAntiAffinity"}
        affinity = {
            side: {"requiredDuringSchedulingIgnoredDuringExecution": [r.fields() for r in self.rules if r.kind == kind]}
            for kind, side in sides.items()
        }
        for number in range(self.count):
            yield pod(
                f"{self.app}-{number}",
                cpu="200m",
                memory="256Mi",
                labels={"app": self.app},
                affinity=affinity,
                spread=[rule.fields() for rule in self.rules if rule.kind == "spread"],
                node_selector={ZONE: self.zone} if self.zone else {},
            )


def _rules() -> st.SearchStrategy[Rule]:
    """Spreads are over zones: over hosts kube-scheduler knows only those that are there,
    and a plan reckons with one more.
    """
    drawn = st.builds(
        Rule,
        kind=st.sampled_from(("near", "apart", "spread", "spread")),
        key=st.sampled_from((ZONE, HOSTNAME)),
        app=st.sampled_from(APPS),
        is_not=st.sampled_from((False, False, False, True)),
        skew=st.integers(1, 2),
        least=st.sampled_from((None, None, 2, 3)),
    )
    return drawn.map(lambda rule: replace(rule, key=ZONE) if rule.kind == "spread" else rule)


@dataclass(frozen=True)
class Cluster:
    """What waits, and whether a DaemonSet, in the namespace that spreads look at, and a node are there."""

    kinds: tuple[Kind, ...]
    has_daemon: bool
    has_node: bool

    @property
    def problem(self) -> Problem:
        daemons = [daemon_set(namespace="default")] if self.has_daemon else []
        nodes = [node("old", cpu="2", zone=B)] if self.has_node else []
        return problem(node_pool(), *daemons, *nodes, *(one for kind in self.kinds for one in kind.pods()))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Up to three kinds of pods with up to two rules each, about each other or all others."""
    rules = st.lists(_rules(), max_size=2).map(tuple)
    kinds = tuple(
        Kind(app, draw(st.integers(1, 4)), draw(rules), draw(st.sampled_from(("", "", A))))
        for app in APPS[: draw(st.integers(1, 3))]
    )
    return Cluster(kinds, draw(st.booleans()), draw(st.booleans()))


@examples(20)
@given(clusters())
def test_no_plan_is_refused_by_the_check(cluster: Cluster) -> None:
    """Rules about pods, their own and others', DaemonSets' pods among them,
    lead to no mistake that the check has to find.
    """
    made = plan(cluster.problem)
    assert (made.warnings, made.violations) == ((), ())


@examples(20)
@given(clusters())
def test_no_pod_is_left_that_one_more_node_or_one_there_would_take(cluster: Cluster) -> None:
    """Neither a node of the plan as it stands nor one more, with every rule of everybody kept."""
    asked = cluster.problem
    packing = plan(asked).packing
    for name in [one.pod for one in packing.unplaced]:
        places = [where for where, changed in _with(asked, packing, name) if not _is_wrong(asked, changed)]
        assert places == [], name


def _is_wrong(asked: Problem, packing: Packing) -> bool:
    return any(reason.code in ABOUT_PODS for reason in verify(asked, packing))


def _with(asked: Problem, packing: Packing, name: str) -> Iterator[tuple[str, Packing]]:
    """The plan with the pod somewhere besides."""
    bare = replace(packing, unplaced=tuple(one for one in packing.unplaced if one.pod != name), lower_bound=0.0)
    for index, one in enumerate(packing.launches):
        grown = replace(one, pods=(*one.pods, name))
        yield one.name, replace(bare, launches=(*packing.launches[:index], grown, *packing.launches[index + 1 :]))
    for zone in ZONES:
        yield zone, replace(bare, launches=(*packing.launches, _one_more(asked, name, zone)))


def _one_more(asked: Problem, name: str, zone: str) -> Launch:
    return launch(asked, name, name="one-more", kind="m7a.xlarge", zone=zone)
