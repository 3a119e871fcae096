"""How much work the rules of pods may make: whoever may create a pod may not choose how long a plan takes.

What a class says once costs little, however long it is. What multiplies is bounded:

- **tries**: a class is tried on each of its required terms and with ever fewer of its preferences, and on every try
  each of its rules about other pods is asked;
- **looks**: each rule about other pods counts the workloads that it selects. All rules of a run together have so many
  looks, and the classes that need fewest of one priority come first.

A class beyond a bound is left out, with the rule, the number and the bound as its reason. The bounds are many
times what any known workload needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from joinery.decisions.scheduling.constraints.pod_index import PodIndex
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.selectors import Namespaces
from joinery.decisions.scheduling.constraints.topology_rules import rules_about_pods, rules_of
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.kubernetes.core import Namespace

#: Of one class: tries times rules. A term, forty preferences of nodes and twenty rules are 1,281.
MOST_TRIES = 2_500
#: Of all classes. Each has an equal share of it, but these always.
MOST_TRIES_OF_ALL, ALWAYS_TRIES = 500_000, 200
#: Of all classes: about 300 MB, where a thousand workloads on as many nodes all look at each other.
MOST_LOOKS = 1_000_000


def within_bounds(
    classes: Sequence[PodClass], namespaces: Iterable[Namespace], *, most_looks: int = MOST_LOOKS
) -> tuple[PodClass, ...]:
    """The classes; those that would make too much work have that as their problem."""
    most = max(ALWAYS_TRIES, min(MOST_TRIES, MOST_TRIES_OF_ALL // max(1, len(classes))))
    listed = tuple(_within_tries(pod_class, most) for pod_class in classes)
    possible = [pod_class for pod_class in listed if not pod_class.problems]
    # Each rule selects all of them at most, and where even that is not too much nobody need know how many.
    if sum(map(rules_about_pods, possible)) * len(possible) <= most_looks:
        return listed
    return tuple(_within_looks(listed, possible, Namespaces(namespaces), most_looks))


def _within_tries(pod_class: PodClass, most: int) -> PodClass:
    rules = rules_about_pods(pod_class)
    tries = len(pod_class.terms) + len(pod_class.preferred) + rules
    if pod_class.problems or tries * (1 + rules) <= most:
        return pod_class
    reason = Reason.of(
        ReasonCode.TOO_MUCH,
        "its {terms} terms and preferences of node affinity and {rules} rules about other pods are {tries} tries of a "
        "rule, and a plan takes {most} for a workload",
        terms=len(pod_class.terms) + len(pod_class.preferred),
        rules=rules,
        tries=tries * (1 + rules),
        most=most,
    )
    return replace(pod_class, problems=(reason,))


def _within_looks(
    classes: Sequence[PodClass], possible: Sequence[PodClass], namespaces: Namespaces, most: int
) -> Iterable[PodClass]:
    index = PodIndex([pod_class.example for pod_class in possible])
    looks = {
        pod_class: sum(index.selected_by(rule.matchers).bit_count() for rule in rules_of(pod_class, namespaces))
        for pod_class in possible
    }
    left, too_many = most, dict[PodClass, Reason]()
    for pod_class in sorted(possible, key=lambda pods: (-pods.priority, looks[pods], pods.name)):
        if looks[pod_class] <= left:
            left -= looks[pod_class]
            continue
        too_many[pod_class] = Reason.of(
            ReasonCode.TOO_MUCH,
            "its rules about other pods select {looks} workloads, and of the {most} that a plan takes for all rules "
            "{left} are left",
            looks=looks[pod_class],
            most=most,
            left=left,
        )
    return (replace(pods, problems=(too_many[pods],)) if pods in too_many else pods for pods in classes)
