"""The stack's parameters and outputs, from the template, and the settings in its parameter ``Settings``."""

from collections.abc import Iterator
from typing import Any

from joinery.objects.settings import SETTINGS
from tools.template import load

#: Where a page of ours says more about a parameter.
MORE = {
    "Canary": "disruption-rules.md#a-new-ami",
    "DisruptionMovePrice": "disruption-rules.md#what-a-move-costs",
    "ExpirationObeysBudgets": "disruption-rules.md#what-limits-disruption",
    "LegacyObjects": "operations.md#a-cluster-of-karpenter-v031-to-v037",
    "Members": "many-clusters.md",
    "Metrics": "cost.md",
    "Mode": "operations.md#what-observe-does",
    "NewNodesRepay": "disruption-rules.md#nodes-that-are-new",
    "NodeSize": "packing.md",
    "OrdinaryTypes": "instance-types.md",
    "PodDeletionCost": "disruption-rules.md#where-scale-downs-take-pods",
    "Steering": "operations.md#without-steering",
    "SubnetIds": "operations.md#private-clusters",
    "TerminateFirst": "disruption-rules.md#where-there-is-no-room-for-both",
}


def parameters() -> Iterator[str]:
    """One row a parameter, in the template's order."""
    yield "| parameter | default | values | meaning |"
    yield "|---|---|---|---|"
    for name, parameter in load()["Parameters"].items():
        meaning = _meaning(name, parameter["Description"])
        yield f"| `{name}` | {_default(parameter)} | {_values(parameter)} | {meaning} |"


def settings() -> Iterator[str]:
    """One row a setting."""
    yield "| setting | default | values | meaning |"
    yield "|---|---|---|---|"
    for name, setting in SETTINGS.items():
        default = f"`{setting.default}`" if setting.default else "empty"
        yield f"| `{name}` | {default} | {setting.values} | {_meaning(name, setting.meaning)} |"


def _meaning(name: str, text: str) -> str:
    return _sentence(text) + (f" ([more]({MORE[name]}))" if name in MORE else "")


def _default(parameter: dict[str, Any]) -> str:
    if "Default" not in parameter:
        return "**required**"
    return f"`{parameter['Default']}`" if parameter["Default"] != "" else "empty"


def _values(parameter: dict[str, Any]) -> str:
    if allowed := parameter.get("AllowedValues"):
        return ", ".join(f"`{value}`" for value in allowed)
    if pattern := parameter.get("AllowedPattern"):
        return f"`{pattern}`".replace("|", "\\|")
    least, most = parameter.get("MinValue"), parameter.get("MaxValue")
    if least is not None and most is not None:
        return f"{least} to {most}"
    return f"{least} or more" if least is not None else _kind(parameter["Type"])


def _kind(name: str) -> str:
    return {"String": "text", "Number": "number", "CommaDelimitedList": "list"}.get(name, f"`{name}`")


def outputs() -> Iterator[str]:
    """One row an output, in the template's order. What is exported is for members' templates, and not for a person."""
    yield "| output | what it is for |"
    yield "|---|---|"
    for name, output in load()["Outputs"].items():
        if "Export" not in output:
            yield f"| `{name}` | {_sentence(output['Description'])} |"


def _sentence(text: str) -> str:
    return text.removesuffix(".")
