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
    bucket = _setting("BUCKET", "")
    if bucket:
        return _stored_catalog(bucket)
    if SAMPLE.exists():
        return _catalog_file(str(SAMPLE))
    raise ConfigurationError("no catalogue: give --catalog FILE, or --catalog aws")


def _catalog_file(path: str) -> "Catalog":
    from joinery.cloudprovider.catalog import decode

    data = read(path)
    try:
        catalog = decode(data)
        # Every command reads the entries, and only here is it known whose they are.
        _ = catalog.described
    except ConfigurationError as error:
        raise ConfigurationError(f"{source_name(path)}: {error}") from error
    return catalog


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


def live_snapshot(now: datetime) -> "Snapshot":
    """The cluster of the current kubeconfig, only read. ``ConfigurationError`` without one, ``UnavailableError``.

    Legacy objects are read too, where the cluster has them; such a cluster may not know the kinds of v1.
    """
    from joinery.cli.legacy import with_legacy
    from joinery.cluster import legacy
    from joinery.cluster.auth import from_kubeconfig
    from joinery.cluster.kubernetes import KubernetesCluster
    from joinery.cluster.lists import CUSTOM
    from joinery.cluster.transport import Transport

    transport = Transport(from_kubeconfig())
    documents = legacy.documents(transport)
    kinds = [kind for kind in CUSTOM.values() if not documents or legacy.is_served(transport, kind.path)]
    snapshot = KubernetesCluster(transport, now=lambda: now, kinds=kinds).snapshot()
    return with_legacy(snapshot, documents) if documents else snapshot


def _live_catalog() -> "Catalog":
    from joinery.cloudprovider.ec2 import Ec2Cloud

    return Ec2Cloud(_setting("CLUSTER", ""), _region(), now=lambda: moment(None)).catalog()


def _stored_catalog(bucket: str) -> "Catalog":
    from joinery.store.s3 import S3Store

    return S3Store(bucket, _region()).catalog()


def _region() -> str:
    return _setting("REGION", os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1")


def _setting(name: str, default: str) -> str:
    """What the stack's functions are told too (joinery.settings)."""
    return os.environ.get(f"JOINERY_{name}", "").strip() or default
