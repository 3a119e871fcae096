"""The objects of ``tests/data/real`` as real systems print them, still undecoded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from joinery_cli.reading.documents import documents, read

FOLDER = Path(__file__).parents[1] / "data" / "real"
CLUSTER = FOLDER / "cluster.json.gz"
#: One object, or a few, a file.
PIECES = sorted(
    path for part in ("daemonsets", "events", "karpenter", "nodes", "others", "pods", "policy", "storage")
    for path in (FOLDER / part).iterdir()
)  # fmt: skip


def name(path: Path) -> str:
    """``nodes/fargate``: how a test calls the file."""
    return f"{path.parent.name}/{path.stem}"


def objects(path: Path) -> Iterator[dict[str, Any]]:
    """Every object of a file, lists taken apart."""
    for document in documents(str(path), read(str(path))):
        yield msgspec.json.decode(document.raw)
