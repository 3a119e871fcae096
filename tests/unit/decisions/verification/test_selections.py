"""What verification remembers of node selection is what it would say if it were asked anew."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.verification.predicates import allows
from joinery.decisions.verification.selections import NodeSelections
from joinery.objects.kubernetes.core import NodeSelectorRequirement, PodSpec
from tests.properties import examples

KEYS, VALUES = st.sampled_from(["zone", "family", "rack"]), st.sampled_from(["a", "b", "1", "2", "not a label!"])
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
EXPRESSIONS = st.fixed_dictionaries({"key": KEYS, "operator": OPERATORS, "values": st.lists(VALUES, max_size=2)})
FIELDS = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.lists(st.sampled_from(["n1", "n2"]), min_size=1, max_size=1),
    }
)
TERMS = st.fixed_dictionaries(
    {"matchExpressions": st.lists(EXPRESSIONS, max_size=3), "matchFields": st.lists(FIELDS, max_size=1)}
)
NODES = st.tuples(st.dictionaries(KEYS, VALUES), st.sampled_from(["n1", "n2", "n3"]))


@examples(200)
@given(st.dictionaries(KEYS, VALUES, max_size=1), st.lists(TERMS, max_size=3), st.lists(NODES, min_size=1, max_size=8))
def test_a_remembered_selection_says_what_a_fresh_one_says(
    selector: dict[str, str], terms: list[dict[str, Any]], nodes: list[tuple[dict[str, str], str]]
) -> None:
    """Nodes that are alike in all that the selection names get one verdict, and it is the right one."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    affinity = {"nodeAffinity": required} if terms else {}
    spec = msgspec.convert({"nodeSelector": selector, "affinity": affinity}, PodSpec)
    selections = NodeSelections()
    for labels, name in nodes:
        is_selected = all(labels.get(key) == value for key, value in selector.items())
        is_selected &= not terms or any(_matches(term, labels, name) for term in terms)
        assert selections.of(spec).selects(labels, name) is is_selected


def _matches(term: dict[str, Any], labels: dict[str, str], name: str) -> bool:
    """One term, expression by expression."""
    expressions = [msgspec.convert(one, NodeSelectorRequirement) for one in term["matchExpressions"]]
    fields = [msgspec.convert(one, NodeSelectorRequirement) for one in term["matchFields"]]
    is_readable = (expressions or fields) and "not a label!" not in {value for e in expressions for value in e.values}
    is_met = all(allows(e, labels.get(e.key)) for e in expressions)
    return bool(is_readable) and is_met and all(allows(e, name) for e in fields)
