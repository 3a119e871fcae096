"""Made-up clusters: alike every time, and possible."""

from collections import Counter
from typing import Any

import pytest

from simulator.cloud.market import sample
from tools.consolidation.making.kinds import KINDS, make

_NODES = 6
#: Of a c6a.4xlarge: what is allocatable, in millicores.
_TIGHT = 15890


def _of_kind(objects: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [item for item in objects if item["kind"] == kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_makes_one_cluster(kind: str) -> None:
    """Figures of two days are about one input."""
    assert make(kind, 1, _NODES, sample()) == make(kind, 1, _NODES, sample())
    assert make(kind, 1, _NODES, sample()) != make(kind, 2, _NODES, sample())


@pytest.mark.parametrize("kind", KINDS)
def test_all_pods_run_on_as_many_nodes_as_were_asked_for(kind: str) -> None:
    """And each node has its claim."""
    objects = make(kind, 1, _NODES, sample())
    nodes = {node["metadata"]["name"] for node in _of_kind(objects, "Node")}
    assert len(nodes) == len(_of_kind(objects, "NodeClaim")) == _NODES
    assert {pod["spec"]["nodeName"] for pod in _of_kind(objects, "Pod")} <= nodes
    names = Counter((item["kind"], item["metadata"]["name"]) for item in objects)
    assert max(names.values()) == 1


def test_a_tight_cluster_has_no_room() -> None:
    """Its decision is to touch nothing."""
    objects = make("tight", 1, _NODES, sample())
    used: Counter[str] = Counter()
    for pod in _of_kind(objects, "Pod"):
        used[pod["spec"]["nodeName"]] += int(
            pod["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m")
        )
    assert {cpu + 280 for cpu in used.values()} == {_TIGHT}
