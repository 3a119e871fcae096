"""What IAM lets the roles of the template's functions do: the statements of every policy that each has."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from simulator.iam.policies import Statement, statements
from tools.cloudformation import Stack
from tools.template import doors, load

_POLICIES = ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
INSTALLER_ROLE = "InstallerRole"


def statements_of(stack: Stack) -> Mapping[str, tuple[Statement, ...]]:
    """By door. SAM adds to them what writing logs takes, and network interfaces in a VPC."""
    template, resources = load(), stack.resources
    written = template["Resources"]
    return {
        door.name: tuple(_statements(door.logical_id, written, resources, stack)) for door in doors(template).values()
    }


def _statements(
    function: str, written: Mapping[str, Any], resources: Mapping[str, Any], stack: Stack
) -> Iterator[Statement]:
    """``written``: the resources as the template has them. ``resources``: as the stack does."""
    properties = written[function]["Properties"]
    for policy in properties.get("Policies", ()):
        if "Ref" in policy:
            document = resources[policy["Ref"]]["Properties"]["PolicyDocument"]
            yield from statements(policy["Ref"], _parsed(document))
        else:
            yield from statements(f"{function}'s own policy", stack.resolved(policy))
    role = {"Ref": INSTALLER_ROLE if "Role" in properties else f"{function}Role"}
    for name, resource in written.items():
        if name in resources and resource["Type"] in _POLICIES and role in resource["Properties"].get("Roles", ()):
            yield from statements(name, _parsed(resources[name]["Properties"]["PolicyDocument"]))


def statements_of_member(stack: Stack) -> Mapping[str, tuple[Statement, ...]]:
    """By role of a member's stack, by its logical id: what the home's functions may do in it."""
    written, resources = stack.template["Resources"], stack.resources
    return {
        name: tuple(_statements_of_role(name, written, resources))
        for name, resource in resources.items()
        if resource["Type"] == "AWS::IAM::Role" and name != "NodeRole"
    }


def _statements_of_role(role: str, written: Mapping[str, Any], resources: Mapping[str, Any]) -> Iterator[Statement]:
    for policy in written[role]["Properties"].get("ManagedPolicyArns", ()):
        yield from statements(policy["Ref"], _parsed(resources[policy["Ref"]]["Properties"]["PolicyDocument"]))
    for policy in resources[role]["Properties"].get("Policies", ()):
        yield from statements(f"{role}'s own policy", policy["PolicyDocument"])
    for name, resource in written.items():
        attached = resource["Properties"].get("Roles", ()) if resource["Type"] in _POLICIES else ()
        if name in resources and {"Ref": role} in attached:
            yield from statements(name, _parsed(resources[name]["Properties"]["PolicyDocument"]))


def _parsed(document: Any) -> Any:
    return json.loads(document) if isinstance(document, str) else document
