"""Logs and metrics: one line a decision, one name a thing.

The instruments are Powertools' Logger and its metrics provider, made here; no other module makes its own. There is no
tracer: it would cost a cold start a quarter of a second. Level, service and namespace come from the ``POWERTOOLS_*``
variables that Powertools reads itself, so importing this module needs no environment.

Metrics are gathered during a run and written at its end (``Metrics.send``), because those of one set of labels share
a line of the log. ``joinery.decisions.metrics.definitions`` says which there are.

The keys below are the vocabulary of the log and of the dashboards. A key that is not here is not logged.
"""

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, TextIO, TypeVar, cast

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from joinery import __version__
from joinery.decisions.metrics.definitions import (
    ALARMING,
    DETAILED,
    NODE_POOL_LABEL,
    SERVICE_LABEL,
    Duration,
    Measure,
    Measurement,
)
from joinery.decisions.metrics.definitions import Count as Count
from joinery.objects.wording import MOST_PUBLIC, shortened

# --- keys of a log line ---
VERSION = "version"  # in every line: while a stack is updated, two versions are at work
CLUSTER = "cluster"  # in every line of a run for a member (``of_member``)
BELL = "bell"
MODE = "mode"
OUTCOME = "outcome"
DETAIL_TYPE = "detail_type"
SOURCE = "source"
MESSAGE_ID = "message_id"
ERROR = "error"
REASON = "reason"
CODE = "code"
COMMAND = "command"
NODE_CLAIM = "node_claim"
NODE_POOL = "node_pool"
POD = "pod"
RECORD = "record"
COST = "hourly_cost"
#: Beside it where commitments count: what is added to the bill; what AWS's list says of the on-demand nodes there are,
#: and what commitments pay of that.
PAID, LISTED, COVERED = "hourly_paid", "hourly_listed", "hourly_covered"


Handler = TypeVar("Handler", bound=Callable[..., Any])
Labels = tuple[tuple[str, str], ...]

#: The member that this thread works for, empty for the stack's own cluster; and the mode in which it does.
_member: ContextVar[str] = ContextVar("member", default="")
_mode: ContextVar[str] = ContextVar("mode", default="")
#: What a cluster's metrics are called by, before its name (``template.yaml``).
_NAMESPACE = "Joinery/"

#: What one run writes into the log at most, metrics aside: each line is paid for, and pods are anybody's.
MOST_LINES, MOST_BYTES = 1_000, 256 << 10


class _Stdout(logging.StreamHandler[TextIO]):
    """Writes to whatever ``sys.stdout`` is at that moment, so that a terminal program can put it elsewhere.

    Texts are shortened, and of a run that says more than a run may the rest is counted.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines = self._bytes = self._left_out = 0
        self._is_in_run = False

    def begin(self) -> None:
        """A run begins, which may say as much as any."""
        self._lines = self._bytes = self._left_out = 0
        self._is_in_run = True

    def end(self) -> None:
        """It is over: say how much was left out."""
        self._is_in_run = False
        if self._left_out:
            logger.warning(f"{self._left_out} lines of the run were left out of the log")

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        for key, said in nonempty(**{CLUSTER: _member.get(), MODE: _mode.get()}).items():
            setattr(record, key, said)
        for key, text in vars(record).items():
            if isinstance(text, str) and len(text) > MOST_PUBLIC // 4:
                setattr(record, key, shortened(text))
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """Half of a surrogate pair is no text to a stream, and JSON may hold one: the whole line would be lost."""
        line = super().format(record).encode(errors="backslashreplace").decode()
        self._lines, self._bytes = self._lines + 1, self._bytes + len(line.encode())
        return line

    def handle(self, record: logging.LogRecord) -> bool:
        if self._is_in_run and (self._lines >= MOST_LINES or self._bytes >= MOST_BYTES):
            self._left_out += 1
            return False
        return bool(super().handle(record))


class _Logger(Logger):
    """Says its version in every line: keys given to Powertools' constructor are gone at the first invocation."""

    def structure_logs(
        self, append: bool = False, formatter_options: dict[str, Any] | None = None, **keys: Any
    ) -> None:
        super().structure_logs(append, formatter_options, **{VERSION: __version__, **keys})


