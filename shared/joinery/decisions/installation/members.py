"""What the installer decides about a member: a cluster that the stack of another one serves.

The custom resources of a member's stack say by which role the installer enters the cluster. What the functions must
know of it is the register's item, which is written when everything else is there.
"""

from collections.abc import Mapping

import msgspec

from joinery.decisions.installation.definitions import is_older
from joinery.decisions.installation.requests import StackRequest
from joinery.objects.errors import ConfigurationError, RefusedError
from joinery.objects.member import Member

#: Of a custom resource of a member's stack alone: the role that the installer assumes.
ROLE = "InstallerRole"
#: Of the one that connects it: the webhook's secret.
SECRET = "WebhookSecret"


def is_of_member(request: StackRequest) -> bool:
    """Whether a request comes from a member's stack."""
    return bool(request.properties.get(ROLE))


def registered(request: StackRequest, version: str) -> Member:
    """The register's item. ``version``: of the release that writes it. Raises ``ConfigurationError``."""
    given = request.properties
    return Member(
        cluster=request.cluster,
        roles=_roles(given.get("Roles", "")),
        settings=given.get("Settings", ""),
        mode=given.get("Mode", ""),
        secret=given.get(SECRET, ""),
        stack=request.stack,
        version=version,
    )


def refuse(request: StackRequest, *, home: str, version: str, present: Member | None = None) -> None:
    """Raise ``RefusedError`` for what would not work, or would take a cluster from somebody.

    ``home``: the cluster whose stack the installer is of. ``version``: of the installer's release. ``present``: the
    register's item of the cluster.
    """
    if request.cluster == home:
        raise RefusedError(f"Cluster {home} is run by this home itself, so it cannot be its member.")
    if is_older(version, request.properties.get("Version", "")):
        raise RefusedError(
            f"The home of cluster {home} is of release {version}, and this template of a newer one: deploy the home "
            f"first (make deploy CLUSTER={home})."
        )
    if present is not None and present.stack != request.stack:
        raise RefusedError(
            f"Cluster {request.cluster} is a member by another stack: {present.stack}. Update that one, or remove it "
            "first."
        )


def _roles(text: str) -> Mapping[str, str]:
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"the property Roles cannot be read: {error}") from None
