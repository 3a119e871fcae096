"""Instance status: what EC2 says of instances when it is asked becomes notices, as if it had sent them.

A check that fails has no event at all, and a scheduled event is not always sent by AWS Health. So EC2 is asked once a
minute (Karpenter for AWS, interruption/instancestatus).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.objects.snapshot.instances import InstanceStatus, instance_id
from joinery.objects.snapshot.snapshot import ClaimsSnapshot

#: How long a check must have failed: an instance that is rebooted fails it for a moment.
UNHEALTHY_FOR = timedelta(seconds=120)


def notices_of(statuses: Iterable[InstanceStatus], snapshot: ClaimsSnapshot) -> tuple[Notice, ...]:
    """The notices about instances of our claims, by kinds of trouble, those that leave least time first.

    A claim that cannot be read has an instance all the same.
    """
    now = snapshot.now
    provider_ids = [claim.status.provider_id for claim in snapshot.managed_claims]
    ours = {instance_id(name) for name in (*provider_ids, *(invalid.provider_id for invalid in snapshot.invalid))}
    known = [status for status in statuses if status.instance_id in ours]
    checks: dict[NoticeKind, Callable[[InstanceStatus], bool]] = {
        NoticeKind.SYSTEM_STATUS: lambda status: _has_failed(status.system_failed, now),
        NoticeKind.INSTANCE_STATUS: lambda status: _has_failed(status.instance_failed, now),
    }
    concerned = {kind: tuple(s.instance_id for s in known if is_so(s)) for kind, is_so in checks.items()}
    failed = (Notice(kind, instances) for kind, instances in concerned.items() if instances)
    return *failed, *_scheduled(known)


def _scheduled(statuses: Iterable[InstanceStatus]) -> Iterable[Notice]:
    """A notice for each moment at which something begins. What does not say when comes first."""
    by_start: dict[datetime | None, list[str]] = defaultdict(list)
    for status in statuses:
        if status.events:
            by_start[status.starts].append(status.instance_id)
    unsaid = by_start.pop(None, [])
    if unsaid:
        yield Notice(NoticeKind.EVENT_STATUS, tuple(unsaid))
    for starts, instances in sorted((at, ids) for at, ids in by_start.items() if at is not None):
        yield Notice(NoticeKind.EVENT_STATUS, tuple(instances), starts=starts)


def _has_failed(since: datetime | None, now: datetime) -> bool:
    return since is not None and since <= now - UNHEALTHY_FOR
