"""Settings: the environment of a function, as a frozen object. The template declares exactly these variables."""

from collections.abc import Mapping
from dataclasses import dataclass

from joinery.errors import ConfigurationError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One field a variable: ``JOINERY_`` and the field's name in capitals.

    ``mode``: ``act``, or ``observe`` to decide, record and emit Events and change nothing.
    ``max_launches`` and ``max_hourly``: more than that in one run is refused, loudly ($/h).
    ``gateways``: dotted path ``module:function`` of what builds the gateways.
    """

    cluster: str
    region: str = "us-east-1"
    mode: str = "act"
    enabled: bool = True
    max_launches: int = 500
    max_hourly: float = 1000.0
    provisioning_queue: str = ""
    lifecycle_queue: str = ""
    bucket: str = ""
    table: str = ""
    webhook_token: str = ""
    gateways: str = "joinery.bootstrap:aws"


def read(environment: Mapping[str, str]) -> Settings:
    """The settings of a function. Raises ``ConfigurationError`` naming the variable that is missing or wrong."""
    raise ConfigurationError("JOINERY_CLUSTER is not set")
