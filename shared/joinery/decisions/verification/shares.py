"""Shares on demand of NodePools: no plan leaves one short that it could keep, and no disruption makes one shorter."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from joinery.decisions.scheduling.packing import Launch, Packing
from joinery.decisions.scheduling.reason import Figure, Subject
from joinery.decisions.verification.final_state import FinalState
from joinery.decisions.verification.launch_options import LaunchOption, LaunchOptions
from joinery.decisions.verification.nodepools import distinct
from joinery.decisions.verification.violation import Violation, ViolationCode
from joinery.objects.karpenter import labels as keys
from joinery.objects.karpenter.meta import Requirement
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.quantity import amounts
from joinery.objects.policies import on_demand_share_of
from joinery.objects.snapshot.snapshot import Snapshot

_ON_DEMAND = (keys.ON_DEMAND, keys.RESERVED)


@dataclass(frozen=True, slots=True)
class _Count:
    """The nodes of a NodePool with a share: how many there are, and how many of them are and should be on demand."""

    nodes: int
    on_demand: int
    wanted: int

    @property
    def lacking(self) -> int:
        return max(0, self.wanted - self.on_demand)

    @property
    def figures(self) -> dict[str, Figure]:
        return {"on_demand": self.on_demand, "nodes": self.nodes, "wanted": self.wanted, "share": keys.ON_DEMAND_SHARE}


def check_shares(state: FinalState, options: LaunchOptions) -> Iterator[Violation]:
    """Where a NodePool that buys something is left with fewer nodes on demand than its share asks for, no launch of it
    may come up on spot that could be kept to on-demand capacity.

    That is certain only of a launch that allows both: whatever EC2 picks of it holds its pods.
    """
    buying = {launch.node_pool for launch, _ in state.launched}
    counts = _counts(state.problem.snapshot, state.packing)
    for name in sorted(counts.keys() & buying):
        own = (launch for launch, _ in state.launched if launch.node_pool == name and counts[name].lacking)
        open_to_both = next((one for one in own if _could_be_on_demand(state.pools[name], one, options)), None)
        if open_to_both is not None:
            template = "{on_demand} of {nodes} nodes are on demand, {share} asks for {wanted}, and {launch} could be"
            figures = {**counts[name].figures, "launch": open_to_both.name}
            yield Violation.of(ViolationCode.ON_DEMAND_SHARE, template, Subject.node_pool(name), **figures)


def check_shares_by_choice(before: Snapshot, after: Snapshot, packing: Packing) -> Iterator[Violation]:
    """No NodePool lacks more nodes on demand after a disruption that nobody is forced to than before it.

    ``after``: the cluster in which the nodes of the disruption are leaving. ``packing``: what is bought for their pods.
    """
    lacked = _counts(before, Packing())
    for name, count in sorted(_counts(after, packing).items()):
        if count.lacking > lacked[name].lacking:
            template = "{on_demand} of {nodes} nodes would be on demand, and {share} asks for {wanted}"
            yield Violation.of(ViolationCode.ON_DEMAND_SHARE, template, Subject.node_pool(name), **count.figures)


def _counts(snapshot: Snapshot, packing: Packing) -> Mapping[str, _Count]:
    """By NodePool with a share, its nodes with the plan in place."""
    pools = {one.metadata.name: one for one in snapshot.node_pools if keys.ON_DEMAND_SHARE in one.metadata.annotations}
    if not pools:
        return {}
    nodes, on_demand = Counter[str](), Counter[str]()
    bound = {claim.metadata.name for claim in snapshot.managed_claims if not _allows_spot(claim.spec.requirements)}
    standing = {
        view.claim: (view.pool, view.labels.get(keys.CAPACITY_TYPE) in _ON_DEMAND or view.claim in bound)
        for view in snapshot.views
        if view.claim and not view.is_leaving
    }
    coming = ((launch.node_pool, not _allows_spot(launch.requirements)) for launch in packing.launches)
    for pool, is_on_demand in chain(standing.values(), coming):
        nodes[pool] += 1
        on_demand[pool] += is_on_demand
    return {name: _Count(nodes[name], on_demand[name], _wanted(pool, nodes[name])) for name, pool in pools.items()}


def _wanted(pool: NodePool, nodes: int) -> int:
    """How many of so many nodes should be on demand. What cannot be read asks for none: the pool is not valid."""
    try:
        share = on_demand_share_of(pool.metadata.annotations[keys.ON_DEMAND_SHARE])
    except ValueError:
        return 0
    first = min(nodes, share.base)
    return first + -((nodes - first) * -share.percent // 100)


def _allows_spot(requirements: Iterable[Requirement]) -> bool:
    rules = [rule for rule in requirements if rule.key == keys.CAPACITY_TYPE and rule.operator == "In"]
    return not rules or any(keys.SPOT in rule.values for rule in rules)


def _could_be_on_demand(pool: NodePool, launch: Launch, options: LaunchOptions) -> bool:
    """Whether the launch allows spot, and would do without: with types that take no more of the pool's limits than the
    one that it counts on, and enough of them for minValues.
    """
    if not _allows_spot(launch.requirements):
        return False
    usable = options.usable(launch)
    counted = next((one.kind.capacity for one in usable if one.kind.name == launch.offering.instance_type), {})
    limited = amounts(pool.spec.limits).keys() - {"nodes"}
    kept = [
        option
        for one in usable
        if (option := _on_demand_of(one))
        and all(one.kind.capacity.get(name, 0) <= counted.get(name, 0) for name in limited)
    ]
    quotas = (rule for rule in pool.spec.template.spec.requirements if rule.min_values is not None)
    return bool(kept) and all(distinct(keys.canonical(rule.key), kept) >= (rule.min_values or 0) for rule in quotas)


def _on_demand_of(option: LaunchOption) -> LaunchOption | None:
    """The option without spot; None where there is nothing else."""
    kept = tuple(offering for offering in option.offerings if offering.capacity_type in _ON_DEMAND)
    return replace(option, offerings=kept) if kept else None
