"""Node selector terms of pods and volumes, as kube-scheduler parses them (component-helpers ``nodeaffinity``).

The API server stores values in node affinity that no label can have. kube-scheduler makes a selector of each term;
where that fails, a required term matches no node, and the others go on. A preference like that can be given to no node:
it is dropped before anything is tried. Neither may get into a NodeClaim, which the API server would refuse together
with all that is planned for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from joinery.apis.core import NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm
from joinery.apis.meta import is_label_key, is_label_value
from joinery.scheduling.constraints.requirements import Expression, Requirements, UnknownOperatorError, integer, read

_SHOWN = 80
_COMPARING = ("Gt", "Lt")


class InvalidTermError(UnknownOperatorError):
    """A key or a value that no label can have. The message names it."""


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    weight: int
    requirements: Requirements

    def __str__(self) -> str:
        return f"preferred node affinity: {self.requirements}"


def term(expressions: Sequence[Expression]) -> Requirements:
    """One term.

    Raises ``InvalidTermError``, and ``UnknownOperatorError`` for what the API server would not store either.
    """
    for expression in expressions:
        if problem := _problem(expression):
            raise InvalidTermError(problem)
    return read(expressions)


def alternatives(terms: Iterable[NodeSelectorTerm]) -> tuple[Requirements, ...]:
    """Those that some node can match. Raises ``InvalidTermError`` where there are terms and none is of that sort."""
    found, first = [], None
    for each in terms:
        try:
            found.append(term(each.match_expressions))
        except InvalidTermError as error:
            first = first or error
    if first is not None and not found:
        raise first
    return tuple(found)


def selector(labels: Iterable[tuple[str, str]]) -> Requirements:
    """A node selector. Raises ``InvalidTermError``."""
    return term([NodeSelectorRequirement(key=key, operator="In", values=[value]) for key, value in labels])


def preferences(terms: Iterable[PreferredSchedulingTerm]) -> tuple[tuple[PreferredTerm, ...], tuple[str, ...]]:
    """Heaviest first, equal weights in the listed order; and in words those that no node can match.

    Raises ``UnknownOperatorError``.
    """
    found, impossible = [], []
    for each in terms:
        try:
            found.append(PreferredTerm(each.weight, term(each.preference.match_expressions)))
        except InvalidTermError as error:
            impossible.append(f"preferred node affinity: {error}")
    kept = sorted((preferred for preferred in found if preferred.requirements), key=lambda each: -each.weight)
    return tuple(kept), tuple(impossible)


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
