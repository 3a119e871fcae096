"""Clusters as files: a gzipped ``kind: List`` in JSON."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Document = dict[str, Any]


def read(file: Path) -> list[Document]:
    """The objects of a file, gzipped or not; none of one that holds something else, such as a catalogue."""
    data = file.read_bytes()
    document = json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)
    return list(document.get("items", ())) if isinstance(document, dict) else []


def write(objects: Iterable[Document], file: Path) -> None:
    """The objects as a file. Equal objects give equal bytes."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}, separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))
