"""What IAM lets the roles of the template's functions do: the statements of every policy that each has."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from simulator.iam.policies import Statement, statements
from tools.cloudformation import Stack
from tools.template import doors

_POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
INSTALLER_ROLE = "InstallerRole"


def statements_of(stack: Stack) -> Mapping[str, tuple[Statement, ...]]:
    """By door. SAM adds to them what writing logs takes, and network interfaces in a VPC."""
    return {
        door.name: tuple(_statements_of_function(door.logical_id, stack)) for door in doors(stack.template).values()
    }


def statements_of_member(stack: Stack) -> Mapping[str, tuple[Statement, ...]]:
    """By role of a member's stack, by its logical id: what the home's functions may do in it."""
    return {
        name: tuple(_statements_of_role(name, stack))
        for name, resource in stack.resources.items()
        if resource["Type"] == "AWS::IAM::Role" and name != "NodeRole"
    }


def _statements_of_function(function: str, stack: Stack) -> Iterator[Statement]:
    properties = stack.template["Resources"][function]["Properties"]
    for policy in properties.get("Policies", ()):
        if "Ref" in policy:
            yield from _policy(policy["Ref"], stack)
        else:
            yield from statements(f"{function}'s own policy", stack.resolved(policy))
    yield from _attached(INSTALLER_ROLE if "Role" in properties else f"{function}Role", stack)


def _statements_of_role(role: str, stack: Stack) -> Iterator[Statement]:
    for policy in stack.template["Resources"][role]["Properties"].get("ManagedPolicyArns", ()):
        yield from _policy(policy["Ref"], stack)
    for policy in stack.resources[role]["Properties"].get("Policies", ()):
        yield from statements(f"{role}'s own policy", policy["PolicyDocument"])
    yield from _attached(role, stack)


def _attached(role: str, stack: Stack) -> Iterator[Statement]:
    """Of the policies that say themselves whose they are."""
    for name, resource in stack.template["Resources"].items():
        is_policy = name in stack.resources and resource["Type"] in _POLICIES
        if is_policy and {"Ref": role} in resource["Properties"].get("Roles", ()):
            yield from _policy(name, stack)


def _policy(name: str, stack: Stack) -> Iterator[Statement]:
    yield from statements(name, _parsed(stack.resources[name]["Properties"]["PolicyDocument"]))


def _parsed(document: Any) -> Any:
    return json.loads(document) if isinstance(document, str) else document
