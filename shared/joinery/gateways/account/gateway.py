"""What the installer does in the AWS account, and how it answers CloudFormation: a Protocol.

Every method raises ``UnavailableError`` where AWS cannot answer now, and ``ConfigurationError`` where a right is
missing or a setting is wrong; both name the call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

#: Seconds that a call takes at most, all its attempts together.
LONGEST_CALL = 25.0


@dataclass(frozen=True)
class AccessEntry:
    """An entry of EKS that lets an IAM principal into a cluster. ``tags`` are the entry's own."""

    principal: str
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredSecret:
    """The webhook's secret as it is stored. ``version``: Secrets Manager's id of it, ``made``: when it was written."""

    text: str
    version: str
    made: datetime


class Account(Protocol):
    """The account, as the installer's role may use it."""

    def access(self, cluster: str) -> AccessEntry | None:
        """The installer's own access entry in a cluster; None where it has none, or there is no such cluster."""

    def grant_access(self, cluster: str, tags: Mapping[str, str]) -> None:
        """Make the installer an administrator of the cluster: its access entry, with these tags.

        Raises ``ConflictError`` if the entry is there already, and ``NotFoundError`` for a cluster that is not there.
        """

    def revoke_access(self, cluster: str) -> None:
        """Remove the installer's access entry. One that is gone is no error."""

    def ensure_spot_role(self) -> bool:
        """See to it that EC2's service-linked role for spot instances is there. Returns whether it was made now."""

    def refresh_catalog(self, function: str) -> None:
        """Have the catalogue function run once, and do not wait for it."""

    def remove_node_role(self, cluster: str, role: str, profile: str) -> None:
        """Remove the role of the nodes that the stack has made, with its instance profile and its access entry.

        What is gone already is no error. Raises ``ConflictError`` while something else holds the role.
        """

    def webhook_secret(self) -> StoredSecret:
        """The webhook's secret (``objects.kubernetes.webhook_secret``)."""

    def put_webhook_secret(self, text: str, *, after: str) -> None:
        """Write the version that follows that one. Raises ``ConflictError`` if another one follows it already."""

    def stack_status(self, stack: str) -> str:
        """What CloudFormation does with a stack now: ``DELETE_IN_PROGRESS``. ``stack``: its ARN."""

    def answer(self, url: str, body: bytes) -> None:
        """Put an answer where CloudFormation waits for it: a presigned URL of S3."""
