"""A NodePool's share on demand on a real API server: the NodeClaims that are written, and what its status says."""

from collections import Counter
from dataclasses import replace

import pytest

from joinery.objects.karpenter.conditions import find
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND, ON_DEMAND_SHARE, SPOT
from joinery.objects.karpenter.meta import with_metadata
from simulator import builders
from simulator.world import World
from tests.functional.stand import APART, Stand
from tests.gateways.clusters import Real
from tools.controlplane.plane import ControlPlane


@pytest.mark.usefixtures("joinery_api_server")
def test_claims_keep_the_share_and_the_node_pool_says_where_it_is_short(api_server: ControlPlane, world: World) -> None:
    """By the functions' own rights. The claims' requirements pass the schema, and so does the condition of a share that
    is raised afterwards; ``kubectl wait`` finds it, and that the NodePool is Ready.
    """
    form = Real(api_server)
    form.sweep()
    pool = builders.node_pool(requirements=["karpenter.k8s.aws/instance-size=xlarge"])
    form.put(builders.node_class(), with_metadata(pool, annotations={ON_DEMAND_SHARE: "1 + 50%"}))
    form.put(*(builders.pod(f"web-{number}", labels={"app": "web"}, affinity=APART) for number in range(3)))
    try:
        stand = Stand(world, gateways=replace(world.gateways, cluster=form.cluster))
        stand.live()
        stand.provision()
        snapshot = form.cluster.snapshot()
        assert Counter(view.labels[CAPACITY_TYPE] for view in snapshot.views) == {ON_DEMAND: 2, SPOT: 1}
        assert not snapshot.pool_shares["default"].lacking
        api_server.kubectl("annotate", "nodepool", "default", "--overwrite", f"{ON_DEMAND_SHARE}=3")
        stand.live()
        for condition in ("joinery.dev/OnDemandShareNotKept", "Ready"):
            api_server.kubectl("wait", "nodepool/default", f"--for=condition={condition}", "--timeout=10s")
        (stored,) = form.cluster.snapshot().node_pools
        short = find(stored.status.conditions, "joinery.dev/OnDemandShareNotKept")
        assert short is not None
        assert short.message == "2 of 3 nodes are on demand, and joinery.dev/on-demand (3) asks for 3"
    finally:
        form.sweep()
