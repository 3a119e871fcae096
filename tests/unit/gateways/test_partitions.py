"""Partitions: the table is botocore's."""

import json
from pathlib import Path
from typing import Any

import botocore
import botocore.session
import pytest

from joinery.gateways import partitions

_PARTITIONS: list[dict[str, Any]] = json.loads(
    (Path(botocore.__file__).parent / "data" / "partitions.json").read_text()
)["partitions"]
REGIONS = [
    (region, partition["id"], partition["outputs"]["dnsSuffix"])
    for partition in _PARTITIONS
    for region in partition["regions"]
    if not region.startswith("aws-")
]


@pytest.mark.parametrize(("region", "name", "suffix"), REGIONS, ids=[region for region, _, _ in REGIONS])
def test_every_region_has_its_partition(region: str, name: str, suffix: str) -> None:
    """Its ARNs and addresses are those that the SDK would make."""
    assert (partitions.partition_of(region), partitions.of(region).suffix) == (name, suffix)


def test_prices_are_asked_for_where_they_are_said() -> None:
    """In every partition that has a Price List API; GovCloud has none."""
    session = botocore.session.get_session()
    for region, name, _ in REGIONS:
        answering = session.get_available_regions("pricing", name)
        asked = partitions.pricing_region(region)
        assert asked in answering or (asked, answering) == ("", [])
