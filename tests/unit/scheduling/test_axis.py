"""The resources of a problem, as columns of arrays."""

from joinery.scheduling.constraints.attachments import attachment
from joinery.scheduling.pools.market import Axis


def test_cpu_and_memory_come_first_whatever_else_pods_ask_for() -> None:
    """The optimizer weighs the first columns most: sorted by name, a volume or a GPU came before CPU."""
    volumes = attachment("ebs.csi.aws.com")
    asked = [{"nvidia.com/gpu": 1, "memory": 1}, {volumes: 2, "aws.amazon.com/neuron": 1}]
    assert Axis.of(asked).names == ("cpu", "memory", volumes, "aws.amazon.com/neuron", "nvidia.com/gpu", "pods")
    assert Axis.of([]).names == ("cpu", "memory", "pods")
