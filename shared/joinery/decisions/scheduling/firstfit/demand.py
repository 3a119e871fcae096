"""What a class of pods asks for, on one try."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from joinery.decisions.scheduling.constraints.podclasses import PodClass
from joinery.decisions.scheduling.constraints.relaxation import Variant
from joinery.decisions.scheduling.constraints.requirements import ABSENT, NO_REQUIREMENTS, Requirements, one_of
from joinery.decisions.scheduling.constraints.taints import TaintLike, first_untolerated
from joinery.decisions.scheduling.constraints.volume_needs import VolumeChoice
from joinery.decisions.scheduling.pools.market import Amounts
from joinery.decisions.scheduling.pools.pool import Fit, Pool
from joinery.decisions.scheduling.topology.groups import parts
from joinery.decisions.scheduling.topology.topology import Topology
from joinery.objects.karpenter.labels import HOSTNAME

#: Topology key to the one domain it is pinned to; to the empty string where the node must lack the label.
#:
#: Where minValues ask for several values and only anti-affinity depends on the domain, a node may keep several domains:
#: joined by commas, which no label's value has.
Domains = Mapping[str, str]

#: Equal for the same try of the same class in another packing of the problem.
Identity = tuple[str, ...]
#: By the identity of a demand: domains, and how many of its pods they take.
Dealt = Mapping[Identity, Sequence[tuple[Domains, int]]]


def present(domains: Domains) -> dict[str, str]:
    """The domains without the keys that the node must lack."""
    return {key: domain for key, domain in domains.items() if domain}


@dataclass(eq=False)
class Demand:
    """A class on one try, ready to be compared with targets. Compared by identity, because it remembers what pools
    said.

    variant    the preferences that it keeps on this try
    requests   what one pod asks for, by resource (the problem's ``Axis``)
    asked      the indices of the resources that it asks for at all
    volumes    what one of the ways to attach its volumes demands of a node
    choices    the claims that bind free volumes on that way
    hosts      where claims of several pods (namespace/name) have their devices by now
    """

    pod_class: PodClass
    variant: Variant
    requests: Amounts
    asked: Amounts
    volumes: Requirements = NO_REQUIREMENTS
    choices: tuple[VolumeChoice, ...] = ()
    hosts: Mapping[str, str] = field(default_factory=dict)
    _fits: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Requirements, Fit]] = field(default_factory=dict)

    @cached_property
    def requirements(self) -> Requirements:
        """What the pods and their volumes demand of a node."""
        return self.variant.requirements.intersect(self.volumes)

    @cached_property
    def identity(self) -> Identity:
        """By its class's name, and by what this try asks of a node and has given up."""
        return self.pod_class.name, str(self.requirements), *self.variant.dropped

    def fit(self, pool: Pool, domains: Domains) -> tuple[Requirements, Fit]:
        """The requirements with these domains on top, and what they leave of the pool's template; remembered."""
        key = (pool.name, tuple(sorted(domains.items())))
        fit = self._fits.get(key)
        if fit is None:
            pinned = {
                key: one_of(parts(value)) if value else ABSENT for key, value in domains.items() if key != HOSTNAME
            }
            # A domain that a packing deals is no choice of the pod's.
            wanted = pool.asked(self.requirements).intersect(Requirements(pinned)).canonical()
            fit = self._fits[key] = (wanted, pool.fit(wanted))
        return fit

    @cached_property
    def gathers(self) -> bool:
        """Whether the pods must, or prefer to, share their host with others."""
        return bool(self.pod_class.shared_claims) or any(
            rule.key == HOSTNAME and rule.kind == "affinity" for rule in self.variant.rules
        )

    @property
    def needs_neighbours(self) -> bool:
        """Whether the pods may not run without others on their host."""
        return bool(self.pod_class.shared_claims) or any(
            rule.key == HOSTNAME and rule.kind == "affinity" and rule.weight is None for rule in self.variant.rules
        )

    def must_gather(self, topology: Topology) -> bool:
        """Whether the class must gather on one host and none is chosen yet."""
        is_bound = any(claim not in self.hosts for claim in self.pod_class.shared_claims)
        return is_bound or topology.must_gather(self.pod_class, self.variant.rules)

    def may_be_on(self, host: str) -> bool:
        """Whether none of its claims has its devices on another host."""
        return all(self.hosts.get(claim, host) == host for claim in self.pod_class.shared_claims)

    def may_start(self, topology: Topology, room: int, count: int) -> bool:
        """Whether so many pods may come to a node that has room for so many: a group that must share a host starts only
        where all of it fits.
        """
        return room >= count or not self.must_gather(topology)

    def is_repelled(self, taints: Iterable[TaintLike]) -> bool:
        """Whether some taint keeps the class away on this try."""
        if self.variant.tolerates_preferred:
            return self.pod_class.untolerated(taints) is not None
        return first_untolerated(self.pod_class.tolerations, taints) is not None
