"""Where a plan's input comes from when the user does not say: the current cluster, the stored catalogue, the sample."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from joinery.cli.documents import read, source_name
from joinery.errors import ConfigurationError

if TYPE_CHECKING:
    from joinery.cloudprovider.catalog import Catalog
    from joinery.state.snapshot import Snapshot

#: A checkout carries a catalogue, so that a plan needs neither an account nor a download.
SAMPLE = Path(__file__).parents[3] / "simulator" / "data" / "catalog-us-east-1.json.gz"


def load_catalog(choice: str | None) -> "Catalog":
    """The catalogue of ``--catalog``: a file, ``aws`` (read live), or where nothing is said the last one stored.

    Raises ``ConfigurationError`` naming the file; ``UnavailableError`` where AWS cannot be reached.
    """
    if choice == "aws":
        return _live_catalog()
    if choice is not None:
        return _catalog_file(choice)
    bucket = os.environ.get("JOINERY_BUCKET", "").strip()
    if bucket:
        return _stored_catalog(bucket)
    if SAMPLE.exists():
        return _catalog_file(str(SAMPLE))
    raise ConfigurationError("no catalogue: give --catalog FILE, or --catalog aws")


def _catalog_file(path: str) -> "Catalog":
    from joinery.cloudprovider.catalog import decode

    try:
        return decode(read(path))
    except ConfigurationError as error:
        named = str(error).startswith(source_name(path))
        raise (error if named else ConfigurationError(f"{source_name(path)}: {error}")) from error


def moment(text: str | None) -> datetime:
    """``--now`` as a moment in UTC, or this very second. Raises ``ConfigurationError``."""
    if text is None:
        # The command line is where a plan gets its moment.
        return datetime.now(UTC).replace(microsecond=0)  # noqa: TID251
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"--now {text}: not a moment such as 2026-01-01T00:00:00Z") from None
    if parsed.tzinfo is None:
        raise ConfigurationError(f"--now {text}: has no time zone; write 2026-01-01T00:00:00Z")
    return parsed.astimezone(UTC)


def live_snapshot() -> "Snapshot":
    """The cluster of the current kubeconfig. Raises ``ConfigurationError`` where there is none."""
    raise ConfigurationError("no -f FILE, and reading a live cluster is not available")


def _live_catalog() -> "Catalog":
    raise ConfigurationError("--catalog aws is not available")


def _stored_catalog(bucket: str) -> "Catalog":
    raise ConfigurationError(f"JOINERY_BUCKET {bucket} is not available")
