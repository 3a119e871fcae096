"""Repair: a node that has been unhealthy for too long is replaced, or rebooted first (Karpenter node/health).

The kubelet says by the condition Ready whether the node works; the EKS node monitoring agent says the same of the
node's kernel, network, storage, container runtime and accelerators (EKS User Guide, "Detect node health issues and
enable automatic node repair"). Each of these conditions is borne for a while, because most troubles pass.

Repair is forceful, because the node no longer does what its pods need: its deadline is now, whatever the pool's grace
period and the pods' budgets say. What keeps that from doing harm is the limit. Where more than a fifth of a pool's
nodes, or of all nodes of the cluster, are unhealthy at once, the cause is probably not the nodes: a network that is
down, a bad DaemonSet, an API server that the kubelets do not reach. New nodes would be as unhealthy, so nothing is
repaired until a person has looked. Karpenter asks the pool alone, so an outage that hits one node of each pool passes
its limit.

A zone that traffic is shifted away from is accounted for: its nodes are neither repaired nor counted, so that they are
there when it comes back, and the other zones are repaired meanwhile.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property

from joinery.decisions.lifecycle.state.budgets import PoolNodes, allowed_by_budgets, pool_nodes
from joinery.decisions.lifecycle.state.cluster import ClusterState
from joinery.objects.actions import Announce, Command, DeleteClaim, RebootInstance, UpdateClaim
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DO_NOT_REPAIR, NODE_POOL, REBOOTED_AT, TERMINATION_TIMESTAMP
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Condition, Node
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.policies import NodeRepair
from joinery.objects.snapshot.claims import annotated, moment
from joinery.objects.snapshot.instances import instance_id
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.wording import rfc3339

#: By the type and status of a node's condition, how long it is borne (Karpenter for AWS `RepairPolicies`).
TOLERATIONS: Mapping[tuple[str, str], timedelta] = {
    ("Ready", "False"): timedelta(minutes=30),
    ("Ready", "Unknown"): timedelta(minutes=30),
    ("AcceleratedHardwareReady", "False"): timedelta(minutes=10),
    ("StorageReady", "False"): timedelta(minutes=30),
    ("NetworkingReady", "False"): timedelta(minutes=30),
    ("KernelReady", "False"): timedelta(minutes=30),
    ("ContainerRuntimeReady", "False"): timedelta(minutes=30),
}
#: The agent's reasons that begin so are about NVIDIA's monitoring service, DCGM. EKS repairs no node for them (EKS User
#: Guide, "Repair Action: None"): the service may just have started late, and a new node would be as late.
_ABOUT_MONITORING = "DCGM"
#: The reasons that speak of broken hardware. A reboot makes the agent forget them and mends nothing, so the node is
#: replaced at once (EKS User Guide, "Repair Action: Replace"; of NvidiaFabricError the agent says that it persists).
_BROKEN_HARDWARE = frozenset(
    {
        "NvidiaDoubleBitError", "NvidiaNVLinkError", "NvidiaFabricError",
        *(f"NvidiaXID{code}Error" for code in (74, 79, 119, 120, 121, 140)),
        "NeuronDMAError", "NeuronHBMUncorrectableError", "NeuronNCUncorrectableError", "NeuronSRAMUncorrectableError",
    }
)  # fmt: skip
#: The latest moment that a condition is borne from: a kubelet may write any.
_LATEST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
#: How long a reboot may take to help. Bare-metal instances take ten minutes to boot.
REBOOT_HELPS_WITHIN = timedelta(minutes=15)
#: Of the nodes that are looked at together, one in so many may be unhealthy, rounded up (Karpenter node/health, 20 %).
_ONE_IN = 5
#: A node whose repair is blocked gets an Event in one minute of each quarter of an hour.
_EVENT_EVERY, _EVENT_FOR = timedelta(minutes=15), timedelta(minutes=1)


@dataclass(frozen=True)
class Repairs:
    """What is repaired in one run.

    ``chains``: by the name of a claim, the commands that repair its node, in place of the claim's next step.
    ``blocked``: announcements of nodes that would be repaired if so many others were not unhealthy too.
    """

    chains: Mapping[str, tuple[Command, ...]] = field(default_factory=dict)
    blocked: tuple[Announce, ...] = ()


def repairs(state: ClusterState, mode: NodeRepair) -> Repairs:
    """What to do about the unhealthy nodes of our claims: nothing while zonal shifts cannot be learned."""
    if mode is NodeRepair.OFF or state.shifted is None:
        return Repairs()
    limit = UnhealthyLimit(node for node in state.snapshot.nodes if not state.is_shifted(node))
    room = _Room(state.snapshot)
    chains: dict[str, tuple[Command, ...]] = {}
    blocked: list[Announce] = []
    for claim in state.snapshot.managed_claims:
        node = next(iter(state.nodes_of(claim)), None)
        unhealthy = unhealthy_condition(node, claim) if node and not state.is_shifted(node) else None
        if node is None or unhealthy is None or state.snapshot.now < unhealthy.due:
            continue
        chain = tuple(_chain(state, claim, node, mode, unhealthy))
        if not chain:
            continue
        objection = _annotated_objection(claim, node) or limit.objection(_pool_of(claim)) or room.objection(claim)
        if objection is None:
            room.take(claim)
            chains[claim.metadata.name] = chain
        elif _is_event_due(unhealthy, state.snapshot.now):
            blocked.append(Announce("NodeRepairBlocked", f"{unhealthy}, but {objection}", node))
    return Repairs(chains, tuple(blocked))


@dataclass(frozen=True, slots=True)
class UnhealthyCondition:
    """Why a node is unhealthy: the condition that says so, and when that has been borne for long enough."""

    condition: Condition
    due: datetime

    def __str__(self) -> str:
        said = self.condition
        since = f" since {rfc3339(said.last_transition_time)}" if said.last_transition_time else ""
        return f"its condition {said.type} has been {said.status}{since} ({said.reason})"


def unhealthy_condition(node: Node, claim: NodeClaim) -> UnhealthyCondition | None:
    """Of the conditions that make the node unhealthy, the one that is borne for the shortest time from now."""
    rebooted = moment(claim.metadata.annotations.get(REBOOTED_AT, ""))
    unhealthy = [
        UnhealthyCondition(
            condition, _due(condition.last_transition_time, TOLERATIONS[condition.type, condition.status], rebooted)
        )
        for condition in node.status.conditions
        if _is_bad(condition) and condition.last_transition_time is not None
    ]
    return min(unhealthy, key=lambda one: one.due, default=None)


def _due(since: datetime, toleration: timedelta, rebooted: datetime | None) -> datetime:
    """When a condition that has held since then has been borne for long enough.

    One that a reboot did not cure, or that came with it, is borne until the reboot should have helped.
    """
    helped = rebooted + REBOOT_HELPS_WITHIN if rebooted else None
    return helped if helped and since <= helped else min(since, _LATEST) + toleration


def _is_bad(condition: Condition) -> bool:
    # The agent joins the messages of what it found one after another, and keeps the last reason only.
    is_about_monitoring = condition.reason.startswith(_ABOUT_MONITORING) and "; " not in condition.message
    return (condition.type, condition.status) in TOLERATIONS and not is_about_monitoring


class UnhealthyLimit:
    """Keeps a run from repairing where too many nodes are unhealthy at once, however short a time they have been."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._total: Counter[str] = Counter()
        self._unhealthy: Counter[str] = Counter()
        for node in nodes:
            is_unhealthy = any(map(_is_bad, node.status.conditions))
            # The empty name stands for the whole cluster, with the nodes that are not ours.
            for group in {node.metadata.labels.get(NODE_POOL, ""), ""}:
                self._total[group] += 1
                self._unhealthy[group] += is_unhealthy

    def objection(self, node_pool: str) -> Objection | None:
        """Why no node of that pool may be repaired. ``node_pool``: empty for a node of no pool."""
        for group, name in ((node_pool, f"NodePool {node_pool}"), ("", "the cluster")):
            total, unhealthy = self._total[group], self._unhealthy[group]
            if unhealthy > -(-total // _ONE_IN):
                share = f"{unhealthy} of {total} nodes of {name} are unhealthy"
                why = f"{share}, which is more than 20 %: the cause is probably not the node"
                return Objection(ObjectionCode.TOO_MANY_BROKEN, why)
        return None


class _Room:
    """How many nodes the budgets that name ``Unhealthy`` still let be repaired. Most NodePools have none of these."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._taken: Counter[str] = Counter()

    @cached_property
    def _nodes(self) -> Mapping[str, PoolNodes]:
        return pool_nodes(self._snapshot.views)

    def objection(self, claim: NodeClaim) -> Objection | None:
        """Why the claim's NodePool lets none be repaired now. What goes already asks nobody."""
        pool = self._snapshot.pools_by_name.get(_pool_of(claim))
        if pool is None or claim.is_deleting:
            return None
        name = pool.metadata.name
        most = allowed_by_budgets(
            pool, DisruptionReason.UNHEALTHY, self._nodes.get(name, PoolNodes()), self._snapshot.now
        )
        if self._taken[name] < most.allowed:
            return None
        return Objection(ObjectionCode.BUDGET, f"NodePool {name}: {most.why}")

    def take(self, claim: NodeClaim) -> None:
        """One more is repaired."""
        self._taken[_pool_of(claim)] += 1


def _pool_of(claim: NodeClaim) -> str:
    return claim.metadata.labels.get(NODE_POOL, "")


def _annotated_objection(claim: NodeClaim, node: Node) -> Objection | None:
    """Whether somebody wants the node left as it is. One that goes already is not left."""
    marks = (node.metadata.annotations.get(DO_NOT_REPAIR), claim.metadata.annotations.get(DO_NOT_REPAIR))
    if claim.is_deleting or "true" not in marks:
        return None
    return Objection(ObjectionCode.DO_NOT_REPAIR, f"it has the annotation {DO_NOT_REPAIR}")


def _is_event_due(unhealthy: UnhealthyCondition, now: datetime) -> bool:
    """Whether an Event about a blocked repair is due: there may be many nodes, and a run every few seconds."""
    return (now - unhealthy.due) % _EVENT_EVERY < _EVENT_FOR


def _chain(
    state: ClusterState, claim: NodeClaim, node: Node, mode: NodeRepair, unhealthy: UnhealthyCondition
) -> Iterable[Command]:
    """The commands that repair the node; none if everything that can be done is done."""
    instance = state.instance_of(claim)
    may_help = mode is NodeRepair.REBOOT and unhealthy.condition.reason not in _BROKEN_HARDWARE
    if not may_help or claim.is_deleting or REBOOTED_AT in claim.metadata.annotations:
        return _replace(claim, node, unhealthy, state.snapshot.now)
    if instance is None:
        return ()
    if instance.state != "running":
        return _replace(claim, node, unhealthy, state.snapshot.now)
    return _reboot(claim, node, unhealthy, state.snapshot.now)


def _reboot(claim: NodeClaim, node: Node, unhealthy: UnhealthyCondition, now: datetime) -> Iterable[Command]:
    """Reboot its instance. The claim says so first: a run that is stopped in between must not lead to two reboots."""
    text = f"{unhealthy}: its instance is rebooted, and replaced if that does not help within {REBOOT_HELPS_WITHIN}"
    yield UpdateClaim(claim, annotated(claim, {REBOOTED_AT: now.isoformat()}), text)
    yield Announce("NodeRebooted", text, node)
    yield RebootInstance(instance_id(claim.status.provider_id), text, claim)


def _replace(claim: NodeClaim, node: Node, unhealthy: UnhealthyCondition, now: datetime) -> Iterable[Command]:
    """Delete the claim with a deadline that has passed, which also forces a drain that is stuck.

    The deadline comes first: a claim that is deleted without it would be drained within its budgets.
    """
    text = f"{unhealthy}: it is replaced"
    deadline = moment(claim.metadata.annotations.get(TERMINATION_TIMESTAMP, ""))
    if deadline is None or deadline > now:
        yield UpdateClaim(claim, annotated(claim, {TERMINATION_TIMESTAMP: now.isoformat()}), text)
    if not claim.is_deleting:
        yield Announce("NodeUnhealthy", text, node)
        yield DeleteClaim(claim, text)
