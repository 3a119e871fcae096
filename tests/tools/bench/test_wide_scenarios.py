"""Scenarios of many NodePools and many reservations: made up alike every time, and as wide as they say."""

import gzip
import json
from pathlib import Path

from tools.bench.wide_scenarios import PODS, RESERVATIONS, SCENARIOS, write


def test_a_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    """Figures of two days are about one input."""
    for folder in ("one", "other"):
        write(tmp_path / folder, seed=1)
    one, other = (sorted((tmp_path / folder).iterdir()) for folder in ("one", "other"))
    assert [file.name for file in one] == [file.name for file in other]
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in other]


def test_each_is_as_wide_as_it_says(tmp_path: Path) -> None:
    """Twelve NodePools of one weight, of twelve, and of three; three hundred reservations."""
    write(tmp_path)
    weights = {}
    for name in SCENARIOS:
        items = json.loads(gzip.decompress((tmp_path / f"{name}.json.gz").read_bytes()))["items"]
        pools = [one["spec"].get("weight", 0) for one in items if one["kind"] == "NodePool"]
        assert sum(one["kind"] == "Pod" for one in items) == PODS
        weights[name] = (len(pools), len(set(pools)))
    assert [weights[f"pools-12-{which}"] for which in ("alike", "weighted", "both")] == [(12, 1), (12, 12), (12, 3)]
    catalogue = json.loads((tmp_path / "reservations-300.catalog.json").read_text())
    assert (
        len({(one["InstanceType"], one["AvailabilityZone"]) for one in catalogue["capacityReservations"]})
        == RESERVATIONS
    )
