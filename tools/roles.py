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


def _parsed(document: Any) -> Any:
    return json.loads(document) if isinstance(document, str) else document
