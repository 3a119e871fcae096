"""Settings: the environment of a function, as a frozen object. The template declares exactly these variables.

Defaults are safe. A door that lacks an address that it needs fails when it is built, and not hours later at its first
use: ``NEEDS`` lists what each door needs, and a contract test compares that with the template.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any

from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter import duration
from joinery.objects.karpenter.disruption import CanaryRule, canary_of
from joinery.objects.kubernetes.webhook_secret import SHORTEST_TOKEN
from joinery.objects.policies import (
    BALANCED,
    SIZES,
    Caps,
    MetricsDetail,
    MinValuesPolicy,
    NodeRepair,
    OnDemandPrices,
    PreferencePolicy,
    Rebalance,
    Steering,
    TerminateFirst,
    terminate_first_of,
)

PREFIX = "JOINERY_"
ACT, OBSERVE = "act", "observe"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One field a variable: ``JOINERY_`` and the field's name in capitals.

    ``cluster``: the EKS cluster's name. ``region``: its region.
    ``mode``: ``act``, or ``observe`` to decide, record and emit Events and change nothing.
    ``enabled``: a door's off-switch; a door that is off completes what wakes it and does nothing.
    ``max_launches`` and ``max_hourly``: how many nodes a run launches at most, and for how many $/h.
    ``node_size``: ``cheapest``, ``balanced`` or ``small``, for NodePools that do not say.
    ``preference_policy``: ``Respect``, or ``Ignore`` where pods' preferences count nothing. ``min_values_policy``:
    ``Strict``, or ``BestEffort`` to lower minValues that cannot be met.
    ``node_repair``: what becomes of a node that is unhealthy for too long: ``off`` (nothing), ``replace``, or
    ``reboot`` (once, and then it is replaced).
    ``steering``: ``taint``, or ``off`` where new nodes are open to all from the start.
    ``zonal_shift``: whether zones that ARC shifts traffic away from are left alone.
    ``surge_single_replicas``: whether the only replica of a Deployment, whose disruption budget allows no eviction, is
    kept on a node that goes until its successor is Ready, as if it had asked for it.
    ``rebalance``: what is done about rebalance recommendations: ``off`` (they are told), ``drain`` or ``replace``, for
    NodePools that do not say.
    ``disruption_move_price``: dollars that the eviction of an ordinary pod counts as. ``disruption_payback``: within
    which a consolidation must have saved what its evictions count as. ``disruption_seconds``: how long a run looks for
    a cheaper cluster. ``spot_to_spot``: whether spot nodes may be replaced by cheaper ones. ``new_nodes_repay``:
    whether nodes that were just launched stay until they have paid for themselves, for NodePools that do not say.
    ``terminate_first``: where drifted nodes end before their replacements are launched, for NodePools that do not say.
    ``canary``: on how many nodes a new image is tried first, and for how long (``1 node for 10m``), for node classes
    that do not say; None (``off``) for no trial.
    ``pod_deletion_cost``: whether pods on the nodes that are to go next are marked, so that scale-downs empty these.
    ``legacy_objects``: whether objects of Karpenter's older APIs (v1alpha5, v1beta1) are acted on.
    ``default_instance_profile``: of AWSNodeTemplates that name none, which Karpenter's own settings had for them.
    ``expiration_obeys_budgets``: whether expired nodes wait for the budgets of NodePools that do not say.
    ``provisioning_queue``, ``lifecycle_queue`` and ``disruption_queue``: the URLs of the bells' queues.
    ``bucket``: catalogue and decision records. ``table``: offerings that EC2 was out of lately.
    ``webhook_secret``: the ARN of the secret that holds the tokens of the webhook's URL. ``webhook_token``: the token
    itself, where there is no Secrets Manager; no stack sets it.
    ``metrics``: ``cluster``, or ``node-pools`` to have them by NodePool too, which costs dollars.
    ``on_demand_prices``: ``listed``, or ``estimated`` where the price list cannot be reached.
    ``installer_role``: the ARN of the installer's own role, which it lets into the cluster while it works.
    ``access_entries``: whether it may; without access entries of EKS, what is in the cluster is left to a person.
    ``gateways``: dotted path ``module:function`` of what builds the gateways from these settings.
    """

    cluster: str
    region: str = "us-east-1"
    mode: str = ACT
    enabled: bool = True
    max_launches: int = 500
    max_hourly: float = 1000.0
    node_size: str = BALANCED
    preference_policy: str = PreferencePolicy.RESPECT
    min_values_policy: str = MinValuesPolicy.STRICT
    node_repair: str = NodeRepair.OFF
    steering: str = Steering.TAINT
    zonal_shift: bool = False
    surge_single_replicas: bool = False
    rebalance: str = Rebalance.OFF
    disruption_move_price: float = 0.01
    disruption_payback: timedelta = timedelta(hours=1)
    disruption_seconds: float = 120.0
    spot_to_spot: bool = True
    terminate_first: frozenset[TerminateFirst] = frozenset()
    canary: CanaryRule | None = CanaryRule(timedelta(minutes=10))
    pod_deletion_cost: bool = False
    new_nodes_repay: bool = True
    legacy_objects: bool = True
    default_instance_profile: str = ""
    expiration_obeys_budgets: bool = False
    provisioning_queue: str = ""
    lifecycle_queue: str = ""
    disruption_queue: str = ""
    bucket: str = ""
    table: str = ""
    webhook_secret: str = ""
    webhook_token: str = ""
    metrics: str = MetricsDetail.CLUSTER
    on_demand_prices: str = OnDemandPrices.LISTED
    installer_role: str = ""
    access_entries: bool = True
    gateways: str = "joinery.bootstrap:aws"

    def __post_init__(self) -> None:
        _demand(bool(self.cluster), "cluster", "is not set")
        _demand(self.mode in (ACT, OBSERVE), "mode", f"is {self.mode!r}: expected {ACT} or {OBSERVE}")
        _demand(self.max_launches >= 0, "max_launches", "is negative")
        _demand(self.max_hourly >= 0, "max_hourly", "is negative")
        _demand(self.node_size in SIZES, "node_size", f"is {self.node_size!r}: expected one of {', '.join(SIZES)}")
        for name, choices in _CHOICES.items():
            given = getattr(self, name)
            _demand(given in list(choices), name, f"is {given!r}: expected one of {', '.join(choices)}")
        _demand(self.disruption_payback > timedelta(), "disruption_payback", "is not longer than nothing")
        _demand(":" in self.gateways, "gateways", f"is {self.gateways!r}: expected module:function")

    @property
    def caps(self) -> Caps:
        """What a run may buy, when it begins."""
        return Caps(max_launches=self.max_launches, max_hourly=self.max_hourly)

    @property
    def observing(self) -> bool:
        """Whether nothing may be changed."""
        return self.mode == OBSERVE

    def check(self, door: str) -> "Settings":
        """The same settings. Raises ``ConfigurationError`` naming a variable that this door cannot do without."""
        for name in NEEDS[door]:
            is_there = (
                getattr(self, name) != "" or name in _OPTIONAL or (name == "webhook_secret" and self.webhook_token)
            )
            _demand(bool(is_there), name, f"is not set: the {door} door needs it")
        is_short = bool(self.webhook_token) and len(self.webhook_token) < SHORTEST_TOKEN
        _demand(not is_short, "webhook_token", "is too short")
        return self


