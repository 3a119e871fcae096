"""The bucket: the catalogue, and a record of every decision that changed something."""

from datetime import datetime
from typing import Any, Protocol

from joinery.cloudprovider.catalog import Catalog


class Store(Protocol):
    def catalog(self) -> Catalog:
        """The last catalogue stored; a warm caller gets it from memory while it is unchanged. ``NotFoundError``."""
        ...

    def put_catalog(self, catalog: Catalog) -> None: ...

    def record(self, controller: str, now: datetime, decision: dict[str, Any]) -> str:
        """Keep a decision: a ``kind: List`` that ``joinery plan -f`` reads, gzipped. Returns its key."""
        ...
