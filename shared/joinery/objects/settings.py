"""Settings: what was chosen for a stack, as a frozen object.

What a function needs to find its way (queues, the bucket, its cluster) and its mode are in variables of their own. All
else that somebody may choose is in one: the stack's parameter ``Settings``, as ``Name=value; Name=value``. What it does
not name has the default below. The template reads some settings itself (``BY_THE_TEMPLATE``), and has their defaults.

Defaults are safe. A door that lacks an address that it needs fails when it starts, and not hours later at its first
use: ``NEEDS`` lists what each door needs, and a test compares that with the template.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from joinery.objects.default_spread import DefaultSpreads, default_spreads_of
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
from joinery.objects.stack_settings import BY_THE_TEMPLATE, MOST_CHARACTERS, VALUE, Setting

if TYPE_CHECKING:
    from joinery.objects.member import Member

PREFIX = "JOINERY_"
ACT, OBSERVE = "act", "observe"
NOT_COUNTED = "off"
#: Reading the cluster before a search and acting after it fit beside that into the function's timeout.
MOST_DISRUPTION_SECONDS = 200
#: What can be switched off, by the name of a function.
SWITCHES = ("webhook", "provisioning", "interruption", "expiration", "disruption", "lifecycle", "catalog")
T = TypeVar("T")


def _setting(default: T, text: str, values: str, meaning: str) -> T:
    """A field of ``Settings`` that somebody may choose. ``text``: its default, as it would be written."""
    chosen: T = field(default=default, metadata={"setting": Setting(default=text, values=values, meaning=meaning)})
    return chosen


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Of one function.

    ``cluster``: the EKS cluster's name. ``region``: its region. ``mode``: ``act``, or ``observe`` to decide, record and
    emit Events and change nothing. ``enabled``: whether the function is not switched off; one that is completes what
    wakes it and does nothing.
    ``provisioning_queue``, ``lifecycle_queue`` and ``disruption_queue``: the URLs of the bells' queues.
    ``bucket``: catalogue and decision records. ``table``: offerings that EC2 was out of lately.
    ``webhook_secret``: the ARN of the secret that holds the tokens of the webhook's URL. ``webhook_token``: the token
    itself, where there is no Secrets Manager; no stack sets it.
    ``installer_role``: the ARN of the installer's own role, which it lets into the cluster while it works.
    ``access_entries``: whether it may; without access entries of EKS, what is in the cluster is left to a person.
    ``has_members``: whether the functions serve further clusters (``Members`` in ``BY_THE_TEMPLATE``).
    ``commitments``: whether what is paid for already counts, and who says what that is (``BY_THE_TEMPLATE``).
    ``gateways``: dotted path ``module:function`` of what builds the gateways from these settings.
    """

    cluster: str
    region: str = "us-east-1"
    mode: str = ACT
    enabled: bool = True
    provisioning_queue: str = ""
    lifecycle_queue: str = ""
    disruption_queue: str = ""
    bucket: str = ""
    table: str = ""
    webhook_secret: str = ""
    webhook_token: str = ""
    installer_role: str = ""
    access_entries: bool = True
    has_members: bool = False
    commitments: str = NOT_COUNTED
    gateways: str = "joinery.bootstrap:aws"

    # fmt: off
    max_launches: int = _setting(
        500, "500", "0 or more",
        "The most nodes that one run may launch. Replacements come first; other pods wait for a later run.",
    )
    max_hourly: float = _setting(
        1000.0, "1000", "0 or more",
        "The most dollars an hour, by AWS's list, that one run may add. Replacements come first; other pods wait for a "
        "later run.",
    )
    node_size: str = _setting(
        BALANCED, BALANCED, "`cheapest`, `balanced`, `small`",
        "How price is weighed against how much one node carries, for NodePools without joinery.dev/node-size.",
    )
    preference_policy: str = _setting(
        PreferencePolicy.RESPECT, "Respect", "`Respect`, `Ignore`",
        "Respect keeps what pods prefer where that is possible. With Ignore it counts nothing, because money comes "
        "first.",
    )
    min_values_policy: str = _setting(
        MinValuesPolicy.STRICT, "Strict", "`Strict`, `BestEffort`",
        "Where a NodePool's minValues cannot be met, Strict buys nothing, and BestEffort lowers them and buys.",
    )
    default_spread: DefaultSpreads = _setting(
        (), "off", "`off`, or constraints, separated by commas",
        "The topology spread that a scheduler's own configuration gives to pods without any (Karpenter's "
        "SCHEDULER_CONFIG), such as topology.kubernetes.io/zone 1 DoNotSchedule, or kubernetes.io/hostname 3 "
        "ScheduleAnyway for my-scheduler.",
    )
    ordinary_types: bool = _setting(
        True, "true", "`true`, `false`",
        "Whether NodePools that say nothing of instance type, family, category, generation or size get ordinary types. "
        "With false they get burstable ones, old ones, bare metal and HPC too, where these are cheaper.",
    )
    reserved_enis: int = _setting(
        0, "0", "0 or more",
        "How many network interfaces of each node pods get no addresses of, as with the VPC CNI's custom networking "
        "(Karpenter's RESERVED_ENIS).",
    )
    prefix_delegation: bool = _setting(
        False, "false", "`true`, `false`",
        "Whether the VPC CNI assigns prefixes (ENABLE_PREFIX_DELEGATION), so that a node has addresses for 110 pods, "
        "or 250 with more than 30 vCPUs.",
    )
    vm_memory_overhead_percent: float = _setting(
        0.075, "0.075", "0 or more, below 1",
        "The fraction of a type's memory that its nodes do not see (Karpenter's VM_MEMORY_OVERHEAD_PERCENT).",
    )
    dry_runs: bool = _setting(
        True, "true", "`true`, `false`",
        "Whether dry runs of launches say what is wrong with an EC2NodeClass before pods wait for it. Switch them off "
        "where a policy denies them and not the launches (Karpenter's DISABLE_DRY_RUN).",
    )
    node_repair: str = _setting(
        NodeRepair.OFF, "off", "`off`, `replace`, `reboot`",
        "What becomes of a node that is unhealthy for too long. reboot does that once, and then replaces it.",
    )
    steering: str = _setting(
        Steering.TAINT, "taint", "`taint`, `off`",
        "Whether a new node is kept for the pods it was bought for by a taint, or is open to all. off needs no right "
        "to patch pods.",
    )
    zonal_shift: bool = _setting(
        False, "false", "`true`, `false`",
        "Whether zones that ARC shifts traffic away from are left alone. Nothing is bought or repaired there. The "
        "cluster must be registered with ARC.",
    )
    on_demand_shares: bool = _setting(
        False, "false", "`true`, `false`",
        "Whether pods at the gate joinery.dev/on-demand are let through, so many of a workload onto on-demand capacity "
        "as their annotation says. It needs the right to patch pods.",
    )
    surge_single_replicas: bool = _setting(
        False, "false", "`true`, `false`",
        "Whether the only replica of a Deployment gets its successor before its node goes, if its disruption budget "
        "allows no eviction.",
    )
    rebalance: str = _setting(
        Rebalance.OFF, "off", "`off`, `drain`, `replace`",
        "What is done about EC2's rebalance recommendations, for NodePools without joinery.dev/rebalance. off sends "
        "Events alone.",
    )
    disruption_move_price: float = _setting(
        0.01, "0.01", "0 or more",
        "What the eviction of an ordinary pod counts as, in dollars. Nodes are consolidated only if it is repaid. 0 "
        "means that moves cost nothing.",
    )
    disruption_payback: timedelta = _setting(
        timedelta(hours=1), "1h", "a time, such as `1h30m`",
        "The time within which a consolidation must have saved what its evictions count as.",
    )
    disruption_seconds: float = _setting(
        120.0, "120", "1 to 200",
        "How long one run looks for a cheaper cluster at most. What it has found by then counts.",
    )
    spot_to_spot: bool = _setting(
        True, "true", "`true`, `false`",
        "Whether a spot node may be replaced by a cheaper spot node, where that can be of fifteen types or more.",
    )
    canary: CanaryRule | None = _setting(
        CanaryRule(timedelta(minutes=10)), "1 node for 10m", "`off`, nodes or a share, and a time",
        "On how many nodes a new AMI is tried before all others move to it, and for how long. 5% for 1h is a share; "
        "off tries nothing.",
    )
    terminate_first: frozenset[TerminateFirst] = _setting(
        frozenset[TerminateFirst](), "off", "`off`, or some of `static`, `reserved`, `scarce`, separated by commas",
        "Where a drifted node ends before its replacement is launched, because there is no room for both.",
    )
    pod_deletion_cost: bool = _setting(
        False, "false", "`true`, `false`",
        "Whether pods on the nodes that are to go next get controller.kubernetes.io/pod-deletion-cost, so that "
        "scale-downs empty these nodes.",
    )
    new_nodes_repay: bool = _setting(
        True, "true", "`true`, `false`",
        "Whether nodes that were just launched are not consolidated before they have paid for themselves, for "
        "NodePools without joinery.dev/new-nodes-repay.",
    )
    expiration_obeys_budgets: bool = _setting(
        False, "false", "`true`, `false`",
        "Whether expired nodes wait for disruption budgets, for NodePools without "
        "joinery.dev/expiration-obeys-budgets.",
    )
    legacy_objects: bool = _setting(
        True, "true", "`true`, `false`",
        "Whether Provisioners, AWSNodeTemplates and objects of v1beta1 are acted on. Scale their Karpenter to zero "
        "first. With false they are not read.",
    )
    default_instance_profile: str = _setting(
        "", "", "a name",
        "The instance profile of AWSNodeTemplates that name none (aws.defaultInstanceProfile of Karpenter v0.31).",
    )
    on_demand_prices: str = _setting(
        OnDemandPrices.LISTED, "listed", "`listed`, `estimated`",
        "Where on-demand prices come from. listed asks AWS's price list. estimated takes those of us-east-1 that come "
        "with the release, for subnets that cannot reach the list.",
    )
    metrics: str = _setting(
        MetricsDetail.CLUSTER, "cluster", "`cluster`, `node-pools`",
        "Whether there are metrics of each NodePool, too. Each costs up to 4 dollars a month.",
    )
    switched_off: frozenset[str] = _setting(
        frozenset[str](), "", "functions, separated by commas",
        "Functions that complete what wakes them and do nothing. webhook: the schedule alone wakes the others, once a "
        "minute. provisioning: no new nodes, also not for nodes that go. interruption: EC2's warnings are lost. "
        "expiration: nodes are not retired for their age. disruption: no node is consolidated; commands that have "
        "begun go on. lifecycle: no node joins, is drained or ends. catalog: plans use the prices that were read last.",
    )
    # fmt: on

    def __post_init__(self) -> None:
        _demand(bool(self.cluster), "cluster", "is not set")
        _demand(self.mode in (ACT, OBSERVE), "mode", f"is {self.mode!r}: expected {ACT} or {OBSERVE}")
        _demand(self.max_launches >= 0, "max_launches", "is negative")
        _demand(self.max_hourly >= 0, "max_hourly", "is negative")
        _demand(self.node_size in SIZES, "node_size", f"is {self.node_size!r}: expected one of {', '.join(SIZES)}")
        for name, choices in _CHOICES.items():
            given = getattr(self, name)
            _demand(given in list(choices), name, f"is {given!r}: expected one of {', '.join(choices)}")
        _demand(self.vm_memory_overhead_percent < 1, "vm_memory_overhead_percent", "is not below 1")
        _demand(self.disruption_payback > timedelta(), "disruption_payback", "is not longer than nothing")
        _demand(1 <= self.disruption_seconds <= MOST_DISRUPTION_SECONDS, "disruption_seconds", "is not from 1 to 200")
        profile = self.default_instance_profile
        _demand(bool(_PROFILE.fullmatch(profile)), "default_instance_profile", f"is {profile!r}: expected a name")
        for door in sorted(self.switched_off - {*SWITCHES}):
            _demand(False, "switched_off", f"names {door!r}: expected some of {', '.join(SWITCHES)}")
        is_known = bool(re.fullmatch(BY_THE_TEMPLATE["Commitments"].pattern, self.commitments))
        _demand(is_known, "commitments", f"is {self.commitments!r}: expected off, file, or a share such as 100%")
        _demand(":" in self.gateways, "gateways", f"is {self.gateways!r}: expected module:function")

    @property
    def caps(self) -> Caps:
        """What a run may buy, when it begins."""
        return Caps(max_launches=self.max_launches, max_hourly=self.max_hourly)

    @property
    def counts_commitments(self) -> bool:
        """Whether what is paid for already counts."""
        return self.commitments != NOT_COUNTED

    @property
    def commitment_share(self) -> float:
        """How much of each commitment is for this account and region; 0 where nobody is to ask AWS."""
        return int(self.commitments.removesuffix("%")) / 100 if self.commitments.endswith("%") else 0.0

    @property
    def observing(self) -> bool:
        """Whether nothing may be changed."""
        return self.mode == OBSERVE

    def check(self, door: str) -> "Settings":
        """The same settings. Raises ``ConfigurationError`` naming a variable that this door cannot do without."""
        for name in NEEDS[door]:
            is_there = getattr(self, name) != "" or (name == "webhook_secret" and self.webhook_token)
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
_PROFILE = re.compile(r"[0-9A-Za-z_+=,.@-]{0,128}")
#: What is the stack's also for a member.
_OF_THE_STACK = (
    "region", "provisioning_queue", "lifecycle_queue", "disruption_queue", "bucket", "table", "commitments",
    "webhook_token", "gateways",
)  # fmt: skip
_EVERY_DOOR = ("cluster", "region")
_BELLS = ("provisioning_queue", "lifecycle_queue")
_DECIDING = (*_EVERY_DOOR, "mode")

