"""Which nodes pods select, remembered: many nodes say the same of the few labels that a pod's selection names."""

from collections.abc import Hashable
from dataclasses import dataclass, field

from joinery.apis.core import PodSpec
from joinery.verification.predicates import Labels, selects_node


class NodeSelection:
    """nodeSelector and required node affinity of one spec, asked once for nodes alike in all that they name."""

    def __init__(self, spec: PodSpec) -> None:
        # The spec stays alive with what is remembered of it, so no other one has its identity meanwhile.
        self.spec = spec
        affinity = spec.affinity and spec.affinity.node_affinity
        required = affinity and affinity.required_during_scheduling_ignored_during_execution
        terms = required.node_selector_terms if required else []
        self._keys = sorted({*spec.node_selector, *(e.key for term in terms for e in term.match_expressions)})
        self._names_nodes = any(term.match_fields for term in terms)
        self._verdicts: dict[Hashable, bool] = {}

    def selects(self, labels: Labels, name: str) -> bool:
        """As ``selects_node``."""
        alike = (*map(labels.get, self._keys), name if self._names_nodes else "")
        verdict = self._verdicts.get(alike)
        if verdict is None:
            verdict = self._verdicts[alike] = selects_node(self.spec, labels, name)
        return verdict


@dataclass
class NodeSelections:
    """The selection of every spec that was asked about."""

    _of_spec: dict[int, NodeSelection] = field(default_factory=dict)

    def of(self, spec: PodSpec) -> NodeSelection:
        """What the spec selects."""
        selection = self._of_spec.get(id(spec))
        if selection is None:
            selection = self._of_spec[id(spec)] = NodeSelection(spec)
        return selection
