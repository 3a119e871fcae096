"""Where a plan's input comes from when the user does not say: the current cluster, the stored catalogue, the sample."""

import gzip
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from joinery.objects.errors import ConfigurationError, JoineryError
from joinery_cli.notices import tell, warning, working
from joinery_cli.prices import SAMPLE as SAMPLE_NAME
from joinery_cli.prices import Prices
from joinery_cli.reading.documents import read, source_name
from joinery_cli.regions import cluster_region, cluster_zones, is_region, zone_ids_asked_for, zones_asked_for

if TYPE_CHECKING:
    from joinery.gateways.ec2.catalog.document import Catalog
    from joinery.gateways.kubernetes.adapter import KubernetesCluster
    from joinery.gateways.memory.s3 import S3Store
    from joinery.objects.autoscaling.capacitybuffer import CapacityBuffer
    from joinery.objects.default_spread import DefaultSpreads
    from joinery.objects.kubernetes.shapes import BufferSources, Shape
    from joinery.objects.settings import Settings
    from joinery.objects.snapshot.snapshot import Snapshot

_FIRST_YEAR, _LAST_YEAR = 1970, 9000
#: Comes with the command line, so that a plan needs neither an account nor a download.
SAMPLE = Path(__file__).parent / "data" / "catalog-us-east-1.json.gz"


class Loaded(NamedTuple):
    """A catalogue, and in words where it came from."""

    catalog: "Catalog"
    source: str


def load_catalog(choice: str | None, region: str = "") -> Loaded:
    """The catalogue of ``--catalog``: a file, ``aws`` (read live), or where nothing is said the last one stored.

    ``region``: where the live one is read for; empty is the region of the environment. Raises ``ConfigurationError``
    naming the file; ``UnavailableError`` where AWS cannot be reached.
    """
    if choice == "aws":
        return Loaded(live_catalog(region), "AWS")
    if choice is not None:
        return Loaded(_catalog_file(choice), source_name(choice))
    bucket = _setting("BUCKET", "")
    if bucket:
        return Loaded(_stored_catalog(bucket), f"bucket {bucket}")
    if SAMPLE.exists():
        return Loaded(_catalog_file(str(SAMPLE)), SAMPLE_NAME)
    raise ConfigurationError("no catalogue: give --catalog FILE, or --catalog aws")


def check_target(path: str) -> None:
    """Raises ``ConfigurationError`` where ``--save`` could not write, before anything is read for it."""
    target = Path(path)
    folder = target.parent
    if not folder.is_dir():
        raise ConfigurationError(f"--save {path}: there is no folder {folder}")
    if target.is_dir():
        raise ConfigurationError(f"--save {path}: is a folder")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise ConfigurationError(f"--save {path}: may not be written")


def save_catalog(catalog: "Catalog", path: str) -> None:
    """Write a catalogue that ``--catalog`` takes, gzipped where the name ends so.

    Raises ``ConfigurationError`` naming the file.
    """
    from joinery.gateways.ec2.catalog.document import encode

    data = encode(catalog)
    try:
        Path(path).write_bytes(gzip.compress(data, mtime=0) if path.endswith(".gz") else data)
    except OSError as error:
        raise ConfigurationError(f"--save {path}: {error.strerror or error}") from error


def prices_of(loaded: Loaded, snapshot: "Snapshot", region: str = "") -> tuple["Catalog", Prices]:
    """The catalogue to plan with, and what is to be said of its prices. ``region``: the cluster's, where a person names
    it.

    One of another region than the cluster's is presented as if it were the cluster's (``joinery_cli.relocation``).
    """
    catalog = loaded.catalog
    cluster = region or cluster_region(snapshot)
    zones = cluster_zones(snapshot, cluster) if cluster else {}
    sold = {zone.name for zone in catalog.zones} | {offering.zone for offering in catalog.offerings}
    is_foreign = is_region(catalog.region) and cluster not in ("", catalog.region) and not zones.keys() & sold
    asked_ids = tuple(one for one in zone_ids_asked_for(snapshot, cluster) if one not in zones.values())
    prices = Prices(
        region=catalog.region,
        source=loaded.source,
        priced=catalog.priced,
        cluster_region=cluster if is_foreign or cluster == catalog.region else "",
        lacking=()
        if is_foreign or cluster != catalog.region
        else tuple(zone for zone in zones_asked_for(snapshot, cluster) if zone not in sold),
        guessed_zone_ids=asked_ids if is_foreign else (),
        missing=tuple(map(str, catalog.missing)),
    )
    if not is_foreign:
        return catalog, prices
    # A cluster of another region pays for it.
    from joinery_cli.relocation import relocated

    return relocated(catalog, cluster, zones, asked_ids), prices


def _catalog_file(path: str) -> "Catalog":
    data = read(path)
    try:
        return _decoded(data)
    except (ConfigurationError, RecursionError) as error:
        raise ConfigurationError(f"{source_name(path)}: {error}") from error


@lru_cache(maxsize=2)
def _decoded(data: bytes) -> "Catalog":
    """The same document is the same catalogue, so that its types are worked out once by whoever calls many commands in
    one process. Raises ``ConfigurationError``.
    """
    from joinery.gateways.ec2.catalog.document import decode
    from joinery.gateways.ec2.catalog.resolved import decode_entries

    catalog = decode_entries(data) if data.lstrip().startswith(b"[") else decode(data)
    # Every command reads the entries, and only the caller knows whose they are.
    _ = catalog.described
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
    if not _FIRST_YEAR <= parsed.year <= _LAST_YEAR:
        raise ConfigurationError(f"--now {text}: the year must be between {_FIRST_YEAR} and {_LAST_YEAR}")
    return parsed.astimezone(UTC)


