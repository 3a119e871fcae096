"""Claims that have lived long enough are retired; their pods get a new node before the old one is drained."""

from collections.abc import Mapping
from typing import Any

from joinery.controllers.actor import Actor
from joinery.disruption.expiration import expire
from joinery.doorbell.gateway import Bell
from joinery.gateways import Gateways
from joinery.settings import Settings


class ExpirationController:
    """Woken by a schedule, once a minute."""

    def __init__(self, gateways: Gateways, settings: Settings) -> None:
        self._gateways = gateways
        self._settings = settings

    def reconcile(self) -> Mapping[str, Any]:
        """Read, decide, act."""
        snapshot = self._gateways.cluster.snapshot()
        expired = expire(snapshot)
        actor = Actor(self._gateways, self._settings, snapshot.now)
        actor.carry_out(*expired)
        if actor.done:
            self._gateways.doorbell.ring(Bell.PROVISIONING)
            self._gateways.doorbell.ring(Bell.LIFECYCLE)
        actor.conclude()
        return {"expired": len(expired)}
