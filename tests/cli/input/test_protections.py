"""Annotations that are to keep pods and nodes from disruption, and do not: told before a node goes."""

from typing import Any

import msgspec
import pytest

from joinery_cli.sources import SAMPLE
from simulator.builders import node, node_claim, node_class, node_pool, pod
from simulator.kubernetes.resources import encode, with_metadata
from tests.cli.conftest import NOW, Run, Write

DISRUPT = ("disrupt", "--now", NOW, "-o", "json", "--catalog", str(SAMPLE))
KEEP, OLD, OTHERS = (
    "karpenter.sh/do-not-disrupt",
    "karpenter.sh/do-not-evict",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
)
INSTEAD = f'protects nothing here; write {KEEP}: "true"'


def _listed(*objects: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [msgspec.json.decode(encode(one)) for one in objects]}


@pytest.fixture
def warned(run: Run, write: Write) -> Any:
    """``warned(of_pod, of_node, of_pool)``: what is said of the annotations of a cluster of one node."""

    def call(
        of_pod: dict[str, str] | None = None,
        of_node: dict[str, str] | None = None,
        of_pool: dict[str, str] | None = None,
    ) -> list[str]:
        cluster = _listed(
            node_class(),
            with_metadata(node_pool(), annotations=of_pool or {}),
            node("ip-10-0-1-7", annotations=of_node or {}),
            node_claim("claim", node="ip-10-0-1-7"),
            pod("web", node="ip-10-0-1-7", annotations=of_pod or {}),
        )
        err = run(*DISRUPT, "-f", write("cluster.json", cluster)).err
        return [line for line in err.splitlines() if any(word in line for word in ("do-not-", "autoscaler"))]

    return call


@pytest.mark.parametrize(
    ("annotations", "doubt"),
    [
        ({OLD: "true"}, f"{OLD} {INSTEAD}"),
        ({OTHERS: "false"}, f"{OTHERS} {INSTEAD}"),
        ({KEEP: "True"}, f"{KEEP}: 'True' protects nothing; write true, or a time such as 30m"),
        ({KEEP: "yes", OLD: "true"}, f"{KEEP}: 'yes' protects nothing; write true, or a time such as 30m"),
    ],
)
def test_a_pod_that_is_protected_in_vain_is_told(warned: Any, annotations: dict[str, str], doubt: str) -> None:
    """Karpenter has dropped the older ones with its alpha API, and has never read another autoscaler's."""
    assert warned(annotations) == [f"warning: Pod default/web: {doubt}"]


@pytest.mark.parametrize(
    "annotations", [{KEEP: "true"}, {KEEP: "1h30m"}, {KEEP: "false"}, {OTHERS: "true"}, {KEEP: "true", OLD: "true"}]
)
def test_a_pod_that_is_protected_or_need_not_be_is_not_doubted(warned: Any, annotations: dict[str, str]) -> None:
    """``safe-to-evict: "true"`` protects nothing anywhere."""
    assert warned(annotations) == []


def test_what_protects_from_another_autoscaler_on_its_own_nodes_is_not_doubted(run: Run, write: Write) -> None:
    """Cluster Autoscaler keeps the managed node groups, and reads its annotations there."""
    scaled = node(
        "of-a-group", node_pool="", annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}
    )
    cluster = _listed(
        node_class(), node_pool(), node("ours"), node_claim("claim", node="ours"), scaled,
        pod("web", node="of-a-group", annotations={OTHERS: "false"}),
    )  # fmt: skip
    assert "protects nothing" not in run(*DISRUPT, "-f", write("cluster.json", cluster)).err


def test_nodes_and_node_pools_are_told_too(warned: Any) -> None:
    """Of a Node only ``true`` is read, and of a NodePool what it gives its nodes."""
    old = "karpenter.sh/do-not-consolidate"
    assert warned(of_node={old: "true"}) == [f"warning: Node ip-10-0-1-7: {old} {INSTEAD}"]
    assert warned(of_node={KEEP: "1h"}) == [f"warning: Node ip-10-0-1-7: {KEEP}: '1h' protects nothing; write true"]
    assert warned(of_pool={KEEP: "true"}) == [
        f"warning: NodePool default: nothing reads {KEEP} of a NodePool: it belongs to "
        "spec.template.metadata.annotations"
    ]
