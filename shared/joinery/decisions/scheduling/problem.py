"""What ``solve`` is asked: a snapshot, the instance types each node class gives, and the policies."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from joinery.decisions.scheduling.commitments import Commitment
from joinery.objects.commitments import PaidFor
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.kubernetes.quantity import Resources
from joinery.objects.policies import BALANCED, Caps, MinValuesPolicy, PreferencePolicy
from joinery.objects.settings import Settings
from joinery.objects.snapshot.nodes import NodeView
from joinery.objects.snapshot.offerings import InstanceType, types_for
from joinery.objects.snapshot.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class Options:
    """Policies of a solve.

    only_marked_unschedulable   a pod is pending only once kube-scheduler has found no node for it (Karpenter
                                `pod.IsProvisionable`). Files are often partial: there every unbound pod is
    respect_preferences         whether preferences count at all (Karpenter PREFERENCE_POLICY)
    best_effort_min_values      minValues are lowered where they cannot be met (Karpenter MIN_VALUES_POLICY BestEffort)
    ordinary_types              NodePools that say nothing of kinds of instance types get ordinary ones
                                (``pools.ordinary``)
    launch_types                how many instance types a launch carries at most (EC2 API CreateFleet)
    spot_types                  how many a spot launch should carry at least, where the rules allow: fewer are
                                interrupted more often
    seed                        for what the search draws at random: the same seed gives the same plan
    node_size                   the preference of NodePools that have none of their own (``objects.policies``)
    time_limit                  seconds after which a plan is no longer improved; None for no limit
    first_fit_only              nodes as first-fit buys them, not optimised: for when the verification refuses the
                                optimised ones (``planning``)
    caps                        what the run may buy (``joinery.decisions.capping``); ``solve`` itself knows no caps
    """

    only_marked_unschedulable: bool = True
    respect_preferences: bool = True
    best_effort_min_values: bool = False
    ordinary_types: bool = True
    launch_types: int = 60
    spot_types: int = 15
    seed: int = 0
    node_size: str = BALANCED
    time_limit: float | None = None
    first_fit_only: bool = False
    caps: Caps = Caps()

    @classmethod
    def of(cls, settings: Settings, *, caps: Caps, time_limit: float | None = None) -> "Options":
        """The policies of an installation."""
        return cls(
            node_size=settings.node_size,
            respect_preferences=settings.preference_policy == PreferencePolicy.RESPECT,
            best_effort_min_values=settings.min_values_policy == MinValuesPolicy.BEST_EFFORT,
            ordinary_types=settings.ordinary_types,
            caps=caps,
            time_limit=time_limit,
        )


@dataclass(frozen=True)
class WishedLaunch:
    """A node to buy, as long as nothing cheaper is found for its pods.

    ``node_pool``, ``instance_type``: names. ``pods``: names (namespace/name), those together that are dealt to the same
    domains (topology key to value).
    """

    node_pool: str
    instance_type: str
    pods: tuple[tuple[Mapping[str, str], tuple[str, ...]], ...]


@dataclass(frozen=True)
class Wishes:
    """Where pods should go. Rules are asked all the same, and pods for which they say no go elsewhere.

    ``nodes``: by pod (namespace/name), the Node. ``launches``: nodes to buy.
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    launches: tuple[WishedLaunch, ...] = ()


@dataclass(frozen=True, kw_only=True)
class EvictionPrices:
    """Dollars that the eviction of a pod costs, as consolidation prices it (``disruption.moves.eviction_prices``).

    own        by pod (namespace/name) that has a price of its own
    weights    by pod (namespace/name): how many ordinary evictions its counts as; 1 where it is missing
    ordinary   by NodePool: of an ordinary pod
    """

    own: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    ordinary: Mapping[str, float] = field(default_factory=dict)

    def of(self, pod: str, node_pool: str) -> float:
        """Of the pod on a node of that NodePool."""
        return self.own[pod] if pod in self.own else self.weights.get(pod, 1.0) * self.ordinary[node_pool]


@dataclass(frozen=True, kw_only=True)
class Interruptions:
    """How often EC2 takes spot nodes back, and what that costs.

    rates       by instance type: the share of its spot nodes that are interrupted within a month
    unrated     the same of types that are not among them
    evictions   what the eviction of each pod costs
    weight      what a dollar of expected interruptions counts as beside a dollar of price; 0 where they only are
                reported
    """

    rates: Mapping[str, float]
    unrated: float
    evictions: EvictionPrices
    weight: float = 1.0

    def rate(self, instance_type: str) -> float:
        """The share of the type's spot nodes that are interrupted within a month."""
        return self.rates.get(instance_type, self.unrated)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is to be planned.

    snapshot         the cluster
    instance_types   by name of the node class: the types that its nodes may be of; those of NodePools that NodeOverlays
                     change by ``own_key``
    options          the policies
    wishes           where pods should go, from whoever has worked that out already (``disruption.consolidation``)
    is_by_choice     whether pods are moved that could stay. Then no existing node is given more of its NodePool's pods
                     than ``joinery.dev/max-node-share`` allows a new one
    interruptions    what is known of spot; None where nothing is
    commitments      what is paid for already, in the order in which AWS uses it
    paid_for         the document that says so, for the record
    """

    snapshot: Snapshot
    instance_types: Mapping[str, tuple[InstanceType, ...]]
    options: Options = field(default_factory=Options)
    wishes: Wishes = field(default_factory=Wishes)
    is_by_choice: bool = False
    interruptions: Interruptions | None = None
    commitments: tuple[Commitment, ...] = ()
    paid_for: PaidFor | None = None

    @property
    def kinds(self) -> Iterator[InstanceType]:
        """The instance types of all node classes."""
        return chain.from_iterable(self.instance_types.values())

    def types_of(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """The types that nodes of the NodePool may be of."""
        return types_for(self.instance_types, pool.spec.template.spec.node_class_ref.name, pool.metadata.name) or ()

    def charged(self, view: NodeView) -> Resources:
        """What a node or claim takes of its NodePool's limits.

        A claim that is not launched yet counts as the most that the instance types it names have.
        """
        pool = self.snapshot.pools_by_name.get(view.pool) if view.may_be else None
        if pool is None:
            return view.capacity
        most = dict(view.capacity)
        for kind in self.types_of(pool):
            if kind.name in view.may_be:
                most |= {name: max(number, most.get(name, 0)) for name, number in kind.capacity.items()}
        return most
