"""The metrics: what each counts or shows, as data. ``joinery.controllers.telemetry`` sends them.

Karpenter's names where Karpenter has the metric (Karpenter "Metrics" reference, v1.15), else names that begin with
``joinery_``. CloudWatch bills each combination of a name and label values for every hour in which it has a value: a
month of them is 0.30 $. So the rules of this file are about money:

- What is zero is not sent. A metric of something that does not happen costs nothing; its absence reads as zero.
- Labels have few values that are known beforehand. Labels by NodePool are sent only where a setting asks for them, for
  ``MOST_NODE_POOLS`` of them.
- A counter with labels is sent a second time without them, so that alarms and dashboards need no sum over labels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

#: Of how many NodePools there are series, the first by name: more would cost more than a person expects.
MOST_NODE_POOLS = 20
#: The label that is left out unless the setting ``Metrics`` asks for it.
NODE_POOL_LABEL = "nodepool"
#: The label that names the function, as it stands in each line of the log. It is filled in where the metric is sent.
SERVICE_LABEL = "service"


@dataclass(frozen=True, slots=True)
class Metric:
    """``name``: in CloudWatch. ``about``: a phrase for the reference. ``labels``: the keys of its dimensions.

    ``unit``: CloudWatch's. ``series``: how many there are at most for each NodePool or function, the total included;
    stated for gauges that are there all the time and for whatever has labels.
    """

    name: str
    about: str
    labels: tuple[str, ...] = ()
    unit: str = "Count"
    series: int = 1


_BY_DOOR = (SERVICE_LABEL,)
_BY_POOL = (NODE_POOL_LABEL,)


class Count(Enum):
    """What happened, how many times. Nothing is sent while nothing happens."""

    NODES_CREATED = Metric("karpenter_nodes_created_total", "nodes that have joined", _BY_POOL, series=2)
    NODES_TERMINATED = Metric("karpenter_nodes_terminated_total", "nodes that have ended", _BY_POOL, series=2)
    EVICTIONS = Metric(
        "karpenter_pods_eviction_requests_total",
        "evictions that were asked for: `code` 201, or 429 where a disruption budget is against it",
        ("code",),
        series=3,
    )
    DISRUPTION_DECISIONS = Metric(
        "karpenter_voluntary_disruption_decisions_total",
        "disruption commands that have begun, by `reason`; `decision` is `delete` or `replace`. Nodes that go in a "
        "pause (`paused`) count one by one",
        ("decision", "reason"),
        series=8,
    )
    SAVINGS = Metric(
        "joinery_disruption_savings_total",
        "$/h that disruption commands save which have begun, by `reason`, and pauses (`paused`)",
        ("reason",),
        unit="None",
        series=5,
    )
    DISRUPTIONS_DROPPED = Metric(
        "karpenter_voluntary_disruption_failed_validations_total",
        "commands that were decided and did not begin, because the cluster had changed meanwhile",
    )
    SEARCHES_CUT_SHORT = Metric(
        "karpenter_voluntary_disruption_consolidation_timeouts_total",
        "decisions that `DisruptionSeconds` ended. In each run: raise it, or ask what takes so long **!**",
    )
    INTERRUPTIONS = Metric(
        "karpenter_interruption_received_messages_total",
        "notices of EC2 and Health about nodes of ours, by `message_type`",
        ("message_type",),
        series=11,
    )
    POOLS_SOLD_OUT = Metric(
        "joinery_offerings_unavailable_total",
        "capacity pools (an instance type in a zone) that EC2 was found to be out of; others were tried",
    )
    DISRUPTIONS_REFUSED = Metric(
        "joinery_disruptions_refused_total",
        "commands that break a rule by Joinery's own check, and did not begin: please report them (`RefusalsAlarm`)",
    )
    RUNS_FAILED = Metric(
        "joinery_runs_failed_total",
        "runs, notices and bells that failed; they are tried again (`FailuresAlarm`)",
        _BY_DOOR,
        series=8,
    )
    REFUSALS = Metric(
        "joinery_refusals_total",
        "runs that a person has to look at: a cap, a refused plan, settings (`RefusalsAlarm`)",
        _BY_DOOR,
        series=8,
    )
    RUNS_CUT_SHORT = Metric(
        "joinery_runs_cut_short_total",
        "runs that left work to the next, because their time was over. In each run: too much to do **!**",
        _BY_DOOR,
        series=8,
    )
    CONFLICTS = Metric("joinery_conflicts_total", "runs that gave way to another one, which are tried again")
    BELLS_RUNG = Metric(
        "joinery_bells_rung_total",
        "messages with which the webhook woke functions, and with which runs that failed woke themselves",
    )
    SWITCHED_OFF = Metric("joinery_switched_off_total", "calls of a function that is switched off", _BY_DOOR, series=8)
    EXPIRATIONS_WAITING = Metric(
        "joinery_expirations_waiting_total",
        "expired nodes that wait for budgets, in each run anew ([rules](disruption-rules.md#what-limits-disruption))",
    )
    CANARIES_FAILED = Metric(
        "joinery_canaries_failed_total",
        "EC2NodeClasses with an AMI that failed its trial, in each run anew (`CanariesAlarm`)",
    )
    NOTICES_EARLY = Metric(
        "joinery_notices_early_total", "notices that come again, because a NodeClaim does not know its instance yet"
    )
    READS_MISSED = Metric("joinery_reads_missed_total", "reads that found what an earlier one had missed **!**")
    REVIEWS_FORBIDDEN = Metric(
        "joinery_reviews_forbidden_total",
        "calls of the webhook with a wrong token: an old webhook configuration, or strangers **!**",
    )
    REVIEWS_UNJUDGED = Metric(
        "joinery_reviews_unjudged_total",
        "calls of the webhook before its secret could be read for the first time **!**",
    )
    REVIEWS_MALFORMED = Metric("joinery_reviews_malformed_total", "calls of the webhook that are no review")
    REVIEWS_TOO_LARGE = Metric("joinery_reviews_too_large_total", "reviews that are too large to be read")


class Gauge(Enum):
    """How it stands, in each run anew. What is zero is not sent."""

    NODES = Metric("karpenter_cluster_state_node_count", "nodes of Joinery's NodePools")
    COST = Metric("karpenter_nodepools_cost_total", "$/h that they cost, by the prices of their offerings", unit="None")
    LIST_COST = Metric(
        "joinery_nodes_list_cost",
        "$/h that they would cost on demand, where that is something else",
        unit="None",
    )
    SPOT = Metric("joinery_nodes_spot_count", "how many of the nodes are spot")
    SHARES_LACK = Metric(
        "joinery_on_demand_share_lacking",
        "how many more nodes should be on demand by `joinery.dev/on-demand` of their NodePools",
    )
    GAP = Metric(
        "joinery_consolidation_gap_percent",
        "how far the nodes' price is above the least that is provably possible, moves considered",
        unit="Percent",
    )
    QUEUE_DEPTH = Metric("karpenter_scheduler_queue_depth", "pods that wait for a node")
    UNSCHEDULABLE = Metric("karpenter_scheduler_unschedulable_pods_count", "those for which the plan has no node **!**")
    UNBOUND = Metric(
        "karpenter_pods_unbound_time_seconds", "how long the pod that waits longest has waited **!**", unit="Seconds"
    )
    STAYING = Metric(
        "joinery_nodes_held",
        "nodes that a rule keeps from being disrupted, by `code`: which rule ([disruption](disruption.md))",
        ("code",),
        series=13,
    )
    PLAN_GAP = Metric(
        "joinery_plan_gap_percent",
        "how far what was bought is above the least that is provably possible; sent with each purchase",
        unit="Percent",
    )
    POOL_COST = Metric("karpenter_nodepools_cost_total", "the same of one NodePool", _BY_POOL, unit="None")
    POOL_USAGE = Metric(
        "karpenter_nodepools_usage",
        "what a NodePool has: `resource_type` cpu (cores), memory (bytes), nodes",
        (*_BY_POOL, "resource_type"),
        series=3,
    )
    POOL_LIMIT = Metric(
        "karpenter_nodepools_limit",
        "what its `limits` allow, where it has some",
        (*_BY_POOL, "resource_type"),
        series=3,
    )
    POOL_ALLOWED = Metric(
        "karpenter_nodepools_allowed_disruptions",
        "how many of its nodes may be disrupted now, by `reason`",
        (*_BY_POOL, "reason"),
        series=3,
    )
    ELIGIBLE = Metric(
        "karpenter_voluntary_disruption_eligible_nodes",
        "nodes that no rule keeps from being disrupted for the `reason`; sent with the NodePools'",
        ("reason",),
        series=3,
    )


class Duration(Enum):
    """How long it took, once for each object that came so far."""

    STARTUP = Metric("karpenter_pods_startup_duration_seconds", "from a pod's creation until it runs", unit="Seconds")
    BOUND = Metric("karpenter_pods_bound_duration_seconds", "from a pod's creation until it has a node", unit="Seconds")
    TERMINATION = Metric(
        "karpenter_nodes_termination_duration_seconds",
        "from the deletion of a NodeClaim until its instance is gone",
        unit="Seconds",
    )


Measure = Count | Gauge | Duration
MEASURES: tuple[Measure, ...] = (*Count, *Gauge, *Duration)

#: Gauges that are there only where the setting ``Metrics`` is ``node-pools``.
DETAILED = frozenset({Gauge.POOL_COST, Gauge.POOL_USAGE, Gauge.POOL_LIMIT, Gauge.POOL_ALLOWED, Gauge.ELIGIBLE})
#: What the stack's alarms watch.
ALARMING = frozenset({Count.RUNS_FAILED, Count.REFUSALS, Count.CANARIES_FAILED, Count.REVIEWS_FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value of a metric. ``labels``: a value for each of the metric's labels but ``service``."""

    measure: Measure
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