class Metrics:
    """What this process has measured and not sent yet.

    ``with_node_pools``: whether metrics are also sent by NodePool, which costs a series for each (setting ``Metrics``).
    """

    def __init__(self) -> None:
        self.with_node_pools = False
        # Threads append to it too, which needs no lock.
        self._gathered: list[tuple[str, Measurement]] = []

    def add(self, *measurements: Measurement) -> None:
        """Take note of measurements. They are sent when the door's run is over."""
        self._gathered.extend((_member.get(), measurement) for measurement in measurements)

    def sent_at_the_end(self, handler: Handler) -> Handler:
        """Decorate a door: what its run measured is sent when it is over, however it ends; its log has a ceiling."""

        @wraps(handler)
        def measured(*arguments: Any, **named: Any) -> Any:
            _stdout.begin()
            try:
                return handler(*arguments, **named)
            finally:
                _stdout.end()
                self.send()
                of_member("")

        return cast(Handler, measured)

    def totals(self) -> dict[str, float]:
        """By metric, the sum of what was measured and not sent yet."""
        sums: dict[str, float] = {}
        for _, measurement in self._gathered:
            name = measurement.measure.value.name
            sums[name] = sums.get(name, 0.0) + measurement.value
        return {name: value for name, value in sums.items() if value}

    def forget(self) -> None:
        """Send nothing of what was measured so far."""
        self._gathered.clear()

    def send(self) -> None:
        """Write what was measured, one line for each set of labels (CloudWatch "embedded metric format").

        What alarms watch of members counts for the stack's own cluster too: the alarms are the stack's.
        """
        gathered = self._gathered.copy()
        self.forget()
        gathered += [("", one) for member, one in gathered if member and one.measure in ALARMING]
        for member in sorted({member for member, _ in gathered}):
            self._send(member, [one for whose, one in gathered if whose == member])

    def _send(self, member: str, measured: Iterable[Measurement]) -> None:
        lines: dict[tuple[bool, Labels], list[Measurement]] = {}
        for measurement in _summed(measured):
            labels = self._labels(measurement)
            if labels is not None:
                lines.setdefault((isinstance(measurement.measure, Count), labels), []).append(measurement)
        for (is_counted, labels), measurements in lines.items():
            _write(measurements, dict(labels), member, with_total=is_counted)

    def _labels(self, measurement: Measurement) -> "Labels | None":
        """The dimensions that a measurement is sent with; None if it is not sent."""
        labels = dict(measurement.labels)
        if not self.with_node_pools:
            if measurement.measure in DETAILED:
                return None
            labels.pop(NODE_POOL_LABEL, None)
        if SERVICE_LABEL in measurement.measure.value.labels:
            labels[SERVICE_LABEL] = logger.service
        return tuple(sorted(labels.items()))


def _summed(measurements: Iterable[Measurement]) -> Iterator[Measurement]:
    """Counters summed, gauges as they stood last, durations one by one; nothing that is zero."""
    values: dict[tuple[Measure, Labels], float] = {}
    for measurement in measurements:
        key = (measurement.measure, tuple(sorted(measurement.labels.items())))
        if isinstance(measurement.measure, Duration):
            yield measurement
        elif isinstance(measurement.measure, Count):
            values[key] = values.get(key, 0.0) + measurement.value
        else:
            values[key] = measurement.value
    yield from (Measurement(measure, value, dict(labels)) for (measure, labels), value in values.items() if value)


def _write(measurements: Iterable[Measurement], labels: Mapping[str, str], member: str, *, with_total: bool) -> None:
    # No service: it would become a dimension of everything.
    sink = AmazonCloudWatchEMFProvider(metric_set={}, dimension_set={}, service="")
    # Outside Lambda nobody names a namespace, and Powertools does not send without one.
    sink.namespace = _NAMESPACE + member if member else sink.namespace or "Joinery"
    if labels and with_total:
        sink.add_dimensions(**labels)
    else:
        for name, value in labels.items():
            sink.add_dimension(name, value)
    for measurement in measurements:
        metric = measurement.measure.value
        sink.add_metric(name=metric.name, unit=metric.unit, value=measurement.value)
    # A hundred durations are written as soon as there are so many.
    if sink.metric_set:
        print(json.dumps(sink.serialize_metric_set()))


_stdout = _Stdout(sys.stdout)
logger = _Logger(logger_handler=_stdout)
metrics = Metrics()


def of_member(cluster: str) -> None:
    """From now on, in this thread and until the run is over, lines and metrics are this member's; the stack's own
    cluster is none, and empty.
    """
    _member.set(cluster)
    _mode.set("")


def in_mode(mode: str) -> None:
    """Lines of this thread's run say in which mode they were logged: what is decided in one is not carried out."""
    _mode.set(mode)


def count(metric: Count, number: float = 1, **labels: str) -> None:
    """Add to one of the counters; the door's decorator sends them when it is done."""
    metrics.add(Measurement(metric, number, labels))


def nonempty(**pairs: Any) -> dict[str, Any]:
    """The pairs whose value is not empty: a line of the log has no key without one."""
    return {key: value for key, value in pairs.items() if value not in (None, "", [], {})}