#: What each door reads beside ``JOINERY_SETTINGS``. The template gives a function these variables and no others.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "webhook": (*_EVERY_DOOR, *_BELLS, "webhook_secret"),
    "provisioning": (*_DECIDING, *_BELLS, "bucket", "table", "commitments"),
    "interruption": (*_DECIDING, *_BELLS, "table"),
    "expiration": (*_DECIDING, *_BELLS),
    "disruption": (*_DECIDING, "lifecycle_queue", "disruption_queue", "bucket", "table", "commitments"),
    "lifecycle": (*_DECIDING, *_BELLS, "disruption_queue", "bucket", "table"),
    "catalog": (*_EVERY_DOOR, "provisioning_queue", "bucket", "commitments"),
    # CloudFormation must be answered: it has no off-switch, and a wrong setting must not keep it from starting.
    "installer": (*_EVERY_DOOR, "installer_role", "access_entries", "webhook_secret"),
}


def named(name: str) -> str:
    """What somebody who chooses it calls a field: ``MaxLaunches`` for ``max_launches``."""
    return "".join(word.capitalize() for word in name.split("_"))


_FIELDS = {named(own.name): own for own in fields(Settings) if "setting" in own.metadata}
#: All that may stand in the parameter ``Settings``, by name.
SETTINGS: Mapping[str, Setting] = {
    **{name: own.metadata["setting"] for name, own in _FIELDS.items()},
    **BY_THE_TEMPLATE,
}


