"""Write the board of Grafana from the stack's dashboard: ``python -m tools.grafana``.

Both show the same metrics of CloudWatch, so there is one list of them, in ``template.yaml``. What a stack calls its
queues and functions is known to CloudFormation alone; those metrics are left to the dashboard.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from tools.template import ROOT, load

BOARD = ROOT / "examples" / "grafana" / "board.json"
_SOURCE = {"type": "cloudwatch", "uid": "${datasource}"}
_SEARCH = re.compile(r"'(\w+)'\)$")
#: Columns of a dashboard of CloudWatch and of Grafana: both have 24. Rows are of other heights.
_HEIGHT = 8


def board() -> str:
    """The board as Grafana imports it (Grafana "Dashboard JSON model", data source CloudWatch)."""
    body = load()["Resources"]["WatchDashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    widgets = [widget for widget in json.loads(body)["widgets"] if widget["type"] == "metric"]
    panels = [panel for widget in widgets if (panel := _panel(widget))["targets"]]
    for number, panel in enumerate(panels):
        panel |= {"id": number + 1, "gridPos": {"x": number % 3 * 8, "y": number // 3 * _HEIGHT, "w": 8, "h": _HEIGHT}}
    return json.dumps(
        {
            "title": "Joinery", "uid": "joinery", "schemaVersion": 39, "editable": True, "refresh": "1m",
            "time": {"from": "now-24h", "to": "now"}, "templating": {"list": list(_variables())}, "panels": panels,
        },
        indent=2,
    ) + "\n"  # fmt: skip


def _variables() -> Iterator[dict[str, Any]]:
    """What is chosen above the board: the data source, the region, the cluster."""
    yield {"name": "datasource", "label": "CloudWatch", "type": "datasource", "query": "cloudwatch"}
    for name, label in (("region", "Region"), ("cluster", "Cluster")):
        yield {
            "name": name,
            "label": label,
            "type": "textbox",
            "query": "default" if name == "region" else "my-cluster",
        }


def _panel(widget: dict[str, Any]) -> dict[str, Any]:
    properties = widget["properties"]
    stacking = {"stacking": {"mode": "normal"}, "fillOpacity": 30} if properties.get("stacked") else {}
    left = properties.get("yAxis", {}).get("left", {})
    return {
        "type": "timeseries",
        "title": properties["title"],
        "datasource": _SOURCE,
        # What is zero is not sent.
        "fieldConfig": {"defaults": {"custom": {"spanNulls": 300_000, **stacking}, **left}, "overrides": []},
        "targets": list(_targets(properties)),
    }


def _targets(properties: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for number, metric in enumerate(properties["metrics"]):
        options = metric[-1]
        target = {
            "refId": chr(ord("A") + number), "datasource": _SOURCE, "region": "$region", "queryMode": "Metrics",
            "metricQueryType": 0, "id": options.get("id", ""), "label": options.get("label", ""),
            "period": str(properties["period"]), "hide": not options.get("visible", True),
        }  # fmt: skip
        if "expression" in options:
            expression = _SEARCH.sub(rf"'\1', {properties['period']})", options["expression"])
            wanted = expression.replace("${ClusterName}", "$cluster")
            if not _is_of_stack(properties):
                yield {**target, "metricEditorMode": 1, "expression": wanted, "namespace": "", "metricName": ""}
            continue
        namespace, name, *labels = metric[:-1]
        if not namespace.startswith("AWS/"):
            yield {
                **target, "metricEditorMode": 0, "namespace": namespace.replace("${ClusterName}", "$cluster"),
                "metricName": name, "dimensions": dict(zip(labels[::2], labels[1::2], strict=True)),
                "statistic": options["stat"], "matchExact": True, "expression": "",
            }  # fmt: skip


def _is_of_stack(properties: dict[str, Any]) -> bool:
    """Whether all that the widget computes with are metrics of the stack's queues and functions."""
    return all(metric[0].startswith("AWS/") for metric in properties["metrics"] if len(metric) > 1) and any(
        len(metric) > 1 for metric in properties["metrics"]
    )


if __name__ == "__main__":
    BOARD.parent.mkdir(exist_ok=True)
    BOARD.write_text(board())
