"""Files as the command line reads them."""

from typing import Any

import pytest

from joinery_cli.reading.inputs import Inputs, load
from tests.cli.conftest import Write


@pytest.fixture
def read(write: Write) -> Any:
    """``read(object, ...)``: the inputs of one file with these objects."""

    def call(*objects: dict[str, Any]) -> Inputs:
        return load([write("objects.json", {"apiVersion": "v1", "kind": "List", "items": list(objects)})])

    return call
