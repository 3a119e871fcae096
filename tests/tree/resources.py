"""What tests of the template share: it, its doors, and how to look things up in it."""

import json
from typing import Any

from joinery.objects.settings import SETTINGS
from tools.template import Door, doors, load, of_type

TEMPLATE = load()
DOORS = doors(TEMPLATE)
RESOURCES = TEMPLATE["Resources"]


def resources(kind: str) -> dict[str, dict[str, Any]]:
    """The properties of the template's resources of a type."""
    return of_type(TEMPLATE, kind)


def setting(name: str) -> Any:
    """How the template reads a setting: what stands behind its name, up to the next, or its default."""
    chosen = {"Fn::Join": [";", {"Fn::Split": ["; ", {"Ref": "Settings"}]}]}
    text = {"Fn::Join": [";", ["", chosen, f"{name}={SETTINGS[name].default}"]]}
    return {"Fn::Select": [0, {"Fn::Split": [";", {"Fn::Select": [1, {"Fn::Split": [f";{name}=", text]}]}]}]}


def logical_id(reference: Any) -> str:
    """The resource that a Ref or GetAtt is about."""
    return str(reference.get("Ref") or str(reference["Fn::GetAtt"]).partition(".")[0])


def policy(name: str) -> list[dict[str, Any]]:
    """The statements of a policy that is JSON text, because its condition keys hold the cluster's name."""
    document = RESOURCES[name]["Properties"]["PolicyDocument"]["Fn::Sub"]
    text = document if isinstance(document, str) else document[0]
    statements: list[dict[str, Any]] = json.loads(text)["Statement"]
    return statements


def policies_of(door: Door) -> list[Any]:
    """The policies of a door; the installer's are attached to a role of its own."""
    attached: list[Any] = RESOURCES[door.logical_id]["Properties"].get("Policies", [])
    return attached