def live_snapshot(now: datetime, spreads: "DefaultSpreads" = ()) -> "Snapshot":
    """The cluster of the current kubeconfig, only read, with what schedulers spread by themselves.
    ``ConfigurationError`` without one, ``UnavailableError``.

    Legacy objects are read too, where the cluster has them; such a cluster may not know the kinds of v1. Who reads it
    again in one process asks only for what has changed.
    """
    from joinery_cli.advice import reading_cluster

    with reading_cluster():
        try:
            return replace(_cluster(spreads).snapshot(), now=now)
        except JoineryError:
            # Whoever tries again does so with a connection, and an idea of the cluster, of its own.
            _cluster.cache_clear()
            raise


def live_buffer_sources(spreads: "DefaultSpreads", buffers: Sequence["CapacityBuffer"]) -> "BufferSources":
    """What buffers of that cluster refer to. Raises as ``live_snapshot``."""
    from joinery_cli.advice import reading_cluster

    with reading_cluster():
        return _cluster(spreads).buffer_sources(buffers)


def live_templates(spreads: "DefaultSpreads", names: Sequence[str]) -> "Mapping[str, Shape]":
    """What the pods of PodTemplates of that cluster look like. Raises as ``live_snapshot``."""
    from joinery_cli.advice import reading_cluster

    with reading_cluster():
        return _cluster(spreads).pod_templates(names)


@lru_cache(maxsize=1)
def _cluster(spreads: "DefaultSpreads") -> "KubernetesCluster":
    from joinery.gateways.ec2.offline import NODE_CLASS
    from joinery.gateways.kubernetes.adapter import KubernetesCluster
    from joinery.gateways.kubernetes.auth import from_kubeconfig
    from joinery.gateways.kubernetes.legacy import LegacyApis
    from joinery.gateways.kubernetes.transport import Transport

    transport = Transport(from_kubeconfig())
    legacy = LegacyApis(transport, NODE_CLASS, needs_v1=False)
    return KubernetesCluster(
        transport, now=lambda: moment(None), node_class=NODE_CLASS, legacy=legacy, default_spreads=spreads
    )


def live_catalog(region: str = "") -> "Catalog":
    """What the region sells now; who asks again in one process is answered anew once an hour.

    Raises ``ConfigurationError`` without credentials, ``UnavailableError`` without an answer.
    """
    return _catalog_of(region or _region(), moment(None).replace(minute=0, second=0))


@lru_cache(maxsize=1)
def _catalog_of(place: str, hour: datetime) -> "Catalog":
    from joinery.gateways.ec2.adapter import Ec2Cloud
    from joinery_cli.advice import reading_aws

    with reading_aws(place), working(f"reading what EC2 sells in {place}"):
        return Ec2Cloud(_setting("CLUSTER", ""), place, now=lambda: moment(None), log=_left_out).catalog()


def _left_out(line: str) -> None:
    tell([warning(line)])


def _stored_catalog(bucket: str) -> "Catalog":
    return _store(bucket, _region()).catalog()


@lru_cache(maxsize=1)
def _store(bucket: str, region: str) -> "S3Store":
    from joinery.gateways.memory.s3 import S3Store

    return S3Store(bucket, region)


def _region() -> str:
    return _setting("REGION", os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1")


def _setting(name: str, default: str) -> str:
    """A setting of the stack's functions (joinery.objects.settings), which the command line reads, too."""
    return os.environ.get(f"JOINERY_{name}", "").strip() or default


def stack_settings() -> "Settings | None":
    """What ``JOINERY_SETTINGS`` says, as the stack's parameter ``Settings`` does: how many pods a node takes, among
    others. None where it says nothing. Raises ``ConfigurationError``.
    """
    if not (text := _setting("SETTINGS", "")):
        return None
    from joinery.objects import settings

    return settings.read(settings.environment({"cluster": "any", "settings": text}))


def checked_region(text: str | None) -> str:
    """``--region``, or the empty string without it. Raises ``ConfigurationError`` for what is no region."""
    if text is not None and not is_region(text):
        raise ConfigurationError(f"--region {text}: not a region such as eu-central-1")
    return text or ""


def region_named(text: str | None) -> str:
    """``--region``, or the region of the environment. Raises ``ConfigurationError``."""
    return checked_region(text) or _region()


def region_of(cluster: str, named: str | None, of_context: str) -> str:
    """Where a cluster is: ``--region``, else the kubeconfig's, the environment's, or the AWS profile's region.

    ``of_context``: that of the kubeconfig's context; empty where the context is about another cluster. Raises
    ``ConfigurationError`` where nobody says: a guess would look like a cluster without a stack.
    """
    region = checked_region(named) or of_context or os.environ.get("AWS_REGION") or _region_of_profile()
    if not region:
        raise ConfigurationError(f"in which region is cluster {cluster}? Say --region eu-central-1, or set AWS_REGION")
    return region


def _region_of_profile() -> str:
    """AWS_DEFAULT_REGION, or what the profile is configured for."""
    import boto3
    from botocore.exceptions import ProfileNotFound

    try:
        return boto3.session.Session().region_name or ""
    except ProfileNotFound as error:
        raise ConfigurationError(str(error)) from error
