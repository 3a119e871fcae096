"""Figures of CloudWatch, summed over the last hours or days."""

from collections.abc import Mapping
from datetime import timedelta

from joinery_cli.doctor.site import Site


def metric_sum(site: Site, namespace: str, name: str, dimensions: Mapping[str, str], span: timedelta) -> float:
    """The sum of a metric over the last ``span``; 0 where it has no values."""
    now = site.now()
    answer = site.aws.ask(
        "cloudwatch",
        "get_metric_statistics",
        Namespace=namespace,
        MetricName=name,
        Dimensions=[{"Name": key, "Value": value} for key, value in dimensions.items()],
        StartTime=now - span,
        EndTime=now,
        # A whole number of minutes, and few enough values for one answer.
        Period=max(60, int(span.total_seconds() // 60 // 100) * 60),
        Statistics=["Sum"],
    )
    return float(sum(point["Sum"] for point in answer.get("Datapoints") or ()))
