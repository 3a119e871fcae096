"""The SAM template as plain data: its doors, and what each is given.

CloudFormation's short forms (``!Ref x``, ``!Sub x``, ``!GetAtt a.b``) are read as the long ones, nothing is resolved.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = ROOT / "template.yaml"
#: Of a cluster that another stack serves (``tools.member``).
MEMBER = ROOT / "member.yaml"
#: What ``make build`` makes for Lambda, and where ``sam deploy`` looks.
LAMBDA_BUILD = ROOT / ".aws-sam" / "build"
#: The same for this machine (``make build-host``), which tests run. Apart, so that they never replace what is deployed.
BUILD = ROOT / ".aws-sam" / "host"


class _Loader(yaml.CSafeLoader):
    """YAML with CloudFormation's tags."""


def _intrinsic(loader: yaml.CSafeLoader, suffix: str, node: yaml.Node) -> Any:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)  # type: ignore[arg-type]
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _intrinsic)


@dataclass(frozen=True)
class Door:
    """One function of the template. ``folder`` is its code, ``variables`` what it is given on top of the globals."""

    name: str
    logical_id: str
    folder: Path
    handler: str
    timeout: int
    memory: int
    variables: dict[str, Any]


def load(path: Path = TEMPLATE) -> dict[str, Any]:
    """The template as plain data."""
    loaded: dict[str, Any] = yaml.load(path.read_text(), _Loader)  # noqa: S506 - a SafeLoader
    return loaded


def doors(template: dict[str, Any], *, base: Path = ROOT) -> dict[str, Door]:
    """The doors by name, in the template's order. ``base`` is the folder its paths are relative to."""
    shared = template["Globals"]["Function"]
    by_name = {}
    for logical_id, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Serverless::Function":
            door = _door(logical_id, resource["Properties"], shared, base)
            by_name[door.name] = door
    return by_name


def _door(logical_id: str, properties: dict[str, Any], shared: dict[str, Any], base: Path) -> Door:
    own = properties["Environment"]["Variables"]
    return Door(
        name=own["POWERTOOLS_SERVICE_NAME"],
        logical_id=logical_id,
        folder=base / properties["CodeUri"],
        handler=shared["Handler"],
        timeout=properties["Timeout"],
        memory=properties["MemorySize"],
        variables={**shared["Environment"]["Variables"], **own},
    )


def of_type(template: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """The properties of every resource of a type, by logical id."""
    return {name: r.get("Properties", {}) for name, r in template["Resources"].items() if r["Type"] == kind}
