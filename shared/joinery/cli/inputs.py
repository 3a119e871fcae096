"""Documents become the ``Snapshot`` that a plan is made from.

Whatever cannot be read stops here, in one line that names file, object, field and what is wrong: a plan for half of the
objects would be believed. What is merely unusual (an unknown operator, a claim that names nothing) is read as it is; the
packing core turns it into a reason on the pod. Objects are sorted, so that their order in the files decides nothing.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from datetime import datetime
from typing import Any

import msgspec

from joinery.apis.decoding import without_nulls
from joinery.apis.legacy import equivalents, is_legacy
from joinery.cli.admission import admit
from joinery.cli.decoding import check, decode, unknown_fields
from joinery.cli.documents import Document, documents, read, source_name
from joinery.cli.kinds import ASIDE, Kind, kind_of, problem_of, unsupported
from joinery.cli.legacy import decoded, in_new_words, old_selections
from joinery.cli.notices import Notice, note, warning
from joinery.cli.workloads import Owner
from joinery.errors import ConfigurationError
from joinery.state.snapshot import Snapshot


@dataclass
class Inputs:
    """The objects of all files; ``notices`` are lines for a person. ``found`` holds them by field of the snapshot.

    ``unknown`` counts fields that nobody knows, by kind and path. ``legacy`` holds objects of older APIs by kind and name until all files are read (``adopt_legacy``).
    """

    found: dict[str, dict[Any, Any]] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    legacy: dict[tuple[str, str], Document] = field(default_factory=dict)
    generated: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many names were made for each kind and ``generateName``."""

    def add(self, document: Document) -> None:
        """Take one object in. Raises ``ConfigurationError``."""
        if is_legacy((f"{document.group}/{document.version}", document.kind)):
            check(document, "" if document.name else "metadata.name: is missing")
            self.legacy[document.kind, document.name] = document
            return
        check(document, problem_of(document))
        kind, reason = kind_of(document), unsupported(document)
        if reason:
            self.notices.append(warning(f"not supported yet: {document.kind} {document.name} ({reason})"))
        elif kind is not None:
            self._keep(self._named(document), kind)
        else:
            self.ignored[document.kind] += 1

    def _named(self, document: Document) -> Document:
        """The object with a name: ``generateName`` and a number, as the API server appends a few letters."""
        if document.name:
            return document
        value = msgspec.json.decode(document.raw)
        stem = (value.get("metadata") or {}).get("generateName")
        if not isinstance(stem, str) or not stem:
            raise ConfigurationError(f"{document}: metadata.name: is missing")
        self.generated[document.kind, stem] += 1
        value["metadata"]["name"] = f"{stem}{self.generated[document.kind, stem]}"
        return replace_fields(document, name=value["metadata"]["name"], raw=msgspec.json.encode(value))

    def _keep(self, document: Document, kind: Kind) -> None:
        for path, _, advice in unknown_fields(document, kind):
            if advice:
                self.notices.append(warning(f"{document}: {path}: {advice}"))
            else:
                self.unknown[document.kind, path] += 1
        found, notice = decode(document, kind)
        self.notices += [notice] if notice else []
        if found is None:
            return
        key: Any = f"{document.namespace or 'default'}/{document.name}" if kind.namespaced else document.name
        if kind.field == "workloads":
            key = Owner(document.kind, key)
        kept = self.found.setdefault(kind.field, {})
        if kept.get(key, found) != found:
            self.notices.append(warning(f"{document}: given twice, the later one counts"))
        kept[key] = found

    def snapshot(self, now: datetime) -> Snapshot:
        """All objects at that moment, sorted by name."""
        ordered = {
            name: tuple(kept[key] for key in sorted(kept)) for name, kept in self.found.items() if name not in ASIDE
        }
        snapshot = Snapshot(now=now, **ordered)
        return in_new_words(snapshot) if self.legacy else snapshot

    def adopt_legacy(self) -> None:
        """Read the legacy objects as what they are in v1. Raises ``ConfigurationError`` for one that is nothing there."""
        for equivalent in equivalents(without_nulls(msgspec.json.decode(found.raw)) for found in self.legacy.values()):
            origin = self.legacy[equivalent.origin]
            try:
                where, made = decoded(equivalent)
            except ConfigurationError as error:
                raise ConfigurationError(f"{origin}: {error}") from error
            kept = self.found.setdefault(where, {})
            self.notices += [warning(f"{origin}: {lost}") for lost in equivalent.notes]
            if made.metadata.name in kept:
                self.notices.append(warning(f"{origin}: not used, there is a {made.kind} {made.metadata.name}"))
            kept.setdefault(made.metadata.name, made)
        if self.legacy:
            self.notices += map(note, old_selections(self.found.get("pods", {}).values()))

    def all_notices(self) -> list[Notice]:
        """Everything a person should know about what was not used, or not as it stands."""
        fields = [
            warning(f"ignored {path} of {_number(kind, n)}: no such field")
            for (kind, path), n in sorted(self.unknown.items())
        ]
        kinds = [note(f"ignored {_number(kind, n)}: not used in a plan") for kind, n in sorted(self.ignored.items())]
        return self.notices + fields + kinds


def load(paths: Iterable[str]) -> Inputs:
    """The objects of all files (``-`` is standard input). Raises ``ConfigurationError`` for the first broken one."""
    inputs = Inputs()
    for path in paths:
        listed = list(documents(source_name(path), read(path)))
        for document in listed:
            inputs.add(document)
        if not listed:
            inputs.notices.append(warning(f"{source_name(path)}: no objects in it"))
    inputs.adopt_legacy()
    inputs.notices += admit(inputs.found)
    return inputs


def _number(kind: str, n: int) -> str:
    return f"{n} object{'s' if n > 1 else ''} of kind {kind}"