def read(environment: Mapping[str, str], door: str = "") -> Settings:
    """The settings of a function; ``door`` is its name.

    Raises ``ConfigurationError`` naming the variable or setting that is at fault. An empty one counts as absent,
    because a template cannot leave one out conditionally.
    """
    given = {
        own.name: (own.type, environment.get(variable(own.name), "").strip())
        for own in fields(Settings)
        if "setting" not in own.metadata and own.name != "enabled"
    }
    _demand(given["cluster"][1] != "", "cluster", "is not set")
    of_stack = chosen(environment.get(variable("settings"), ""))
    given["has_members"] = (bool, of_stack.get("Members", ""))
    for name, text in of_stack.items():
        if name in _FIELDS:
            given[_FIELDS[name].name] = (_FIELDS[name].type, text)
    settings = {name: _parse(name, kind, text) for name, (kind, text) in given.items() if text}
    return Settings(**settings, enabled=door not in settings.get("switched_off", ()))


def of_member(own: Settings, member: "Member", door: str) -> Settings:
    """The settings of a function for a member: where the stack's queues, bucket and table are, and what was chosen for
    the member. Raises ``ConfigurationError`` as ``read`` does.
    """
    said = {
        variable("cluster"): member.cluster,
        variable("mode"): member.mode,
        variable("settings"): member.settings,
        variable("webhook_secret"): member.secret,
    }
    ours = {name: getattr(own, name) for name in _OF_THE_STACK}
    return replace(read(said, door), **ours)


