"""Rebalance recommendations: EC2 says that a spot instance is at a higher risk, minutes or hours before it takes it, or
never does (EC2 User Guide, "EC2 instance rebalance recommendations").

Acting on one costs a healthy node, so it is off unless a user asks for it, for all NodePools or for one by annotation.
``drain`` treats it as a spot warning. ``replace`` has time: the claim is marked, provisioning starts a disruption
command for it (``controllers.rebalancing``), and the node goes once its replacement is initialised.
"""

from datetime import datetime, timedelta

from joinery.decisions.interruption.notice import Notice, NoticeKind
from joinery.objects.annotations.disruption import record_of, replaces_of
from joinery.objects.karpenter.labels import REBALANCE, REBALANCE_RECOMMENDED_AT
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool
from joinery.objects.policies import Rebalance
from joinery.objects.snapshot.claims import INITIALIZED, moment
from joinery.objects.snapshot.nodes import is_leaving

#: How long a recommendation is acted upon. A command that was rolled back is not started again for a recommendation
#: that is old; EC2 repeats what still holds.
ACTED_UPON = timedelta(minutes=10)


def mode_of(pool: NodePool, default: Rebalance) -> Rebalance:
    """What the pool wants done about recommendations. A value that is none keeps its nodes."""
    wanted = pool.metadata.annotations.get(REBALANCE, default)
    return Rebalance(wanted) if wanted in list(Rebalance) else Rebalance.OFF


def is_acted_upon(notice: Notice, now: datetime) -> bool:
    """Whether the notice is a recommendation of now. An older one is a dead letter that a person sends again."""
    is_recent = notice.at is None or now - notice.at < ACTED_UPON
    return notice.kind is NoticeKind.REBALANCE_RECOMMENDATION and is_recent


def is_to_be_replaced(claim: NodeClaim, now: datetime) -> bool:
    """Whether a disruption command should be started for the claim, because of a recommendation."""
    recommended = moment(claim.metadata.annotations.get(REBALANCE_RECOMMENDED_AT, ""))
    # Anybody may edit an annotation, and the clocks of two functions differ.
    if recommended is None or abs(now - recommended) >= ACTED_UPON:
        return False
    is_in_command = record_of(claim) is not None or replaces_of(claim) is not None
    return claim.is_true(INITIALIZED) and not is_in_command and not is_leaving(None, claim)
