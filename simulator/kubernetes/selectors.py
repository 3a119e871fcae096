"""Label selectors and node selector terms, as the API server and the scheduler read them."""

from collections.abc import Mapping

from joinery.objects.kubernetes.core import LabelSelector, Node, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches; an absent one matches nothing and an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in selector.match_labels.items()) and all(
        _holds(expression.operator, expression.values, labels.get(expression.key))
        for expression in selector.match_expressions
    )


def term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    """A term's expressions and fields all hold; an empty term matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    labels, fields = node.metadata.labels, {"metadata.name": node.metadata.name}
    return _all_hold(term.match_expressions, labels) and _all_hold(term.match_fields, fields)


def node_matches(selector: NodeSelector | None, node: Node) -> bool:
    """One of the terms matches; no selector at all matches every node."""
    return selector is None or any(term_matches(term, node) for term in selector.node_selector_terms)


def _all_hold(requirements: list[NodeSelectorRequirement], labels: Mapping[str, str]) -> bool:
    return all(
        _holds(requirement.operator, requirement.values, labels.get(requirement.key)) for requirement in requirements
    )


def _holds(operator: str, values: list[str], value: str | None) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(operator, values, value)
    return False


def _compares(operator: str, values: list[str], value: str | None) -> bool:
    try:
        have, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return have > bound if operator == "Gt" else have < bound