def chosen(text: str) -> dict[str, str]:
    """What the parameter ``Settings`` says, by name: ``Name=value; Name=value``.

    Raises ``ConfigurationError`` for what is no setting, and for a value that the template does not take; ``in_force``
    looks at the others too.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConfigurationError(f"Settings has {len(text)} characters: at most {MOST_CHARACTERS} are taken")
    given: dict[str, str] = {}
    for part in filter(None, (part.removeprefix(" ") for part in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals or part != part.strip() or name != name.strip() or value != value.strip():
            raise ConfigurationError(f"{part.strip()!r} is not of the form Name=value")
        if name in given:
            raise ConfigurationError(f"{name} is there twice")
        if name not in SETTINGS:
            question = nearest(name, SETTINGS)
            raise ConfigurationError(f"there is no setting {name}" + (f": {question}" if question else ""))
        if not value:
            raise ConfigurationError(f"{name} has no value: leave it out, and it has its default")
        if not re.fullmatch(VALUE, value):
            raise ConfigurationError(f"{name} is {value!r}: expected ASCII without quotation marks and backslashes")
        if name in BY_THE_TEMPLATE and not re.fullmatch(BY_THE_TEMPLATE[name].pattern, value):
            raise ConfigurationError(f"{name} is {value!r}: expected {BY_THE_TEMPLATE[name].values.replace('`', '')}")
        given[name] = value
    return given


def in_force(text: str) -> dict[str, str]:
    """Every setting by name, as it holds where the parameter ``Settings`` says this. Raises ``ConfigurationError``."""
    given = chosen(text)
    if given.get("WebhookEndpoint") == "private" and "WebhookVpcEndpointId" not in given:
        raise ConfigurationError("WebhookEndpoint=private needs WebhookVpcEndpointId, an endpoint of execute-api")
    read({variable("cluster"): "any", variable("settings"): text})
    return {name: given.get(name, setting.default) for name, setting in SETTINGS.items()}


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The question which of the names was meant, for whoever mistypes one; None where none is near."""
    from difflib import get_close_matches  # only where somebody mistypes: a door should not import it

    near = get_close_matches(name, list(names), n=1)
    return f"do you mean {near[0]}?" if near else None


