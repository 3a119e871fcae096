"""The resource definitions that users apply say what the models say."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.meta import CustomResource
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodeoverlay import NodeOverlay
from joinery.objects.karpenter.nodepool import NodePool
from tools.crds import COLUMNS, PLURALS, definition, drifted, file_of


def nodes(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its path."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        yield from nodes(schema.get(keyword), f"{path}.{keyword}")


def schema_of(kind: type[CustomResource]) -> dict[str, Any]:
    """The whole schema of the one version."""
    version = definition(kind)["spec"]["versions"][0]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def test_the_files_are_what_the_models_generate() -> None:
    """Whoever changes a model runs `python -m tools.crds`."""
    assert drifted() == []


@pytest.mark.parametrize("kind", PLURALS)
def test_every_part_of_a_schema_has_a_type(kind: type[CustomResource]) -> None:
    """A structural schema says object, array, string, number or boolean everywhere, and refers to nothing."""
    for path, schema in nodes(schema_of(kind)):
        assert "type" in schema or schema.get("x-kubernetes-int-or-string"), path
        assert not {"$ref", "$defs", "allOf", "oneOf", "title"} & schema.keys(), path


@pytest.mark.parametrize("kind", PLURALS)
def test_every_list_says_how_it_is_merged(kind: type[CustomResource]) -> None:
    """Lists are atomic, except conditions: one of a type."""
    for path, schema in nodes(schema_of(kind)):
        if schema.get("type") == "array":
            is_map = path.endswith(".conditions")
            assert schema["x-kubernetes-list-type"] == ("map" if is_map else "atomic"), path


@pytest.mark.parametrize("kind", PLURALS)
def test_a_definition_bears_karpenters_names(kind: type[CustomResource]) -> None:
    """The same group, version, plural and category, so that kubectl and existing objects do not notice a move."""
    document = definition(kind)
    group, _, version = kind.api_version.partition("/")
    assert document["metadata"]["name"] == f"{PLURALS[kind]}.{group}"
    assert document["spec"]["names"]["categories"] == ["autoscaling" if kind is CapacityBuffer else "karpenter"]
    assert [it["name"] for it in document["spec"]["versions"]] == [version]
    assert file_of(kind).name == f"{group}_{PLURALS[kind]}.yaml"


@pytest.mark.parametrize("kind", PLURALS)
def test_every_field_has_a_description(kind: type[CustomResource]) -> None:
    """`kubectl explain` says what each is for."""
    lacking = [
        f"{path}.{name}"
        for path, schema in nodes(schema_of(kind))
        for name, field in schema.get("properties", {}).items()
        if not field.get("description") and f"{path}.{name}" != ".metadata"  # the API server's own
    ]
    assert lacking == []


@pytest.mark.parametrize("kind", PLURALS)
def test_a_column_shows_a_field_that_there_is(kind: type[CustomResource]) -> None:
    """One with a misspelt path is empty for good."""
    paths = {path for path, _ in nodes(schema_of(kind))}
    for column in COLUMNS[kind]:
        path = re.sub(r"\[\?\(.*\)\]", ".items", column["jsonPath"])
        entry = f"{path.rpartition('.')[0]}.additionalProperties"
        assert path.startswith(".metadata.") or {path, entry} & paths, column


#: The columns that Karpenter prints without -o wide (its CRDs, additionalPrinterColumns).
KARPENTERS: dict[type[CustomResource], list[str]] = {
    NodePool: ["NodeClass", "Nodes", "Ready", "Age"],
    NodeClaim: ["Type", "Capacity", "Zone", "Node", "Ready", "Age"],
    EC2NodeClass: ["Ready", "Age"],
    NodeOverlay: ["Ready", "Age"],
    # Its columns of conditions list all types, then all statuses: two of ours say more in as much room.
    CapacityBuffer: ["Strategy", "PodTemplate", "Replicas", "Ready", "Provisioned", "Age"],
}


@pytest.mark.parametrize("kind", PLURALS)
def test_kubectl_get_says_what_people_ask(kind: type[CustomResource]) -> None:
    """Karpenter's columns first, as they were, and why an object is not ready."""
    shown = [column["name"] for column in COLUMNS[kind] if not column.get("priority")]
    assert shown == [*KARPENTERS[kind], "Why"]
