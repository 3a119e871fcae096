"""Logs and metrics: one line a decision, one name a thing.

The instruments are Powertools' Logger and Metrics, made here once; no other module makes its own. There is no tracer:
it would cost a cold start a quarter of a second. Level, service and namespace come from the ``POWERTOOLS_*`` variables
that Powertools reads itself, so importing this module needs no environment.

The keys below are the vocabulary of the log and of the dashboards. A key that is not here is not logged.
"""

import logging
import sys
from enum import StrEnum
from typing import Any, TextIO

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.metrics import Metrics, MetricUnit

# --- keys of a log line ---
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


class Count(StrEnum):
    """The metrics, each a count; the door is their dimension (``service``)."""

    BELLS_ANSWERED = "BellsAnswered"
    BELLS_FAILED = "BellsFailed"
    BELLS_RUNG = "BellsRung"
    SWITCHED_OFF = "SwitchedOff"
    CONFLICTS = "Conflicts"
    REFUSALS = "Refusals"
    REVIEWS_ANSWERED = "ReviewsAnswered"
    REVIEWS_FORBIDDEN = "ReviewsForbidden"
    REVIEWS_MALFORMED = "ReviewsMalformed"
    REVIEWS_TOO_LARGE = "ReviewsTooLarge"
    NOTICES_HANDLED = "NoticesHandled"
    NOTICES_FAILED = "NoticesFailed"
    NOTICES_IGNORED = "NoticesIgnored"
    NOTICES_EARLY = "NoticesEarly"
    NOTICES_OF_OTHERS = "NoticesOfOthers"
    RUNS_CUT_SHORT = "RunsCutShort"
    READS_MISSED = "ReadsMissed"
    DISRUPTIONS_STARTED = "DisruptionsStarted"
    DISRUPTIONS_DROPPED = "DisruptionsDropped"
    DISRUPTIONS_REFUSED = "DisruptionsRefused"
    NODES_HELD = "NodesHeld"
    EXPIRATIONS_WAITING = "ExpirationsWaiting"
    CANARIES_FAILED = "CanariesFailed"
    SEARCHES_CUT_SHORT = "SearchesCutShort"
    SWEEPS = "Sweeps"
    SWEEPS_FAILED = "SweepsFailed"


class _Stdout(logging.StreamHandler[TextIO]):
    """Writes to whatever ``sys.stdout`` is at that moment, so that a terminal program can put it elsewhere."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        super().emit(record)


logger = Logger(logger_handler=_Stdout(sys.stdout))
metrics = Metrics()
# Outside Lambda nobody names a namespace, and Powertools does not count without one.
metrics.provider.namespace = metrics.provider.namespace or "Joinery"


def count(metric: Count, number: int = 1) -> None:
    """Add to one of the metrics; the door's decorator sends them when it is done."""
    metrics.add_metric(name=metric.value, unit=MetricUnit.Count, value=number)


def said(**pairs: Any) -> dict[str, Any]:
    """The pairs of a log line that have something to say: ``logger.info(text, extra=said(outcome=...))``."""
    return {key: value for key, value in pairs.items() if value not in (None, "", [], {})}
