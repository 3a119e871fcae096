"""Pods that a plan leaves over have no place, as far as adding that one pod to one node can show."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.planning import plan
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.verification.verify import verify
from joinery.objects.karpenter.labels import HOSTNAME, ZONE
from joinery.objects.kubernetes.core import Pod
from simulator.builders import daemon_set, node, node_pool, pod
from tests.properties import examples
from tests.unit.decisions.verification.plans import A, B, C, launch, problem

ZONES = (A, B, C)
ABOUT_PODS = {"PodAffinity", "PodAntiAffinity", "TopologySpread", "Resources", "NodeAffinity"}
APPS = ("red", "green", "blue")


@dataclass(frozen=True)
class Rule:
    """A topology rule of a workload's pods.

    kind     near (pod affinity), apart (pod anti-affinity) or spread
    key      the topology key
    app      the pods it looks at, by their app label; with ``is_not`` all others, in all namespaces
    skew     maxSkew of a spread; ``least``: its minDomains
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
class Workload:
    """Pods that say the same. ``zone``: their node selector; empty for none."""

    app: str
    count: int
    rules: tuple[Rule, ...]
    zone: str

    def pods(self) -> Iterator[Pod]:
        sides = {"near": "podAffinity", "apart": "podAntiAffinity"}
        affinity = {
            side: {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    rule.fields() for rule in self.rules if rule.kind == kind
                ]
            }
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
    """Rules of any sort; spreads are over zones only.

    Over hosts kube-scheduler counts only the hosts that exist, and a plan counts one more that may come.
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
    """The pods that wait, and whether there are a DaemonSet, in the namespace that spreads look at, and a node."""

    workloads: tuple[Workload, ...]
    has_daemon: bool
    has_node: bool

    @property
    def problem(self) -> Problem:
        daemons = [daemon_set(namespace="default")] if self.has_daemon else []
        nodes = [node("old", cpu="2", zone=B)] if self.has_node else []
        return problem(node_pool(), *daemons, *nodes, *(pod for workload in self.workloads for pod in workload.pods()))


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Up to three workloads with up to two rules each, about each other or all others."""
    rules = st.lists(_rules(), max_size=2).map(tuple)
    workloads = tuple(
        Workload(app, draw(st.integers(1, 4)), draw(rules), draw(st.sampled_from(("", "", A))))
        for app in APPS[: draw(st.integers(1, 3))]
    )
    return Cluster(workloads, draw(st.booleans()), draw(st.booleans()))


@examples(20)
@given(clusters())
def test_the_verification_accepts_every_plan(cluster: Cluster) -> None:
    """Rules about pods, also DaemonSets' pods and about other workloads, lead to no plan that verification refuses."""
    made = plan(cluster.problem)
    assert (made.warnings, made.violations) == ((), ())


@examples(20)
@given(clusters())
def test_no_pod_is_left_over_that_one_node_could_take(cluster: Cluster) -> None:
    """No node of the plan and no additional node takes it without breaking a rule, its own or another pod's."""
    asked = cluster.problem
    packing = plan(asked).packing
    for name in [unplaced.pod for unplaced in packing.unplaced]:
        places = [place for place, changed in _with(asked, packing, name) if not _breaks_a_rule(asked, changed)]
        assert places == [], name


def _breaks_a_rule(asked: Problem, packing: Packing) -> bool:
    return any(reason.code in ABOUT_PODS for reason in verify(asked, packing))


def _with(asked: Problem, packing: Packing, name: str) -> Iterator[tuple[str, Packing]]:
    """The plan with the pod added: to each launch, and to a new launch in each zone. With the name of that place."""
    bare = replace(
        packing, unplaced=tuple(unplaced for unplaced in packing.unplaced if unplaced.pod != name), lower_bound=0.0
    )
    for index, chosen in enumerate(packing.launches):
        grown = replace(chosen, pods=(*chosen.pods, name))
        yield chosen.name, replace(bare, launches=(*packing.launches[:index], grown, *packing.launches[index + 1 :]))
    for zone in ZONES:
        yield zone, replace(bare, launches=(*packing.launches, _one_more(asked, name, zone)))


def _one_more(asked: Problem, name: str, zone: str) -> Launch:
    return launch(asked, name, name="one-more", kind="m7a.xlarge", zone=zone)
