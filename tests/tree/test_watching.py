"""Metrics of alarms, dashboard and exporter are sent, and with the dimensions that are asked for."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from joinery.decisions.metrics.definitions import ALARMING, DETAILED, MEASURES, Count
from joinery_cli.doctor.cost import bill, idle, total
from tools import cost, grafana, metrics
from tools.template import ROOT, load, of_type

TEMPLATE = load()
RESOURCES = TEMPLATE["Resources"]
ALARMS = of_type(TEMPLATE, "AWS::CloudWatch::Alarm")
OWN = {"Fn::Sub": "Joinery/${ClusterName}"}
#: AWS's own metrics that we look at, with the dimension that they have (User Guides of Lambda and SQS).
THEIRS = {
    ("AWS/SQS", "ApproximateAgeOfOldestMessage"): "QueueName",
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): "QueueName",
    ("AWS/Lambda", "Duration"): "FunctionName",
    ("AWS/Lambda", "Errors"): "FunctionName",
    ("AWS/Lambda", "Invocations"): "FunctionName",
    ("AWS/Lambda", "Throttles"): "FunctionName",
}
#: Each metric with the sets of dimensions that it is sent with, where nobody asks for more.
SENT: dict[str, set[tuple[str, ...]]] = {}
for _measure in MEASURES:
    if _measure not in DETAILED:
        _labels = tuple(label for label in _measure.value.labels if label != "nodepool")
        SENT.setdefault(_measure.value.name, set()).add(_labels)
        if isinstance(_measure, Count):
            SENT[_measure.value.name].add(())


def watched(alarm: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The metrics of an alarm, each with its namespace, name and dimensions."""
    if "Metrics" in alarm:
        yield from (entry["MetricStat"]["Metric"] for entry in alarm["Metrics"] if "MetricStat" in entry)
    else:
        yield alarm


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_watches_metrics_that_exist(name: str) -> None:
    """An alarm over a misspelt metric, or with a dimension too many, never rings."""
    for metric in watched(ALARMS[name]):
        dimensions = metric.get("Dimensions", [])
        keys = tuple(dimension["Name"] for dimension in dimensions)
        if metric["Namespace"] == OWN:
            assert keys in SENT[metric["MetricName"]]
            assert all(isinstance(dimension["Value"], str) for dimension in dimensions)
        else:
            assert keys == (THEIRS[metric["Namespace"], metric["MetricName"]],)
            assert next(iter(_resources(dimensions[0]["Value"]))) in TEMPLATE["Resources"]


def _resources(value: Any) -> Iterator[str]:
    """The logical ids that a value refers to."""
    if "Ref" in value:
        yield value["Ref"]
    elif "Fn::GetAtt" in value:
        attribute = value["Fn::GetAtt"]
        yield attribute.partition(".")[0] if isinstance(attribute, str) else attribute[0]


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_tells_somebody_and_is_silent_without_data(name: str) -> None:
    """What is zero is not sent, so a metric without data is in order."""
    assert ALARMS[name]["TreatMissingData"] == "notBreaching"
    assert "AlarmTopicArn" in json.dumps(ALARMS[name]["AlarmActions"])
    assert ALARMS[name]["AlarmDescription"].endswith(".")


