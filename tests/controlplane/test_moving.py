"""The page docs/karpenter.md: its commands of kubectl, and of `joinery plan` and `disrupt`, do what it says.

Karpenter is played by an empty Deployment of its name. That Joinery writes nothing in `observe` mode is held by
tests/functional/test_observing.py.
"""

import json

import pytest

from tests.controlplane.reader import Reader, start
from tests.controlplane.story import Cluster, living
from tools.controlplane.plane import ControlPlane
from tools.page_commands import commands
from tools.template import ROOT

PAGE = ROOT / "docs" / "karpenter.md"
RUN = ("kubectl ", ".venv/bin/joinery plan", ".venv/bin/joinery disrupt")
KARPENTER = """
kubectl create deployment karpenter --namespace kube-system --image none --replicas 0
kubectl apply -f examples/getting-started/inflate.yaml
kubectl rollout status deployment/inflate --timeout=5m
"""
STOP = "joinery.dev/disruption"


@pytest.fixture(scope="module")
def stops(joinery_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """After each command, in the page's order, what the NodePool says of a stop. Each command must succeed."""
    with living(joinery_control_plane) as cluster:
        start(cluster)
        reader = Reader(tmp_path_factory.mktemp("reader"), joinery_control_plane, cluster)
        for command in KARPENTER.strip().splitlines():
            reader.run(command)
        seen = {}
        for command in (command for command in commands(PAGE) if command.startswith(RUN)):
            # A node that was never kept for its pods has no such taint, and the page says that kubectl complains.
            reader.run(f"{command} || true" if command.startswith("kubectl taint") else command)
            seen[command] = stop_of(cluster)
        reader.run("kubectl delete deployment karpenter --namespace kube-system")
        return seen


def stop_of(cluster: Cluster) -> str | None:
    """The annotation of the one NodePool."""
    (pool,) = json.loads(cluster.admin.get("/apis/karpenter.sh/v1/nodepools"))["items"]
    value: str | None = pool["metadata"].get("annotations", {}).get(STOP)
    return value


def test_disruption_is_stopped_on_the_way_back_and_not_before(stops: dict[str, str | None]) -> None:
    """And in the end nothing of it is left."""
    values = list(stops.values())
    begun = next(number for number, command in enumerate(stops) if f"{STOP}=stop" in command)
    assert set(values[:begun]) == {None}
    assert set(values[begun:-1]) == {"stop"}
    assert values[-1] is None
