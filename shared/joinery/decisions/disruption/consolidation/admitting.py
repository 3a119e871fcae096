"""Which nodes let a class of pods in at all, room and other pods apart.

Thousands of classes times hundreds of nodes are many pairs. So what a class asks of labels is asked once for nodes that
are alike in the labels named, and what its tolerations say once for each set of taints.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from joinery.decisions.scheduling.firstfit.existing_node import ExistingNode
from joinery.decisions.scheduling.optimise.orders import Order


class AdmittingNodes:
    """``targets``: nodes, each by its number."""

    def __init__(self, targets: Mapping[int, ExistingNode]) -> None:
        self._targets = {n: it for n, it in targets.items() if not it.view.is_unlaunched and not (it.free < 0).any()}
        self._ports = {n: frozenset((protocol, port) for protocol, _, port in it.ports) for n, it in targets.items()}
        self._taints = {n: tuple(map(repr, it.view.taints)) for n, it in self._targets.items()}
        self._alike: dict[tuple[str, ...], Sequence[Sequence[int]]] = {}
        self._repelled: dict[Hashable, bool] = {}

    def of(self, order: Order) -> list[int]:
        """The numbers of those that let the pods of the order in, in their domains (``ExistingNode.admits``)."""
        asked, pods = order.demand.requirements, order.demand.pod_class
        ports = frozenset((protocol, port) for protocol, _, port in pods.ports)
        tolerations = tuple(map(repr, pods.tolerations)), order.demand.variant.tolerates_preferred
        numbers: list[int] = []
        for alike in self._alike_in((*asked.sets, *order.domains)):
            labels = self._targets[alike[0]].view.labels
            if asked.matches(labels) and all(labels.get(key, "") == value for key, value in order.domains.items()):
                numbers += alike
        return [
            number
            for number in numbers
            if not self._is_repelled(order, tolerations, number)
            and (ports.isdisjoint(self._ports[number]) or self._targets[number].admits(order.demand))
        ]

    def _alike_in(self, keys: Iterable[str]) -> Sequence[Sequence[int]]:
        """The nodes in sets of equal values of these labels."""
        names = tuple(sorted(set(keys)))
        if names not in self._alike:
            sets: dict[tuple[str | None, ...], list[int]] = defaultdict(list)
            for number, target in self._targets.items():
                sets[tuple(map(target.view.labels.get, names))].append(number)
            self._alike[names] = tuple(sets.values())
        return self._alike[names]

    def _is_repelled(self, order: Order, tolerations: Hashable, number: int) -> bool:
        key = tolerations, self._taints[number]
        if key not in self._repelled:
            self._repelled[key] = order.demand.is_repelled(self._targets[number].view.taints)
        return self._repelled[key]
