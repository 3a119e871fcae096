"""Small clusters to judge: nodes with their claims, as builders make them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from joinery.decisions.disruption.problem import DisruptionOptions, DisruptionProblem
from joinery.decisions.scheduling.problem import Problem
from joinery.objects.karpenter.conditions import put, true
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.core import Condition, ContainerStatus, Node, Pod, PodDisruptionBudget
from joinery.objects.snapshot.claims import observed, with_status
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

#: Sold everywhere, on demand and spot: 4 vCPUs and 16 GiB at $0.40/h, spot at $0.16/h.
TYPE = builders.instance_type("m7a.xlarge", price=0.40, spot=0.4)
DAY = timedelta(days=1)


@dataclass
class Cluster:
    """A cluster to which a test adds what it is about."""

    pools: list[NodePool] = field(default_factory=lambda: [builders.node_pool()])
    types: tuple[InstanceType, ...] = (TYPE,)
    nodes: list[Node] = field(default_factory=list)
    claims: list[NodeClaim] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    def machine(
        self,
        name: str = "n",
        pods: Iterable[Pod] = (),
        *,
        pool: str = "default",
        quiet: timedelta | None = DAY,
        drifted: bool | datetime = False,
        node: Mapping[str, Any] | None = None,
        **claim: Any,
    ) -> None:
        """A node and its claim, both named after it; ``quiet``: for how long it is initialised, None for nobody knows;
        ``drifted``: since when, or since now.
        """
        fields: dict[str, Any] = {"node_pool": pool, "created": START - DAY, **claim}
        machine: dict[str, Any] = dict(node or {})
        conditions = ["Launched", "Registered", *(["Initialized"] if machine.get("initialized", True) else [])]
        made = builders.node_claim(f"claim-{name}", node=name, conditions=conditions, **fields)
        self.claims.append(self._settled(made, quiet, drifted=drifted))
        machine |= {key: claim[key] for key in ("instance_type", "zone", "capacity_type") if key in claim}
        self.nodes.append(builders.node(name, node_pool=pool, **machine))
        self.pods += pods

    def _settled(self, claim: NodeClaim, quiet: timedelta | None, *, drifted: bool | datetime) -> NodeClaim:
        since = START - quiet if quiet is not None else None
        conditions = [
            one.model_copy(update={"last_transition_time": since}) if one.type == "Initialized" else one
            for one in claim.status.conditions
        ]
        if drifted:
            when = drifted if isinstance(drifted, datetime) else START
            conditions = put(conditions, true("Drifted", observed(claim, when)))
        return with_status(claim, conditions=conditions)

    def problem(
        self, *, now: datetime = START, replicas: Mapping[str, int] | None = None, **options: Any
    ) -> DisruptionProblem:
        """What is asked of it. ``options``: of ``DisruptionOptions``."""
        snapshot = Snapshot(
            now=now,
            node_pools=tuple(self.pools),
            node_claims=tuple(self.claims),
            nodes=tuple(self.nodes),
            pods=tuple(self.pods),
            disruption_budgets=tuple(self.budgets),
            node_classes=(builders.node_class(),),
            **self.more,
        )
        packing = Problem(snapshot=snapshot, instance_types={"default": self.types})
        return DisruptionProblem(packing=packing, options=DisruptionOptions(**options), replicas=dict(replicas or {}))


def resized(pod: Pod, **given: str) -> Pod:
    """The pod while it is resized: ``given`` is what its node has given its container."""
    reported = ContainerStatus(name=pod.spec.containers[0].name, allocated_resources=dict(given))
    return replace(pod, status=replace(pod.status, container_statuses=[reported]))


def on(
    name: str,
    node: str = "n",
    *,
    owner: Any = "web-1",
    started: datetime | None = None,
    conditions: Iterable[tuple[str, str, timedelta | None]] = (),
    **spec: Any,
) -> Pod:
    """A pod of a Deployment that runs on the node. ``conditions``: type, status, and for how long, in place of its
    own.
    """
    pod = builders.pod(name, node=node, owner=owner, **spec)
    given = [
        Condition(type=kind, status=status, last_transition_time=START - lasts if lasts is not None else None)
        for kind, status, lasts in conditions
    ]
    status = replace(pod.status, start_time=started, conditions=given or pod.status.conditions)
    return replace(pod, status=status)


def annotated(pool: NodePool, annotations: Mapping[str, str]) -> NodePool:
    """The NodePool with annotations of its own; those that its builder takes are its template's."""
    return pool.model_copy(update={"metadata": pool.metadata.model_copy(update={"annotations": dict(annotations)})})
