"""The pods of nodes that exist, as topology rules count them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial

from joinery.decisions.scheduling.constraints.node_pods import Sort, sorts
from joinery.decisions.scheduling.constraints.pod_index import PodIndex, numbers_of
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_terminating

#: For so many sorts all nodes are asked for their pods. Where more are asked for, those of all are found at once.
_FEW_ASKED = 64


class RunningPods:
    """Thousands of pods have a few sets of labels between them: those that nothing tells apart are one **sort**."""

    def __init__(self, nodes: Sequence[NodeView]) -> None:
        self._nodes, self._sorts = nodes, [view.derived(sorts) for view in nodes]
        known: dict[str, Sort] = {}
        for there in self._sorts:
            known |= there
        examples = [sort.example for sort in known.values()]
        self._keys, self._index = list(known), PodIndex(examples)
        self._ending = sum(1 << sort for sort, pod in enumerate(examples) if is_terminating(pod))
        self._asked: dict[int, Mapping[int, int]] = {}

    def _where(self, sort: int) -> Mapping[int, int]:
        """By node, how many pods of a sort it has, where it has some."""
        if len(self._asked) >= _FEW_ASKED:
            return self._everywhere[sort]
        if sort not in self._asked:
            key = self._keys[sort]
            self._asked[sort] = {number: there[key].number for number, there in enumerate(self._sorts) if key in there}
        return self._asked[sort]

    @cached_property
    def _everywhere(self) -> Sequence[Mapping[int, int]]:
        where: dict[str, dict[int, int]] = {key: {} for key in self._keys}
        for number, there in enumerate(self._sorts):
            for key, sort in there.items():
                where[key][number] = sort.number
        return list(where.values())

    @cached_property
    def _of_nodes(self) -> Sequence[Mapping[int, int]]:
        """By node: by number of pods, the sorts of which it has so many, as bits."""
        nodes: list[dict[int, int]] = [defaultdict(int) for _ in self._nodes]
        for sort, where in enumerate(self._everywhere):
            for number, count in where.items():
                nodes[number][count] |= 1 << sort
        return nodes

    def count(self, group: TopologyGroup) -> None:
        """Count those that the group's rule selects, on nodes that count for it.

        kube-scheduler leaves terminating pods out of a spread, and counts them for affinity until they are gone.
        """
        rule = group.rule
        sorts = 0 if rule.claim else self._index.selected_by(rule.matchers)
        if rule.kind == "spread":
            sorts &= ~self._ending
        is_counting = lru_cache(maxsize=None)(partial(self._is_counting, rule))
        if sorts.bit_count() > len(self._nodes):
            for number, there in enumerate(self._of_nodes):
                count = sum(count * (sorts & some).bit_count() for count, some in there.items())
                if count and is_counting(number):
                    group.add(self._nodes[number].labels[rule.key], count)
            return
        for sort in numbers_of(sorts):
            for number, count in self._where(sort).items():
                if is_counting(number):
                    group.add(self._nodes[number].labels[rule.key], count)

    def _is_counting(self, rule: TopologyRule, number: int) -> bool:
        view = self._nodes[number]
        return rule.key in view.labels and rule.nodes.admits(view)
