"""Claims that have lived long enough are retired; their pods get a new node before the old one is drained."""

from collections.abc import Mapping
from typing import Any

from joinery.controllers.actor import Actor
from joinery.controllers.invocation import Invocation
from joinery.disruption.expiration import expire
from joinery.doorbell.gateway import Bell
from joinery.gateways import Gateways


class ExpirationController:
    """Woken by a schedule, once a minute."""

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways

    def reconcile(self, invocation: Invocation) -> Mapping[str, Any]:
        """Read, decide, act."""
        snapshot = self._gateways.cluster.claims_snapshot()
        expired = expire(snapshot)
        actor = Actor(self._gateways, snapshot.now, invocation)
        actor.carry_out(*expired)
        if actor.attempted:
            self._gateways.doorbell.ring(Bell.PROVISIONING)
            self._gateways.doorbell.ring(Bell.LIFECYCLE)
        actor.conclude()
        return {"expired": len(expired)}
