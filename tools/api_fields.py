"""The fields of Kubernetes' own objects, as a table for ``joinery plan``: ``python -m tools.api_fields [--check]``.

The official client's models hold every field of one release of the API. Loading them takes seconds, so that their names
and shapes are kept as data: a type is a map of fields, a field is a type's name, ``s`` for text, ``i`` for a whole
number, ``b`` for true or false, ``q`` for a quantity, ``*`` for any single value, ``?`` for anything;
``[...]`` is a list and ``{...}`` a map of those. A test compares the table with what a real API server publishes.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import kubernetes.client.models as models

TABLE = Path(__file__).parents[1] / "cli" / "joinery_cli" / "reading" / "data" / "kubernetes.json"

#: What a plan reads, and what it expands into pods.
KINDS = (
    "CSIDriver", "CSINode", "CSIStorageCapacity",
    "CronJob", "DaemonSet", "Deployment", "DeviceClass", "HorizontalPodAutoscaler", "Job", "LimitRange", "Namespace",
    "Node", "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "PriorityClass", "ReplicaSet",
    "ReplicationController", "ResourceClaim", "ResourceClaimTemplate", "ResourceQuota", "ResourceSlice",
    "RuntimeClass", "Service", "StatefulSet", "StorageClass", "VolumeAttachment",
)  # fmt: skip
#: Autoscalers of today and of a while ago.
_MODELS = {"HorizontalPodAutoscaler": "V2HorizontalPodAutoscaler", "ResourceClaim": "ResourceV1ResourceClaim"}
#: What is called as a kind is: what a container says of its pod's claims.
_NAMESAKES = {"CoreV1ResourceClaim": "ContainerResourceClaim"}
#: Fields that a release had or has under feature gates, and the client's release does not.
_ELSEWHERE = {
    "ObjectMeta": {"clusterName": "*", "initializers": "?"},
    "NodeAllocatableResourceClaimStatus": {"resources": "?"},
    "PodSpec": {"workloadRef": "?"},
    "Device": {"nodeAllocatableResourceMappings": "?"},
    # Quantities by names that others have too.
    "DeviceCapacity": {"value": "q"},
    "Counter": {"value": "q"},
    "CapacityRequestPolicy": {"validValues": "[q]"},
    "CapacityRequestPolicyRange": {"step": "q"},
    # A CSIDriver's, and the kind of the same name.
    "TokenRequest": {"apiVersion": "s", "kind": "s", "metadata": "?", "spec": "?", "status": "?"},
    "HorizontalPodAutoscalerSpec": {"metrics": "?", "targetCPUUtilizationPercentage": "*"},
}
_ONE = {"str": "s", "int": "i", "bool": "b", "float": "*", "datetime": "*", "date": "*"}
#: Quantities, which the client calls text: a number is one too.
_QUANTITIES = frozenset((
    "allocatable", "allocatedResources", "capacity", "consumedCapacity", "default", "defaultRequest", "divisor",
    "hard", "limits", "max", "maxLimitRequestRatio", "maximumVolumeSize", "min", "overhead", "podFixed", "requests",
    "sizeLimit", "used",
))  # fmt: skip


def table() -> dict[str, Any]:
    """``kinds``: every kind there is; ``types``: the fields of what the read kinds consist of."""
    types: dict[str, dict[str, str]] = {}
    for kind in KINDS:
        _add(getattr(models, _MODELS.get(kind, f"V1{kind}")), types)
    for name, fields in _ELSEWHERE.items():
        types[name].update(fields)
    return {"kinds": _kinds(), "types": {name: dict(sorted(types[name].items())) for name in sorted(types)}}


def _kinds() -> list[str]:
    marks = {"api_version", "kind", "metadata"}
    every = (name for name in dir(models) if marks <= set(getattr(getattr(models, name), "openapi_types", ())))
    return sorted({_short(name) for name in every if not name.endswith("List")})


def _short(name: str) -> str:
    """``CoreV1Event`` is an Event, ``V1Pod`` a Pod."""
    return re.sub(r"^([A-Z][a-z]+)?V\d+((alpha|beta)\d+)?(?=[A-Z])", "", name)


def _add(model: Any, types: dict[str, dict[str, str]]) -> str:
    name = _NAMESAKES.get(model.__name__) or _short(model.__name__)
    if name not in types:
        types[name] = {}
        for attribute, kind in model.openapi_types.items():
            field = model.attribute_map[attribute]
            shape = _shape(kind, types)
            types[name][field] = shape.replace("s", "q") if field in _QUANTITIES and shape in ("s", "{s}") else shape
    return name


def _shape(kind: str, types: dict[str, dict[str, str]]) -> str:
    if inner := re.fullmatch(r"list\[(.*)\]", kind, re.IGNORECASE):
        return f"[{_shape(inner[1], types)}]"
    if inner := re.fullmatch(r"dict[\[(]str, (.*)[\])]", kind, re.IGNORECASE):
        return f"{{{_shape(inner[1], types)}}}"
    if kind in _ONE:
        return _ONE[kind]
    return "?" if kind == "object" else _add(getattr(models, kind), types)


def text() -> str:
    """The table as it is stored."""
    return json.dumps(table(), separators=(",", ":"), sort_keys=True).replace('},"', '},\n"') + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where the stored table is not the client's")
    if parser.parse_args().check:
        sys.exit(0 if TABLE.read_text() == text() else f"{TABLE}: is not the client's: python -m tools.api_fields")
    TABLE.write_text(text())


if __name__ == "__main__":
    main()
