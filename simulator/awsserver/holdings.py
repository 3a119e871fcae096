"""What moto's account holds, as far as rights depend on it: implements ``simulator.iam.calls.Holdings``."""

from collections.abc import Mapping
from typing import Any

from simulator.awsserver.account import ACCOUNT, REGION


class MotoHoldings:
    """Reads moto's own state in this process, so that looking is no call."""

    account, region = ACCOUNT, REGION

    def tags(self, resource: str) -> Mapping[str, str]:
        if profile := self._profile(resource):
            return {tag["Key"]: tag["Value"] for tag in profile.tags}
        return dict(self._ec2.tags.get(resource, {}))

    def template(self, name: str) -> tuple[str, Mapping[str, Any]]:
        found = self._ec2.launch_templates.get(self._ec2.launch_template_name_to_ids.get(name, ""))
        return (found.id, found.latest_version().data) if found else ("", {})

    def profile_path(self, name: str) -> str:
        profile = self._profile(name)
        return str(profile.path) if profile else ""

    def role_of_profile(self, name: str) -> str:
        profile = self._profile(name)
        return str(profile.roles[0].arn) if profile and profile.roles else ""

    def role(self, name: str) -> str:
        return next((str(role.arn) for role in self._iam.roles.values() if role.name == name), "")

    def tags_of_role(self, arn: str) -> Mapping[str, str]:
        found = next((role for role in self._iam.roles.values() if role.arn == arn), None)
        return {tag["Key"]: tag["Value"] for tag in found.get_tags()} if found else {}

    def _profile(self, name: str) -> Any:
        return next((one for one in self._iam.instance_profiles.values() if one.name == name), None)

    @property
    def _ec2(self) -> Any:
        from moto.ec2.models import ec2_backends

        return ec2_backends[ACCOUNT][REGION]

    @property
    def _iam(self) -> Any:
        from moto.iam.models import iam_backends

        return iam_backends[ACCOUNT]["aws"]
