"""What CloudFormation asks of a custom resource, as an object.

Source: CloudFormation User Guide, "Custom resource request objects". Nothing is demanded of a request but what an
answer needs, because every request must be answered: CloudFormation waits up to an hour for one that is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from joinery.objects.errors import ConfigurationError

#: The answer to a request that has made nothing: there is nothing to delete for it.
NOTHING_MADE = "nothing-was-made"


class RequestKind(StrEnum):
    """What is wanted (``RequestType``)."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"


class ResourceType(StrEnum):
    """Of which custom resource (``ResourceType``)."""

    PREPARATION = "Custom::JoineryPreparation"
    CONNECTION = "Custom::JoineryConnection"


@dataclass(frozen=True, kw_only=True)
class StackRequest:
    """One request about one custom resource.

    ``kind``: as it was sent, a ``RequestKind`` unless CloudFormation learns another. ``type``: likewise, a
    ``ResourceType``. ``name``: its logical ID in the template. ``stack``: the stack's ARN. ``id`` and ``url``: which
    request is answered, and where. ``properties``: those wanted now, ``older``: those before an update.
    ``physical_id``: what an earlier answer named the resource; empty for a new one.
    """

    kind: str
    type: str
    name: str
    stack: str
    id: str
    url: str
    properties: Mapping[str, str] = field(default_factory=dict)
    older: Mapping[str, str] = field(default_factory=dict)
    physical_id: str = ""

    @property
    def cluster(self) -> str:
        """The cluster that it is about. Raises ``ConfigurationError`` where the template names none."""
        cluster = self.properties.get("ClusterName", "")
        if not cluster:
            raise ConfigurationError(f"{self.name}: the property ClusterName is not set")
        return cluster

    @property
    def resource_id(self) -> str:
        """The physical ID. It never changes, because CloudFormation deletes what it replaces: a refused change of the
        cluster's name must not uninstall the cluster.
        """
        if self.physical_id and self.physical_id != NOTHING_MADE:
            return self.physical_id
        return f"{self.cluster}/{self.type.rpartition('Joinery')[2].lower()}"

    @property
    def stack_name(self) -> str:
        """The name in the stack's ARN (``...:stack/NAME/UUID``)."""
        return self.stack.partition("/")[2].partition("/")[0] or self.stack


def is_request(event: Mapping[str, Any]) -> bool:
    """Whether an event is CloudFormation's, and so must be answered at its URL."""
    return bool(event.get("ResponseURL"))


def parse(event: Mapping[str, Any]) -> StackRequest:
    """The request in an event. What is absent is empty."""
    return StackRequest(
        kind=_text(event, "RequestType"),
        type=_text(event, "ResourceType"),
        name=_text(event, "LogicalResourceId"),
        stack=_text(event, "StackId"),
        id=_text(event, "RequestId"),
        url=_text(event, "ResponseURL"),
        properties=_properties(event.get("ResourceProperties")),
        older=_properties(event.get("OldResourceProperties")),
        physical_id=_text(event, "PhysicalResourceId"),
    )


def _text(event: Mapping[str, Any], key: str) -> str:
    value = event.get(key)
    return value if isinstance(value, str) else ""


def _properties(given: object) -> dict[str, str]:
    """Every value as text: CloudFormation writes booleans and numbers as text too. Lists are joined by commas."""
    if not isinstance(given, Mapping):
        return {}
    return {str(key): _plain(value) for key, value in given.items()}


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(str(entry) for entry in value)
    return str(value)


def stack_name(cluster: str) -> str:
    """One stack a cluster. EKS allows underscores in a cluster's name, CloudFormation none in a stack's."""
    return f"joinery-{cluster.replace('_', '-')}"
