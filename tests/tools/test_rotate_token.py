"""`make rotate-token`: whose installer is asked, and about which secret."""

import io
import json
from typing import Any

import pytest

from tools.rotate_token import rotated


class Session:
    """A session of boto3, and every client of it: the stack of blue is the home of green. ``asked``: by function."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def client(self, service: str, config: Any = None) -> "Session":
        return self

    def get_paginator(self, operation: str) -> "Session":
        return self

    def paginate(self) -> Any:
        def stack(cluster: str, **more: str) -> Any:
            given = {"ClusterName": cluster, "StarterNodePool": "false", **more}
            pairs = [{"ParameterKey": key, "ParameterValue": value} for key, value in given.items()]
            return {"StackName": f"joinery-{cluster}", "StackStatus": "UPDATE_COMPLETE", "Parameters": pairs}

        return [{"Stacks": [stack("blue"), stack("green", Home="joinery-blue")]}]

    def describe_stack_resource(self, StackName: str, LogicalResourceId: str) -> Any:  # noqa: N803
        return {"StackResourceDetail": {"PhysicalResourceId": f"{StackName}-{LogicalResourceId}"}}

    def get_role(self, RoleName: str) -> Any:  # noqa: N803
        return {"Role": {"Arn": f"arn:role/{RoleName}"}}

    def invoke(self, FunctionName: str, Payload: bytes) -> Any:  # noqa: N803
        self.asked.append((FunctionName, json.loads(Payload)))
        return {"Payload": io.BytesIO(b'{"step": "nothing is due"}')}


@pytest.mark.parametrize(
    ("cluster", "more"),
    [
        ("blue", {}),
        (
            "green",
            {
                "cluster": "green",
                "role": "arn:role/joinery-green-InstallerRole",
                "secret": "joinery-green-WebhookSecret",
            },
        ),
    ],
)
def test_a_member_s_token_is_rotated_by_its_home_s_installer(cluster: str, more: dict[str, str]) -> None:
    """In its own secret, by its own role, as its schedule asks for it; a stack of its own says neither."""
    session = Session()
    assert rotated(session, cluster) == 0
    assert [function for function, _ in session.asked] == ["joinery-blue-InstallerFunction"] * 2
    assert [event for _, event in session.asked] == [
        {"operation": "rotate-token", "days": "99999", **more},
        {"operation": "rotate-token", **more},
    ]
