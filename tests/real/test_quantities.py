"""Quantities as kubelets, autoscalers and people spell them (apimachinery ``resource.Quantity``)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joinery.objects.kubernetes.quantity import LARGEST, amount, parse, text
from tests.real.files import FOLDER

SPELLINGS: dict[str, list[Any]] = json.loads((FOLDER / "quantities.json").read_text())


@pytest.mark.parametrize("spelling", SPELLINGS["valid"], ids=lambda it: f"{it['resource']}={it['text']}")
def test_a_quantity_is_read_as_what_it_stands_for(spelling: dict[str, Any]) -> None:
    """Millicores of cpu, whole units of everything else."""
    assert amount(spelling["resource"], spelling["text"]) == spelling["expected"]


@pytest.mark.parametrize(
    "spelling", [*SPELLINGS["invalid"], "1e", "1e1.5", "Ki", "1Ki3", "1e3e3", "٣", "1" * 500, "NaN"]
)
def test_what_is_no_quantity_is_refused(spelling: str) -> None:
    """A wrong number would be worse than none."""
    with pytest.raises(ValueError, match="is not a quantity"):
        amount("memory", spelling)


@pytest.mark.parametrize(
    ("spelling", "units"),
    [("1.", 1), (".5", 1), ("+5", 5), ("1e+3", 1000), ("1E", 10**18), (" 1Gi ", 2**30), ("1e-400", 1)],
)
def test_the_grammars_corners_are_read(spelling: str, units: int) -> None:
    """The API server takes them, so files may hold them; a little is never nothing."""
    assert amount("memory", spelling) == units


@pytest.mark.parametrize("spelling", ["100E", "16Ei", "9223372036854775807", "1e300"])
def test_more_than_anything_has_is_the_most_there_is(spelling: str) -> None:
    """People limit a pool to 9223372036854775807 cores, and the API server stores what one pod asks in vain."""
    assert amount("cpu", spelling) == amount("memory", spelling) == LARGEST


@given(st.integers(0, 2**50), st.sampled_from(["cpu", "memory", "ephemeral-storage", "pods", "hugepages-2Mi"]))
def test_what_is_written_is_read_again(units: int, resource: str) -> None:
    """An amount survives the wire."""
    assert amount(resource, text(resource, units)) == units


@given(st.decimals(0, 10**6, places=3), st.sampled_from(["Ki", "Mi", "Gi", "k", "M", "G", "m", "", "e3", "E-2"]))
def test_a_suffix_multiplies(number: Any, suffix: str) -> None:
    """By the power that it names, exactly."""
    factors = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6, "G": 10**9, "": 1, "e3": 1000}
    divisors = {"m": 1000, "E-2": 100}
    read = parse(f"{number}{suffix}")
    assert read * divisors.get(suffix, 1) == number * factors.get(suffix, 1)
