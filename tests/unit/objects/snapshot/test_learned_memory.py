"""What the nodes of a class say of their memory counts for the next ones."""

import pytest
from msgspec.structs import replace

from joinery.objects.kubernetes.core import Node
from joinery.objects.snapshot.learned_memory import learned_memory
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.builders import node, node_claim, node_class, node_pool
from simulator.clock import Clock
from simulator.kubernetes.cluster import InMemoryCluster

MIB = 1 << 20


def _snapshot(*nodes: Node, image: str = "ami-amd64") -> Snapshot:
    """A cluster with a claim for each node, which booted that image."""
    claims = [node_claim(f"c-{each.metadata.name}", node=each.metadata.name) for each in nodes]
    booted = [c.model_copy(update={"status": c.status.model_copy(update={"image_id": image})}) for c in claims]
    return InMemoryCluster(Clock(), node_class(), node_pool(), *nodes, *booted).snapshot()


def _node(name: str, mib: int, initialized: bool = True) -> Node:
    made = node(name, initialized=initialized)
    return replace(made, status=replace(made.status, capacity={**made.status.capacity, "memory": f"{mib}Mi"}))


def test_the_least_of_the_nodes_of_a_type_is_what_the_next_one_has() -> None:
    """Two hosts of one type may differ by some MiB, and pods must fit on either."""
    learned = learned_memory(_snapshot(_node("a", 15800), _node("b", 15790)))
    assert learned == {"default": {"m7a.xlarge": 15790 * MIB}}


@pytest.mark.parametrize(
    "snapshot",
    [
        _snapshot(_node("a", 15800), image="ami-of-last-month"),
        _snapshot(_node("a", 15800, initialized=False)),
        _snapshot(_node("a", 0)),
    ],
)
def test_a_node_of_another_image_or_without_a_kubelet_teaches_nothing(snapshot: Snapshot) -> None:
    """Another kernel keeps another share for itself."""
    assert learned_memory(snapshot) == {}
