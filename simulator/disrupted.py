"""What a cluster looks like once disruption commands have been carried out as they were decided.

It takes neither doors nor actors: claims are written as the door of disruption writes them, and become nodes at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand, as_replacement, record_for
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.scheduling.packing import Launch, Packing, PlacedOffering
from joinery.decisions.verification.nodes import node_labels, offering_labels, sold
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.conditions import READY, put, true
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes import core
from joinery.objects.kubernetes.quantity import texts
from joinery.objects.snapshot.claims import INITIALIZED, LAUNCHED, REGISTERED, observed, unannotated, with_status
from joinery.objects.snapshot.offerings import InstanceType, Offering
from joinery.objects.snapshot.snapshot import Snapshot

#: So long a new node takes until it is initialised and the pods have moved.
BOOT = timedelta(minutes=2)
_OF_THE_KUBELET = frozenset({keys.HOSTNAME, keys.REGISTERED, keys.INITIALIZED})


def carried_out(
    problem: DisruptionProblem,
    commands: Sequence[DecidedCommand],
    *,
    given: Callable[[Launch], str] = lambda launch: launch.offering.instance_type,
) -> DisruptionProblem:
    """The same question about the cluster that the commands leave, when its new nodes have just been initialised.

    Every pod is where its command put it. ``given``: the instance type that EC2 gives for a launch.
    """
    snapshot = problem.packing.snapshot
    ready = snapshot.now + BOOT
    retired = {name for command in commands for name in command.retire}
    gone = {claim.status.node_name for claim in snapshot.node_claims if claim.metadata.name in retired}
    target = {pod: to.node for command in commands for to in command.existing for pod in to.pods}
    machines = []
    for launch, bare in _launched(commands, snapshot):
        target |= dict.fromkeys(launch.pods, bare.metadata.name)
        pool = snapshot.pools_by_name[launch.node_pool]
        types = problem.packing.types_of(pool)
        name = given(launch)
        kind = next(one for one in types if one.name == name)
        offering = replace(launch.offering, instance_type=name)
        machines.append(joined(launched(bare, pool, kind, offering, snapshot.now), ready))
    staying = [claim for claim in snapshot.node_claims if claim.metadata.name not in retired]
    after = replace(
        snapshot,
        now=ready,
        node_claims=(*staying, *(claim for claim, _ in machines)),
        nodes=(*(node for node in snapshot.nodes if node.metadata.name not in gone), *(node for _, node in machines)),
        pods=tuple(_bound(snapshot, target, gone, ready)),
    )
    return replace(problem, packing=replace(problem.packing, snapshot=after))


def _launched(commands: Sequence[DecidedCommand], snapshot: Snapshot) -> Iterator[tuple[Launch, NodeClaim]]:
    """Every launch of the commands, with its claim as the door of disruption writes it."""
    launches = tuple(launch for command in commands for launch in command.launches)
    claims = iter(claims_of(Packing(launches=launches), snapshot))
    by_name = {claim.metadata.name: claim for claim in snapshot.node_claims}
    for command in commands:
        replacements = tuple(next(claims) for _ in command.launches)
        new = NewCommand(
            reason=command.reason,
            candidates=tuple(by_name[name] for name in command.retire),
            replacements=replacements,
            savings=command.savings,
            move_price=command.move_price,
        )
        record = record_for(new, snapshot.node_claims, snapshot.now)
        for launch, claim in zip(command.launches, replacements, strict=True):
            yield launch, unannotated(as_replacement(claim, record), keys.REPLACES)


def _bound(snapshot: Snapshot, target: Mapping[str, str], gone: set[str], at: datetime) -> Iterator[core.Pod]:
    """The pods where they are afterwards. Those that moved are new pods; those that need not move have ended."""
    for pod in snapshot.pods:
        if pod.key in target:
            metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=at)
            spec = msgspec.structs.replace(pod.spec, node_name=target[pod.key])
            yield msgspec.structs.replace(pod, metadata=metadata, spec=spec)
        elif pod.spec.node_name not in gone:
            yield pod


def launched(claim: NodeClaim, pool: NodePool, kind: InstanceType, offering: PlacedOffering, at: datetime) -> NodeClaim:
    """The claim once its instance is there: what lifecycle makes of EC2's answer."""
    chosen = sold(kind, offering) or Offering(offering.zone, offering.capacity_type, offering.price)
    own = node_labels(claim.metadata.labels, pool, kind, requirements=claim.spec.requirements)
    labels = keys.with_aliases(own | offering_labels(kind, chosen))
    name = claim.metadata.name
    named = with_metadata(
        claim,
        uid=f"uid-{name}",
        creation_timestamp=at,
        labels={key: value for key, value in labels.items() if key not in _OF_THE_KUBELET},
    )
    return with_status(
        named,
        provider_id=f"aws:///{offering.zone}/i-{name}",
        capacity=texts(kind.capacity),
        allocatable=texts(kind.allocatable),
        conditions=[true(LAUNCHED, observed(claim, at))],
    )


def joined(claim: NodeClaim, at: datetime) -> tuple[NodeClaim, core.Node]:
    """A launched claim once its node is initialised and Ready, and that Node, which has the claim's name."""
    conditions, name = claim.status.conditions, claim.metadata.name
    for kind in (REGISTERED, INITIALIZED, READY):
        conditions = put(conditions, true(kind, observed(claim, at)))
    labels = {**claim.metadata.labels, keys.HOSTNAME: name, keys.REGISTERED: "true", keys.INITIALIZED: "true"}
    taints = [core.Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in claim.spec.taints]
    status = claim.status
    node = core.Node(
        metadata=core.ObjectMeta(name=name, uid=f"uid-node-{name}", labels=labels, creation_timestamp=at),
        spec=core.NodeSpec(provider_id=status.provider_id, taints=taints),
        status=core.NodeStatus(
            capacity=dict(status.capacity),
            allocatable=dict(status.allocatable),
            conditions=[core.Condition(type=READY, status="True", last_transition_time=at)],
        ),
    )
    return with_status(claim, node_name=name, conditions=conditions), node
