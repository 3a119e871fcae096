"""Which definitions are written: by their versions, and by whose they are."""

import pytest

from joinery.installation.definitions import decide, is_older


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
    ({"controller-gen.kubebuilder.io/version": "v0.19.0"}, False),
    ({"controller-gen.kubebuilder.io/version": "v0.19.0", "joinery.dev/version": "0.9.0"}, True),
])  # fmt: skip
def test_definitions_are_ours_or_left_alone(annotations: dict[str, str] | None, applies: bool) -> None:
    """A person's and an older installer's are written; Karpenter's and a newer release's are not."""
    decision = decide({"metadata": {"name": "nodepools.karpenter.sh", "annotations": annotations}}, "1.0.0")

    assert decision.applies == applies
    assert bool(decision.reason) != applies
