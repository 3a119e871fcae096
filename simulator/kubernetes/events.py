"""Events as the simulated API server keeps them."""

from dataclasses import dataclass
from datetime import datetime

from joinery.gateways.kubernetes.gateway import Event


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An Event in the cluster, who reported it, and when."""

    event: Event
    reporter: str
    at: datetime

    @property
    def reason(self) -> str:
        return self.event.reason

    @property
    def message(self) -> str:
        return self.event.message

    @property
    def kind(self) -> str:
        return self.event.kind

    @property
    def name(self) -> str:
        return self.event.name
