"""EC2 will take an instance away: retire its claim and have its replacement launched first.

Only marks and deletions are written here, so no lock is needed; provisioning buys the replacement and lifecycle drains.
"""

from collections.abc import Mapping
from typing import Any

from joinery.controllers.actor import Actor
from joinery.doorbell.gateway import Bell
from joinery.gateways import Gateways
from joinery.interruption.fields import MalformedNoticeError
from joinery.interruption.notice import Notice, NoticeKind
from joinery.interruption.response import respond
from joinery.observability import said


class InterruptionController:
    """One notice at a time; the queue repeats what raises."""

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways

    def reconcile(self, notice: Notice) -> Mapping[str, Any]:
        """Read, decide, act.

        Raises ``MalformedNoticeError`` for what could not be read of the event, after all else is done.
        """
        snapshot = self._gateways.cluster.snapshot()
        response = respond(notice, snapshot)
        actor = Actor(self._gateways, snapshot.now)
        actor.carry_out(*response)
        # Also for claims that are being deleted already: an earlier delivery may have failed before it rang.
        if response and notice.kind is not NoticeKind.REBALANCE_RECOMMENDATION:
            self._gateways.doorbell.ring(Bell.PROVISIONING)
            self._gateways.doorbell.ring(Bell.LIFECYCLE)
        actor.conclude()
        if notice.unread:
            raise MalformedNoticeError(notice.unread)
        about = said(instances=list(notice.instances), reservation=notice.reservation)
        return {"notice": notice.kind.value, **about, "claims": len(response)}
