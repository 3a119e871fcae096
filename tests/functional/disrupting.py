"""A door that starts disruption commands, for tests: the claims that they name are replaced by what their pods need."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from joinery.controllers.acting.actor import Actor
from joinery.controllers.launching.supply import read_supply
from joinery.controllers.starting_commands import CommandStarter, Started
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand, as_if_retired, for_moves
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.planning import plan
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.objects.annotations.disruption import DISRUPTION_REASON, Readiness
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DISRUPTED_TAINT, DISRUPTION_COMMAND, RETIRED_FOR
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.policies import Caps
from tests.functional.overtaken import Overtaken
from tests.functional.stand import APART, Stand


def running(stand: Stand, count: int = 1, **given: Any) -> list[NodeClaim]:
    """So many pods, each on a node of its own that has settled: their claims."""
    stand.pods(count, labels={"app": "web"}, affinity=APART, **given)
    stand.settle()
    stand.live()
    assert len(stand.alive) == count
    return stand.claims


def disrupt(
    stand: Stand,
    *candidates: NodeClaim,
    reason: DisruptionReason = DisruptionReason.UNDERUTILIZED,
    with_replacements: bool = True,
    meanwhile: Callable[[], None] = lambda: None,
    **given: Any,
) -> Started:
    """Start one command, with replacements for the candidates' pods. ``meanwhile``: what happens between its decision
    and its start. ``given``: fields of ``NewCommand``.
    """
    gateways, invocation = stand.gateways, stand.invocation()
    snapshot = gateways.cluster.snapshot()
    names = [claim.metadata.name for claim in candidates]
    supply = read_supply(gateways, snapshot)
    problem = Problem(
        snapshot=as_if_retired(snapshot, names), instance_types=supply.types, options=Options(caps=Caps())
    )
    packing = for_moves(plan(problem).packing, snapshot, names)
    replacements = claims_of(packing, snapshot) if with_replacements else ()
    command = NewCommand(reason=reason, candidates=tuple(candidates), replacements=replacements, **given)
    actor = Actor(gateways, snapshot.now, invocation)
    meanwhile()
    supply = read_supply(gateways, snapshot)
    starter = CommandStarter(gateways, actor, snapshot, supply, invocation)
    (started,) = starter.start([command], door="test", caps=stand.settings.caps)
    actor.conclude()
    return started


def end_first(stand: Stand, *candidates: NodeClaim) -> None:
    """Start one command that ends these nodes before their replacements are launched."""
    started = disrupt(stand, *candidates, reason=DisruptionReason.DRIFTED, waits_for=Readiness.WRITTEN)
    assert started.why_not is None


def now(stand: Stand, before: NodeClaim) -> NodeClaim:
    """The claim as it is now."""
    return stand.world.cluster.node_claims[before.metadata.name]


def others(stand: Stand, before: Collection[NodeClaim]) -> list[NodeClaim]:
    """The claims that came since."""
    names = {claim.metadata.name for claim in before}
    return [claim for claim in stand.claims if claim.metadata.name not in names]


def is_tainted(stand: Stand, claim: NodeClaim) -> bool:
    """Whether the claim's node takes no pods, because it is disrupted."""
    node = stand.world.cluster.nodes[claim.status.node_name]
    return DISRUPTED_TAINT in {taint.key for taint in node.spec.taints}


def stays(stand: Stand, claim: NodeClaim) -> bool:
    """Whether the node is as if no command had ever been."""
    after = now(stand, claim)
    marks = {DISRUPTION_COMMAND, RETIRED_FOR} & set(after.metadata.annotations)
    return not (after.is_deleting or marks or after.condition(DISRUPTION_REASON) or is_tainted(stand, claim))


def meanwhile(stand: Stand, happens: Callable[[], object]) -> Stand:
    """A stand in which something happens between the decision and what is read after it."""
    cluster: Any = Overtaken(stand.world.cluster, "snapshot", lambda: None, happens)
    overtaken = Stand(stand.world, gateways=replace(stand.gateways, cluster=cluster))
    overtaken.settings = stand.settings
    return overtaken


def emptied(stand: Stand, count: int = 1) -> None:
    """So many nodes, each initialised, whose pods have ended, longer ago than anybody waits."""
    running(stand, count)
    stand.wait(60)
    for pod in list(stand.world.cluster.pods.values()):
        stand.world.cluster.api.delete(pod)
    stand.live()
    stand.wait(600)
    stand.live()
    stand.rung()
