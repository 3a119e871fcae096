"""What ``solve`` is asked: a snapshot, the instance types each node class gives, and the policies."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from joinery.apis.sizes import BALANCED
from joinery.state.offerings import InstanceType
from joinery.state.snapshot import Snapshot


@dataclass(frozen=True, kw_only=True)
class Options:
    """Policies of a solve.

    ``only_marked_unschedulable``: against a live cluster a pod is pending only once kube-scheduler has said so
    (Karpenter `pod.IsProvisionable`); files are often partial, so there every unbound pod is. ``time_limit``: seconds
    after which a plan is no longer improved; the packing says whether it struck. ``launch_types``: so many types does a
    launch carry at most (EC2 CreateFleet); ``spot_types``: so many should a spot launch carry at least, where the rules
    allow: with fewer than five EC2 warns of interruptions. ``node_size``: the preference of pools that have none of
    their own (``sizes``).
    ``first_fit_only``: nodes as first-fit buys them, not optimised; for when the optimised ones are refused
    (``planning``).
    """

    only_marked_unschedulable: bool = True
    respect_preferences: bool = True
    best_effort_min_values: bool = False
    launch_types: int = 60
    spot_types: int = 15
    seed: int = 0
    node_size: str = BALANCED
    time_limit: float | None = None
    first_fit_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Problem:
    """``instance_types`` maps a node class's name to the types its nodes may be of."""

    snapshot: Snapshot
    instance_types: Mapping[str, tuple[InstanceType, ...]]
    options: Options = field(default_factory=Options)
