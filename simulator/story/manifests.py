"""Kubernetes manifests in a scenario: which of them the simulated cluster can take, and what is wrong with others."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from pydantic import ValidationError

from joinery.apis.validation import explain
from simulator.actors.workloads import workload
from simulator.kubernetes.resources import KINDS, from_document

WORKLOADS = ("Deployment", "StatefulSet")
_VERSIONS = {**{name: kind.api_version for name, kind in KINDS.items()}, **dict.fromkeys(WORKLOADS, "apps/v1")}


def taken_apart(manifests: Iterable[Any]) -> Iterator[Any]:
    """The manifests, those inside of lists one by one."""
    for manifest in manifests:
        items = manifest.get("items") if isinstance(manifest, dict) and manifest.get("kind") == "List" else None
        if isinstance(items, list):
            yield from taken_apart(items)
        else:
            yield manifest


def problems(manifests: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each manifest that cannot be taken."""
    for manifest in manifests:
        problem = _problem(manifest)
        if problem:
            yield problem


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


def _problem(manifest: Any) -> str:
    if not isinstance(manifest, dict):
        return "a manifest is not a map"
    kind, metadata = manifest.get("kind"), manifest.get("metadata")
    if not isinstance(kind, str):
        return "a manifest has no kind"
    called = metadata.get("name") or metadata.get("generateName") or "" if isinstance(metadata, dict) else ""
    name = f"{kind} {called}".rstrip()
    if kind not in _VERSIONS:
        return f"{name}: the simulation knows no such kind; it knows {', '.join(sorted(_VERSIONS))}"
    version = manifest.get("apiVersion", _VERSIONS[kind])
    if version != _VERSIONS[kind]:
        return f"{name}: the simulation knows no {kind} of {version}; write it in {_VERSIONS[kind]}"
    try:
        workload(manifest) if kind in WORKLOADS else from_document(kind, manifest)
    except ValidationError as error:
        return f"{name}: {explain(error)}"
    except msgspec.ValidationError as error:
        return f"{name}: {error}"
    except KeyError as error:
        return f"{name}: {error.args[0]} is missing"
    return "" if called else f"{name}: metadata.name is missing"
