"""Our models refuse what the API server refuses, with the same words: tests/controlplane asks the API server itself."""

import pytest
from pydantic import ValidationError

from joinery.objects.karpenter.validation import explain
from tests.unit.objects.karpenter.objects import ACCEPTED, MODELS, REFUSED, Case


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_a_good_object_is_read_and_survives_the_wire(case: Case) -> None:
    """What the API server accepts parses, and is the same object after it was sent and read again."""
    model = MODELS[case.kind]
    resource = model.model_validate(case.document)
    assert model.model_validate(resource.to_wire()) == resource


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_a_bad_object_is_refused_naming_the_field(case: Case) -> None:
    """A bad object gives one line that starts with the field that is wrong."""
    with pytest.raises(ValidationError) as refusal:
        MODELS[case.kind].model_validate(case.document)
    assert explain(refusal.value).startswith(case.field)
    assert "\n" not in explain(refusal.value)
