"""What a living stack uses in a month, by what it used in the last week."""

from collections.abc import Iterator
from datetime import timedelta

from joinery.decisions.installation.removal import of_ours
from joinery.objects.kubernetes.references import collection
from joinery_cli.doctor.cost import MINUTES, Calls, StackUsage
from joinery_cli.doctor.site import Site, metric_sum

WEEK = timedelta(days=7)
_A_MONTH = MINUTES * 60 / WEEK.total_seconds()
#: What SQS bills as a request. A batch that is received counts once for each message here, so this is a bit too much.
_REQUESTS = ("NumberOfMessagesSent", "NumberOfMessagesReceived", "NumberOfEmptyReceives", "NumberOfMessagesDeleted")
#: The dashboards of an account that are free.
_FREE_DASHBOARDS = 3


def nodes(site: Site) -> int:
    """How many nodes of Joinery's the cluster has, or is about to have."""
    return len(of_ours({**claim, "kind": "NodeClaim"} for claim in site.listed(collection("NodeClaim"))))


def measured(site: Site) -> StackUsage:
    """The usage of the last week, as if it went on for a month. Raises what the calls raise."""
    configurations = {name: site.configuration(name) for name in site.functions}
    functions = {name.lower(): _calls(site, name, about["MemorySize"]) for name, about in configurations.items()}
    architectures = {about.get("Architectures", ["x86_64"])[0] for about in configurations.values()}
    deciders = sum(functions[door].invocations for door in ("provisioning", "disruption"))
    catalogs = functions["catalog"].invocations
    urls = [url for logical, url in site.resources.items() if logical.endswith("Queue")]
    return StackUsage(
        functions=functions,
        architecture=min(architectures, default="arm64"),
        receives=sum(_requests(site, url) for url in urls if not url.endswith(".fifo")),
        fifo_receives=sum(_requests(site, url) for url in urls if url.endswith(".fifo")),
        schedules=sum(_rings(site)),
        alarm_metrics=_alarm_metrics(site),
        series=_series(site),
        dashboards=_dashboards(site),
        log_gb=_week(site, "AWS/Logs", "IncomingBytes", LogGroupName=site.resources["LogGroup"]) / 1e9,
        puts=catalogs,
        gets=deciders + catalogs,
        reads=deciders,
        secrets=sum(logical.endswith("Secret") for logical in site.resources),
    )


def _week(site: Site, namespace: str, name: str, **dimensions: str) -> float:
    return metric_sum(site, namespace, name, dimensions, WEEK) * _A_MONTH


def _calls(site: Site, name: str, memory_mb: float) -> Calls:
    function = site.functions[name]
    invocations = _week(site, "AWS/Lambda", "Invocations", FunctionName=function)
    milliseconds = _week(site, "AWS/Lambda", "Duration", FunctionName=function)
    return Calls(invocations, milliseconds / 1000, memory_mb)


def _requests(site: Site, url: str) -> float:
    name = url.rpartition("/")[2]
    return sum(_week(site, "AWS/SQS", metric, QueueName=name) for metric in _REQUESTS)


def _rings(site: Site) -> Iterator[float]:
    for logical, name in site.resources.items():
        if logical.endswith("Schedule"):
            expression = site.aws.ask("scheduler", "get_schedule", Name=name)["ScheduleExpression"]
            # Every minute, but for the catalogue.
            yield MINUTES if expression == "rate(1 minute)" else MINUTES / 30


def _alarm_metrics(site: Site) -> float:
    names = [name for logical, name in site.resources.items() if logical.endswith("Alarm")]
    if not names:
        return 0.0
    alarms = site.aws.ask("cloudwatch", "describe_alarms", AlarmNames=names)["MetricAlarms"]
    return sum(sum("MetricStat" in one for one in alarm.get("Metrics") or ()) or 1 for alarm in alarms)


def _series(site: Site) -> float:
    """Those that had a value within three hours, as if they always had."""
    space = f"Joinery/{site.cluster}"
    return len(site.aws.ask("cloudwatch", "list_metrics", Namespace=space, RecentlyActive="PT3H")["Metrics"])


def _dashboards(site: Site) -> float:
    if site.parameters.get("Dashboard") == "false":
        return 0.0
    return float(len(site.aws.ask("cloudwatch", "list_dashboards")["DashboardEntries"]) > _FREE_DASHBOARDS)
