"""Which rule about other pods keeps a pod pending, once a node of the right size could be had."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import TopologyRule
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.decisions.scheduling.topology.rule_groups import ANY_NEW_NODE
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME

#: So many rules are named.
_SHOWN = 5

#: The domains of a key in which a NodePool could give the pod a node.
Offered = Callable[[str], Iterable[str]]


@dataclass(frozen=True, slots=True)
class _Bar:
    """A rule in words, in how many of the domains that are on offer it admits none,
    and whether that leaves no node at all.
    """

    words: str
    closed: int
    is_total: bool


class Blocking(NamedTuple):
    """Rules that keep a class out, in words.

    ``are_total``: no domain on offer satisfies one of them; else each alone can be satisfied somewhere.
    """

    words: str
    are_total: bool


def blocking_rules(topology: Topology, pod_class: PodClass, offered: Offered) -> Blocking:
    """The rules that no domain on offer satisfies; where there is none, all that stand in the way somewhere."""
    hard = [rule for rule in topology.rules[pod_class] if rule.weight is None]
    own = [_own(topology, pod_class, rule, offered) for rule in hard]
    total = [bar.words for bar in own if bar.is_total]
    if total:
        return Blocking(f"no node can be added without breaking {_some_of(total)}", are_total=True)
    foreign = [_foreign(group, offered) for group in topology.binding(pod_class).foreign]
    for bar in foreign:
        if bar.is_total:
            return Blocking(f"pods that run or are planned keep it away ({bar.words})", are_total=True)
    partial = [bar.words for bar in own if bar.closed] + [f"other pods' {bar.words}" for bar in foreign if bar.closed]
    listed = list(dict.fromkeys(partial)) or [bar.words for bar in own]
    if not listed:
        return Blocking("no place was found that keeps all rules about pods", are_total=False)
    how = "that satisfies all of" if len(listed) > 1 else "without breaking"
    return Blocking(f"no node can be added {how} {_some_of(listed)}", are_total=False)


def _some_of(rules: Sequence[str]) -> str:
    """The first rules, and how many more there are: a pod may have thousands."""
    more = [f"{len(rules) - _SHOWN:,} more"] if len(rules) > _SHOWN else []
    return "; ".join([*rules[:_SHOWN], *more])


def _own(topology: Topology, pod_class: PodClass, rule: TopologyRule, offered: Offered) -> _Bar:
    domains = _domains(rule.key, offered)
    if _is_unbegun(topology.group(rule), domains):
        return _Bar(_named(topology, pod_class, rule), 0, False)
    closed = [d for d in domains if topology.allowance(pod_class, (rule,), rule.key, d, cautious=False) <= 0]
    needs_label = rule.kind != "anti-affinity" or bool(domains)
    if needs_label and not domains and (topology.group(rule).domains or rule.gang):
        return _Bar(f"{rule}: no node of it has the label {rule.key}", 0, True)
    return _Bar(_named(topology, pod_class, rule), len(closed), needs_label and len(closed) == len(domains))


def is_unbegun(topology: Topology, pod_class: PodClass, offered: Offered) -> bool:
    """Whether a spread of the pod knows no domain although a NodePool has some: no limits leave room for any node."""
    hard = [rule for rule in topology.rules[pod_class] if rule.weight is None and rule.kind == "spread"]
    return any(_is_unbegun(topology.group(rule), _domains(rule.key, offered)) for rule in hard)


def _is_unbegun(group: TopologyGroup, domains: Sequence[str]) -> bool:
    rule = group.rule
    return rule.kind == "spread" and rule.key != HOSTNAME and bool(domains) and not group.domains


def _foreign(group: TopologyGroup, offered: Offered) -> _Bar:
    domains = _domains(group.rule.key, offered)
    closed = [domain for domain in domains if group.allowed_by_owners(domain, cautious=False) <= 0]
    ranged = group.rule.kind == "spread" and group.rule.key != HOSTNAME
    words = f"{group.rule}: {_spread_state(group)}" if ranged else str(group.rule)
    return _Bar(words, len(closed), bool(domains) and len(closed) == len(domains))


def _domains(key: str, offered: Offered) -> Sequence[str]:
    return (ANY_NEW_NODE,) if key == HOSTNAME else sorted(offered(key))


def _named(topology: Topology, pod_class: PodClass, rule: TopologyRule) -> str:
    group = topology.group(rule)
    if rule.kind == "affinity" and not rule.claim:
        return f"{rule}{_affinity_state(group, group.selects(pod_class))}"
    if rule.kind != "spread" or rule.key == HOSTNAME:
        return str(rule)
    return f"{rule}: {_spread_state(group)}"


def _affinity_state(group: TopologyGroup, matches_itself: bool) -> str:
    """What became of the pods that it wants to be near."""
    if any(group.counts.values()):
        return (
            ": where those pods are it finds no room, or other rules keep it out" if group.rule.key == HOSTNAME else ""
        )
    return "" if matches_itself else ": no pod that it wants to be near is running or planned"


def _spread_state(group: TopologyGroup) -> str:
    """The counts that the skew is measured by."""
    if not group.domains:
        return f"no node has the label {group.rule.key}"
    counts = ", ".join(f"{domain} has {group.counts[domain]}" for domain in sorted(group.domains))
    if len(group.domains) < group.rule.min_domains:
        number = f"are only {len(group.domains)} domains" if len(group.domains) > 1 else "is only one domain"
        return f"minDomains is {group.rule.min_domains}, and there {number} ({counts})"
    return counts
