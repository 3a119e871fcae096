"""What a cluster of a test looks like once commands have been carried out as they were decided."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand, as_replacement, record_for
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.objects.karpenter.labels import REPLACES
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.kubernetes.core import Node, Pod
from joinery.objects.kubernetes.quantity import texts
from joinery.objects.snapshot.claims import unannotated, with_status
from joinery.objects.snapshot.offerings import InstanceType
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders

#: So long a new node takes until it is initialised and the pods have moved.
BOOT = timedelta(minutes=2)


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
    types = {kind.name: kind for kind in problem.packing.instance_types["default"]}
    for launch, bare in _launched(commands, snapshot):
        target |= dict.fromkeys(launch.pods, bare.metadata.name)
        machines.append(_machine(launch, bare, types[given(launch)], ready))
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
            yield launch, unannotated(as_replacement(claim, record), REPLACES)


def _bound(snapshot: Snapshot, target: Mapping[str, str], gone: set[str], at: datetime) -> Iterator[Pod]:
    """The pods where they are afterwards. Those that moved are new pods; those that need not move have ended."""
    for pod in snapshot.pods:
        if pod.key in target:
            metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=at)
            spec = msgspec.structs.replace(pod.spec, node_name=target[pod.key])
            yield msgspec.structs.replace(pod, metadata=metadata, spec=spec)
        elif pod.spec.node_name not in gone:
            yield pod


def _machine(launch: Launch, claim: NodeClaim, sold: InstanceType, at: datetime) -> tuple[NodeClaim, Node]:
    """What lifecycle and a kubelet make of the claim."""
    name, offering = claim.metadata.name, launch.offering
    place: dict[str, Any] = {"instance_type": sold.name, "zone": offering.zone, "capacity_type": offering.capacity_type}
    model = builders.node_claim(name, node=name, node_pool=launch.node_pool, **place)
    conditions = [one.model_copy(update={"last_transition_time": at}) for one in model.status.conditions]
    named = with_metadata(claim, uid=f"uid-{name}", creation_timestamp=at - BOOT)
    joined = with_status(named, provider_id=model.status.provider_id, node_name=name, conditions=conditions)
    room = texts(sold.allocatable)
    pods = int(room.pop("pods"))
    cpu, memory = room.pop("cpu"), room.pop("memory")
    node = builders.node(
        name, cpu=cpu, memory=memory, pods=pods, resources=room, node_pool=launch.node_pool, created=at, **place
    )
    return joined, node
