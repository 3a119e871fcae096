"""The pods of nodes that exist, as topology rules count them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial

from joinery.decisions.scheduling.constraints.node_pods import sorts
from joinery.decisions.scheduling.constraints.pod_index import PodIndex, numbers_of
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.objects.kubernetes.core import Pod
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.pods import is_terminating


class RunningPods:
    """Thousands of pods have a few sets of labels between them: those that nothing tells apart are one **sort**."""

    def __init__(self, nodes: Sequence[NodeView]) -> None:
        self._nodes = nodes
        examples: dict[str, Pod] = {}
        where: dict[str, dict[int, int]] = {}
        for number, view in enumerate(nodes):
            for key, sort in view.derived(sorts).items():
                if key not in where:
                    examples[key], where[key] = sort.example, {}
                where[key][number] = sort.number
        self._examples, self._where = list(examples.values()), list(where.values())
        self._index = PodIndex(self._examples)
        self._ending = sum(1 << sort for sort, pod in enumerate(self._examples) if is_terminating(pod))

    @cached_property
    def _of_nodes(self) -> Sequence[Mapping[int, int]]:
        """By node: by number of pods, the sorts of which it has so many, as bits."""
        nodes: list[dict[int, int]] = [defaultdict(int) for _ in self._nodes]
        for sort, where in enumerate(self._where):
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
            for number, count in self._where[sort].items():
                if is_counting(number):
                    group.add(self._nodes[number].labels[rule.key], count)

    def _is_counting(self, rule: TopologyRule, number: int) -> bool:
        view = self._nodes[number]
        return rule.key in view.labels and rule.nodes.admits(view)
