"""The fields of NodePool, EC2NodeClass and the other custom resources, from their CustomResourceDefinitions."""

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import LABEL_KEY, TAINT_VALUE, VOLUME_SIZE
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from tools.crds import definition
from tools.reference.commands import COLUMNS

Schema = dict[str, Any]
_RULES = "x-kubernetes-validations"
#: What is easier to say than to read.
_PATTERNS = {
    LABEL_KEY: "The name of a label, with or without a domain",
    TAINT_VALUE: "The value of a label",
    VOLUME_SIZE: "At most `59000Gi`, `64000G`, `58Ti` or `64T`",
    r"^([0-9]+(s|m|h))+$": "A duration such as `1h30m`",
    r"^(([0-9]+(s|m|h))+|Never)$": "A duration such as `1h30m`, or `Never`",
}


def tables() -> Iterator[str]:
    """A section for each kind: its spec, its status, and the rules that span fields."""
    for kind in (NodePool, EC2NodeClass, NodeOverlay, NodeClaim, CapacityBuffer):
        schema = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        yield from ("", f"## {kind.kind}", "", textwrap.fill(schema["description"], COLUMNS))
        for part in ("spec", "status"):
            yield from (
                "",
                f"### {part} of {kind.kind}",
                "",
                "| field | type | default | meaning and rules |",
                "|---|---|---|---|",
            )
            yield from _rows(schema["properties"][part], "", set(schema["properties"][part].get("required", [])))


def _rows(schema: Schema, path: str, required: set[str]) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        here = f"{path}{name}"
        yield f"| `{here}` | {_type(field)} | {_default(field, name in required)} | {_about(field)} |"
        inner, suffix = (field.get("items", {}), "[].") if field.get("type") == "array" else (field, ".")
        yield from _rows(inner, f"{here}{suffix}", set(inner.get("required", [])))


def _default(field: Schema, required: bool) -> str:
    # That of an object is what its fields say.
    if "default" in field and "properties" not in field:
        default = field["default"]
        return f"`{default if isinstance(default, str) else json.dumps(default)}`"
    return "**required**" if required else ""


def _type(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    kind = field.get("type", "")
    if kind == "array":
        return f"list of {_type(field['items'])}"
    values = field.get("additionalProperties")
    if isinstance(values, dict):
        return f"map to {_type(values)}"
    return str(kind)


def _about(field: Schema) -> str:
    """The description, what values are allowed, and the messages of its rules: all that a reader may run into."""
    parts = [str(field.get("description", "")), *_limits(field), *_limits(field.get("items", {}))]
    parts += [str(rule["message"]) for rule in field.get(_RULES, []) if "message" in rule]
    return " ".join(" ".join(_sentence(part).split()) for part in parts if part).replace("|", "\\|")


def _limits(field: Schema) -> Iterator[str]:
    if values := field.get("enum"):
        yield "One of " + ", ".join(f"`{value}`" for value in values)
    if pattern := field.get("pattern"):
        yield _PATTERNS.get(pattern, f"Matches `{pattern}`")
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None or most is not None:
        yield f"At least {least}" if most is None else f"At most {most}" if least is None else f"{least} to {most}"
    for key, text in (("minItems", "At least {} entries"), ("maxItems", "At most {} entries")):
        if key in field:
            yield text.format(field[key])


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", ")")) else f"{text}."
