"""What one run of lifecycle decides: the next step of every claim, readiness of pools and classes, and garbage."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from joinery.decisions.lifecycle.conditions.refused import with_refused
from joinery.decisions.lifecycle.draining.finalization import finalize_node, is_ours
from joinery.decisions.lifecycle.draining.stall import stall_in
from joinery.decisions.lifecycle.garbage import unknown_instances
from joinery.decisions.lifecycle.pools.canary import trials
from joinery.decisions.lifecycle.pools.overlay_status import overlay_statuses
from joinery.decisions.lifecycle.pools.readiness import readiness
from joinery.decisions.lifecycle.pools.registration_health import REGISTRATION_HEALTHY
from joinery.decisions.lifecycle.pools.shares import SHARE_NOT_KEPT
from joinery.decisions.lifecycle.repair import Repairs, repairs
from joinery.decisions.lifecycle.state.cluster import ClusterState, LifecycleStep
from joinery.decisions.lifecycle.step import advance
from joinery.decisions.scheduling.pools.overlays import Types
from joinery.objects.actions import (
    Announce,
    Command,
    DeleteClaim,
    Tolerate,
    UpdateClaim,
    UpdateClass,
    UpdateOverlay,
    UpdatePool,
)
from joinery.objects.karpenter.disruption import CanaryRule
from joinery.objects.karpenter.labels import (
    DISRUPTION_COMMAND,
    INTERRUPTED_AT,
    TERMINATION_FINALIZER,
    TERMINATION_TIMESTAMP,
)
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeclass import NodeClassStatus
from joinery.objects.kubernetes.core import Node
from joinery.objects.policies import NodeRepair
from joinery.objects.refusals import due
from joinery.objects.snapshot.claims import moment

#: Conditions that say how nodes do, and nothing of whether one may be bought.
_OF_NODES = frozenset({REGISTRATION_HEALTHY, SHARE_NOT_KEPT})
#: How soon a deadline counts as near.
_NEAR = timedelta(minutes=5)
_NEVER = datetime.min.replace(tzinfo=UTC)

Chain = tuple[Command, ...]


@dataclass(frozen=True)
class Failure:
    """Something that could not be decided, and the error."""

    what: str
    error: Exception


@dataclass(frozen=True)
class LifecycleDecision:
    """Commands come in chains, one chain an object: what follows a command that failed is not tried.

    ``readiness``: for each NodePool, NodeOverlay, node class and invalid resource whose status changes. ``steps``: one
    for each claim of ours that stays. ``ends``: one for each that is being deleted, and for each Node of ours that is
    being deleted without a claim, in the order in which they should be carried out (``in_turn``). ``garbage``: for each
    instance that has no claim. ``failures``: the claims and Nodes whose step could not be decided. ``blocked_repairs``:
    Events about unhealthy nodes that are not repaired (``lifecycle.repair``). ``halted``: names of node classes of
    which an image has failed its trial (``lifecycle.pools.canary``).
    """

    readiness: tuple[Chain, ...]
    steps: tuple[LifecycleStep, ...]
    ends: tuple[LifecycleStep, ...]
    garbage: tuple[Chain, ...]
    failures: tuple[Failure, ...]
    blocked_repairs: Chain = ()
    halted: frozenset[str] = frozenset()

    @property
    def launches(self) -> tuple[NodeClaim, ...]:
        """The claims to launch, because whoever wrote them was stopped before it did."""
        return tuple(step.launch for step in self.steps if step.launch)

    @property
    def invitations(self) -> tuple[Tolerate, ...]:
        """Which pods to let onto the nodes that are kept for them, each by itself: one may be refused."""
        tolerating = (step.tolerate for step in self.steps if step.tolerate)
        return tuple(replace(each, pods=(pod,)) for each in tolerating for pod in each.pods)

    @property
    def pod_events(self) -> Mapping[str, Sequence[Announce]]:
        """Events for pods, by their reason."""
        by_reason: dict[str, list[Announce]] = defaultdict(list)
        for step in self.ends:
            for news in step.pod_events:
                by_reason[news.reason].append(news)
        return by_reason

    @property
    def in_progress(self) -> int:
        """How many objects want another step soon."""
        return sum(step.in_progress for step in (*self.steps, *self.ends))

    @property
    def rest(self) -> timedelta:
        """How long none of them needs its next step."""
        return min((step.rest for step in (*self.steps, *self.ends) if step.in_progress), default=timedelta())

    @property
    def wakes_provisioning(self) -> bool:
        """Whether pods have to be planned: some lost their place, or a pool or class became ready or unready."""
        commands = (command for step in (*self.steps, *self.ends) for command in step.commands)
        return (
            any(isinstance(command, DeleteClaim) for command in commands)
            or any(step.is_short for step in self.steps)
            or any(_changes_readiness(command) for chain in self.readiness for command in chain)
        )

    @property
    def wakes_disruption(self) -> bool:
        """Whether a node that a disruption command had retired is gone, so that its budget has room for another."""
        commands = (command for step in self.ends for command in step.commands)
        return any(isinstance(command, UpdateClaim) and _ends_command(command) for command in commands)


def decide(
    state: ClusterState,
    statuses: Mapping[str, NodeClassStatus],
    *,
    node_repair: NodeRepair = NodeRepair.OFF,
    canary: CanaryRule | None = None,
    types: Types | None = None,
) -> LifecycleDecision:
    """Decide about everything in the state.

    ``statuses``: by name of a node class, what the cloud says of it now. ``node_repair``: what becomes of unhealthy
    nodes. ``canary``: how new images are tried, for node classes that do not say. ``types``: by name of a node class,
    what its nodes may be of, for NodeOverlays; None where nobody knows, which leaves their status as it is.
    """
    repaired = repairs(state, node_repair)
    judged = trials(state.snapshot, canary)
    failures: list[Failure] = []
    claims = state.snapshot.managed_claims
    leaving = in_turn([*(claim for claim in claims if claim.is_deleting), *_nodes_without_claim(state)], state)
    return LifecycleDecision(
        readiness=tuple(
            _due(state, chain)
            for chain in (
                *readiness(state.snapshot, statuses, state.shifted, judged, state.deaths),
                *(() if types is None else overlay_statuses(state.snapshot, types)),
            )
        ),
        steps=tuple(_step(state, claim, failures, repaired) for claim in claims if not claim.is_deleting),
        ends=tuple(_step(state, owner, failures, repaired) for owner in leaving),
        garbage=tuple(_due(state, chain) for chain in unknown_instances(state)),
        failures=tuple(failures),
        blocked_repairs=repaired.blocked,
        halted=judged.halted,
    )


def _step(state: ClusterState, owner: NodeClaim | Node, failures: list[Failure], repaired: Repairs) -> LifecycleStep:
    try:
        if isinstance(owner, Node):
            return _paced(state, finalize_node(state, owner))
        chain = repaired.chains.get(owner.metadata.name)
        is_said = with_refused(state, owner) == owner
        return _paced(state, LifecycleStep(chain, in_progress=True) if chain and is_said else advance(state, owner))
    except Exception as error:  # whatever is wrong with one of them, the others go on
        failures.append(Failure(f"{type(owner).__name__} {owner.metadata.name} could not be decided", error))
        return LifecycleStep(in_progress=True)


def _due(state: ClusterState, chain: Chain) -> Chain:
    return due(chain, state.refusals, state.snapshot.now).commands


def _paced(state: ClusterState, step: LifecycleStep) -> LifecycleStep:
    """The step as far as it does not wait for what was refused: nothing of it is in progress then."""
    found = due(step.commands, state.refusals, state.snapshot.now)
    waits = found.refusal is not None and not found.refusal.is_worth_ticks(state.snapshot.now)
    return replace(step, commands=found.commands, in_progress=step.in_progress and not waits)


def _nodes_without_claim(state: ClusterState) -> Iterable[Node]:
    """The Nodes of ours that are being deleted and whose claim is gone already."""
    claimed = {claim.status.provider_id for claim in state.snapshot.node_claims}
    kind = state.snapshot.node_class_kind
    deleted = (node for node in state.snapshot.nodes if node.metadata.deletion_timestamp and is_ours(node, kind))
    return (node for node in deleted if node.spec.provider_id not in claimed)


def _ends_command(command: UpdateClaim) -> bool:
    is_retired = DISRUPTION_COMMAND in command.before.metadata.annotations
    return is_retired and TERMINATION_FINALIZER not in command.after.metadata.finalizers


def _changes_readiness(command: Command) -> bool:
    """Whether a condition has changed, and not only a figure of the status."""
    if not isinstance(command, UpdatePool | UpdateClass | UpdateOverlay):
        return False
    before, after = (
        {it.type: it.status for it in read.status.conditions if it.type not in _OF_NODES}
        for read in (command.before, command.after)
    )
    return before != after


def in_turn(owners: Iterable[NodeClaim | Node], state: ClusterState) -> list[NodeClaim | Node]:
    """The claims and Nodes that are being deleted, in the order in which their next step is carried out.

    A run may not have the time for all of them, and none may wait for ever. First come those that EC2 takes, because
    they have two minutes, and those whose deadline is near; then the drains whose last attempt is the longest ago.
    """
    return sorted(
        owners, key=lambda owner: (not _is_urgent(owner, state.snapshot.now), _asked(owner, state.snapshot.now))
    )


def _is_urgent(owner: NodeClaim | Node, now: datetime) -> bool:
    annotations = owner.metadata.annotations
    deadline = moment(annotations.get(TERMINATION_TIMESTAMP, ""))
    return INTERRUPTED_AT in annotations or (deadline is not None and deadline - now < _NEAR)


def _asked(owner: NodeClaim | Node, now: datetime) -> datetime:
    """When its pods were asked to go last."""
    stall = stall_in(owner.metadata.annotations, now)
    return stall.asked if stall else _NEVER
