"""Pods whose choice of nodes is narrowed (``joinery.objects.kubernetes.node_affinity``)."""

from joinery.objects.kubernetes.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from joinery.objects.kubernetes.node_affinity import with_rule

RULE = NodeSelectorRequirement(key="topology.kubernetes.io/zone", operator="In", values=["eu-central-1a"])
ARM = NodeSelectorRequirement(key="kubernetes.io/arch", operator="In", values=["arm64"])


def test_each_term_asks_for_the_rule_too() -> None:
    """Terms are alternatives, so a node must satisfy the rule whichever it matches."""
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[ARM])])

    assert [term.match_expressions for term in with_rule(required, RULE).node_selector_terms] == [[ARM, RULE]]
    assert [term.match_expressions for term in with_rule(None, RULE).node_selector_terms] == [[RULE]]


def test_a_term_that_says_nothing_still_selects_no_node() -> None:
    """kube-scheduler `NewNodeSelector` skips such a term, so with a rule it would select nodes that it had not."""
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm()])

    assert with_rule(required, RULE).node_selector_terms == [NodeSelectorTerm()]
