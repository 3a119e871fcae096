"""Which rule about other pods keeps a pod pending, once a node of the right size could be had."""

from collections.abc import Iterable, Sequence

from joinery.apis.labels import HOSTNAME
from joinery.scheduling.classes import PodClass
from joinery.scheduling.rules import Rule
from joinery.scheduling.topology import Group, Topology, Universe

_NEW_NODE = ""  # a host that no pod is on


def blocking_rules(topology: Topology, pods: PodClass, universe: Universe) -> str:
    """The rules that no domain satisfies; where each alone can be satisfied, all of them together."""
    hard = [rule for rule in topology.rules[id(pods)] if rule.weight is None]
    alone = [rule for rule in hard if not any(_allows(topology, pods, rule, d) for d in _domains(pods, rule, universe))]
    named = "; ".join(_named(topology, pods, rule, universe) for rule in alone or hard)
    if alone:
        return f"no node can be added without breaking {named}"
    foreign = [g for g in topology.foreign(pods) if g.rule.kind == "anti-affinity" and any(g.owners.values())]
    if foreign:
        return f"pods that run or are planned keep it away ({foreign[0].rule})"
    if len(hard) > 1:
        return f"no node can be added that satisfies all of {named}"
    return f"no node can be added without breaking {named}" if hard else "host ports of other pods keep it away"


def _domains(pods: PodClass, rule: Rule, universe: Universe) -> Iterable[str]:
    return (_NEW_NODE,) if rule.key == HOSTNAME else sorted(universe(pods, rule.key))


def _allows(topology: Topology, pods: PodClass, rule: Rule, domain: str) -> bool:
    return topology.allowance(pods, (rule,), rule.key, domain, cautious=False) > 0


def _named(topology: Topology, pods: PodClass, rule: Rule, universe: Universe) -> str:
    group = topology.group(rule)
    if rule.kind == "affinity" and not rule.claim and not any(group.counts.values()) and not group.selects(pods):
        return f"{rule}: no pod that it wants to be near is running or planned"
    if rule.kind != "spread" or rule.key == HOSTNAME:
        return str(rule)
    return f"{rule}: {_spread_state(group, rule, sorted(topology.reach(pods, rule)))}"


def _spread_state(group: Group, rule: Rule, domains: Sequence[str]) -> str:
    """The counts that the skew is measured by."""
    if not domains:
        return f"no node has the label {rule.key}"
    counts = ", ".join(f"{domain} has {group.counts[domain]}" for domain in domains)
    if len(domains) < rule.min_domains:
        return f"minDomains is {rule.min_domains}, and there are only {len(domains)} domains ({counts})"
    return counts
