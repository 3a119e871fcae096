"""The pods of nodes that exist, as topology rules count them."""

from collections import Counter
from collections.abc import Hashable, Sequence

from joinery.apis.core import Pod
from joinery.scheduling.topology.groups import TopologyGroup, admits
from joinery.scheduling.topology.selection import Selection, numbers_of
from joinery.state.nodes import NodeView
from joinery.state.pods import is_terminating


class BoundPods:
    """Thousands of pods have a few sets of labels between them: those that nothing tells apart are one **sort**."""

    def __init__(self, nodes: Sequence[NodeView]) -> None:
        self._nodes = nodes
        examples: dict[Hashable, Pod] = {}
        where: dict[Hashable, Counter[int]] = {}
        for number, view in enumerate(nodes):
            for pod in view.pods:
                labels = tuple(sorted(pod.metadata.labels.items()))
                sort = pod.metadata.namespace or "default", labels, is_terminating(pod)
                examples.setdefault(sort, pod)
                where.setdefault(sort, Counter())[number] += 1
        self._examples, self._where = list(examples.values()), list(where.values())
        self._selection = Selection(self._examples)

    def count(self, group: TopologyGroup) -> None:
        """Count those that the group's rule selects, on nodes that count for it.

        kube-scheduler leaves terminating pods out of a spread, and counts them for affinity until they are gone.
        """
        rule, counting = group.rule, dict[int, bool]()
        for sort in numbers_of(self._selection.of(rule.matchers)) if not rule.claim else ():
            if rule.kind == "spread" and is_terminating(self._examples[sort]):
                continue
            for number, count in self._where[sort].items():
                if number not in counting:
                    view = self._nodes[number]
                    counting[number] = rule.key in view.labels and admits(rule.nodes, view)
                if counting[number]:
                    group.add(self._nodes[number].labels[rule.key], count)
