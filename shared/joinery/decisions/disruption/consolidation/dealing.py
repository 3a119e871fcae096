"""In which domains pods find a place that a broken spread lets into their own no more.

Where others have left, or a rule came after its pods, some domains are too full: whoever leaves a node there may not
come back. A model in which all pods stay in their domains plans room for them where none of them may go, and the
simulation has to look for other room, which is gone. So the pods of nodes that will probably go are dealt to domains as
kube-scheduler would: back into their own if it lets them in, and else where the fewest are.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from joinery.decisions.disruption.consolidation.model import ConsolidationModel
from joinery.decisions.optimizer.arrays import Mask
from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME


def broken_spreads(classes: Sequence[PodClass], present: Topology) -> Mapping[int, TopologyGroup]:
    """The broken spreads that pods are dealt by, of those items that have one. ``classes``: by item of the model.
    ``present``: counts all pods where they are.
    """
    spreads = ((item, _broken_spread(pod_class, present)) for item, pod_class in enumerate(classes))
    return {item: group for item, group in spreads if group is not None}


def dealt(
    model: ConsolidationModel, spreads: Mapping[int, TopologyGroup], keep: Mask
) -> Mapping[str, Mapping[str, str]]:
    """By name of a pod that leaves its domain: the label's key, and the value that it gets.

    ``spreads``: by item of the model. ``keep``: bool[standing bins], those that stay.
    """
    moving: dict[TopologyGroup, dict[str, list[tuple[str, PodClass]]]] = {}
    for (item, index), pods in sorted(model.pods.items()):
        group = None if keep[index] else spreads.get(item)
        if group is not None and (home := model.nodes[index].labels.get(group.rule.key)):
            by_home = moving.setdefault(group, defaultdict(list))
            by_home[home] += [(pod, model.classes[item]) for pod in pods]
    return {
        pod: {group.rule.key: domain}
        for group, by_home in moving.items()
        for pod, domain in _dealt_by(group, by_home).items()
    }


def _broken_spread(pod_class: PodClass, present: Topology) -> TopologyGroup | None:
    """The one rule over domains that binds the class, if it is a spread of its own that does not hold."""
    own = [present.group(rule) for rule in present.rules[pod_class]]
    groups = [group for group in (*own, *present.binding(pod_class).foreign) if group.rule.key != HOSTNAME]
    if len(groups) != 1 or groups[0].rule.kind != "spread" or pod_class.volumes.claims:
        return None
    return groups[0] if groups[0] in own and groups[0].is_broken and groups[0].selects(pod_class) else None


def _dealt_by(group: TopologyGroup, by_home: Mapping[str, Sequence[tuple[str, PodClass]]]) -> Mapping[str, str]:
    """The pods that get another domain than their own (``by_home``: by that, with their classes), and which."""
    saved = group.saved()
    left = {home: list(pods) for home, pods in by_home.items()}
    for home, pods in left.items():
        group.add(home, -len(pods))
    others: dict[str, str] = {}
    while any(left.values()):
        at_home = [home for home, pods in left.items() if pods and group.allowed(pods[-1][1], home) > 0]
        for home in at_home:
            left[home].pop()
            group.add(home, 1)
        if not at_home:
            fullest = max((home for home in left if left[home]), key=lambda home: (group.match_num(home), home))
            pod, pod_class = left[fullest].pop()
            open_to_it = [domain for domain in sorted(group.domains) if group.allowed(pod_class, domain) > 0]
            if open_to_it:
                others[pod] = min(open_to_it, key=group.match_num)
                group.add(others[pod], 1)
    group.restore(saved)
    return others
