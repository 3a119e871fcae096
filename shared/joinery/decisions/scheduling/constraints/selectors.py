"""Label selectors over pods, and which namespaces a pod affinity term looks into."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from joinery.objects.kubernetes.core import LabelSelector, Namespace, Pod, PodAffinity, PodAffinityTerm


@dataclass(frozen=True, slots=True, order=True)
class Clause:
    """One condition on a label: In, NotIn, Exists, DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...]
    _listed: frozenset[str] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_listed", frozenset(self.values))

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self._listed
            case "NotIn":
                return value is None or value not in self._listed
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        return False


@dataclass(frozen=True, slots=True, order=True)
class Selector:
    """A label selector in canonical form: selectors that select the same are equal, however they were written.

    ``clauses``: all must hold. Without any, everything is selected; None selects nothing.
    """

    clauses: tuple[Clause, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.clauses is not None and all(clause.matches(labels) for clause in self.clauses)

    @property
    def keys(self) -> frozenset[str]:
        """The label keys it looks at."""
        return frozenset(clause.key for clause in self.clauses or ())


NOTHING = Selector(None)

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def read(selector: LabelSelector | None, extra: Iterable[Clause] = ()) -> Selector:
    """A label selector with ``extra`` clauses added.

    As in Kubernetes, a missing selector selects nothing and an empty one everything. An invalid one selects nothing.
    """
    if selector is None or unreadable(selector):
        return NOTHING
    clauses = {Clause(key, "In", (value,)) for key, value in selector.match_labels.items()}
    clauses |= {
        Clause(expression.key, expression.operator, tuple(sorted(set(expression.values))))
        for expression in selector.match_expressions
    }
    return Selector(tuple(sorted(clauses | set(extra))))


def unreadable(selector: LabelSelector | None) -> str | None:
    """What is wrong with the first invalid expression; None for a selector that Kubernetes can read."""
    for expression in selector.match_expressions if selector is not None else []:
        operator = expression.operator
        if operator not in _OPERATORS:
            return f"has an operator that is not known: {operator!r}"
        if bool(expression.values) != (operator in ("In", "NotIn")):
            return f"has {'no values' if not expression.values else 'values'} for {expression.key} {operator}"
    return None


def terms_of(side: PodAffinity | None) -> Iterable[PodAffinityTerm]:
    """All terms of a pod's affinity or anti-affinity, required ones first."""
    if side is not None:
        yield from side.required_during_scheduling_ignored_during_execution
        yield from (
            weighted.pod_affinity_term for weighted in side.preferred_during_scheduling_ignored_during_execution
        )


def label_clauses(labels: Mapping[str, str], keys: Iterable[str], operator: str = "In") -> tuple[Clause, ...]:
    """The clauses that ``matchLabelKeys`` (In) or ``mismatchLabelKeys`` (NotIn) stand for.

    ``labels``: the pod's own, whose values are compared with. Keys that the pod lacks are ignored.
    """
    return tuple(Clause(key, operator, (labels[key],)) for key in keys if key in labels)


def of_affinity_term(term: PodAffinityTerm, pod: Pod) -> Selector:
    """The selector of a pod affinity term, with its label keys.

    The API server merges ``matchLabelKeys`` and ``mismatchLabelKeys`` into the selector of a pod that is created; pods
    from a file have not been there.
    """
    labels = pod.metadata.labels
    return read(
        term.label_selector,
        (*label_clauses(labels, term.match_label_keys), *label_clauses(labels, term.mismatch_label_keys, "NotIn")),
    )


@dataclass(frozen=True, slots=True)
class SelectedNamespaces:
    """Those that a term names, and those that its namespaceSelector selects. Nobody lists them: thousands of rules may
    each select thousands.

    ``labels``: of the cluster's namespaces, by name.
    """

    named: frozenset[str]
    selector: Selector
    labels: Mapping[str, Mapping[str, str]] = field(compare=False, repr=False)

    def __contains__(self, name: str) -> bool:
        return name in self.named or (name in self.labels and self.selector.matches(self.labels[name]))


class Namespaces:
    """The namespaces of the cluster."""

    def __init__(self, namespaces: Iterable[Namespace]) -> None:
        self._labels = {namespace.metadata.name: _labels_of(namespace) for namespace in namespaces}

    def of(self, term: PodAffinityTerm, pod: Pod) -> frozenset[str] | SelectedNamespaces | None:
        """Those that a term of the pod looks into. None is all: that is what an empty namespaceSelector says."""
        named = frozenset(term.namespaces)
        if term.namespace_selector is None:
            return named or frozenset({pod.metadata.namespace or "default"})
        selector = read(term.namespace_selector)
        return None if selector.clauses == () else SelectedNamespaces(named, selector, self._labels)


def _labels_of(namespace: Namespace) -> Mapping[str, str]:
    """A namespace's labels with its name as a label, which the API server adds to every namespace."""
    return {"kubernetes.io/metadata.name": namespace.metadata.name, **namespace.metadata.labels}
