"""The resources of a problem, as columns of arrays."""

from joinery.decisions.scheduling.constraints.resources import attachment
from joinery.decisions.scheduling.pools.market import UNOFFERED, Axis


def test_cpu_and_memory_come_first_whatever_else_pods_ask_for() -> None:
    """The optimizer weighs the first columns most: sorted by name, a volume or a GPU came before CPU."""
    volumes = attachment("ebs.csi.aws.com")
    asked = [{"nvidia.com/gpu": 1, "memory": 1}, {volumes: 2, "aws.amazon.com/neuron": 1}]
    assert Axis.of(asked, asked).names == ("cpu", "memory", volumes, "aws.amazon.com/neuron", "nvidia.com/gpu", "pods")
    assert Axis.of([], []).names == ("cpu", "memory", "pods")


def test_resources_that_nobody_offers_are_one_column() -> None:
    """Whoever makes up resources makes no array larger, and nothing has any of them."""
    axis = Axis.of([{"example.com/a": 1}, {"example.com/b": 2}], [("cpu", "nvidia.com/gpu")])
    assert axis.names == ("cpu", "memory", "pods", UNOFFERED)
    assert axis.asked({"cpu": 5, "example.com/b": 2}).tolist() == [5, 0, 0, 1]
    assert axis.vector({"cpu": 5, "example.com/b": 2}).tolist() == [5, 0, 0, 0]
    assert axis.unoffered({"cpu": 5, "example.com/b": 2, "example.com/c": 0}) == ["example.com/b"]
