"""Records of decisions, as functions keep them in the bucket: a folder of them, one alone, or the bucket itself.

A record is a ``List`` of the objects that were read, with the decision beside it (``controllers.reporting.record``).
Here the decision is read; ``joinery_cli.reading.inputs`` reads the objects, as those of every file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from pydantic import BaseModel

from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.decisions.disruption.problem import DisruptionOptions
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Options
from joinery.objects.errors import ConfigurationError
from joinery_cli.notices import working
from joinery_cli.reading.documents import read

BUCKET = "s3://"
#: What the bucket calls a record (``joinery.gateways.memory.bucket.sealed``).
_KEY = re.compile(r"(?P<day>\d{4}/\d\d/\d\d)/(?P<time>\d{6}\.\d+)-(?P<door>[a-z]+)-[0-9a-f]+\.json(\.gz)?$")
_PREFIX = "decisions/"
_WHOLE_KEY = re.compile(f"{_PREFIX}([0-9A-Za-z_-]+/)?{_KEY.pattern}")
_MOMENT = "%Y/%m/%d/%H%M%S.%f"
#: How many records of a bucket are read at once.
_AT_A_TIME = 8


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class RecordedObject(msgspec.Struct):
    """What is read of every object of a record without the rest of it."""

    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _Decided(msgspec.Struct, rename="camel"):
    now: datetime
    result: msgspec.Raw
    version: str = ""
    options: msgspec.Raw = msgspec.Raw(b"{}")
    disruption: msgspec.Raw = msgspec.Raw()


class _Document(msgspec.Struct):
    joinery: _Decided
    items: list[RecordedObject] = []


_DOCUMENT = msgspec.json.Decoder(_Document)


class OutlinedOffering(msgspec.Struct, frozen=True):
    """Of ``packing.PlacedOffering``."""

    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    price: float = 0.0


class OutlinedLaunch(msgspec.Struct, frozen=True):
    """Of ``packing.Launch``."""

    name: str = ""
    node_pool: str = ""
    offering: OutlinedOffering = OutlinedOffering()
    pods: tuple[str, ...] = ()


class OutlinedCommand(msgspec.Struct, frozen=True):
    """Of ``decision.DecidedCommand``."""

    reason: str = ""
    message: str = ""
    retire: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    savings: float = 0.0


class Outline(msgspec.Struct, frozen=True):
    """What every version writes of a plan or of a decision about nodes; the other's fields are empty."""

    launches: tuple[OutlinedLaunch, ...] = ()
    unplaced: tuple[msgspec.Raw, ...] = ()
    commands: tuple[OutlinedCommand, ...] = ()
    lower_bound: float = 0.0
    prices: dict[str, float] = {}


@dataclass(frozen=True, eq=False)
class Record:
    """One record. ``path``: the file. ``now``: its moment, in UTC. ``objects``: all but pods. ``is_plan``: for pods.

    ``door``: the function that decided. A whole decision is read when it is asked for, and only if it is of this
    version: then a ``ConfigurationError`` names the file.
    """

    path: str
    door: str
    now: datetime
    objects: tuple[RecordedObject, ...]
    outline: Outline
    is_plan: bool
    raw: _Decided

    @cached_property
    def claims(self) -> Mapping[str, RecordedObject]:
        """The NodeClaims by name."""
        return {one.metadata.name: one for one in self.objects if one.kind == "NodeClaim"}

    @cached_property
    def options(self) -> Options:
        """What the decision was made with."""
        options: Options = self._decoded(self.raw.options, Options)
        return options

    @cached_property
    def disruption(self) -> DisruptionOptions | None:
        """The policies of a decision about nodes."""
        return None if self.is_plan else self._decoded(self.raw.disruption, DisruptionOptions)

    @cached_property
    def packing(self) -> Packing | None:
        """The plan; None in the record of a decision about nodes."""
        return self._decoded(self.raw.result, Packing) if self.is_plan else None

    @cached_property
    def disruptions(self) -> DisruptionDecision | None:
        """The decision about nodes; None in the record of a plan."""
        return None if self.is_plan else self._decoded(self.raw.result, DisruptionDecision)

    def _decoded(self, raw: Any, kind: type[Any]) -> Any:
        try:
            return msgspec.json.decode(raw, type=kind, dec_hook=_model)
        except msgspec.MsgspecError as error:
            made = f"version {self.raw.version}" if self.raw.version else "another version"
            raise ConfigurationError(
                f"{self.path}: was recorded by {made}, which decided otherwise: {error}"
            ) from error


