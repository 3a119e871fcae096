"""Legacy objects and what they are in v1, case by case."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.legacy import Equivalent, equivalents, is_legacy
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.karpenter.nodepool import NodePool

CASES: list[dict[str, Any]] = yaml.load((Path(__file__).parent / "legacy.yaml").read_text(), yaml.CSafeLoader)["cases"]
MODELS = {"NodePool": NodePool, "NodeClaim": NodeClaim, "EC2NodeClass": EC2NodeClass}


def _named(case: dict[str, Any]) -> str:
    return str(case["name"])


def _converted(case: dict[str, Any]) -> tuple[Equivalent, ...]:
    return equivalents(case["given"])


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_a_legacy_object_is_read_as_its_equivalent(case: dict[str, Any]) -> None:
    """Each case's sentence is a claim about the product."""
    found = {_title(one): _only(case, one) for one in _converted(case) if not one.problem}
    assert found == case.get("expect", {})


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_what_was_lost_or_has_no_equivalent_is_said(case: dict[str, Any]) -> None:
    """Every note and problem names the legacy object, and the field as its author wrote it."""
    converted = _converted(case)
    notes = [f"{one.origin.kind} {one.origin.name}: {note}" for one in converted for note in one.notes]
    problems = {f"{one.origin.kind} {one.origin.name}": one.problem for one in converted if one.problem}
    assert (notes, problems) == (case.get("notes", []), case.get("problems", {}))


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_an_equivalent_satisfies_the_rules_of_v1(case: dict[str, Any]) -> None:
    """What conversion writes is an object that the API server would take."""
    for one in _converted(case):
        if not one.problem:
            MODELS[one.document["kind"]].model_validate(one.document)


def test_the_order_of_legacy_objects_does_not_matter() -> None:
    """One cluster has one conversion, however it was listed."""
    for case in CASES:
        assert equivalents(reversed(case["given"])) == _converted(case)


def test_only_the_kinds_of_older_apis_are_legacy() -> None:
    """v1 objects are never converted."""
    assert is_legacy(("karpenter.sh/v1alpha5", "Provisioner"))
    assert is_legacy(("karpenter.sh/v1beta1", "NodePool"))
    assert not is_legacy(("karpenter.sh/v1", "NodePool"))
    assert not is_legacy(("karpenter.sh/v1alpha5", "NodePool"))


def _title(one: Equivalent) -> str:
    return f"{one.document['kind']} {one.document['metadata']['name']}"


def _only(case: dict[str, Any], one: Equivalent) -> Any:
    return _like(case.get("expect", {}).get(_title(one), {}), one.document)


def _like(shape: Any, found: Any) -> Any:
    """The found object, in the fields that the shape names; ``none`` stands for a field that is not there."""
    if not isinstance(shape, dict) or not isinstance(found, dict):
        return found
    return {name: _like(member, found.get(name, "none")) for name, member in shape.items()}
