"""The Lease that keeps writers of NodeClaims apart.

Whoever writes NodeClaims holds it from checking that the claims are as its plan assumed to writing the last new one.
Whoever reads claims while holding it sees every plan's claims, or none of them. Plans themselves take seconds, and are
made without it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from joinery.controllers.acting.invocation import Invocation
from joinery.controllers.telemetry import REASON, logger
from joinery.gateways.kubernetes.gateway import Cluster
from joinery.objects.errors import ConflictError, JoineryError

LEASE = "joinery-decisions"
#: Longer than the timeout of a function that takes it (60 s), so that a killed holder is dead before another decides.
LEASE_SECONDS = 90
#: How long a run that may live longer than the Lease acts at most, from the moment at which it asks for the Lease until
#: its claims are launched. So others may rely on the same times as with doors that are killed after a minute
#: (``lifecycle.step.LAUNCHING``, ``lifecycle.state.command_outlook.WRITING``).
ACTING_SECONDS = 60.0


@contextmanager
def deciding(cluster: Cluster, door: str, invocation: Invocation) -> Iterator[None]:
    """Hold the Lease. Raises ``ConflictError`` while another run holds it.

    A Lease that cannot be given back is logged, and does not end the run: what was decided by it is written, and others
    should not have to finish it when the Lease's time is over.
    """
    # A holder may take its own Lease again. So its name must be this run's alone: SQS delivers a message twice at
    # times, and a run may outlive the visibility of its message.
    try:
        lease = cluster.acquire_lease(LEASE, holder=f"{door}/{invocation.id}", seconds=LEASE_SECONDS)
    except ConflictError as conflict:
        # Whoever rings next would meet the same holder.
        conflict.did_nothing = True
        raise
    try:
        yield
    finally:
        try:
            cluster.release_lease(lease)
        except JoineryError as error:
            text = f"others wait for {LEASE_SECONDS} seconds: {error}"
            logger.warning("the Lease was not given back", extra={REASON: text})
