"""The judge checks plans for pending pods, so it is asked about the pods that move alone."""

from dataclasses import replace

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.validation.verified import state_after
from joinery.decisions.scheduling.packing import ExistingPlacement
from joinery.objects.karpenter.disruption import DisruptionReason
from simulator.kubernetes.resources import document
from tests.unit.decisions.disruption.clusters import Cluster, on
from tools.bench.frame import Document
from tools.consolidation.judging import left, plan_document

_MOVED = ExistingPlacement("n2", "claim-n2", ("default/a",))
_COMMAND = DecidedCommand(
    reason=DisruptionReason.UNDERUTILIZED,
    message="",
    retire=("claim-n1",),
    existing=(_MOVED,),
    pods=("default/a", "default/b"),
)


def _cluster() -> Cluster:
    """n1 runs a and b and a daemon, n2 runs c."""
    cluster = Cluster()
    cluster.machine("n1", [on("a", "n1"), on("b", "n1")])
    cluster.pods.append(on("daemon", "n1", owner={"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d"}))
    cluster.machine("n2", [on("c", "n2")])
    return cluster


def _asked(*commands: DecidedCommand) -> tuple[dict[str, str], Document]:
    """On which node each pod of the remaining ones is, and the plan for those that are on none."""
    problem = _cluster().problem().packing
    snapshot, packing = problem.snapshot, state_after(problem, commands).packing
    objects = list(map(document, (*snapshot.nodes, *snapshot.node_claims, *snapshot.pods)))
    remaining = list(left(objects, snapshot, packing, frozenset(name for one in commands for name in one.retire)))
    assert {item["metadata"]["name"] for item in remaining if item["kind"] != "Pod"} == {"n2", "claim-n2"}
    pods = [item for item in remaining if item["kind"] == "Pod"]
    homes = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
    return homes, plan_document(snapshot, packing)


def test_pods_that_move_are_pending_and_others_stay() -> None:
    """Those of DaemonSets end with their node."""
    homes, plan = _asked(replace(_COMMAND, existing=(replace(_MOVED, pods=("default/a", "default/b")),)))
    assert homes == {"a": "", "b": "", "c": "n2"}
    assert plan["existing"] == [{"node": "n2", "nodeClaim": "claim-n2", "pods": ("default/a", "default/b")}]


def test_a_pod_that_the_command_forgets_is_pending_and_in_no_plan() -> None:
    """So the judge reports it as missing."""
    homes, plan = _asked(_COMMAND)
    assert homes == {"a": "", "b": "", "c": "n2"}
    assert plan["unschedulable"] == []
    assert [place["pods"] for place in plan["existing"]] == [("default/a",)]
