"""Kubernetes manifests in a scenario: which of them the simulated cluster can take, and what is wrong with others."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from pydantic import ValidationError

from joinery.apis.validation import explain
from simulator.actors.workloads import workload
from simulator.kubernetes.resources import KINDS, from_document

WORKLOADS = ("Deployment", "StatefulSet")


def problems(manifests: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line for each manifest that cannot be taken."""
    for manifest in manifests:
        problem = _problem(manifest)
        if problem:
            yield problem


def _problem(manifest: dict[str, Any]) -> str:
    kind, metadata = manifest.get("kind"), manifest.get("metadata")
    if not isinstance(kind, str):
        return "a manifest has no kind"
    name = f"{kind} {metadata.get('name', '')}" if isinstance(metadata, dict) else kind
    known = {*KINDS, *WORKLOADS}
    if kind not in known:
        return f"{name}: the simulation knows no such kind; it knows {', '.join(sorted(known))}"
    try:
        workload(manifest) if kind in WORKLOADS else from_document(kind, manifest)
    except ValidationError as error:
        return f"{name}: {explain(error)}"
    except msgspec.ValidationError as error:
        return f"{name}: {error}"
    except KeyError as error:
        return f"{name}: {error.args[0]} is missing"
    return ""