#: Settings that have one of a few values.
_CHOICES: Mapping[str, type[StrEnum]] = {
    "preference_policy": PreferencePolicy,
    "min_values_policy": MinValuesPolicy,
    "node_repair": NodeRepair,
    "rebalance": Rebalance,
    "steering": Steering,
    "metrics": MetricsDetail,
    "on_demand_prices": OnDemandPrices,
}
_EVERY_DOOR = ("cluster", "region", "enabled")
_BELLS = ("provisioning_queue", "lifecycle_queue")
_LEGACY = ("legacy_objects", "default_instance_profile")
_DECIDING = (*_EVERY_DOOR, "mode", *_LEGACY)
_CONTROLLER = (*_DECIDING, *_BELLS)
#: What a door reads and may be empty.
_OPTIONAL = frozenset({"default_instance_profile"})
_CAPS = ("max_launches", "max_hourly")
_PACKING = ("node_size", "preference_policy", "min_values_policy")

#: The settings each door reads. The template gives a function these variables and no others.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "webhook": (*_EVERY_DOOR, *_BELLS, "webhook_secret"),
    "provisioning": (*_CONTROLLER, "bucket", "table", *_CAPS, *_PACKING, "zonal_shift", "canary", "terminate_first"),
    "interruption": (*_CONTROLLER, "table", "rebalance"),
    "expiration": (*_CONTROLLER, "expiration_obeys_budgets"),
    "disruption": (
        *_DECIDING,
        "lifecycle_queue",
        "disruption_queue",
        "bucket",
        "table",
        *_CAPS,
        *_PACKING,
        "zonal_shift",
        "disruption_move_price",
        "disruption_payback",
        "disruption_seconds",
        "spot_to_spot",
        "canary",
        "terminate_first",
        "pod_deletion_cost",
        "new_nodes_repay",
        "metrics",
    ),
    "lifecycle": (
        *_CONTROLLER,
        "disruption_queue",
        "bucket",
        "table",
        *_CAPS,
        "node_repair",
        "steering",
        "zonal_shift",
        "surge_single_replicas",
        "canary",
        "metrics",
    ),
    "catalog": (*_EVERY_DOOR, "provisioning_queue", "bucket", "on_demand_prices"),
    # It has no off-switch: CloudFormation must be answered.
    "installer": ("cluster", "region", "installer_role", "access_entries", "webhook_secret"),
}


