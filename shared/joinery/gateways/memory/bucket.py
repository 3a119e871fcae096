"""The bucket: the catalogue, what is paid for already, and a record of every decision that changed something."""

import gzip
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Protocol

import msgspec

from joinery.gateways.ec2.catalog.document import Catalog
from joinery.objects.commitments import PaidFor

#: Level 9 makes a record smaller by a twentieth and takes three times as long.
_LEVEL = 6
#: Where the catalogue is, gzipped.
CATALOG_KEY = "catalog.json.gz"
#: Where it says what is paid for. A person may write it, so it is plain JSON.
PAID_FOR_KEY = "commitments.json"


class Store(Protocol):
    """Every method may raise ``UnavailableError``, or ``ConfigurationError`` (the bucket is missing, or forbidden)."""

    def catalog(self) -> Catalog:
        """The last catalogue stored; a warm caller gets it from memory while it is unchanged. ``NotFoundError``."""
        ...

    def put_catalog(self, catalog: Catalog) -> None: ...

    def paid_for(self) -> PaidFor:
        """What is paid for already, as it was stored last. ``NotFoundError`` where nothing was."""
        ...

    def put_paid_for(self, document: PaidFor) -> None: ...

    def record(self, controller: str, now: datetime, decision: dict[str, Any]) -> str:
        """Keep a decision: a ``kind: List`` that ``joinery plan -f`` reads, gzipped. Returns its key."""
        ...


def sealed(controller: str, now: datetime, decision: dict[str, Any], *, member: str = "") -> tuple[str, bytes]:
    """A decision's key, by day and moment, and its gzipped document. The same decision gets the same key.

    ``member``: the cluster, if it is not the stack's own: its records are below its name.
    """
    document = msgspec.json.encode(decision, order="deterministic")
    moment = now.astimezone(UTC)
    name = f"{moment:%H%M%S.%f}-{controller}-{sha256(document).hexdigest()[:8]}"
    below = f"decisions/{member}/" if member else "decisions/"
    return f"{below}{moment:%Y/%m/%d}/{name}.json.gz", gzip.compress(document, _LEVEL, mtime=0)
