"""A decision about nodes with every kind of outcome, and the problem it answers: what the printed forms are tested
with.
"""

from dataclasses import replace
from datetime import timedelta

from joinery.decisions.disruption.decision import (
    CurvePoint,
    DecidedCommand,
    DisruptionDecision,
    StayingNode,
)
from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.scheduling.packing import ExistingPlacement, PlacedOffering
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.offerings import Offering
from joinery.objects.snapshot.snapshot import Snapshot
from simulator.builders import EPOCH, instance_type, node, node_claim, node_class, node_pool, owner, pod
from tests.cli.packings import LAUNCH

PRICE, SMALL_PRICE = 0.2318, 0.1159
SOLD = {
    "m7a.xlarge": (Offering("us-east-1a", "on-demand", PRICE),),
    "m7a.large": (Offering("us-east-1a", "on-demand", SMALL_PRICE),),
}
"""``node-4`` is of a type that nobody sells."""

_DAEMON = owner("DaemonSet", "agent")
_NODES = {f"node-{number}": "m7a.xlarge" for number in (1, 2, 3)} | {"node-4": "t1.micro"}

PROBLEM = DisruptionProblem(
    packing=Problem(
        snapshot=Snapshot(
            now=EPOCH,
            node_pools=(node_pool(),),
            node_classes=(node_class(),),
            nodes=tuple(node(name, instance_type=kind) for name, kind in _NODES.items()),
            node_claims=tuple(
                node_claim(f"claim-{number}", node=name, instance_type=kind)
                for number, (name, kind) in enumerate(_NODES.items(), 1)
            ),
            pods=(
                *(pod(f"agent-{name}", cpu="100m", memory="256Mi", node=name, owner=_DAEMON) for name in _NODES),
                *(pod(f"web-{n}", cpu="500m", memory="1Gi", node="node-1", owner="web") for n in (1, 2, 3)),
                pod("db", cpu="1500m", memory="4Gi", node="node-3"),
                pod("job", cpu="2", memory="8Gi", node="node-4"),
            ),
        ),
        instance_types={"default": (instance_type("m7a.large"), instance_type("m7a.xlarge"))},
    ),
    options=DisruptionOptions(payback=timedelta(minutes=90)),
)

DISRUPTIONS = DisruptionDecision(
    commands=(
        DecidedCommand(
            reason=DisruptionReason.EMPTY,
            message="its node runs no pods",
            retire=("claim-2",),
            savings=PRICE,
        ),
        DecidedCommand(
            reason=DisruptionReason.UNDERUTILIZED,
            message="its pods fit on node-3 and on a smaller node",
            retire=("claim-1",),
            launches=(
                replace(
                    LAUNCH,
                    offering=PlacedOffering("m7a.large", "us-east-1a", "on-demand", SMALL_PRICE),
                    requests={"cpu": 600, "memory": 5 * 2**28, "pods": 2},
                    pods=("default/web-3",),
                ),
            ),
            existing=(ExistingPlacement("node-3", "claim-3", ("default/web-1", "default/web-2")),),
            pods=("default/web-1", "default/web-2", "default/web-3"),
            savings=PRICE - SMALL_PRICE,
            move_price=0.03,
        ),
    ),
    staying=(
        StayingNode("claim-3", Objection(ObjectionCode.NOT_WORTH_IT, "its pods fit nowhere for less")),
        StayingNode(
            "claim-4",
            Objection(ObjectionCode.POD, "pod default/job must not be disrupted"),
            DisruptionReason.UNDERUTILIZED,
        ),
        StayingNode("claim-4", Objection(ObjectionCode.UNPRICED, "the catalogue does not sell t1.micro")),
    ),
    before=3 * PRICE,
    after=PRICE + SMALL_PRICE,
    moves=0.02,
    lower_bound=0.35,
    gap=0.0505,
    curve=(
        CurvePoint(0, 2 * PRICE),
        CurvePoint(3, PRICE + SMALL_PRICE, 0.02, is_chosen=True),
        CurvePoint(4, 0.3472, 0.0267),
    ),
    method="column-generation",
)