def read(environment: Mapping[str, str]) -> Settings:
    """The settings of a function. Raises ``ConfigurationError`` naming the variable that is missing or wrong.

    An empty variable counts as absent, because a template cannot leave one out conditionally.
    """
    given = {field.name: (field.type, environment.get(variable(field.name), "").strip()) for field in fields(Settings)}
    _demand(given["cluster"][1] != "", "cluster", "is not set")
    return Settings(**{name: _parse(name, kind, text) for name, (kind, text) in given.items() if text})


def variable(name: str) -> str:
    """The environment variable of a field."""
    return PREFIX + name.upper()


def _parse(name: str, kind: Any, text: str) -> Any:
    try:
        return _PARSERS.get(kind, str)(text)
    except ValueError as error:
        raise ConfigurationError(f"{variable(name)} is {text!r}: {error}") from None


def _switch(text: str) -> bool:
    match text.lower():
        case "true" | "1" | "yes" | "on":
            return True
        case "false" | "0" | "no" | "off":
            return False
    raise ValueError("expected true or false")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("expected a whole number")
    return int(text)


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        raise ValueError("expected a number") from None
    if not 0 <= amount < float("inf"):
        raise ValueError("expected a finite number that is not negative")
    return amount


def _duration(text: str) -> timedelta:
    parsed = duration.parse(text)
    if parsed is None:
        raise ValueError("expected a duration that ends")
    return parsed


_PARSERS: Mapping[Any, Callable[[str], Any]] = {
    bool: _switch, int: _count, float: _amount, timedelta: _duration,
    CanaryRule | None: canary_of,
    frozenset[TerminateFirst]: terminate_first_of,
}  # fmt: skip


def _demand(holds: bool, name: str, problem: str) -> None:
    if not holds:
        raise ConfigurationError(f"{variable(name)} {problem}")
