"""A packing of every kind of outcome, and the problem it answers: what the printed forms are tested with."""

from dataclasses import replace

from joinery.decisions.scheduling.packing import ExistingPlacement, Launch, Packing, PlacedOffering, Relaxed, Unplaced
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode, Subject
from joinery.objects.karpenter.meta import Requirement, Taint
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.prices import Prices
from joinery_cli.view.costs import Costs, Running
from simulator.builders import EPOCH, instance_type, node, node_claim, node_pool, pod

GIB = 2**30

LAUNCH = Launch(
    name="default-1",
    node_pool="default",
    requirements=(
        Requirement(key="kubernetes.io/arch", operator="In", values=["amd64"]),
        Requirement(
            key="node.kubernetes.io/instance-type", operator="In", values=["m7a.large", "m7a.xlarge"], min_values=2
        ),
        Requirement(key="karpenter.sh/capacity-type", operator="Exists"),
    ),
    labels={"team": "web", "app": "shop"},
    taints=(Taint(key="team", value="web", effect="NoSchedule"),),
    startup_taints=(Taint(key="cni", effect="NoExecute"),),
    requests={"cpu": 1900, "memory": 4 * GIB, "pods": 3},
    instance_types=("m7a.large", "m7a.xlarge"),
    offering=PlacedOffering("m7a.large", "us-east-1a", "spot", 0.05655),
    pods=("default/web-1", "default/web-2"),
)
PACKING = Packing(
    existing=(
        ExistingPlacement("ip-10-0-1-7", "default-x2k9", ("default/api-1", "default/api-2", "shop/api", "shop/web")),
        ExistingPlacement("", "default-p0q1", ("default/late",)),
    ),
    launches=(LAUNCH, replace(LAUNCH, name="default-2", pods=("default/web-3",))),
    unplaced=(
        Unplaced(
            "default/big-1",
            (Reason(ReasonCode.RESOURCES, "12 instance types have too little memory", Subject.node_pool("default")),),
        ),
        Unplaced(
            "default/big-2",
            (Reason(ReasonCode.RESOURCES, "12 instance types have too little memory", Subject.node_pool("default")),),
        ),
        Unplaced("default/odd", (Reason(ReasonCode.REQUIREMENTS, "operator [Resembles] of a is unknown"),)),
    ),
    relaxed=(Relaxed("default/web-1", ("preferred node affinity: zone In us-east-1b",)),),
    lower_bound=0.1,
)

COSTS = Costs(
    by_node_pool={"default": 0.1131},
    by_capacity_type={"spot": 0.1131},
    by_namespace={"default": 0.1131},
    on_demand=0.2318,
    running=Running(hourly=0.2318, priced=1, fargate=1),
)

#: Half a core and a GiB each; the launches' daemons take what is left of their requests.
PROBLEM = Problem(
    snapshot=Snapshot(
        now=EPOCH,
        node_pools=(node_pool(),),
        nodes=(node("ip-10-0-1-7", provider_id="aws:///us-east-1a/i-1"),),
        node_claims=(
            node_claim("default-x2k9", provider_id="aws:///us-east-1a/i-1"),
            node_claim("default-p0q1", provider_id="aws:///us-east-1a/i-2"),
        ),
        pods=(
            *(pod(f"web-{number}", cpu="500m", memory="1Gi", owner="web") for number in (1, 2, 3)),
            *(pod(name, cpu="250m", memory="1Gi") for name in ("api-1", "api-2", "late", "big-1", "big-2", "odd")),
            *(pod(name, cpu="250m", memory="1Gi", namespace="shop") for name in ("api", "web")),
            pod("runs", cpu="1", memory="4Gi", node="ip-10-0-1-7"),
        ),
    ),
    instance_types={"default": (instance_type("m7a.large"),)},
)

PRICES = Prices(region="us-east-1", source="prices.json", priced="2026-01-01T00:00:00Z", cluster_region="us-east-1")
