"""Which definitions are written: by their versions, and by whose they are."""

import pytest

from joinery.decisions.installation.definitions import decide, is_older, is_ours

GENERATED = {"controller-gen.kubebuilder.io/version": "v0.19.0"}


@pytest.mark.parametrize(("older", "newer"), [
    ("1.9.0", "1.10.0"), ("0.9", "1.0"), ("1.0", "1.0.1"), ("", "0.0.1"), ("unknown", "1"), ("1.0rc1", "1.1"),
])  # fmt: skip
def test_releases_are_compared_by_their_numbers(older: str, newer: str) -> None:
    """As numbers and not as text; one without numbers came before all."""
    assert is_older(older, newer)
    assert not is_older(newer, older)
    assert not is_older(newer, newer)


@pytest.mark.parametrize(("annotations", "applies"), [
    (None, True),
    ({}, True),
    ({"joinery.dev/version": "1.0.0"}, True),
    ({"joinery.dev/version": "0.9.0"}, True),
    ({"joinery.dev/version": "1.0.1"}, False),
    (GENERATED, False),
    (GENERATED | {"joinery.dev/version": "0.9.0"}, False),
])  # fmt: skip
def test_definitions_are_ours_or_left_alone(annotations: dict[str, str] | None, applies: bool) -> None:
    """A person's and an older installer's are written; a newer release's and Karpenter's are not, also where
    Karpenter's were applied over ours.
    """
    decision = decide({"metadata": {"name": "nodepools.karpenter.sh", "annotations": annotations}}, "1.0.0")

    assert decision.applies == applies
    assert bool(decision.reason) != applies


@pytest.mark.parametrize(("name", "annotations", "ours"), [
    ("nodepools.karpenter.sh", {"joinery.dev/version": "1.0.0"}, True),
    ("ec2nodeclasses.karpenter.k8s.aws", {}, True),
    ("nodepools.karpenter.sh", GENERATED, False),
    ("nodepools.karpenter.sh", GENERATED | {"joinery.dev/version": "1.0.0"}, False),
    ("certificates.cert-manager.io", {}, False),
])  # fmt: skip
def test_uninstalling_removes_no_definition_of_karpenter_s(name: str, annotations: dict[str, str], ours: bool) -> None:
    """With a definition all of its objects go. Whoever goes back applies Karpenter's over ours, and may uninstall us
    afterwards.
    """
    assert is_ours({"metadata": {"name": name, "annotations": annotations}}) == ours
