"""Pods whose choice of nodes is narrowed, beside what they ask of nodes themselves."""

from msgspec.structs import replace

from joinery.objects.kubernetes.core import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
)


def narrowed(pod: Pod, rule: NodeSelectorRequirement) -> Pod:
    """The pod, required to run on nodes that satisfy the rule too."""
    affinity = pod.spec.affinity or Affinity()
    node_affinity = replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=with_rule(pod.spec.required_node_affinity, rule),
    )
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=node_affinity)))


def with_rule(required: NodeSelector | None, rule: NodeSelectorRequirement) -> NodeSelector:
    """The terms, of which each asks for that too; the rule alone where there are none."""
    if required is None:
        return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[rule])])
    # A term that says nothing selects no node (kube-scheduler `NewNodeSelector`), which stays so.
    terms = [
        replace(term, match_expressions=[*term.match_expressions, rule])
        if term.match_expressions or term.match_fields
        else term
        for term in required.node_selector_terms
    ]
    return replace(required, node_selector_terms=terms)
