"""Nodes at a higher risk are replaced: a disruption command for each claim that a rebalance recommendation has marked.

The interruption door marks (``interruption.rebalance``) and rings; the rest is done at the end of a run of
provisioning, which may plan and buy. What follows a start is lifecycle's (``lifecycle.disrupting.started_commands``).
"""

from dataclasses import replace

from joinery.controllers.acting.actor import Actor
from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.launching.supply import read_supply
from joinery.controllers.starting_commands import CommandStarter
from joinery.controllers.telemetry import COMMAND, REASON, logger
from joinery.decisions.interruption.rebalance import is_to_be_replaced
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand, as_if_retired, for_moves
from joinery.decisions.lifecycle.launching.new_claims import claims_of
from joinery.decisions.planning import plan
from joinery.decisions.scheduling.problem import Options, Problem
from joinery.gateways.bundles import Gateways
from joinery.gateways.doorbell.gateway import Bell
from joinery.objects.errors import ConflictError
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.policies import Caps
from joinery.objects.snapshot.pods import is_reschedulable
from joinery.objects.snapshot.snapshot import Snapshot

#: Seconds that starting one command takes at most, with its reads, its plan and its launch.
_EACH_TAKES = 20.0
#: Of these, what its plan may take.
_PLANNING = 5.0


def replace_risky_nodes(
    gateways: Gateways, options: Options, before: Snapshot, invocation: Invocation, actor: Actor
) -> Caps:
    """Start the commands, one after another while there is time, and ring for the rest.

    ``options``: those of the run's plans, with what is left of its caps. ``before``: what the run has read already.
    Where no claim of it is marked, nothing more is read. Returns what the run may still buy after it.
    """
    names = [claim.metadata.name for claim in before.managed_claims if is_to_be_replaced(claim, before.now)]
    for name in names:
        if not invocation.has_time_for(_EACH_TAKES):
            actor.ring(Bell.PROVISIONING)
            break
        with actor.noting(f"{name} could not be replaced for its rebalance recommendation"):
            options = replace(options, caps=_start(gateways, options, name, invocation, actor))
    return options.caps


def _start(gateways: Gateways, options: Options, name: str, invocation: Invocation, actor: Actor) -> Caps:
    # Read anew for each: the one before has bought nodes.
    snapshot = gateways.cluster.snapshot()
    claim = next((claim for claim in snapshot.managed_claims if claim.metadata.name == name), None)
    if claim is None or not is_to_be_replaced(claim, snapshot.now):
        return options.caps
    supply = read_supply(gateways, snapshot, is_voluntary=True)
    # The caps bind the command as a whole: pods of its node without a place would be no answer.
    uncapped = replace(options, caps=Caps(), time_limit=_PLANNING)
    problem = Problem(snapshot=as_if_retired(snapshot, [name]), instance_types=supply.types, options=uncapped)
    planned = plan(problem, stopwatch=invocation.stopwatch())
    without_place = _pods_of(snapshot, claim) & {unplaced.pod for unplaced in planned.packing.unplaced}
    if without_place or planned.violations:
        why = f"its pod {min(without_place)} would have no place" if without_place else str(planned.violations[0])
        logger.info("not started", extra={COMMAND: f"disrupt {name}", REASON: why})
        return options.caps
    command = NewCommand(
        reason=DisruptionReason.REBALANCE,
        candidates=(claim,),
        replacements=claims_of(for_moves(planned.packing, snapshot, [name]), snapshot),
    )
    starter = CommandStarter(gateways, actor, snapshot, supply, invocation)
    try:
        (started,) = starter.start([command], door="provisioning", caps=options.caps)
    except ConflictError:
        # Somebody else decides at this moment. The mark stays, and the bell brings the next run.
        actor.ring(Bell.PROVISIONING)
        return options.caps
    return started.caps


def _pods_of(snapshot: Snapshot, claim: NodeClaim) -> set[str]:
    """The pods of the claim's node that need another one."""
    node = claim.status.node_name
    return {pod.key for pod in snapshot.pods if pod.spec.node_name == node and is_reschedulable(pod)}
