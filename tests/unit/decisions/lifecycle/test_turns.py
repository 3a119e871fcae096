"""Who is drained first: whoever has least time, and then whoever waits longest."""

from datetime import timedelta

from joinery.decisions.lifecycle.decision import in_turn
from joinery.decisions.lifecycle.draining.stall import Stall
from joinery.decisions.lifecycle.state.cluster import state_of
from joinery.objects.karpenter.labels import INTERRUPTED_AT, TERMINATION_TIMESTAMP
from joinery.objects.snapshot.snapshot import Snapshot
from simulator import builders
from simulator.clock import START


def test_the_order_of_drains() -> None:
    """A drain that a run had no time for is the first of the next one."""

    def asked(seconds: int) -> dict[str, str]:
        return Stall(1, START, START + timedelta(seconds=seconds)).annotation

    annotations = {
        "just asked": asked(50),
        "asked before": asked(10),
        "never asked": {},
        "taken": {INTERRUPTED_AT: START.isoformat(), **asked(55)},
        "due": {TERMINATION_TIMESTAMP: (START + timedelta(minutes=4)).isoformat(), **asked(55)},
        "has a week": {TERMINATION_TIMESTAMP: (START + timedelta(days=7)).isoformat(), **asked(20)},
    }
    claims = [builders.node_claim(name, annotations=given) for name, given in annotations.items()]
    names = [owner.metadata.name for owner in in_turn(claims, state_of(Snapshot(now=START), ()))]
    assert names == ["taken", "due", "never asked", "asked before", "has a week", "just asked"]
