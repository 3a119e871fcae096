"""Which nodes pods select, remembered: many nodes say the same of the few labels that a pod's selection names."""

from collections.abc import Hashable
from dataclasses import dataclass, field

import msgspec

from joinery.decisions.verification.predicates import Labels, NodeTerm
from joinery.objects.kubernetes.core import NodeSelector, PodSpec

_ENCODE = msgspec.json.Encoder(order="sorted").encode


class NodeSelection:
    """nodeSelector and required node affinity (kube-scheduler NodeAffinity). Terms are alternatives.

    They are read once, and evaluated once for nodes alike in all that they name.
    """

    def __init__(self, selector: Labels, required: NodeSelector | None) -> None:
        self._selector = selector
        self._terms = [NodeTerm(term) for term in required.node_selector_terms] if required else None
        self._keys = frozenset(selector).union(*(term.keys for term in self._terms or ()))
        self._names_nodes = any(term.names_nodes for term in self._terms or ())
        self._verdicts: dict[Hashable, bool] = {}

    def selects(self, labels: Labels, name: str) -> bool:
        """Whether a node of that name with these labels is allowed."""
        alike = (*((key, labels[key]) for key in sorted(self._keys & labels.keys())), name if self._names_nodes else "")
        verdict = self._verdicts.get(alike)
        if verdict is None:
            verdict = self._verdicts[alike] = self._selects(labels, name)
        return verdict

    def _selects(self, labels: Labels, name: str) -> bool:
        if not labels.items() >= self._selector.items():
            return False
        return self._terms is None or any(term.matches(labels, name) for term in self._terms)


@dataclass
class NodeSelections:
    """The selection of every spec so far; specs that select alike share one."""

    _of_spec: dict[int, tuple[PodSpec, NodeSelection]] = field(default_factory=dict)
    _alike: dict[bytes, NodeSelection] = field(default_factory=dict)

    def of(self, spec: PodSpec) -> NodeSelection:
        """What the spec selects."""
        known = self._of_spec.get(id(spec))
        if known is None:
            required = spec.required_node_affinity
            identity = _ENCODE((spec.node_selector, required))
            if identity not in self._alike:
                self._alike[identity] = NodeSelection(spec.node_selector, required)
            # The spec stays alive with what is remembered of it, so no other one has its identity meanwhile.
            known = self._of_spec[id(spec)] = spec, self._alike[identity]
        return known[1]
