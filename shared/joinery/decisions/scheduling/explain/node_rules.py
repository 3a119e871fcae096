"""What nodes ask of a pod, rule after rule, with how many nodes each leaves."""

from collections.abc import Callable, Iterator
from functools import partial

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.requirements import Requirements
from joinery.decisions.scheduling.constraints.resources import ports_clash
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.explain.explanation import NodesExplanation, RuleCount
from joinery.decisions.scheduling.explain.shortfall import requests_in_words
from joinery.decisions.scheduling.firstfit.existing_node import ExistingNode
from joinery.decisions.scheduling.firstfit.workspace import Workspace
from joinery.objects.karpenter.labels import HOSTNAME


def explain_nodes(
    work: Workspace, pod_class: PodClass | None, is_asked: Callable[[ExistingNode], bool]
) -> NodesExplanation:
    """Rule by rule, how many of those nodes could take one more such pod."""
    nodes = left = [node for node in work.nodes if is_asked(node)]
    if pod_class is None:
        return NodesExplanation(len(nodes), (), ())
    rules: list[RuleCount] = []
    for rule, admits in _node_rules(work, pod_class):
        before, left = left, [node for node in left if admits(node)]
        # What keeps no node away is not worth a line, but for the requests, which everybody asks about.
        if len(left) < len(before) or rule.startswith("requests"):
            rules.append(RuleCount(rule, len(left)))
        if not left:
            break
    kept = (RuleCount(wish, sum(map(keeps, left))) for wish, keeps in _node_preferences(work, pod_class))
    preferences = tuple(one for one in kept if one.left < len(left))
    return NodesExplanation(len(nodes), tuple(rules), tuple(node.name for node in left), preferences)


def _node_rules(work: Workspace, pod_class: PodClass) -> Iterator[tuple[str, Callable[[ExistingNode], bool]]]:
    row = work.axis.asked(pod_class.requests)
    yield "taints", lambda node: pod_class.untolerated(node.view.taints) is None
    yield "nodeSelector, node affinity and volumes' zones", lambda node: _selects(pod_class, node)
    yield f"requests ({requests_in_words(pod_class)})", lambda node: bool((node.free >= row).all())
    yield "host ports", lambda node: not ports_clash(pod_class.ports, node.ports)
    yield "volume attach limits", lambda node: _attaches(pod_class, node)
    yield "free volumes", lambda node: _finds_volumes(work, pod_class, node)
    for rule in work.topology.rules[pod_class]:
        if rule.weight is None:
            yield str(rule), _keeps(work, pod_class, (rule,), rule.key)
    for key in sorted({group.rule.key for group in work.topology.binding(pod_class).foreign}):
        yield f"other pods' rules over {key}", _keeps(work, pod_class, (), key)


def _node_preferences(work: Workspace, pod_class: PodClass) -> Iterator[tuple[str, Callable[[ExistingNode], bool]]]:
    for term in pod_class.preferred:
        yield f"preferred node affinity ({term.requirements})", partial(_meets, term.requirements)
    for rule in work.topology.rules[pod_class]:
        if rule.weight is not None:
            yield str(rule), _keeps(work, pod_class, (rule,), rule.key)


def _meets(requirements: Requirements, node: ExistingNode) -> bool:
    return requirements.matches(node.view.labels)


def _selects(pod_class: PodClass, node: ExistingNode) -> bool:
    return any(
        term.intersect(v).matches(node.view.labels) for term in pod_class.terms for v in pod_class.volumes.alternatives
    )


def _attaches(pod_class: PodClass, node: ExistingNode) -> bool:
    taken = pod_class.volumes.taken(node.attachments, node.attached)
    return all(node.attachments[driver] >= shared + by_each for driver, (shared, by_each) in taken.items())


def _finds_volumes(work: Workspace, pod_class: PodClass, node: ExistingNode) -> bool:
    labels = node.view.labels
    here = (way.choices for way in pod_class.volumes.ways if way.requirements.matches(labels))
    return any(work.free_volumes.left(choices, 1, labels) for choices in here)


def _keeps(
    work: Workspace, pod_class: PodClass, rules: tuple[TopologyRule, ...], key: str
) -> Callable[[ExistingNode], bool]:
    """Whether one more pod on the node keeps these rules of its own, and those of others over the key."""

    def keeps(node: ExistingNode) -> bool:
        domain = node.host if key == HOSTNAME else node.domain(key)
        if domain is None:
            return all(rule.kind == "anti-affinity" for rule in rules)
        return work.topology.allowance(pod_class, rules, key, domain, cautious=False) > 0

    return keeps
