"""Made-up clusters: alike every time, and possible."""

from collections import Counter
from typing import Any

import pytest

from tests.tools.consolidation.clusters import catalogue
from tools.consolidation.catalogue import Catalogue, of
from tools.consolidation.documents import name_of, node_name, of_kind
from tools.consolidation.making.kinds import KINDS, make

_NODES = 6
_SHAPES = (("c6a", 27381), ("m5", 57691), ("r5", 120000), ("c5", 27000))


def _catalogue() -> Catalogue:
    """Types of four families with 16 and 64 CPUs, in five zones."""
    made = []
    template = next(iter(catalogue().types.values()))
    for family, memory in _SHAPES:
        for size, cpus, times in (("4xlarge", 16, 1), ("16xlarge", 64, 4)):
            name, prefix = f"{family}.{size}", "karpenter.k8s.aws/instance"
            labels: dict[str, Any] = {
                **template["labels"],
                "node.kubernetes.io/instance-type": name,
                f"{prefix}-category": family[0],
                f"{prefix}-generation": family[1],
                f"{prefix}-family": family,
                f"{prefix}-cpu": str(cpus),
            }
            sizes = {"cpu": f"{cpus * 993}m", "memory": f"{memory * times}Mi", "pods": "234"}
            offerings = [
                {"zone": f"us-east-1{zone}", "capacityType": kind, "price": cpus * share, "available": True}
                for zone in "abcdf"
                for kind, share in (("on-demand", 0.05), ("spot", 0.02))
            ]
            entry = {"name": name, "labels": labels, "capacity": sizes, "allocatable": sizes, "offerings": offerings}
            made.append(entry)
    return of(made)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_makes_one_cluster(kind: str) -> None:
    """Figures of two days are about one input."""
    assert make(kind, 1, _NODES, _catalogue()) == make(kind, 1, _NODES, _catalogue())
    assert make(kind, 1, _NODES, _catalogue()) != make(kind, 2, _NODES, _catalogue())


@pytest.mark.parametrize("kind", KINDS)
def test_all_pods_run_on_as_many_nodes_as_were_asked_for(kind: str) -> None:
    """And each node has its claim."""
    objects = make(kind, 1, _NODES, _catalogue())
    nodes = {name_of(node) for node in of_kind(objects, "Node")}
    assert len(nodes) == len(of_kind(objects, "NodeClaim")) == _NODES
    assert {node_name(pod) for pod in of_kind(objects, "Pod")} <= nodes
    names = Counter((item["kind"], name_of(item)) for item in objects)
    assert max(names.values()) == 1


def test_a_tight_cluster_has_no_room() -> None:
    """Its decision is to touch nothing."""
    objects = make("tight", 1, _NODES, _catalogue())
    used: Counter[str] = Counter()
    for pod in of_kind(objects, "Pod"):
        used[node_name(pod)] += int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m"))
    assert {cpu + 280 for cpu in used.values()} == {16 * 993}
