"""How often EC2 lets itself be asked (EC2 Developer Guide, "Request throttling for the Amazon EC2 API").

Every operation has a bucket of tokens in each region of an account: a request takes one, and so many come back each
second, up to the bucket's size. What launches and ends instances has a second bucket, of which each instance takes one.
Whoever finds a bucket empty is refused with ``RequestLimitExceeded``, and takes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

#: Size of a bucket, and tokens a second: of what only reads, and of what changes something.
NON_MUTATING, MUTATING = (100, 20), (50, 5)
#: Operations with a bucket of their own.
REQUESTS = {"RunInstances": (5, 2), "TerminateInstances": (100, 5)}
#: Instances that may be launched and ended.
INSTANCES = {"RunInstances": (1000, 2), "CreateFleet": (1000, 2), "TerminateInstances": (1000, 20)}
#: What a method of the cloud gateway asks of EC2: of several operations the first.
ASKED_BY = {
    "catalog": "DescribeInstanceTypes", "status_of": "DescribeSubnets", "launch": "CreateFleet",
    "instance_types": "DescribeCapacityReservations", "shifted_zones": "GetManagedResource",
    "instances": "DescribeInstances", "look_up": "DescribeInstances", "impaired": "DescribeInstanceStatus",
    "bought": "DescribeReservedInstances",
    "terminate": "TerminateInstances", "reboot": "RebootInstances", "tag": "CreateTags",
    "remove_unused": "DescribeLaunchTemplates",
}  # fmt: skip
CODE, MESSAGE = "RequestLimitExceeded", "Request limit exceeded."


@dataclass
class _Bucket:
    size: int
    per_second: int
    tokens: float
    at: datetime

    def fill(self, now: datetime) -> float:
        self.tokens = min(self.size, self.tokens + (now - self.at).total_seconds() * self.per_second)
        self.at = now
        return self.tokens


class Throttle:
    """The buckets of one account in one region. ``now``: the clock that fills them."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def lets(self, operation: str, instances: int = 0) -> bool:
        """Whether the request is let through. ``instances``: how many it launches or ends."""
        usual = NON_MUTATING if operation.startswith(("Describe", "Get", "List")) else MUTATING
        needed = [(self._bucket("request", operation, REQUESTS.get(operation, usual)), 1)]
        if instances and operation in INSTANCES:
            needed.append((self._bucket("instances", operation, INSTANCES[operation]), instances))
        if any(bucket.fill(self._now()) < tokens for bucket, tokens in needed):
            return False
        for bucket, tokens in needed:
            bucket.tokens -= tokens
        return True

    def _bucket(self, kind: str, operation: str, limits: tuple[int, int]) -> _Bucket:
        size, per_second = limits
        return self._buckets.setdefault((kind, operation), _Bucket(size, per_second, size, self._now()))
