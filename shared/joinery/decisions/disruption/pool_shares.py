"""Shares on demand of NodePools, while nodes are disrupted: no command makes a share short of nodes on demand.

What replaces nodes keeps the share already (``scheduling.pool_shares``). Left are nodes that go without replacement, or
for one of another NodePool, and commands that are right only beside each other. A share that is short anyway, because
nodes were lost or the annotation is new, may stay as short as it is: so its nodes may still be replaced, and each
replacement mends it. Nobody asks when nodes have to go: an interruption, an expiry.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from joinery.decisions.disruption.candidates import Candidate
from joinery.decisions.disruption.decision import DecidedCommand, StayingNode
from joinery.decisions.scheduling.packing import Launch
from joinery.objects.karpenter.labels import CAPACITY_TYPE, ON_DEMAND_SHARE
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pool_shares import ON_DEMAND_KINDS, is_on_demand
from joinery.objects.snapshot.snapshot import Snapshot


class RunningShares:
    """What shares still allow, while commands are taken one after another."""

    def __init__(self, snapshot: Snapshot, nodes: Iterable[NodeView]) -> None:
        self._shares = dict(snapshot.pool_shares)
        self._views = {view.claim: view for view in nodes if view.pool in self._shares} if self._shares else {}

    def objection(self, command: DecidedCommand) -> Objection | None:
        """Which NodePool would be left with too few nodes on demand by it."""
        for pool, (nodes, on_demand) in self._changes(command.retire, command.launches):
            before = self._shares[pool]
            after = before.after(nodes, on_demand)
            if after.lacking > before.lacking:
                text = (
                    f"NodePool {pool}: {after.on_demand} of {after.nodes} nodes would be on demand, and "
                    f"{ON_DEMAND_SHARE} ({after.share}) asks for {after.wanted}"
                )
                return Objection(ObjectionCode.ON_DEMAND_SHARE, text)
        return None

    def take(self, command: DecidedCommand) -> None:
        """The command starts."""
        for pool, (nodes, on_demand) in self._changes(command.retire, command.launches):
            self._shares[pool] = self._shares[pool].after(nodes, on_demand)

    def _changes(self, retire: Collection[str], launches: Iterable[Launch]) -> Iterator[tuple[str, tuple[int, int]]]:
        """By NodePool with a share, how many more nodes it has afterwards, and how many more on demand."""
        if not self._shares:
            return
        nodes, on_demand = Counter[str](), Counter[str]()
        for view in (self._views[name] for name in retire if name in self._views):
            nodes[view.pool] -= 1
            on_demand[view.pool] -= view.labels.get(CAPACITY_TYPE) in ON_DEMAND_KINDS
        for launch in launches:
            if launch.node_pool in self._shares:
                nodes[launch.node_pool] += 1
                on_demand[launch.node_pool] += is_on_demand(launch.requirements)
        for pool in sorted(nodes):
            yield pool, (nodes[pool], on_demand[pool])


def kept_for_shares(candidates: dict[str, Candidate], shares: RunningShares) -> Iterator[StayingNode]:
    """Take from the candidates the empty nodes that a share cannot spare, the cheapest last to go; so pods are planned
    onto them.
    """
    for name, candidate in sorted(candidates.items(), key=lambda item: (-item[1].price, item[0])):
        if candidate.pods or not candidate.reasons:
            continue
        alone = DecidedCommand(reason=min(candidate.reasons), message="", retire=(name,))
        if objection := shares.objection(alone):
            yield from (StayingNode(name, objection, reason) for reason in sorted(candidate.reasons))
            candidates[name] = replace(candidate, reasons=frozenset())
        elif candidate.capacity_type in ON_DEMAND_KINDS:
            shares.take(alone)