def read_record(path: str) -> Record:
    """The record in a file. Raises ``ConfigurationError`` naming it."""
    try:
        document = _DOCUMENT.decode(read(path))
        outline = msgspec.json.decode(document.joinery.result, type=Outline)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"{path}: is no record of a decision: {error}") from error
    is_plan = not bytes(document.joinery.disruption)
    named = _KEY.search(path)
    return Record(
        path=path,
        door=named["door"] if named else "provisioning" if is_plan else "disruption",
        now=document.joinery.now.astimezone(UTC),
        objects=tuple(one for one in document.items if one.kind != "Pod"),
        outline=outline,
        is_plan=is_plan,
        raw=document.joinery,
    )


def _model(kind: type[Any], value: Any) -> Any:
    if issubclass(kind, BaseModel):
        return kind.model_validate(value)
    raise NotImplementedError


# --- where they are ---


@contextmanager
def record_files(place: str, last: timedelta | None, region: str) -> Iterator[tuple[str, ...]]:
    """The files of the records at a place, the oldest first: a folder and those below it, a file, or ``s3://BUCKET``.

    ``last``: how far before the newest they may be, as far as their names say it; None for all. ``region``: the
    bucket's. What is read from a bucket is there until the context ends. Raises ``ConfigurationError`` where there is
    no record, ``UnavailableError``.
    """
    with TemporaryDirectory() as folder:
        if place.startswith(BUCKET):
            files = _downloaded(place, last, region, Path(folder))
        else:
            files = latest(_below(Path(place)), last)
        if not files:
            raise ConfigurationError(f"{place}: there is no record of a decision (decisions/YYYY/MM/DD/*.json.gz)")
        yield tuple(files)


def address(place: str, path: str) -> str:
    """Where the file of a record is for somebody else: in the bucket that it was read from."""
    bucket = place.removeprefix(BUCKET).partition("/")[0]
    found = _WHOLE_KEY.search(path)
    return f"{BUCKET}{bucket}/{found[0]}" if place.startswith(BUCKET) and found else path


def latest(names: Iterable[str], last: timedelta | None) -> list[str]:
    """The names in the order of their moments, without those before the last. What has no moment comes first."""
    dated = sorted((_moment(name), name) for name in names)
    since = ""
    if last is not None and dated and dated[-1][0]:
        newest = datetime.strptime(dated[-1][0], _MOMENT).replace(tzinfo=UTC)
        since = f"{newest - last:{_MOMENT}}"
    return [name for moment, name in dated if not moment or moment >= since]


def _moment(name: str) -> str:
    found = _KEY.search(name)
    return f"{found['day']}/{found['time']}" if found else ""


def _own_moment(key: str) -> str:
    """The moment of a record of the stack's own cluster."""
    return _moment(key) if _KEY.match(key.removeprefix(_PREFIX)) else ""


def _below(place: Path) -> list[str]:
    if not place.is_dir():
        return [str(place)]
    return [str(path) for path in place.rglob("*") if path.name.endswith((".json", ".json.gz")) and path.is_file()]


def _downloaded(place: str, last: timedelta | None, region: str, folder: Path) -> list[str]:
    """The records of a bucket as files. A key keeps its path, because its name says its moment."""
    from concurrent.futures import ThreadPoolExecutor

    from joinery.gateways.aws import Clients, translated
    from joinery_cli.advice import reading_aws

    bucket, _, prefix = place.removeprefix(BUCKET).partition("/")

    def fetched(key: str) -> str:
        file = folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        with translated(f"reading s3://{bucket}/{key}"):
            file.write_bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        return str(file)

    with reading_aws(region):
        s3 = Clients(region).s3
        with translated(f"listing s3://{bucket}/{prefix or _PREFIX}"):
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix or _PREFIX)
            keys = [one["Key"] for page in pages for one in page.get("Contents", ())]
        # Members of a stack have their records below their names.
        wanted = latest(filter(_moment if prefix else _own_moment, keys), last)
        with working(f"reading s3://{bucket}") as said, ThreadPoolExecutor(_AT_A_TIME) as readers:
            files = []
            for file in readers.map(fetched, wanted):
                files.append(file)
                said(f"{len(files):,} of {len(wanted):,} records")
            return files