# --- the dashboard ---
DASHBOARD = RESOURCES["WatchDashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
WIDGETS = json.loads(DASHBOARD)["widgets"]
METRICS = [metric for widget in WIDGETS for metric in widget["properties"].get("metrics", [])]
#: Expressions know the ids of their own widget alone.
IDS = {
    metric[-1]["expression"]: {other[-1].get("id") for other in widget["properties"]["metrics"]}
    for widget in WIDGETS
    for metric in widget["properties"].get("metrics", [])
    if "expression" in metric[-1]
}
_SEARCH = re.compile(r"SEARCH\('\{(.+)\} MetricName=\"(\w+)\"', '(\w+)'\)")


def test_the_dashboard_shows_what_a_person_asks_first() -> None:
    """Pending, nodes, dollars, gap, decisions, evictions, errors, lag, spot; no widget lies on another."""
    titles = " ".join(widget["properties"].get("title", "") for widget in WIDGETS).lower()
    asked = (
        "pods that wait",
        "nodes",
        "$/h, list and paid",
        "gap",
        "decisions",
        "evictions",
        "errors",
        "lag",
        "spot",
        "savings",
    )
    assert [word for word in asked if word not in titles] == []
    cells = [
        (x, y)
        for widget in WIDGETS
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: str(metric[1] if len(metric) > 1 else metric[0]))
def test_the_dashboard_shows_metrics_that_are_sent(metric: list[Any]) -> None:
    """With the dimensions with which they are sent, and of resources that there are."""
    options = metric[-1]
    if "expression" in options:
        searched = _SEARCH.fullmatch(options["expression"])
        if searched is not None:
            schema, name, _ = searched.groups()
            names = schema.split(",")
            # CloudWatch wants quotes where a name has more than letters and digits; a cluster's name may.
            assert all(one.isalnum() or re.fullmatch(r'"[^"]+"', one) for one in names)
            space, *labels = (one.strip('"') for one in names)
            assert (space, tuple(labels)) in {("Joinery/${ClusterName}", sent) for sent in SENT[name]}
        else:
            assert set(re.findall(r"\b[a-z]\w*\b", options["expression"])) <= IDS[options["expression"]]
        return
    namespace, name, *dimensions = metric[:-1]
    keys, values = tuple(dimensions[::2]), dimensions[1::2]
    if namespace == "Joinery/${ClusterName}":
        assert keys in SENT[name]
    else:
        assert keys == (THEIRS[namespace, name],)
        assert re.findall(r"\$\{(\w+)", values[0])[0] in RESOURCES


def test_counters_are_summed_and_gauges_are_not() -> None:
    """The sum of a gauge over a period counts it once for every run."""
    counters = {count.value.name for count in Count}
    for metric in METRICS:
        if metric[0] == "Joinery/${ClusterName}":
            assert (metric[-1]["stat"] == "Sum") == (metric[1] in counters)


# --- the runbook ---
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
ROWS = {
    row[0].strip(" `"): row[1:] for row in re.findall(r"^\| (`\w+Alarm`) \| (.+) \| `(.+)` \| (.+) \|$", RUNBOOK, re.M)
}


def test_every_alarm_has_a_row_in_the_runbook() -> None:
    """What it means, the first command, and what then. No row is about an alarm that is gone."""
    assert set(ROWS) == set(ALARMS)


def test_the_runbook_names_resources_that_there_are() -> None:
    """Its commands find them by their logical ids."""
    named = set(re.findall(r"\$\(resource (\w+)\)", RUNBOOK))
    assert named
    assert named <= set(RESOURCES)
    doors = re.findall(r"^    for DOOR in ([\w ]+); do$", RUNBOOK, re.M)
    assert {f"{door}Function" for listed in doors for door in listed.split()} <= set(RESOURCES)


# --- Prometheus ---
EXPORTED = yaml.load(metrics.EXPORTER.read_text(), yaml.CSafeLoader)
PROMETHEUS = yaml.safe_load((ROOT / "examples/prometheus/prometheus.yaml").read_text())


def test_the_exporter_asks_for_every_metric_as_it_is_sent() -> None:
    """It is written by `python -m tools.metrics`."""
    assert metrics.EXPORTER.read_text() == metrics.exporter()
    asked = {entry["aws_metric_name"] for entry in EXPORTED["metrics"]}
    assert asked == {measure.value.name for measure in MEASURES}
    for entry in EXPORTED["metrics"]:
        labels = {measure.value.labels for measure in MEASURES if measure.value.name == entry["aws_metric_name"]}
        assert tuple(entry.get("aws_dimensions", ())) in labels | {()}


def test_prometheus_gives_the_metrics_their_own_names_back() -> None:
    """The exporter's names are namespace, metric and statistic in snake case (cloudwatch_exporter, safeName)."""
    *_, rename = PROMETHEUS["scrape_configs"][0]["metric_relabel_configs"]
    for entry in EXPORTED["metrics"]:
        for statistic in (*entry.get("aws_statistics", ()), *entry.get("aws_extended_statistics", ())):
            prefix = re.sub(r"[^a-z0-9]+", "_", entry["aws_namespace"].lower())
            given = f"{prefix}_{entry['aws_metric_name']}_{statistic.lower()}"
            renamed = re.fullmatch(rename["regex"], given)
            assert renamed is not None
            assert renamed[1] == entry["aws_metric_name"]


# --- what it costs ---


def test_the_bill_in_the_documents_is_what_the_code_computes() -> None:
    """It is written by `python -m tools.cost`, from the template."""
    document = cost.DOCUMENT.read_text()
    assert document == cost.written(document)
    many = cost.MANY_DOCUMENT.read_text()
    assert many == cost.written_of_many(many)


def test_a_member_costs_half_of_a_stack_and_has_no_poller_and_no_alarm() -> None:
    """What it costs is what runs for it."""
    member = cost.member()
    assert total(tuple(bill(idle(member)))) < total(tuple(bill(idle(cost.home())))) / 2
    assert (member.queues, member.fifo_queues, member.alarm_metrics) == (0, 0, 0)


def test_an_idle_stack_costs_less_than_five_dollars_a_month() -> None:
    """Whoever adds a poller, an alarm or a metric looks for what to take away."""
    items = tuple(bill(idle(cost.home())))
    assert total(items) < 5.0
    assert {item.what for item in items} > {"SQS: FIFO queues", "CloudWatch: alarms", "Lambda: catalog"}


def test_every_price_has_a_source_and_is_used() -> None:
    """A price list that nobody can check is a guess."""
    document = json.loads((ROOT / "cli/joinery_cli/doctor/prices.json").read_text())
    assert re.fullmatch(r"\d{4}-\d{2}", document["as_of"])
    assert all(entry["source"].startswith("https://aws.amazon.com/") for entry in document["prices"].values())
    code = (ROOT / "cli/joinery_cli/doctor/cost.py").read_text()
    unused = [name for name in document["prices"] if name.partition("_gb_second")[0] not in code]
    assert unused == []


def test_documents_name_alarms_and_metrics_that_there_are() -> None:
    """Whoever searches for a name finds it. Decisions are historical, and may speak of what was."""
    metrics_sent = {measure.value.name for measure in MEASURES}
    unknown = []
    for page in sorted([*ROOT.glob("docs/*.md"), ROOT / "README.md"]):
        text = page.read_text()
        names = set(re.findall(r"`(\w+Alarm)`", text)) - set(ALARMS)
        names |= (
            set(re.findall(r"`((?:joinery|karpenter)_\w+_(?:total|percent|seconds|count|cost))`", text)) - metrics_sent
        )
        unknown += [f"{page.name}: {name}" for name in names]
    assert unknown == []


# --- the board of Grafana ---


def test_the_board_of_grafana_is_the_dashboard() -> None:
    """Each widget with each metric that does not need the name of one of the stack's queues or functions."""
    assert grafana.BOARD.read_text() == grafana.board()
    panels = {panel["title"]: panel for panel in json.loads(grafana.board())["panels"]}
    assert panels.keys() >= {"Nodes", "Spot share, %", "Savings of commands that began, $/h", "Evictions"}
    targets = [target for panel in panels.values() for target in panel["targets"]]
    names = {target["metricName"] for target in targets if target["metricName"]}
    assert names <= SENT.keys()
    assert {target["namespace"] for target in targets} == {"Joinery/$cluster", ""}
    for panel in panels.values():
        # Grafana knows a query by its refId.
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0


def test_what_alarms_watch_of_members_is_counted_for_the_stack_too() -> None:
    """Its alarms look at the namespace of its own cluster."""
    own = [one for alarm in ALARMS.values() for one in watched(alarm) if one["Namespace"] == OWN]
    assert {one["MetricName"] for one in own} == {count.value.name for count in ALARMING}