def variable(name: str) -> str:
    """The environment variable of a field."""
    return PREFIX + name.upper()


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """The environment that says this, by field: for whoever runs a door."""
    own = {variable(name): text for name, text in given.items() if named(name) not in _FIELDS}
    settings = "; ".join(f"{named(name)}={text}" for name, text in given.items() if text and named(name) in _FIELDS)
    return own | ({variable("settings"): settings} if settings else {})


def _parse(name: str, kind: Any, text: str) -> Any:
    try:
        return _PARSERS.get(kind, str)(text)
    except ValueError as error:
        raise ConfigurationError(f"{_label(name)} is {text!r}: {error}") from None


def _label(name: str) -> str:
    return named(name) if named(name) in _FIELDS else variable(name)


def _switch(text: str) -> bool:
    match text.lower():
        case "true" | "1" | "yes" | "on":
            return True
        case "false" | "0" | "no" | "off":
            return False
    raise ValueError("expected true or false")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
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


def _names(text: str) -> frozenset[str]:
    return frozenset(filter(None, (name.strip() for name in text.split(","))))


_PARSERS: Mapping[Any, Callable[[str], Any]] = {
    bool: _switch, int: _count, float: _amount, timedelta: _duration,
    CanaryRule | None: canary_of,
    DefaultSpreads: default_spreads_of,
    frozenset[TerminateFirst]: terminate_first_of,
    frozenset[str]: _names,
}  # fmt: skip


def _demand(holds: bool, name: str, problem: str) -> None:
    if not holds:
        raise ConfigurationError(f"{_label(name)} {problem}")
