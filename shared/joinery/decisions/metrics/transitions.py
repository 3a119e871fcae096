"""What a command that was carried out adds to the counters: nodes that joined or ended, capacity that was not there."""

from collections.abc import Iterator
from datetime import datetime

from joinery.decisions.metrics.definitions import NODE_POOL_LABEL, Count, Duration, Measurement
from joinery.objects.actions import Command, MarkUnavailable, UpdateClaim
from joinery.objects.karpenter.labels import NODE_POOL, TERMINATION_FINALIZER
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.claims import REGISTERED


def transitions(command: Command, now: datetime) -> Iterator[Measurement]:
    """The measurements of one command. A node counts when its claim says Registered, and when the finalizer goes."""
    if isinstance(command, MarkUnavailable):
        yield Measurement(Count.POOLS_SOLD_OUT, 1)
    if not isinstance(command, UpdateClaim):
        return
    before, after = command.before, command.after
    labels = {NODE_POOL_LABEL: after.metadata.labels.get(NODE_POOL, "")}
    if after.is_true(REGISTERED) and not before.is_true(REGISTERED):
        yield Measurement(Count.NODES_CREATED, 1, labels)
    if _ends(before, after):
        yield Measurement(Count.NODES_TERMINATED, 1, labels)
        if before.metadata.deletion_timestamp is not None:
            seconds = (now - before.metadata.deletion_timestamp).total_seconds()
            yield Measurement(Duration.TERMINATION, max(0.0, seconds))


def _ends(before: NodeClaim, after: NodeClaim) -> bool:
    had, has = (TERMINATION_FINALIZER in claim.metadata.finalizers for claim in (before, after))
    return had and not has
