"""The instance profile of an EC2NodeClass that names a role (IAM API CreateInstanceProfile).

The profile's name derives from the cluster, the class and the role. So whether it was made already can be asked without
remembering it, and another role gets another profile.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from joinery.gateways.answers import at, entries
from joinery.gateways.aws import Clients, code, translated
from joinery.gateways.ec2.nodeclass.lookups import Look
from joinery.gateways.ec2.nodeclass.tags import OWNER_PREFIX, ownership
from joinery.objects.codes import ALREADY_EXISTS
from joinery.objects.errors import ConfigurationError, JoineryError, NotFoundError
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass

_LONGEST = 128
_LIST = "IAM ListInstanceProfiles"
#: Karpenter for AWS protects a profile for as long.
_YOUNG = timedelta(hours=1)


def profile_name(cluster: str, region: str, node_class: EC2NodeClass) -> str:
    """The name of a class's profile: at most 128 characters, as IAM demands."""
    identity = f"{region}{node_class.metadata.name}{node_class.metadata.uid}{node_class.spec.role}"
    number = int.from_bytes(sha256(identity.encode()).digest()[:8])
    return f"{cluster[: _LONGEST - 21]}_{number}"


class Profiles:
    """The instance profiles of one cluster."""

    def __init__(self, clients: Clients, cluster: str) -> None:
        self._clients, self._cluster = clients, cluster

    def find(self, node_class: EC2NodeClass, look: Look) -> str:
        """The name of a profile with the class's role; empty if there is none."""
        current, own = node_class.status.instance_profile, self._name(node_class)
        # Karpenter names profiles by a hash of its own. The one in the status is kept if it has the class's role.
        for candidate in dict.fromkeys(filter(None, (current, own))):
            if self._role(candidate, look) == _base(node_class.spec.role):
                return candidate
        return ""

    def ensure(self, node_class: EC2NodeClass, look: Look) -> str:
        """The same, but one that does not exist is made. Raises ``NotFoundError`` if there is no such role."""
        existing = self.find(node_class, look)
        if existing:
            return existing
        name = self._name(node_class)
        self._create(name, node_class)
        return name

    def remove_unused(self, node_classes: Iterable[EC2NodeClass], used: Collection[str], now: datetime) -> None:
        """Remove the cluster's profiles that none of these classes has or would have, and nobody uses.

        ``used``: names. One that was made in the last hour is left alone: its class may be about to name it. One that
        may not be removed keeps no other; its error is raised in the end.
        """
        kept = {name for one in node_classes for name in (one.status.instance_profile, self._name(one))}
        with translated("listing instance profiles"):
            listed = self._listed()
        refused: JoineryError | None = None
        for profile in listed:
            name, made = profile["InstanceProfileName"], at(profile, "CreateDate") or now
            if name not in kept and name not in used and now - made >= _YOUNG:
                try:
                    self._remove(name, [at(role, "RoleName") for role in at(profile, "Roles") or ()])
                except (ConfigurationError, NotFoundError) as error:
                    refused = refused or error
        if refused is not None:
            raise refused

    def _remove(self, name: str, roles: Iterable[str]) -> None:
        with translated(f"removing instance profile {name}"):
            for role in roles:
                self._clients.iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
            self._clients.iam.delete_instance_profile(InstanceProfileName=name)

    @property
    def _path(self) -> str:
        """Under which all profiles of the cluster are, those that Karpenter has made too."""
        return f"/karpenter/{self._clients.region}/{self._cluster}/"

    def _name(self, node_class: EC2NodeClass) -> str:
        return profile_name(self._cluster, self._clients.region, node_class)

    def _role(self, name: str, look: Look) -> str | None:
        """The name of the role in a profile of the cluster, None where there is no such profile or no role in it."""
        return look.ask("instance profiles", self._roles).get(name) or self._read(name)

    def _roles(self) -> dict[str, str]:
        """The role in each profile that was made for a class of the cluster, by Karpenter or by us: one call for all.

        Those that are new may be left out (IAM, "Eventual consistency"); all of them where they may not be listed.
        """
        try:
            with translated("listing instance profiles"):
                listed = self._listed()
        except ConfigurationError:
            return {}
        return {each["InstanceProfileName"]: role for each in listed if (role := _role_in(each))}

    def _listed(self) -> list[Any]:
        pages = self._clients.iam.get_paginator("list_instance_profiles").paginate(PathPrefix=self._path)
        needed = "InstanceProfileName"
        return [each for page in pages for each in entries(page, "InstanceProfiles", needed, call=_LIST)]

    def _read(self, name: str) -> str | None:
        try:
            with translated(f"reading instance profile {name}"):
                profile: dict[str, Any] = self._clients.iam.get_instance_profile(InstanceProfileName=name)
        except NotFoundError:
            return None
        found = at(profile, "InstanceProfile")
        tags = {tag["Key"]: tag.get("Value") for tag in at(found, "Tags") or ()}
        # One that the class itself named before is another's, who may remove it.
        return _role_in(found) if tags.get(f"{OWNER_PREFIX}{self._cluster}") == "owned" else None

    def _create(self, name: str, node_class: EC2NodeClass) -> None:
        from botocore.exceptions import ClientError

        region = self._clients.region
        tags = node_class.spec.tags | ownership(self._cluster, node_class.metadata.name)
        tags |= {"topology.kubernetes.io/region": region}
        path = f"{self._path}{node_class.metadata.uid or node_class.metadata.name}/"
        with translated(f"creating instance profile {name}"):
            try:
                self._clients.iam.create_instance_profile(
                    InstanceProfileName=name,
                    Path=path,
                    Tags=[{"Key": key, "Value": value} for key, value in sorted(tags.items())],
                )
            except ClientError as refused:
                if code(refused) not in ALREADY_EXISTS:
                    raise
            self._clients.iam.add_role_to_instance_profile(
                InstanceProfileName=name, RoleName=_base(node_class.spec.role)
            )


def _role_in(profile: Any) -> str | None:
    roles = at(profile, "Roles") or [None]
    name: str | None = at(roles[0], "RoleName")
    return name


def _base(role: str) -> str:
    """A role's name without its path."""
    return role.rpartition("/")[2]
