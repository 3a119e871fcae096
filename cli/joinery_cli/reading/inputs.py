"""Documents become the ``Snapshot`` that a plan is made from.

Whatever cannot be read stops here, in a line each that names file, object, field and what is wrong: a plan for half of
the objects would be believed. What is merely unusual (an unknown operator, a claim that names nothing) is read as it
is; the packing core turns it into a reason on the pod. Objects are sorted, so that their order in the files decides
nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from joinery.gateways.ec2.offline import NODE_CLASS
from joinery.objects.errors import ConfigurationError
from joinery.objects.karpenter.legacy import Equivalent, equivalents, is_legacy
from joinery.objects.karpenter.meta import Origin
from joinery.objects.kubernetes.decoding import without_nulls
from joinery.objects.kubernetes.workloads import Workload
from joinery.objects.snapshot.equivalents import LegacyReader, NotReadableError, by_older_rules
from joinery.objects.snapshot.snapshot import Snapshot
from joinery.objects.snapshot.successors import FIELDS
from joinery_cli.notices import RefusedFilesError, UserNotice, note, some_of, warning, warnings_of
from joinery_cli.reading.admission.admit import admit
from joinery_cli.reading.admission.workloads import Owner
from joinery_cli.reading.daemons import added, documents_of
from joinery_cli.reading.decoding import read as read_object
from joinery_cli.reading.documents import Document, documents, read, source_name, unserved_in
from joinery_cli.reading.fields import IGNORED, FieldFinding, findings
from joinery_cli.reading.files import files_of
from joinery_cli.reading.kinds import ASIDE, ReadKind, in_place_of, kind_of, makes_pods, problem_of
from joinery_cli.reading.names import nothing_reads
from joinery_cli.reading.placeholders import unfilled
from joinery_cli.reading.schema import BETA, EARLIEST

if TYPE_CHECKING:
    from joinery_cli.options import Daemons

_HOOK = "helm.sh/hook"
_MAKE_PODS = ("pods", "workloads", "daemon_sets")
_NAMELESS = "metadata.name: is missing"


class _Refusal(NamedTuple):
    """What is wrong with a document. Its line is looked up when it is printed: of thousands few are."""

    document: Document
    problem: str

    def __str__(self) -> str:
        return self.document.refusal(self.problem)


@dataclass
class Inputs:
    """The objects of all files; ``notices`` are lines for a person. ``objects`` holds them by field of the snapshot.

    ``legacy`` holds objects of older APIs by kind and name until all files are read (``adopt_legacy``).
    """

    objects: dict[str, dict[Any, Any]] = field(default_factory=dict)
    notices: list[UserNotice] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    unplanned: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    surprises: dict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))
    """Objects, and what is odd about each, by file."""
    legacy: dict[Origin, Document] = field(default_factory=dict)
    of_karpenter: dict[tuple[str, str], Document] = field(default_factory=dict)
    """NodePools and node classes of v1 as they stand in the files, by kind and name."""
    refused: list[object] = field(default_factory=list)
    """File, line, object and field of everything that is wrong, as texts once somebody prints them."""
    hooks: list[str] = field(default_factory=list)
    """What makes pods only while Helm is at work."""
    unserved: set[str] = field(default_factory=set)
    """What the cluster of a record did not serve (``Snapshot.unserved``)."""
    generated: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many names were made for each kind and ``generateName``."""

    def add(self, document: Document) -> None:
        """Take one object in, or what is wrong with it."""
        if is_legacy((f"{document.group}/{document.version}", document.kind)):
            document = self._named(document)
            if placeholder := unfilled(document.kind, document.raw):
                self._found(document, placeholder)
            if not placeholder or not placeholder.is_error:
                self.legacy[Origin(f"{document.group}/{document.version}", document.kind, document.name)] = document
            return
        if problem := problem_of(document):
            self._refuse(document, problem)
            return
        kind = kind_of(document)
        if kind is None:
            self._ignore(document)
        else:
            self._keep(self._named(document), kind)

    def add_daemons(self, daemons: "Daemons") -> None:
        """Those DaemonSets that no file has."""
        own = self.objects.setdefault("daemon_sets", {})
        there = set(own)
        for document in documents_of(daemons):
            if f"{document.namespace}/{document.name}" not in there:
                self.add(document)
        self.notices.append(added([one for key, one in own.items() if key not in there]))

    def _ignore(self, document: Document) -> None:
        if makes_pods(document):
            kind = f"{document.kind}.{document.group}", in_place_of(document)
            self.unplanned[kind].append(f"{document}{_stem(document)}")
        else:
            self.ignored[document.kind] += 1

    def _refuse(self, document: Document, *problems: str) -> None:
        self.refused += [_Refusal(document, problem) for problem in problems]

    def _found(self, document: Document, one: FieldFinding) -> None:
        if one.is_error:
            self._refuse(document, f"{one.path}: {one.problem}")
        else:
            self.surprises[document.source].append((document.called, f"{one.path}: {one.problem}"))

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

    def _keep(self, document: Document, kind: ReadKind) -> None:
        reading = read_object(document, kind)
        self._refuse(document, *reading.problems)
        for surprise in reading.surprises:
            self._found(document, surprise)
        self.notices += [reading.notice] if reading.notice else []
        value = reading.value
        if value is None:
            return
        key: Any = f"{document.namespace or 'default'}/{document.name}" if kind.namespaced else document.name
        if kind.field == "workloads":
            key = Owner(document.kind, key)
        objects = self.objects.setdefault(kind.field, {})
        if objects.get(key, value) != value:
            self.notices.append(warning(f"{document}: given twice, the later one counts"))
        objects[key] = value
        if kind.field in ("node_pools", "node_classes"):
            self.of_karpenter[document.kind, document.name] = document
        if kind.field in ("workloads", "daemon_sets"):
            self.surprises[document.source] += (
                (document.called, one) for one in nothing_reads(value.metadata.annotations, document.kind)
            )
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
        snapshot = Snapshot(now=now, unserved=frozenset(self.unserved), **ordered)
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
        found: dict[Origin, dict[str, FieldFinding]] = defaultdict(dict)
        for equivalent in equivalents(stored.values()):
            of_origin = list(_of_legacy(self.legacy[equivalent.origin], equivalent))
            # One object may have several equivalents, and is still misspelt only once.
            for one in of_origin:
                found[equivalent.origin].setdefault(one.path, one)
            self._adopt(self.legacy[equivalent.origin], equivalent, reader, of_origin)
        for origin, by_path in found.items():
            for one in by_path.values():
                self._found(self.legacy[origin], one)

    def _adopt(
        self, origin: Document, equivalent: Equivalent, reader: LegacyReader, found: Sequence[FieldFinding]
    ) -> None:
        try:
            value = reader.decoded(equivalent)
        except NotReadableError as error:
            # Most of it follows from what is wrong with the object as it is written.
            if not any(one.is_error for one in found):
                self._refuse(origin, *error.problems)
            return
        objects = self.objects.setdefault(reader.field_of(value), {})
        self.notices += [warning(f"{origin}: {lost}") for lost in equivalent.notes]
        if value.metadata.name in objects:
            self.notices.append(warning(f"{origin}: not used, the {value.kind} {value.metadata.name} of v1 counts"))
        objects.setdefault(value.metadata.name, value)

    def all_notices(self) -> list[UserNotice]:
        """Everything a person should know about what was not used, or not as it stands."""
        pods = [warning(_unplanned(objects, *kind)) for kind, objects in self.unplanned.items()]
        hooks = [note(_hooked(self.hooks))] if self.hooks else []
        kinds = [note(f"ignored {_number(kind, n)}: not used in a plan") for kind, n in sorted(self.ignored.items())]
        surprises = [one for file, odd in self.surprises.items() for one in warnings_of(odd, f"{file}: ")]
        return [*self.notices, *surprises, *pods, *hooks, *kinds]


