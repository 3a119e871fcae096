"""Which hosts rules about other pods leave open to a class is asked for all hosts at once."""

from typing import Any

import pytest

from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.objects.karpenter.labels import HOSTNAME
from simulator.builders import node, node_pool, pod
from tests.unit.decisions.verification.plans import problem

_HOSTS = ("empty", "repelled", "shared")


def _term(app: str) -> dict[str, Any]:
    return {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}


def _apart(app: str) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app)]}}}


def _near(app: str) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(app)]}}}


def _spread(app: str) -> dict[str, Any]:
    return {"spread": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **_term(app)}]}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ({}, {"empty", "shared"}),
        (_apart("web"), {"empty"}),
        (_apart("batch"), {"empty", "shared"}),
        (_near("web"), {"shared"}),
        (_spread("web"), {"empty"}),
        (_spread("batch"), {"empty", "shared"}),
    ],
)
def test_a_host_is_open_where_one_more_pod_is_allowed(rules: dict[str, Any], expected: set[str]) -> None:
    """Its own rules bind the pod, and so does the anti-affinity of a pod that runs."""
    running = [
        pod("old", node="shared", labels={"app": "web"}),
        pod("hermit", node="repelled", labels={"app": "batch"}, **_apart("web")),
    ]
    waiting = pod("new", labels={"app": "web"}, **rules)
    work = Workspace(problem(node_pool(), *map(node, _HOSTS), *running, waiting))
    (asked,) = work.possible
    own, topology = work.topology.rules[asked], work.topology
    assert {_HOSTS[position] for position in topology.open_hosts(asked, own, _HOSTS)} == expected
    allowed = {host for host in _HOSTS if topology.allowance(asked, own, HOSTNAME, host, cautious=False)}
    assert allowed == expected
