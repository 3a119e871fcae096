"""What a stack costs to run: a month's usage times AWS's prices.

The usage of an idle stack is computed from its template and some assumptions (``idle``), that of a living one is
measured (``joinery_cli.doctor.usage``). Prices are data (``prices.json``), with their date and source. Nobody's free
tier is taken off, because an account may have used it up.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

#: Of a month of 730 hours.
MINUTES = 43_800
#: An idle queue is asked by five connections of Lambda, each of which waits for 20 s (Lambda Developer Guide, "Using
#: Lambda with Amazon SQS"; what it says of standard queues is assumed of FIFO queues).
RECEIVES = 5 * 3 * MINUTES


@dataclass(frozen=True, slots=True)
class Calls:
    """Of one function in a month: how many invocations, how long all of them took, and with how much memory."""

    invocations: float
    seconds: float
    memory_mb: float

    @property
    def gb_seconds(self) -> float:
        """What Lambda bills."""
        return self.seconds * self.memory_mb / 1024


@dataclass(frozen=True, kw_only=True)
class StackUsage:
    """What a stack uses in a month.

    functions      by door
    architecture   arm64 or x86_64
    receives, fifo_receives   requests to standard and FIFO queues, with what is sent
    schedules      how often schedules went off
    alarm_metrics  over all alarms, the metrics that each looks at
    series         metrics of its own: series times the share of hours in which they had a value
    dashboards     that are paid for
    log_gb         written to the log
    puts, gets     requests to the bucket
    reads          read units of the table
    secrets        in Secrets Manager
    """

    functions: Mapping[str, Calls] = field(default_factory=dict)
    architecture: str = "arm64"
    receives: float = 0.0
    fifo_receives: float = 0.0
    schedules: float = 0.0
    alarm_metrics: float = 0.0
    series: float = 0.0
    dashboards: float = 0.0
    log_gb: float = 0.0
    puts: float = 0.0
    gets: float = 0.0
    reads: float = 0.0
    secrets: float = 0.0


@dataclass(frozen=True, slots=True)
class BillItem:
    """A line of the bill: ``what``, ``how much`` of it in words, and ``dollars`` a month."""

    what: str
    amount: str
    dollars: float


@dataclass(frozen=True, slots=True)
class IdleStack:
    """What an idle stack is made of, from its template.

    runs       by door, how often its schedule wakes it in a month
    memory     by door, MB
    queues, fifo_queues   that a function is woken by
    bells      messages of schedules to FIFO queues in a month
    register_reads   how often a run asks the home about its member
    """

    runs: Mapping[str, float]
    memory: Mapping[str, float]
    queues: int
    fifo_queues: int
    bells: float
    alarm_metrics: int
    secrets: int
    register_reads: float = 0.0


#: Seconds of an idle run of each door, once a function is warm: what it asks, one after another. The API server answers
#: a list or a watch in about 0.1 s, EC2 in 0.1 s, S3 in 0.02 s.
IDLE_SECONDS: Mapping[str, float] = {
    "provisioning": 0.14,
    "lifecycle": 0.23,
    "disruption": 0.14,
    "expiration": 0.03,
    "interruption": 0.10,
    "catalog": 5.0,
    "installer": 0.5,  # a look at the webhook's secret; it is hardly ever warm
}
#: The catalogue is read in full so often a month, and for so long.
FULL_CATALOGS, FULL_SECONDS = 61, 30.0
#: Series that a cluster has while nothing happens: its nodes and their price.
IDLE_SERIES = 2
#: Bytes of a run in the log: Lambda's three lines, and one or two of ours.
BYTES_A_RUN = 1_500


@cache
def price_list() -> Mapping[str, float]:
    """Dollars for one of each."""
    document = json.loads(files(__package__).joinpath("prices.json").read_text("utf-8"))
    return {name: entry["price"] for name, entry in document["prices"].items()}


def idle(plan: IdleStack) -> StackUsage:
    """The usage of a stack whose cluster has nodes and nothing to do."""
    functions = {door: Calls(runs, runs * IDLE_SECONDS[door], plan.memory[door]) for door, runs in plan.runs.items()}
    if catalog := functions.get("catalog"):  # a member has none of its own
        more = FULL_CATALOGS * (FULL_SECONDS - IDLE_SECONDS["catalog"])
        functions["catalog"] = Calls(catalog.invocations, catalog.seconds + more, catalog.memory_mb)
    catalogs = plan.runs.get("catalog", 0.0)
    runs = sum(plan.runs.values())
    deciders = plan.runs["provisioning"] + plan.runs["disruption"]
    return StackUsage(
        functions=functions,
        receives=plan.queues * RECEIVES,
        # Each ring is sent, received and deleted.
        fifo_receives=plan.fifo_queues * RECEIVES + 3 * plan.bells,
        schedules=runs,
        alarm_metrics=plan.alarm_metrics,
        series=IDLE_SERIES,
        log_gb=runs * BYTES_A_RUN / 1e9,
        puts=catalogs,
        gets=deciders + catalogs,
        reads=deciders + plan.register_reads,
        secrets=plan.secrets,
    )


def bill(usage: StackUsage) -> Iterator[BillItem]:
    """The lines of the bill, those that are nothing left out."""
    prices = price_list()
    for door, calls in usage.functions.items():
        dollars = calls.gb_seconds * prices[f"lambda_gb_second_{usage.architecture}"]
        seconds = calls.seconds / calls.invocations if calls.invocations else 0.0
        amount = f"{calls.invocations:,.0f} runs of {seconds:.2f} s with {calls.memory_mb:,.0f} MB"
        yield BillItem(f"Lambda: {door}", amount, dollars)
    requests = sum(calls.invocations for calls in usage.functions.values())
    counted = (
        ("Lambda: requests", requests, "lambda_request", "{:,.0f}"),
        ("SQS: standard queues", usage.receives, "sqs_request", "{:,.0f} requests"),
        ("SQS: FIFO queues", usage.fifo_receives, "sqs_fifo_request", "{:,.0f} requests"),
        ("EventBridge Scheduler", usage.schedules, "schedule", "{:,.0f} invocations"),
        ("CloudWatch: alarms", usage.alarm_metrics, "alarm_metric", "{:,.0f} metrics"),
        ("CloudWatch: metrics", usage.series, "metric_series", "{:,.1f} series"),
        ("CloudWatch: dashboards", usage.dashboards, "dashboard", "{:,.0f}"),
        ("CloudWatch: logs", usage.log_gb, "log_gb", "{:,.2f} GB"),
        ("S3: written", usage.puts, "s3_put", "{:,.0f} requests"),
        ("S3: read", usage.gets, "s3_get", "{:,.0f} requests"),
        ("DynamoDB", usage.reads, "dynamodb_read", "{:,.0f} reads"),
        ("Secrets Manager: secrets", usage.secrets, "secret", "{:,.0f}"),
    )
    for what, number, price, words in counted:
        if number:
            yield BillItem(what, words.format(number).replace(".0 ", " "), number * prices[price])


def total(items: Iterator[BillItem] | tuple[BillItem, ...]) -> float:
    """Dollars a month."""
    return sum(item.dollars for item in items)
