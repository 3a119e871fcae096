"""Options that several commands share."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from joinery.objects.errors import ConfigurationError
from joinery.objects.policies import MinValuesPolicy, PreferencePolicy


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


class ListFormat(StrEnum):
    """How a list is printed: ``wide`` has a line for each thing, with all its columns."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


class DecisionFormat(StrEnum):
    """How a plan, or a decision about nodes, is printed: also as a page, and as what a function would write."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    HTML = "html"
    YAML = "yaml"


class PageFormat(StrEnum):
    """How a history is printed: it can also be a page to look at."""

    TABLE = "table"
    JSON = "json"
    HTML = "html"


class Api(StrEnum):
    """The API of Karpenter that ``joinery convert`` writes objects in."""

    V1 = "v1"
    V1BETA1 = "v1beta1"
    V1ALPHA5 = "v1alpha5"
    V1ALPHA4 = "v1alpha4"
    V1ALPHA3 = "v1alpha3"


class NodeSize(StrEnum):
    """What a NodePool may prefer by annotation (``joinery.objects.policies``)."""

    CHEAPEST = "cheapest"
    BALANCED = "balanced"
    SMALL = "small"


class Daemons(StrEnum):
    """Whose DaemonSets are added to those of the files (``joinery_cli.reading.daemons``)."""

    EKS = "eks"


PreferenceOption = Annotated[
    PreferencePolicy,
    typer.Option("--preference-policy", help="Whether what pods prefer counts, as the stack's PreferencePolicy."),
]
MinValuesOption = Annotated[
    MinValuesPolicy,
    typer.Option("--min-values-policy", help="What to do where minValues cannot be met, as MinValuesPolicy."),
]
OrdinaryOption = Annotated[
    bool,
    typer.Option(
        "--ordinary-types/--all-types",
        help="What NodePools that say nothing of kinds of instance types get, as the stack's OrdinaryTypes.",
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--file",
        metavar="FILE|FOLDER",
        help="Kubernetes objects in YAML or JSON, also gzipped; - is standard input. Repeatable.",
    ),
]
MoreFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE", show_default=False, help="The same as -f FILE, so that -f *.yaml works."),
]
Recursive = Annotated[bool, typer.Option("-R", "--recursive", help="Read the folders inside a FOLDER too.")]
DaemonsOption = Annotated[
    Daemons | None,
    typer.Option(help="Plan with the DaemonSets that every cluster of EKS runs, where the files have none of them."),
]
ExplainOption = Annotated[
    list[str] | None,
    typer.Option(
        "--explain",
        metavar="POD",
        help="Explain where this pod goes, and what else would have done. namespace/name or name. Repeatable.",
    ),
]
ExplainNodeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--explain",
        metavar="NODE",
        help="Explain why this node stays or goes: its price, its pods, the rules. Node or NodeClaim. Repeatable.",
    ),
]
RegionOption = Annotated[
    str | None,
    typer.Option(
        "--region",
        metavar="REGION",
        help="The cluster's region, for --catalog aws and for zones. Default: found from the objects.",
    ),
]
CatalogOption = Annotated[
    str | None,
    typer.Option(
        "--catalog",
        metavar="FILE|aws",
        help="Instance types and prices: a file, or aws to read them. Default: the last stored ones, or the sample.",
    ),
]
RatesOption = Annotated[
    str | None,
    typer.Option(
        "--interruption-rates",
        metavar="FILE",
        help="How often EC2 interrupts spot: AWS Spot Advisor's JSON, or a map of instance types to monthly shares.",
    ),
]
CommitmentsOption = Annotated[
    str | None,
    typer.Option(
        "--commitments",
        metavar="FILE",
        help="What is paid for already, in YAML or JSON: Savings Plans, Reserved Instances, a discount on all prices.",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler-config",
        metavar="FILE",
        help="The KubeSchedulerConfiguration, for the topology spread of pods without any. Default: DefaultSpread.",
    ),
]
EveryOption = Annotated[
    float, typer.Option("--every", metavar="SECONDS", help="How long to wait before looking again.")
]
NowOption = Annotated[str | None, typer.Option(metavar="RFC3339", help="The moment to decide for. Default: now.")]
TimeLimitOption = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Stop looking for something better after so many seconds.")
]


def check_every(seconds: float) -> None:
    """Raises ``ConfigurationError`` where ``--every`` is no time to wait."""
    if not 0 < seconds < float("inf"):
        raise ConfigurationError(f"--every {seconds:g}: must be more than 0 seconds")


def duration_of(option: str, text: str) -> timedelta:
    """The value of an option as a duration. Raises ``ConfigurationError`` naming the option."""
    from joinery.objects.karpenter import duration

    try:
        length = duration.parse(text)
    except ValueError:
        length = None
    if length is None or length <= timedelta():
        raise ConfigurationError(f"{option} {text}: must be a duration of more than 0, such as 30m or 1h30m")
    return length
