"""Disruption commands: replacements first, then the nodes that they replace, whatever happens in between."""

from typing import Any

from joinery.apis.caps import Caps
from joinery.apis.disruption import DisruptionReason
from joinery.apis.labels import DISRUPTED_TAINT, RETIRED_FOR
from joinery.apis.nodeclaim import NodeClaim
from joinery.controllers.actor import Actor
from joinery.controllers.orchestration import Orchestrator, Started
from joinery.controllers.supply import read_supply
from joinery.lifecycle.new_claims import claims_of
from joinery.lifecycle.new_commands import NewCommand, as_if_retired, for_moves
from joinery.planning import plan
from joinery.scheduling.problem import Options, Problem
from tests.functional.stand import APART, Stand


def _running(stand: Stand, count: int = 1) -> list[NodeClaim]:
    """So many pods, each on a node of its own that has settled."""
    stand.pods(count, labels={"app": "web"}, affinity=APART)
    stand.settle()
    stand.live()
    assert len(stand.alive) == count
    return stand.claims


def _start(stand: Stand, *candidates: NodeClaim, with_replacements: bool = True, **given: Any) -> tuple[Started, ...]:
    """Start one command over the candidates, with replacements for their pods."""
    gateways = stand.gateways
    snapshot = gateways.cluster.snapshot()
    names = [claim.metadata.name for claim in candidates]
    supply = read_supply(gateways, snapshot.node_classes, snapshot.now)
    problem = Problem(
        snapshot=as_if_retired(snapshot, names), instance_types=supply.types, options=Options(caps=Caps())
    )
    packing = for_moves(plan(problem).packing, snapshot, names)
    command = NewCommand(
        reason=given.pop("reason", DisruptionReason.DRIFTED),
        candidates=tuple(candidates),
        replacements=claims_of(packing, snapshot) if with_replacements else (),
        **given,
    )
    invocation = stand.invocation()
    actor = Actor(gateways, snapshot.now, invocation)
    orchestrator = Orchestrator(gateways, actor, snapshot, supply, invocation)
    started = orchestrator.start([command], door="test", caps=stand.settings.caps)
    actor.conclude()
    return started


def _old(stand: Stand, before: NodeClaim) -> NodeClaim:
    return stand.world.cluster.node_claims[before.metadata.name]


def _new(stand: Stand, *before: NodeClaim) -> list[NodeClaim]:
    names = {claim.metadata.name for claim in before}
    return [claim for claim in stand.claims if claim.metadata.name not in names]


def _is_tainted(stand: Stand, claim: NodeClaim) -> bool:
    node = stand.world.cluster.nodes[claim.status.node_name]
    return DISRUPTED_TAINT in {taint.key for taint in node.spec.taints}


def _through(stand: Stand) -> None:
    """Until the old nodes are gone: evicted pods are made anew and bound."""
    for _ in range(20):
        stand.provision()
        stand.live()
        stand.bind()
        stand.wait(10)


def test_a_node_is_retired_once_its_replacement_is_initialised(stand: Stand) -> None:
    """Until then it keeps its pods, and no pod is planned onto it."""
    stand.with_defaults()
    (old,) = _running(stand)
    (started,) = _start(stand, old)
    assert started.obstacle == ""
    assert _is_tainted(stand, old)
    (new,) = _new(stand, old)
    assert new.is_true("Launched")
    stand.live()
    assert not _old(stand, old).is_deleting
    stand.boot()
    stand.live()
    stand.live()
    assert _old(stand, old).is_deleting
    assert _old(stand, old).metadata.annotations[RETIRED_FOR] == "Drifted"
    assert "DisruptionTerminating" in stand.told("Node") & stand.told("NodeClaim")
    assert len(stand.claims) == 2
