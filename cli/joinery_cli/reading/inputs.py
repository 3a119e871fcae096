"""Documents become the ``Snapshot`` that a plan is made from.

Whatever cannot be read stops here, in a line each that names file, object, field and what is wrong: a plan for half of
the objects would be believed. What is merely unusual (an unknown operator, a claim that names nothing) is read as it
is; the packing core turns it into a reason on the pod. Objects are sorted, so that their order in the files decides
nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from datetime import datetime
from typing import Any

import msgspec

from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.legacy import Equivalent, equivalents, is_legacy
from joinery.objects.karpenter.meta import Origin
from joinery.objects.kubernetes.decoding import without_nulls
from joinery.objects.kubernetes.workloads import Workload
from joinery.objects.snapshot.legacy import LegacyReader, NotReadableError, by_older_rules
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.successors import FIELDS
from joinery_cli.notices import Notice, note, some_of, warning, warnings_of
from joinery_cli.reading.admission import admit
from joinery_cli.reading.decoding import besides
from joinery_cli.reading.decoding import read as read_object
from joinery_cli.reading.documents import Document, documents, read, source_name
from joinery_cli.reading.fields import Unknown
from joinery_cli.reading.files import files_of
from joinery_cli.reading.kinds import ASIDE, Kind, gone_for, in_place_of, kind_of, makes_pods, problem_of, unsupported
from joinery_cli.reading.legacy_fields import unknown_in_legacy
from joinery_cli.reading.own_annotations import nothing_reads
from joinery_cli.reading.placeholders import unfilled
from joinery_cli.reading.refusals import refused_by_a_cluster
from joinery_cli.reading.refused import RefusedFilesError
from joinery_cli.reading.workloads import Owner

_HOOK = "helm.sh/hook"
_MAKE_PODS = ("pods", "workloads", "daemon_sets")
_IGNORED = {
    "ResourceQuota": "a quota may let in fewer pods than are planned",
    "VerticalPodAutoscaler": "pods may be made with other requests than are planned",
}
_NAMELESS = "metadata.name: is missing"


@dataclass
class Inputs:
    """The objects of all files; ``notices`` are lines for a person. ``objects`` holds them by field of the snapshot.

    ``unknown`` counts fields that nobody knows, by kind and path. ``legacy`` holds objects of older APIs by kind and
    name until all files are read (``adopt_legacy``).
    """

    objects: dict[str, dict[Any, Any]] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    unplanned: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    legacy: dict[Origin, Document] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    """File, object and field of everything that is wrong."""
    hooks: list[str] = field(default_factory=list)
    """What makes pods only while Helm is at work."""
    generated: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many names were made for each kind and ``generateName``."""
    gone: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How many objects are of a version that no cluster takes: by kind, version, and what to write instead."""

    def add(self, document: Document) -> None:
        """Take one object in, or what is wrong with it."""
        if is_legacy((f"{document.group}/{document.version}", document.kind)):
            document = self._named(document)
            for open_one in unfilled(document.kind, document.raw):
                self._refuse(document, *([f"{open_one.path}: {open_one.problem}"] if open_one.problem else ()))
                self._wonder(document, open_one)
            self.legacy[Origin(f"{document.group}/{document.version}", document.kind, document.name)] = document
            return
        if problem := problem_of(document):
            self._refuse(document, problem)
            return
        kind, reason = kind_of(document), unsupported(document)
        if reason:
            self.notices.append(warning(f"not supported yet: {document.kind} {document.name} ({reason})"))
        elif kind is None:
            self._ignore(document)
        else:
            if instead := gone_for(document):
                self.gone[document.kind, f"{document.group}/{document.version}", instead] += 1
            self._keep(self._named(document), kind)

    def _ignore(self, document: Document) -> None:
        if makes_pods(document):
            kind = f"{document.kind}.{document.group}", in_place_of(document)
            self.unplanned[kind].append(f"{document}{_stem(document)}")
        else:
            self.ignored[document.kind] += 1

    def _refuse(self, subject: object, *problems: str) -> None:
        self.refused += [f"{subject}: {problem}" for problem in problems]

    def _wonder(self, document: Document, unknown: Unknown) -> None:
        if unknown.advice:
            self.notices.append(warning(f"{document}: {unknown.path}: {unknown.advice}"))

    def _named(self, document: Document) -> Document:
        """The object with a name: ``generateName`` and a number, as the API server appends a few letters."""
        if document.name:
            return document
        value = msgspec.json.decode(document.raw)
        metadata = value.get("metadata")
        stem = metadata.get("generateName") if isinstance(metadata, dict) else None
        if not isinstance(stem, str) or not stem:
            self._refuse(document, _NAMELESS)
            # There may be more to say of it.
            value["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "name": "nameless"}
            return replace_fields(document, raw=msgspec.json.encode(value))
        self.generated[document.kind, stem] += 1
        value["metadata"]["name"] = f"{stem}{self.generated[document.kind, stem]}"
        return replace_fields(document, name=value["metadata"]["name"], raw=msgspec.json.encode(value))

    def _keep(self, document: Document, kind: Kind) -> None:
        reading = read_object(document, kind)
        self._refuse(document, *reading.problems)
        for unknown in reading.unknown:
            self._wonder(document, unknown)
            self.unknown[document.kind, unknown.path] += not unknown.advice
        self.notices += [reading.notice] if reading.notice else []
        value = reading.value
        if value is None:
            return
        refusals = refused_by_a_cluster(document.kind, value)
        self.notices += warnings_of((f"{document}: an API server refuses it", why) for why in refusals)
        key: Any = f"{document.namespace or 'default'}/{document.name}" if kind.namespaced else document.name
        if kind.field == "workloads":
            key = Owner(document.kind, key)
        objects = self.objects.setdefault(kind.field, {})
        if objects.get(key, value) != value:
            self.notices.append(warning(f"{document}: given twice, the later one counts"))
        objects[key] = value
        if kind.field in ("workloads", "daemon_sets"):
            slips = nothing_reads(value.metadata.annotations, (), f"a {document.kind}")
            self.notices += [warning(f"{document}: {slip}") for slip in slips]
        hook = value.metadata.annotations.get(_HOOK)
        if hook and not value.metadata.uid and kind.field in _MAKE_PODS:
            self.hooks.append(f"{document.kind} {document.namespace or 'default'}/{document.name} ({hook})")

    def snapshot(self, now: datetime) -> Snapshot:
        """All objects at that moment, sorted by name."""
        ordered: dict[str, Any] = {
            field: tuple(objects[key] for key in sorted(objects))
            for field, objects in self.objects.items()
            if field not in ASIDE
        }
        ordered |= {
            field: tuple(one for owner, one in sorted(self._workloads()) if owner.kind == kind)
            for kind, field in FIELDS.items()
        }
        snapshot = Snapshot(now=now, **ordered)
        from_legacy = {pool.metadata.name: pool for pool in snapshot.node_pools if pool.origin}
        return by_older_rules(snapshot, from_legacy) if self.legacy else snapshot

    def _workloads(self) -> Iterable[tuple[Owner, Workload]]:
        return self.objects.get("workloads", {}).items()

    def replicas(self) -> dict[str, int]:
        """How many pods the workloads keep, by ``Kind namespace/name``; not those that make Jobs."""
        return {
            str(owner): 1 if workload.spec.replicas is None else workload.spec.replicas
            for owner, workload in self._workloads()
            if owner.kind not in ("Job", "CronJob")
        }

    def adopt_legacy(self) -> None:
        """Read the legacy objects as what they are in v1, or say of one that it is nothing there."""
        stored = {
            origin: without_nulls(msgspec.json.decode(one.raw)) for origin, one in self.legacy.items() if one.name
        }
        reader = LegacyReader(NODE_CLASS)
        unknown: dict[tuple[Origin, str], Unknown] = {}
        for equivalent in equivalents(stored.values()):
            slips = tuple(unknown_in_legacy(stored[equivalent.origin], equivalent))
            # One object may have several equivalents, and is still misspelt only once.
            for one in slips:
                unknown.setdefault((equivalent.origin, one.path), one)
            self._adopt(self.legacy[equivalent.origin], equivalent, reader, slips)
        for (origin, path), one in unknown.items():
            self._refuse(self.legacy[origin], *([f"{path}: {one.problem}"] if one.problem else ()))
            self._wonder(self.legacy[origin], one)
            self.unknown[origin.kind, path] += not (one.problem or one.advice)

    def _adopt(self, origin: Document, equivalent: Equivalent, reader: LegacyReader, slips: Sequence[Unknown]) -> None:
        try:
            value = reader.decoded(equivalent)
        except NotReadableError as error:
            self._refuse(origin, *besides(error.problems, slips))
            return
        objects = self.objects.setdefault(reader.field_of(value), {})
        self.notices += [warning(f"{origin}: {lost}") for lost in equivalent.notes]
        if value.metadata.name in objects:
            self.notices.append(warning(f"{origin}: not used, the {value.kind} {value.metadata.name} of v1 counts"))
        objects.setdefault(value.metadata.name, value)

    def all_notices(self) -> list[Notice]:
        """Everything a person should know about what was not used, or not as it stands."""
        fields = [
            warning(f"ignored {path} of {_number(kind, n)}: no such field")
            for (kind, path), n in sorted((+self.unknown).items())
        ]
        pods = [warning(_unplanned(objects, *kind)) for kind, objects in self.unplanned.items()]
        hooks = [note(_hooked(self.hooks))] if self.hooks else []
        kinds = [
            note(f"ignored {_number(kind, n)}: {_IGNORED.get(kind, 'not used in a plan')}")
            for kind, n in sorted(self.ignored.items())
        ]
        gone = [
            warning(f"no supported cluster takes {_number(kind, n)} of {version}; write {instead}")
            for (kind, version, instead), n in sorted(self.gone.items())
        ]
        return self.notices + pods + hooks + gone + fields + kinds


def load(paths: Iterable[str], *, recursive: bool = False) -> Inputs:
    """The objects of all files and folders (``files_of``).

    Raises ``RefusedFilesError`` with everything that is wrong with them.
    """
    inputs = Inputs()
    for path in paths:
        try:
            for file in files_of(path, recursive=recursive):
                _load_file(inputs, file)
        except ConfigurationError as error:
            inputs.refused.append(str(error))
    inputs.adopt_legacy()
    if inputs.refused:
        raise RefusedFilesError(inputs.refused)
    inputs.notices += admit(inputs.objects)
    return inputs


def _load_file(inputs: Inputs, path: str) -> None:
    try:
        is_empty = True
        for document in documents(source_name(path), read(path)):
            is_empty = False
            inputs.add(document)
        if is_empty:
            inputs.notices.append(warning(f"{source_name(path)}: no objects in it"))
    except ConfigurationError as error:
        # What follows in this file cannot be told apart any more.
        inputs.refused.append(str(error))


def _hooked(hooks: list[str]) -> str:
    number = f"{len(hooks):,} hook{'s' if len(hooks) > 1 else ''} of Helm"
    run = (
        "which run only while it installs, upgrades or tests"
        if len(hooks) > 1
        else "which runs only while it installs, upgrades or tests"
    )
    return (
        f"planned as well: {number}, {run}: {some_of(hooks)}; helm template --no-hooks leaves "
        f"{'them' if len(hooks) > 1 else 'it'} out"
    )


def _stem(document: Document) -> str:
    """`` test-`` of an object that gets its name from the API server (``generateName``), as most Workflows do."""
    metadata = msgspec.json.decode(document.raw).get("metadata")
    stem = metadata.get("generateName") if isinstance(metadata, dict) and not document.name else ""
    return f" {stem}" if isinstance(stem, str) and stem else ""


def _unplanned(objects: Sequence[str], kind: str, instead: str) -> str:
    """That the pods of these objects take no part. ``instead``: what is read, and stands for the same pods."""
    whose = "its" if len(objects) == 1 else "their"
    advice = f"give {instead} in {whose} place, or the pods (kubectl get pods)"
    return f"{some_of(objects)}: {whose} pods are not planned: a plan does not read {kind}; {advice}"


def _number(kind: str, n: int) -> str:
    return f"{n} object{'s' if n > 1 else ''} of kind {kind}"
