"""Disruption as users speak of it: why a node is disrupted, and the values of our annotations about it.

The reasons stand in annotations, conditions, Events and metrics.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from joinery.objects.karpenter import duration
from joinery.objects.karpenter.cron import Window, window
from joinery.objects.karpenter.labels import DISRUPTION
from joinery.objects.objections import Objection, ObjectionCode

if TYPE_CHECKING:  # the webhook reads settings, and waits for no model
    from joinery.objects.karpenter.nodepool import NodePool

_STOP_WORD = "stop"
_RATE = re.compile(r"([0-9]{1,9})(%| nodes?| pods?) per (\S+)")
#: The most nodes that a rate may speak of: so many are remembered on a NodePool.
MOST_REMEMBERED = 500
_CANARY = re.compile(r"([0-9]{1,4})(%| nodes?) for (\S+)")
_DOLLARS = re.compile(r"[0-9]{1,9}(\.[0-9]+)?|\.[0-9]+")


class DisruptionReason(StrEnum):
    """Why a node goes. Budgets of NodePools name the first three and ``UNHEALTHY`` (Karpenter ``DisruptionReason``)."""

    EMPTY = "Empty"
    UNDERUTILIZED = "Underutilized"
    DRIFTED = "Drifted"
    EXPIRED = "Expired"
    REBALANCE = "Rebalance"
    UNHEALTHY = "Unhealthy"
    #: A replacement whose command was rolled back.
    ABANDONED = "Abandoned"


#: The ``controller.kubernetes.io/pod-deletion-cost`` that we write. A value that nobody else would choose, because it
#: is how ours is known from a user's: the ValidatingAdmissionPolicy of manifests/fences.yaml names it too.
OUR_DELETION_COST = "-10007"

#: What Joinery does because it is worth it, so that a person may stop it. All else answers to what happens to a node.
VOLUNTARY = frozenset({DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED})


@dataclass(frozen=True, slots=True)
class Stop:
    """When nothing is disrupted voluntarily: in these windows; always, if there are none."""

    windows: tuple[Window, ...] = ()

    def is_in_force(self, now: datetime) -> bool:
        """Whether it is at that moment, in UTC."""
        return not self.windows or any(one.is_open(now) for one in self.windows)


def stop_of(text: str) -> Stop:
    """``stop``, or ``stop from 0 9 * * mon-fri for 8h; from @monthly for 24h``.

    Raises ``ValueError`` for anything else.
    """
    word, *rest = text.strip().split(maxsplit=1)[:2] or [""]
    if word != _STOP_WORD:
        raise ValueError(f'{text!r} is neither "stop" nor "stop from CRON for DURATION"')
    return Stop(tuple(_stop_window(part.strip(), text) for part in rest[0].split(";")) if rest else ())


def _stop_window(part: str, text: str) -> Window:
    match part.split():
        case ["from", *schedule, "for", length] if schedule:
            pass
        case _:
            raise ValueError(f'{text!r}: {part!r} is not "from CRON for DURATION"')
    try:
        return window(" ".join(schedule), length)
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}") from error


@dataclass(frozen=True, slots=True)
class Rate:
    """How many of some things may be disrupted in any time of a ``length``: a ``number``, or a ``percent`` of them."""

    length: timedelta
    number: int = 0
    percent: int | None = None

    def limit(self, total: int) -> int:
        """Of ``total`` things. Percentages are rounded up, as those of budgets are."""
        return self.number if self.percent is None else math.ceil(total * self.percent / 100)


def rate_of(text: str) -> Rate:
    """Of a NodePool: ``10 nodes per 1h`` or ``5% per 30m``.

    Raises ``ValueError`` for anything else, and for more than 500 nodes.
    """
    rate = _rate(text, "nodes")
    if rate.number > MOST_REMEMBERED:
        raise ValueError(f"{text!r} is more than {MOST_REMEMBERED} nodes")
    return rate


def eviction_rate_of(text: str) -> Rate:
    """Of a workload: ``2 pods per 1h`` or ``10% per 30m``. Raises ``ValueError`` for anything else."""
    return _rate(text, "pods")


def _rate(text: str, things: str) -> Rate:
    match = _RATE.fullmatch(text.strip())
    length = _length(match[3]) if match else None
    if match is None or not length or match[2].strip() not in ("%", things, things.removesuffix("s")):
        raise ValueError(f'{text!r} is no rate, such as "10 {things} per 1h" or "5% per 30m"')
    number = int(match[1])
    if match[2] != "%":
        return Rate(length, number)
    if number > 100:
        raise ValueError(f"{text!r} is more than 100%")
    return Rate(length, percent=number)


@dataclass(frozen=True, slots=True)
class CanaryRule:
    """How a new image is tried before all nodes move to it: on a ``number`` of nodes, or a ``percent`` of them.

    ``soak``: how long these must run well.
    """

    soak: timedelta
    number: int = 1
    percent: int | None = None

    def nodes(self, total: int) -> int:
        """On how many of ``total`` nodes; at least one, or nothing would ever be tried."""
        share = self.number if self.percent is None else math.ceil(total * self.percent / 100)
        return max(1, share)

    def __str__(self) -> str:
        share = f"{self.number} nodes" if self.percent is None else f"{self.percent}%"
        return f"{share} for {self.soak}"


def canary_of(text: str) -> CanaryRule | None:
    """``1 node for 10m`` or ``5% for 30m``; None for ``off``.

    Raises ``ValueError`` for anything else, and for no nodes.
    """
    if text.strip() == "off":
        return None
    match = _CANARY.fullmatch(text.strip())
    soak = _length(match[3]) if match else None
    if match is None or soak is None or int(match[1]) == 0 or (match[2] == "%" and int(match[1]) > 100):
        raise ValueError(f'{text!r} is neither "off" nor nodes and a time, such as "1 node for 10m" or "5% for 30m"')
    if match[2] == "%":
        return CanaryRule(soak, percent=int(match[1]))
    return CanaryRule(soak, int(match[1]))


def dollars_of(text: str) -> float:
    """``0.05`` as a number of dollars. Raises ``ValueError`` for anything else, and from a billion dollars on."""
    if not _DOLLARS.fullmatch(text.strip()):
        raise ValueError(f"{text!r} is no amount of dollars, such as 0.05")
    return float(text)


def payback_of(text: str) -> timedelta:
    """``1h30m`` as a time in which savings must repay moves. Raises ``ValueError`` for anything that is none."""
    length = _length(text)
    if length is None:
        raise ValueError(f"{text!r} is no duration, such as 30m or 1h30m")
    return length


def switch_of(text: str) -> bool:
    """``true`` or ``false``. Raises ``ValueError`` for anything else."""
    if text.strip() not in ("true", "false"):
        raise ValueError(f'{text!r} is neither "true" nor "false"')
    return text.strip() == "true"


def _length(text: str) -> timedelta | None:
    """A duration that ends and is not negative; None for anything else."""
    try:
        length = duration.parse(text)
    except ValueError:
        return None
    return None if length is None or length < timedelta() else length


def stop_in_force(pools: "Iterable[NodePool]", now: datetime) -> Objection | None:
    """What stops voluntary disruption in the whole cluster now, as a sentence about a NodePool.

    An annotation that cannot be read stops it too: someone meant to.
    """
    for pool in sorted(pools, key=lambda pool: pool.metadata.name):
        text = pool.metadata.annotations.get(DISRUPTION)
        if text is None:
            continue
        try:
            if stop_of(text).is_in_force(now):
                rule = f"stops disruption in the whole cluster ({DISRUPTION}: {text})"
                return Objection(ObjectionCode.STOPPED, f"NodePool {pool.metadata.name} {rule}")
        except ValueError as error:
            rule = f"has the annotation {DISRUPTION}, which stops disruption: {error}"
            return Objection(ObjectionCode.STOPPED, f"NodePool {pool.metadata.name} {rule}")
    return None
