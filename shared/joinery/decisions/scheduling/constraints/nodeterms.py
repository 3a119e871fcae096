"""Node selector terms of pods and volumes, as kube-scheduler parses them (component-helpers ``nodeaffinity``).

The API server stores values in node affinity that no label can have. kube-scheduler makes a selector of each term, and
for such a value that fails:

- A required term that fails matches no node. The other terms still count.
- A preferred term that fails can be met by no node, so it is dropped before anything is tried.

Such a value must not get into a NodeClaim either: the API server would refuse the whole NodeClaim.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from joinery.decisions.scheduling.constraints.requirements import (
    Expression,
    Requirements,
    UnknownOperatorError,
    integer,
    read,
)
from joinery.objects.karpenter.meta import is_label_key, is_label_value
from joinery.objects.kubernetes.core import NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm

_SHOWN = 80
_COMPARING = ("Gt", "Lt")


class InvalidTermError(UnknownOperatorError):
    """A key or a value that no label can have. The message names it."""


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A preferred node affinity term. ``weight``: 1 to 100; the heaviest is given up first (``relaxation``)."""

    weight: int
    requirements: Requirements

    def __str__(self) -> str:
        return f"preferred node affinity: {self.requirements}"


def term(expressions: Sequence[Expression]) -> Requirements:
    """One term. Raises ``InvalidTermError``, and ``UnknownOperatorError`` for what the API server would not store."""
    for expression in expressions:
        if problem := _problem(expression):
            raise InvalidTermError(problem)
    return read(expressions)


def alternatives(terms: Iterable[NodeSelectorTerm]) -> tuple[Requirements, ...]:
    """The required terms that some node can match; any one of them will do.

    Raises ``InvalidTermError`` if there are terms but none that a node can match. One that says nothing matches none.
    """
    valid: list[Requirements] = []
    first_error = None
    for node_selector_term in terms:
        if not node_selector_term.match_expressions and not node_selector_term.match_fields:
            first_error = first_error or InvalidTermError("a term without expressions matches no node")
            continue
        try:
            valid.append(term(node_selector_term.match_expressions))
        except InvalidTermError as error:
            first_error = first_error or error
    if first_error is not None and not valid:
        raise first_error
    return tuple(valid)


def selector(labels: Iterable[tuple[str, str]]) -> Requirements:
    """A pod's node selector: each label In its one value. Raises ``InvalidTermError``."""
    return term([NodeSelectorRequirement(key=key, operator="In", values=[value]) for key, value in labels])


def preferences(terms: Iterable[PreferredSchedulingTerm]) -> tuple[tuple[PreferredTerm, ...], tuple[str, ...]]:
    """The preferred terms that some node can match, and a sentence for each of the others.

    The heaviest comes first, equal weights in the listed order. A term without expressions prefers nothing and is left
    out. Raises ``UnknownOperatorError``.
    """
    valid, impossible = [], []
    for weighted in terms:
        try:
            valid.append(PreferredTerm(weighted.weight, term(weighted.preference.match_expressions)))
        except InvalidTermError as error:
            impossible.append(f"preferred node affinity: {error}")
    demanding = (preferred for preferred in valid if preferred.requirements)
    return tuple(sorted(demanding, key=lambda preferred: -preferred.weight)), tuple(impossible)


def _problem(expression: Expression) -> str:
    if not is_label_key(expression.key):
        return f"{_shown(expression.key)} is no label key"
    bad = next((value for value in expression.values if not is_label_value(value)), None)
    if bad is None:
        if expression.operator in _COMPARING and len(expression.values) == 1 and integer(expression.values[0]) is None:
            return f"{expression.key} {expression.operator} {_shown(expression.values[0])}: that is no integer"
        return ""
    return f"{expression.key} {expression.operator} {_shown(bad)}: that is no label value, so no node can match it"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
