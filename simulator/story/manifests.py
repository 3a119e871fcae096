"""Kubernetes manifests in a scenario: which of them the simulated cluster can take, and what is wrong with others."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from pydantic import ValidationError

from joinery.objects.karpenter.ec2nodeclass import EC2NodeClass
from joinery.objects.karpenter.legacy import equivalents
from joinery.objects.karpenter.validation import explain
from joinery.objects.snapshot.equivalents import LegacyReader, NotReadableError
from joinery_cli.reading.decoding import Reading, read
from joinery_cli.reading.documents import documents
from joinery_cli.reading.kinds import kind_of
from simulator.actors.workloads import workload
from simulator.kubernetes.cluster import GRACE
from simulator.kubernetes.legacy import is_kept
from simulator.kubernetes.resources import KINDS, from_document

WORKLOADS = ("Deployment", "StatefulSet")
_VERSIONS = {**{name: kind.api_version for name, kind in KINDS.items()}, **dict.fromkeys(WORKLOADS, "apps/v1")}
_KNOWN = f"the simulation knows no such kind; it knows {', '.join(sorted(_VERSIONS))}"


def defaulted(manifest: dict[str, Any], priorities: Mapping[str, int]) -> dict[str, Any]:
    """The manifest with what an API server writes into pods where it is left out: the grace period (core/v1
    ``SetDefaults_PodSpec``), and the ``priorities`` of their class (admission plugin ``Priority``).
    """
    spec = manifest.get("spec") or {}
    if manifest["kind"] == "Pod":
        return {**manifest, "spec": _defaulted(spec, priorities)}
    if manifest["kind"] in (*WORKLOADS, "DaemonSet"):
        template = {**spec["template"], "spec": _defaulted(spec["template"]["spec"], priorities)}
        return {**manifest, "spec": {**spec, "template": template}}
    return manifest


def _defaulted(spec: dict[str, Any], priorities: Mapping[str, int]) -> dict[str, Any]:
    value = priorities.get(spec.get("priorityClassName", ""))
    ranked = {} if value is None else {"priority": value}
    return {"terminationGracePeriodSeconds": GRACE, **ranked, **spec}


def unknown_kinds(kinds: Iterable[str]) -> Iterator[str]:
    """A line for each kind that the simulation does not have."""
    yield from (f"{kind}: {_KNOWN}" for kind in kinds if kind not in _VERSIONS)


def taken_apart(manifests: Iterable[Any]) -> Iterator[Any]:
    """The manifests, those inside of lists one by one."""
    for manifest in manifests:
        items = manifest.get("items") if isinstance(manifest, dict) and manifest.get("kind") == "List" else None
        if isinstance(items, list):
            yield from taken_apart(items)
        else:
            yield manifest


def problems(manifests: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each thing for which a manifest cannot be taken."""
    for manifest in manifests:
        if problem := _unfit(manifest):
            yield problem
            continue
        if is_kept(manifest):
            yield from (f"{_name_of(manifest)}: {problem}" for problem in _unreadable(manifest))
            continue
        reading, called = _read(manifest), _name_of(manifest)
        yield from (f"{called}: {problem}" for problem in reading.problems)
        if not reading.problems and (problem := _untaken(manifest)):
            yield f"{called}: {problem}"


def doubts(manifests: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each field of a manifest that is taken and means nothing."""
    for manifest in manifests:
        for one in () if is_kept(manifest) else _read(manifest).surprises:
            yield f"{_name_of(manifest)}: {one.path}: {one.problem or 'no such field'}"


def twice(manifests: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each object that is there more than once."""
    counts = Counter((manifest["kind"], _key(manifest["metadata"])) for manifest in manifests)
    yield from (
        f"{kind} {name}: is there {count} times" for (kind, name), count in counts.items() if name and count > 1
    )


def _key(metadata: dict[str, Any]) -> str:
    """``namespace/name``, or empty for an object whose name is made for it."""
    name, namespace = metadata.get("name", ""), metadata.get("namespace", "default")
    return f"{namespace}/{name}" if name and namespace != "default" else name


def _name_of(manifest: dict[str, Any]) -> str:
    metadata = manifest.get("metadata")
    called = metadata.get("name") or metadata.get("generateName") or "" if isinstance(metadata, dict) else ""
    return f"{manifest['kind']} {called}".rstrip()


def _unfit(manifest: Any) -> str:
    """Why a manifest is none, or none of the simulation's kinds; or empty."""
    if not isinstance(manifest, dict):
        return "a manifest is not a map"
    kind = manifest.get("kind")
    if not isinstance(kind, str):
        return "a manifest has no kind"
    name = _name_of(manifest)
    if is_kept(manifest):
        return "" if name != kind else f"{name}: metadata.name is missing"
    if kind not in _VERSIONS:
        return f"{name}: {_KNOWN}"
    version = manifest.get("apiVersion", _VERSIONS[kind])
    if version != _VERSIONS[kind]:
        return f"{name}: the simulation knows no {kind} of {version}; write it in {_VERSIONS[kind]}"
    return "" if name != kind else f"{name}: metadata.name is missing"


def _unreadable(manifest: dict[str, Any]) -> Iterator[str]:
    """What is wrong with an object of an older API."""
    reader = LegacyReader(EC2NodeClass)
    for equivalent in equivalents([manifest]):
        try:
            reader.decoded(equivalent)
        except NotReadableError as error:
            yield from error.problems


def _read(manifest: dict[str, Any]) -> Reading:
    """The manifest as ``joinery plan -f`` reads it, which refuses what a cluster would refuse."""
    metadata = manifest["metadata"]
    # The simulated API server makes the rest of such a name.
    named = {**metadata, "name": metadata.get("name") or f"{metadata['generateName']}1"}
    given = {"apiVersion": _VERSIONS[manifest["kind"]], **manifest, "metadata": named}
    (document,) = documents("", msgspec.json.encode(given))
    kind = kind_of(document)
    return read(document, kind) if kind else Reading()


def _untaken(manifest: dict[str, Any]) -> str:
    """What the simulation itself cannot read; or empty."""
    kind = manifest["kind"]
    try:
        workload(manifest) if kind in WORKLOADS else from_document(kind, manifest)
    except ValidationError as error:
        return explain(error)
    except msgspec.ValidationError as error:
        return str(error)
    except KeyError as error:
        return f"{error.args[0]} is missing"
    return ""
