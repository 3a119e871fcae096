"""The catalogue as a document."""

import json

import pytest

from joinery.gateways.ec2.catalog.document import Catalog, decode, encode
from joinery.objects.errors import ConfigurationError


def test_a_catalogue_is_written_as_it_was_read(catalog: Catalog) -> None:
    """Entries of DescribeInstanceTypes pass through unchanged, also the fields Joinery does not know."""
    again = decode(encode(catalog))
    assert again == catalog
    assert "AutoRecoverySupported" in json.loads(encode(again))["instanceTypes"][0]


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (b"[]", "not a catalogue: Expected `object`, got `array`"),
        (b"{", "not a catalogue: Input data was truncated"),
        (b'{"kind": "Pod", "region": "x"}', "not a catalogue: kind is 'Pod'"),
        (
            b'{"region": "x", "offerings": [{"zone": 1}]}',
            "not a catalogue: Expected `str`, got `int` - at `$.offerings[0].zone`",
        ),
    ],
)
def test_a_wrong_document_is_refused_by_naming_the_field(document: bytes, complaint: str) -> None:
    """One line that says what is wrong and where."""
    with pytest.raises(ConfigurationError) as caught:
        decode(document)
    assert str(caught.value) == complaint


def test_a_wrong_instance_type_is_refused_when_it_is_needed() -> None:
    """Entries are checked when they are decoded, and the message says which part of the document it is."""
    broken = decode(b'{"region": "x", "instanceTypes": [{"InstanceType": 5}]}')
    with pytest.raises(ConfigurationError, match=r"not a catalogue: instanceTypes\[0\]: .*\$.InstanceType"):
        _ = broken.described
