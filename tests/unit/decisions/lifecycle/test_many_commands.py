"""What a run takes for many disruption commands: it reads its pods, nodes and claims once, and not once a command."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from joinery.decisions.disruption.static_drift import to_replace
from joinery.decisions.lifecycle.decision import decide
from joinery.decisions.lifecycle.disrupting.new_commands import as_candidate, as_replacement
from joinery.decisions.lifecycle.state.cluster import state_of
from joinery.decisions.lifecycle.state.command_outlook import NextStep
from joinery.objects.actions import Announce
from joinery.objects.annotations.disruption import CommandRecord
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import DO_NOT_DISRUPT
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import DRIFTED
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START

FEW, MANY = 2, 20


@dataclass
class Passes:
    """How often something was gone through from its beginning."""

    count: int = 0


class Watched(tuple[Any, ...]):
    """Counts how often it is gone through, in the ``passes`` that it was given."""

    passes: Passes

    def __iter__(self) -> Iterator[Any]:
        self.passes.count += 1
        return super().__iter__()


def _watched(items: Any, passes: Passes) -> tuple[Any, ...]:
    watched = Watched(items)
    watched.passes = passes
    return watched


def _command(number: int) -> tuple[NodeClaim, NodeClaim]:
    """A candidate and its replacement, which is ready."""
    record = CommandRecord(
        id=f"command-{number}",
        reason=DisruptionReason.UNDERUTILIZED,
        started=START,
        deadline=START + timedelta(minutes=10),
        candidates=(f"old-{number}",),
        replacements=(f"new-{number}",),
    )
    old, new = (builders.node_claim(f"{kind}-{number}", node=f"node-{kind}-{number}") for kind in ("old", "new"))
    return as_candidate(old, record), as_replacement(new, record)


def _cluster(claims: list[NodeClaim], passes: Passes, **pod: Any) -> Snapshot:
    """A cluster with a pod on the node of every claim."""
    names = [claim.status.node_name for claim in claims]
    return Snapshot(
        now=START,
        node_claims=tuple(claims),
        nodes=_watched((builders.node(name) for name in names), passes),
        pods=_watched((builders.pod(f"on-{name}", node=name, **pod) for name in names), passes),
        disruption_budgets=_watched([builders.pdb("web", allowed=1)], passes),
    )


def test_the_second_look_reads_the_cluster_once_for_all_commands() -> None:
    """Five hundred commands of a cluster with 100,000 pods took fifteen seconds."""

    def passes_for(count: int) -> int:
        passes = Passes()
        commands = [claim for number in range(count) for claim in _command(number)]
        outlooks = state_of(_cluster(commands, passes), ()).disruptions.outlooks.values()
        assert [outlook.next_step for outlook in outlooks] == [NextStep.FINISH] * count
        return passes.count

    assert passes_for(MANY) == passes_for(FEW)


@pytest.mark.parametrize("value", ["true", "false"])
def test_drifted_nodes_are_chosen_with_one_look_at_the_cluster(value: str) -> None:
    """Also where none may go: five thousand drifted nodes with such pods took minutes, and every run was killed."""

    def passes_for(count: int) -> int:
        passes = Passes()
        conditions = ("Launched", "Registered", "Initialized", DRIFTED)
        claims = [builders.node_claim(f"c-{n}", node=f"n-{n}", conditions=conditions) for n in range(count)]
        snapshot = _cluster(claims, passes, annotations={DO_NOT_DISRUPT: value})
        pool = builders.node_pool(replicas=count, budgets=[{"nodes": "100%"}])
        drift = to_replace(Snapshot(**{**vars(snapshot), "node_pools": (pool,)}))
        assert len(drift.announcements if value == "true" else drift.candidates) == count
        return passes.count

    assert passes_for(MANY) == passes_for(FEW)


@pytest.mark.parametrize("left", ["old", "new"], ids=["replacements lost", "candidates gone"])
def test_claims_of_one_command_are_found_by_their_names(left: str) -> None:
    """A step of one claim goes through no others: of five thousand claims, five hundred may be replaced at once."""

    def passes_for(count: int) -> int:
        passes = Passes()
        pairs = [_command(number) for number in range(count)]
        claims = [claim for pair in pairs for claim in pair if claim.metadata.name.startswith(left)]
        snapshot = _cluster(claims, Passes())
        vars(snapshot)["managed_claims"] = _watched(claims, passes)
        assert not decide(state_of(snapshot, ()), {}).failures
        return passes.count

    assert passes_for(MANY) == passes_for(FEW)


def test_nodes_that_somebody_took_out_of_commands_are_found_with_one_look_at_the_claims() -> None:
    """Karpenter leaves the same condition behind, perhaps on hundreds of claims."""

    def passes_for(count: int) -> int:
        passes = Passes()
        pairs = [_command(number) for number in range(count)]
        claims = [with_metadata(old, annotations={}) for old, _ in pairs] + [new for _, new in pairs]
        snapshot = _cluster(claims, Passes())
        vars(snapshot)["managed_claims"] = _watched(claims, passes)
        events = [
            command.reason
            for step in decide(state_of(snapshot, ()), {}).steps
            for command in step.commands
            if isinstance(command, Announce)
        ]
        assert events.count("DisruptionRolledBack") == 2 * count
        return passes.count

    assert passes_for(MANY) == passes_for(FEW)
