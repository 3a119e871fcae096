"""Which pods rules select, as bits."""

from hypothesis import given
from hypothesis import strategies as st

from joinery.decisions.scheduling.constraints.pod_index import PodIndex, numbers_of
from joinery.decisions.scheduling.constraints.selectors import NOTHING, Clause, SelectedNamespaces, Selector
from joinery.decisions.scheduling.constraints.topology_rules import Matcher, TopologyRule
from simulator.builders import pod
from tests.properties import examples

KEYS, VALUES, NAMESPACES = ("app", "tier"), ("a", "b", "c"), ("default", "other", "unlisted")

_clauses = st.builds(
    Clause,
    st.sampled_from(KEYS),
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=2).map(tuple),
)
_selectors = st.one_of(st.just(NOTHING), st.builds(Selector, st.lists(_clauses, max_size=3).map(tuple)))
_LABELS = {"default": {"app": "a"}, "other": {"app": "b", "tier": "a"}}
_namespaces = st.one_of(
    st.none(),
    st.frozensets(st.sampled_from(NAMESPACES)),
    st.builds(SelectedNamespaces, st.frozensets(st.sampled_from(NAMESPACES)), _selectors, st.just(_LABELS)),
)
_matchers = st.lists(st.builds(Matcher, _namespaces, _selectors), min_size=1, max_size=2).map(tuple)
_pods = st.lists(
    st.builds(
        lambda namespace, labels: pod("web", namespace=namespace, labels=labels),
        st.sampled_from(NAMESPACES),
        st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)),
    ),
    max_size=12,
)


@examples(200)
@given(pods=_pods, matchers=_matchers)
def test_bits_say_what_the_rule_says_of_each_pod(pods: list[object], matchers: tuple[Matcher, ...]) -> None:
    """Whatever the selectors and namespaces."""
    rule = TopologyRule("affinity", "zone", matchers)
    selected = numbers_of(PodIndex(pods).selected_by(matchers))  # type: ignore[arg-type]
    assert selected == [number for number, one in enumerate(pods) if rule.selects(one)]  # type: ignore[arg-type]
