"""Credentials of another role: what a function does for a member is done as that member's role for it.

So IAM and EKS refuse what would be done to another cluster, whatever mistake the code makes. They are asked for when
they are first used, kept until shortly before they expire (botocore's own rule), and asked for again then. A role that
a role has taken may be used for an hour at most (IAM User Guide, "Role chaining").
"""

import os
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from joinery.gateways.answers import needed
from joinery.gateways.aws import MAKING, session, translated
from joinery.gateways.partitions import endpoint

if TYPE_CHECKING:
    from boto3.session import Session

CONNECT_SECONDS, READ_SECONDS, ATTEMPTS = 2, 4, 2


def assumed(role: str, region: str, *, name: str, now: Callable[[], datetime]) -> "Session":
    """A session of boto3 whose calls are the role's. ``role``: its ARN. ``name``: what CloudTrail calls its user.
    ``now``: the clock by which its credentials expire.

    Nothing is asked before its credentials are needed. AWS's service descriptions, of megabytes, are those of the
    process' own session.
    """
    from boto3.session import Session
    from botocore.credentials import DeferredRefreshableCredentials
    from botocore.session import Session as Core

    core: Any = Core()
    core.register_component("data_loader", session(region)._session.get_component("data_loader"))
    core._credentials = DeferredRefreshableCredentials(
        lambda: _fetched(role, region, name), "assume-role", time_fetcher=now
    )
    return Session(botocore_session=core, region_name=region)


def _fetched(role: str, region: str, name: str) -> dict[str, str]:
    """New credentials, as botocore keeps them. Raises as every call of AWS does."""
    call = f"STS AssumeRole {role}"
    with translated(call):
        answer = _sts(region).assume_role(RoleArn=role, RoleSessionName=f"joinery-{name}")
    keys = {"access_key": "AccessKeyId", "secret_key": "SecretAccessKey", "token": "SessionToken"}
    texts = {ours: str(needed(answer, f"Credentials.{theirs}", call=call)) for ours, theirs in keys.items()}
    return texts | {"expiry_time": needed(answer, "Credentials.Expiration", call=call).isoformat()}


def _sts(region: str) -> Any:
    """The region's own STS: an endpoint in the VPC answers for no other."""
    from botocore.config import Config

    is_elsewhere = os.environ.get("AWS_ENDPOINT_URL_STS") or os.environ.get("AWS_ENDPOINT_URL")
    config = Config(
        connect_timeout=CONNECT_SECONDS, read_timeout=READ_SECONDS, retries={"total_max_attempts": ATTEMPTS}
    )
    with MAKING:
        return session(region).client("sts", endpoint_url=is_elsewhere or endpoint("sts", region), config=config)
