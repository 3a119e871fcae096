"""The sample catalogue, decoded once per worker."""

import gzip
from pathlib import Path

import pytest

from joinery.gateways.ec2.catalog.document import Catalog, decode

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """The catalogue of us-east-1 that a checkout carries."""
    return decode(gzip.decompress((ROOT / "cli/joinery_cli/data/catalog-us-east-1.json.gz").read_bytes()))