def load(paths: Iterable[str], *, recursive: bool = False, daemons: "Daemons | None" = None) -> Inputs:
    """What a cluster makes of the objects of all files and folders, and of ``daemons`` what those lack.

    Raises ``RefusedFilesError`` with everything that is wrong with them.
    """
    inputs = collected(paths, recursive=recursive)
    if daemons:
        inputs.add_daemons(daemons)
    inputs.notices += admit(inputs.objects)
    return inputs


def collected(paths: Iterable[str], *, recursive: bool = False) -> Inputs:
    """The objects of all files and folders (``files_of``). Raises ``RefusedFilesError``."""
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
    return inputs


def _of_legacy(document: Document, equivalent: Equivalent) -> Iterator[FieldFinding]:
    """What is wrong with a legacy object as it is written, and with what it is in v1."""
    became = equivalent.document.get("kind", "")
    as_written = f"{document.kind}{BETA}" if document.kind == became else document.kind
    as_written += EARLIEST if document.version in ("v1alpha3", "v1alpha4") else ""
    # What has no equivalent is said where it is converted.
    yield from (one for one in findings(as_written, document.raw) if one.problem != IGNORED)
    if became:
        where = "" if became == document.kind else f"as {became}: "
        in_v1 = findings(became, msgspec.json.encode(equivalent.document))
        yield from (one._replace(path=f"{where}{one.path}") for one in in_v1)


def _load_file(inputs: Inputs, path: str) -> None:
    try:
        is_empty = True
        data = read(path)
        inputs.unserved.update(unserved_in(data))
        for document in documents(source_name(path), data):
            is_empty = False
            inputs.add(document)
        if is_empty:
            inputs.notices.append(warning(f"{source_name(path)}: no objects in it"))
    except ConfigurationError as error:
        # Where the next object in this file begins is not known any more.
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
