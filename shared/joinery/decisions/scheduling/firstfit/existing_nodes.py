"""Room on nodes that exist, or that are on their way: it is used before anything is bought.

Every method that places pods takes their names and returns how many it placed: the first so many of them.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from joinery.decisions.optimizer.effort import Effort
from joinery.decisions.scheduling.firstfit.demand import Demand
from joinery.decisions.scheduling.firstfit.existing_node import ExistingNode
from joinery.decisions.scheduling.firstfit.options import FirstFitOptions
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME


class ExistingNodes:
    """The nodes of the workspace, in their order."""

    def __init__(self, work: Workspace, options: FirstFitOptions, effort: Effort) -> None:
        self._nodes = work.nodes
        # What each has left becomes a row of one array, so that all are asked at once whether a pod has room.
        self._free = np.array([node.free for node in work.nodes], dtype=np.int64).reshape(-1, len(work.axis.names))
        for node, row in zip(work.nodes, self._free, strict=True):
            node.free = row
        self._effort = effort
        self._free_volumes = work.free_volumes
        self._hosts = work.hosts_of_claims
        self._topology: Topology = work.topology
        self._cautious_on_hosts = options.cautious

    def take(self, demand: Demand, names: Sequence[str]) -> int:
        """Put as many of the pods there as there is room for."""
        keys = self._topology.binding(demand.pod_class).keys(demand.variant.rules)
        placed = 0
        for cautious in (True, False):
            # A spread may let a pod in only once another has gone elsewhere, or one more each time: ask before buying.
            while placed < len(names) and (more := self._one_round(demand, names[placed:], keys, cautious)):
                placed += more
                if not demand.variant.rules or self._effort.is_late():
                    break
        return placed

    def keep(self, planned: Mapping[ExistingNode, Sequence[str]], demands: Iterable[Demand]) -> frozenset[str]:
        """Put pods on the nodes that they are planned for, as far as that is still right; the names of those."""
        waiting, kept = dict(planned), set[str]()
        demands, progress = tuple(demands), True
        while progress:
            # Round after round: a spread lets few pods into a domain until the others have as many.
            progress = False
            for node in waiting:
                for demand in demands:
                    batch = waiting[node][: self._keeps(node, demand, len(waiting[node]))]
                    if batch:
                        self._put(node, demand, batch)
                        waiting[node] = waiting[node][len(batch) :]
                        kept.update(batch)
                        progress = True
        return frozenset(kept)

    def domains_with_room(self, demand: Demand) -> list[set[tuple[str, str]]]:
        """The domains of existing nodes that could take a pod,
        were it not for its spreads over them; none for a class without such.
        """
        keys = [rule.key for rule in demand.variant.rules if rule.kind == "spread" and rule.key != HOSTNAME]
        if not keys:
            return []
        pods, rules = demand.pod_class, demand.variant.rules
        return [
            {
                (key, value)
                for key in self._topology.binding(pods).keys(rules)
                if (value := node.domain(key)) is not None
            }
            for node in self._with_room(demand)
            if node.admits(demand)
            and node.holds(demand) > 0
            and self._topology.allowance(pods, rules, HOSTNAME, node.host, cautious=False) > 0
        ]

    def _one_round(self, demand: Demand, names: Sequence[str], keys: Sequence[str], cautious: bool) -> int:
        placed = 0
        for node in self._with_room(demand):
            waiting = len(names) - placed
            if not waiting or self._effort.is_late():
                break
            if not node.admits(demand):
                continue
            count = min(self._holds(node, demand, waiting), self._allowed_on(node, demand, keys, cautious))
            if count > 0 and demand.may_start(self._topology, node.holds(demand), waiting):
                self._put(node, demand, names[placed : placed + count])
                placed += count
        return placed

    def _with_room(self, demand: Demand) -> Sequence[ExistingNode]:
        """The nodes that are not overcommitted and have what one pod asks for: of thousands, one look finds them."""
        asked = demand.asked
        have_room = (self._free >= 0).all(axis=1) & (self._free[:, asked] >= demand.requests[asked]).all(axis=1)
        return [self._nodes[number] for number in np.flatnonzero(have_room)]

    def _keeps(self, node: ExistingNode, demand: Demand, count: int) -> int:
        """How many of so many pods that are planned for the node it may have by now;
        all, as long as it is not launched: its room is theirs.
        """
        if node.view.is_unlaunched:
            return count
        if not node.admits(demand):
            return 0
        keys = self._topology.binding(demand.pod_class).keys(demand.variant.rules)
        return min(self._holds(node, demand, count), self._allowed_on(node, demand, keys, cautious=False))

    def _holds(self, node: ExistingNode, demand: Demand, most: int) -> int:
        """For how many more pods there is room, and a free volume where they need one; ``most`` at the most."""
        room = min(most, node.holds(demand))
        return self._free_volumes.left(demand.choices, room, node.view.labels) if demand.choices else room

    def _allowed_on(self, node: ExistingNode, demand: Demand, keys: Sequence[str], cautious: bool) -> int:
        """How many more pods of the class the rules over the host and over the node's domains (``keys``) let in."""
        pods, rules = demand.pod_class, demand.variant.rules
        if not demand.may_be_on(node.host):
            return 0
        is_careful = cautious or self._cautious_on_hosts
        allowed = self._topology.allowance(pods, rules, HOSTNAME, node.host, cautious=is_careful)
        for key in keys:
            domain = node.domain(key)
            if domain is not None:
                allowed = min(allowed, self._topology.allowance(pods, rules, key, domain, cautious=cautious))
            elif any(rule.key == key and rule.kind != "anti-affinity" for rule in rules):
                return 0  # a node without the label is no place for a spread or an affinity over it
        return allowed

    def _put(self, node: ExistingNode, demand: Demand, batch: Sequence[str]) -> None:
        node.place(demand, batch)
        self._hosts.update(dict.fromkeys(demand.pod_class.shared_claims, node.host))
        self._free_volumes.take(demand.choices, len(batch), node.view.labels)
        keys = self._topology.binding(demand.pod_class).keys(self._topology.rules[demand.pod_class])
        domains = {key: value for key in keys if (value := node.domain(key)) is not None}
        domains[HOSTNAME] = node.host
        self._topology.record(demand.pod_class, demand.variant.rules, domains, len(batch), node.counts)
