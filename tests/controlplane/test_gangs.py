"""A gang on a real control plane: what the scheduler waits for, and what a plan makes of the same objects."""

from typing import Any

from joinery.decisions.planning import plan
from joinery.decisions.scheduling.problem import Problem
from joinery.gateways.kubernetes.adapter import KubernetesCluster
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from simulator import builders
from simulator.clock import Clock
from tests.controlplane import objects
from tools.controlplane.plane import ControlPlane


def _member(number: int) -> Any:
    return builders.pod(f"train-{number}", cpu="3", scheduling_group={"podGroupName": "train"}, unschedulable=False)


def test_a_gang_is_planned_for_once_it_is_all_there(control_plane: ControlPlane) -> None:
    """The real scheduler leaves a lone member alone, and marks both."""
    objects.install(control_plane, *objects.MANIFEST_FILES)
    transport = objects.connect(control_plane)
    cluster = KubernetesCluster(transport, now=Clock().now, node_class=EC2NodeClass)

    def bought() -> list[int]:
        types = {"default": (builders.instance_type("m7a.xlarge"),)}
        packing = plan(Problem(snapshot=cluster.snapshot(), instance_types=types)).packing
        return [len(launch.pods) for launch in packing.launches]

    group = builders.pod_group("train", minimum=2)
    objects.put(transport, builders.node_class(), builders.node_pool(), group, _member(1))
    assert bought() == []
    objects.put(transport, _member(2))
    control_plane.kubectl("wait", "pod", "--all", "--for=condition=PodScheduled=false", "--timeout=30s")
    assert bought() == [1, 1]
    objects.sweep(transport)
