"""`joinery doctor` of a member: its own stack, and the parts of its home that serve it."""

from typing import Any

import pytest

from joinery import __version__
from joinery_cli.doctor.findings import CheckStatus, Finding
from tests.functional import doctored
from tests.functional.doctored import DOORS, STACK_ID, FakeAws, diagnosed, site

HOME = "joinery-home"
ROLES = ",".join(f"joinery-{door.lower()}=arn:aws:iam::123456789012:role/blue-{door}" for door in DOORS)
ITEM = {"stack": STACK_ID, "mode": "act", "settings": "MaxLaunches=3"}


class MemberAws(FakeAws):
    """A healthy installation whose functions are another stack's. ``item``: the register's."""

    def __init__(self, item: dict[str, str] | None = ITEM, home: str = __version__, **answers: Any) -> None:
        healthy = doctored.healthy()
        self.seen: list[tuple[str, dict[str, Any]]] = []

        def described(StackName: str = "") -> Any:  # noqa: N803
            whole = healthy["describe_stacks"]
            (stack, *_) = (whole(StackName=StackName) if callable(whole) else whole)["Stacks"]
            parameters = [
                one for one in stack["Parameters"] if one["ParameterKey"] not in ("Settings", "AlarmTopicArn")
            ]
            alarm = [{"ParameterKey": "AlarmTopicArn", "ParameterValue": "arn:topic"}]
            version = {"OutputKey": "Version", "OutputValue": home if StackName == HOME else __version__}
            outputs = [one for one in stack.get("Outputs", ()) if one["OutputKey"] != "Version"]
            if StackName == HOME:
                return {"Stacks": [{**stack, "Parameters": [*parameters, *alarm], "Outputs": [*outputs, version]}]}
            own = {"Home": HOME, "Settings": "MaxLaunches=3"}
            given = [{"ParameterKey": key, "ParameterValue": value} for key, value in own.items()]
            roles = {"OutputKey": "FunctionRoles", "OutputValue": ROLES}
            return {"Stacks": [{**stack, "Parameters": [*parameters, *given], "Outputs": [version, roles]}]}

        def listed(StackName: str) -> Any:  # noqa: N803
            whole = healthy["list_stack_resources"]
            resources = (whole(StackName=StackName) if callable(whole) else whole)["StackResourceSummaries"]
            table = {"LogicalResourceId": "Table", "PhysicalResourceId": "t-1", "ResourceType": "AWS::DynamoDB::Table"}
            return {"StackResourceSummaries": [*resources, table] if StackName == HOME else []}

        stored = {"Item": {key: {"S": value} for key, value in item.items()}} if item else {}
        super().__init__(describe_stacks=described, list_stack_resources=listed, get_item=stored, **answers)

    def ask(self, service: str, operation: str, **parameters: Any) -> Any:
        """And keep what was asked."""
        self.seen.append((operation, parameters))
        return super().ask(service, operation, **parameters)


def found(aws: MemberAws) -> list[Finding]:
    """All that the doctor says."""
    return diagnosed(site(aws))


def test_a_member_is_looked_at_with_the_parts_of_its_home() -> None:
    """Its functions and queues are there, its alarms notify somebody, and its home serves it."""
    findings = found(MemberAws())
    told = {one.topic: one.text for one in findings}
    assert told["member"] == f"{HOME} serves it"
    assert told["functions"] == f"{len(DOORS)} functions can run"
    assert [one.text for one in findings if one.status is CheckStatus.FAIL] == []
    assert "alarms notify nobody" not in {one.text for one in findings}


def test_rights_are_those_of_the_member_s_roles() -> None:
    """Not those of the functions, which have none in this cluster."""
    aws = MemberAws()
    found(aws)
    asked = [given["PolicySourceArn"] for name, given in aws.seen if name == "simulate_principal_policy"]
    assert set(asked) == {f"arn:aws:iam::123456789012:role/blue-{door}" for door in ("Provisioning", "Lifecycle")}
    assert "s3:PutObject" not in {str(given.get("ActionNames", [""])[0]) for _, given in aws.seen}


@pytest.mark.parametrize(
    ("aws", "said"),
    [
        (MemberAws(item=None), "does not know this cluster"),
        (MemberAws(item={**ITEM, "stack": "arn:other"}), "for another stack: arn:other"),
        (MemberAws(item={**ITEM, "settings": "SwitchedOff=disruption"}), "with other settings: SwitchedOff=disruption"),
        (MemberAws(home="0.0.1"), "is 0.0.1, and this stack is"),
    ],
)
def test_what_is_wrong_between_a_member_and_its_home_is_said(aws: MemberAws, said: str) -> None:
    """With what to do about it."""
    wrong = [one for one in found(aws) if one.topic == "member" and one.status is not CheckStatus.OK]
    assert len(wrong) == 1
    assert said in wrong[0].text
    assert wrong[0].remedy
