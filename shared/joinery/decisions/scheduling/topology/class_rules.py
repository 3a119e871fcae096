"""The rules about other pods that bind one class: its own, and those of others that count it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.topology_rules import NodeFilter, TopologyRule
from joinery.decisions.scheduling.topology.affinity import AffinityGroup, AntiAffinityGroup
from joinery.decisions.scheduling.topology.groups import TopologyGroup
from joinery.decisions.scheduling.topology.rule_groups import RuleGroups
from joinery.decisions.scheduling.topology.spread import SpreadGroup
from joinery.objects.karpenter.labels import HOSTNAME


@dataclass(frozen=True, eq=False)
class ClassRules:
    """What binds one class.

    own      the groups of its rules, each with whether one of these is hard
    others   groups that count the class without being its own in any way
    """

    pod_class: PodClass
    own: Mapping[TopologyGroup, bool]
    others: tuple[TopologyGroup, ...]
    _foreign_over: dict[str, tuple[TopologyGroup, ...]] = field(default_factory=dict)
    _binding_over: dict[str, tuple[TopologyGroup, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, pod_class: PodClass, groups: RuleGroups) -> "ClassRules":
        """The class among the groups of a problem."""
        own: dict[TopologyGroup, bool] = {}
        for rule in groups.rules[pod_class]:
            own.setdefault(groups.of(rule), rule.weight is None)  # hard ones come first
        return cls(pod_class, own, tuple(group for group in groups.counting(pod_class) if group not in own))

    @cached_property
    def hard(self) -> frozenset[TopologyGroup]:
        """The groups of its hard rules."""
        return frozenset(group for group, is_hard in self.own.items() if is_hard)

    @property
    def host_affinity(self) -> tuple[TopologyGroup, ...]:
        """The groups of the rules by which the class must share a host with others."""
        over_hosts = (group for group, is_hard in self.own.items() if is_hard and group.rule.key == HOSTNAME)
        return tuple(group for group in over_hosts if isinstance(group, AffinityGroup))

    @cached_property
    def foreign(self) -> tuple[TopologyGroup, ...]:
        """Groups by which others bind the class: spreads, affinities and anti-affinities that count it.

        Its own preference may be somebody else's hard rule. Then it still binds the class once the class has given it
        up.
        """
        preferred = (group for group, is_hard in self.own.items() if not is_hard and group.rule.kind != "affinity")
        return (*self.others, *(group for group in preferred if group.is_hard and group.selects(self.pod_class)))

    def foreign_over(self, key: str) -> tuple[TopologyGroup, ...]:
        """The ``foreign`` groups over this key."""
        groups = self._foreign_over.get(key)
        if groups is None:
            groups = self._foreign_over[key] = tuple(group for group in self.foreign if group.rule.key == key)
        return groups

    def binding_over(self, key: str) -> tuple[TopologyGroup, ...]:
        """Those of them that may keep the class out, beside anti-affinity."""
        groups = self._binding_over.get(key)
        if groups is None:
            hard = (group for group in self.foreign_over(key) if group.is_hard)
            groups = tuple(group for group in hard if not isinstance(group, AntiAffinityGroup))
            self._binding_over[key] = groups
        return groups

    @cached_property
    def watching(self) -> tuple[NodeFilter, ...]:
        """The filters of hard spreads of others that count the class only on nodes with certain labels."""
        spreads = (group for group in self.others if group.is_hard and isinstance(group, SpreadGroup))
        filters = (group.rule.nodes for group in spreads)
        return tuple({nodes.identity: nodes for nodes in filters if nodes.terms}.values())

    def keys(self, rules: Iterable[TopologyRule]) -> tuple[str, ...]:
        """The topology keys whose domain is to be known where the class goes, in name order, without the host's."""
        preferred = {group.rule.key for group in self.foreign}
        preferred |= {group.rule.key for group in self.own if group.selects(self.pod_class)}
        return tuple(sorted({*self.binding_keys(rules), *preferred} - {HOSTNAME}))

    def binding_keys(self, rules: Iterable[TopologyRule]) -> tuple[str, ...]:
        """Those of them without which a rule might be broken.

        The others only let preferences count the class that it does not own, or has given up.
        """
        keys = {rule.key for rule in rules} | {group.rule.key for group in self.foreign if group.is_hard}
        return tuple(sorted(keys - {HOSTNAME}))
