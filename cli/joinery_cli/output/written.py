"""What a function would write for a plan or a decision, as documents of YAML."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from joinery.decisions.disruption.decision import DecidedCommand
from joinery.decisions.disruption.starting import new_commands
from joinery.decisions.lifecycle.disrupting.new_commands import NewCommand, as_candidate, as_replacement, record_for
from joinery.decisions.lifecycle.pools.soaking import owners_that_run_well
from joinery.decisions.termination.taint import tainted
from joinery.gateways.kubernetes.patches import difference, document
from joinery.objects.annotations.disruption import CommandRecord
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.nodeclaim import NodeClaim
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.output.visible import line_of


def print_claims(claims: Iterable[NodeClaim]) -> None:
    """As ``kubectl create -f`` takes them."""
    _print(map(_complete, claims))


def print_commands(commands: Sequence[DecidedCommand], snapshot: Snapshot) -> None:
    """Command after command: of nodes that go what changes, as ``kubectl patch --type merge`` takes it, and the
    NodeClaims of those that come.
    """
    claims = {claim.metadata.name: claim for claim in snapshot.managed_claims}
    for number, (decided, command) in enumerate(zip(commands, new_commands(commands, snapshot), strict=True), 1):
        record = record_for(command, claims.values(), snapshot.now)
        claims |= {one.metadata.name: as_candidate(one, record) for one in command.candidates}
        print(line_of(f"# Command {number}, {decided.reason.value}: {decided.message}"))
        _print(_documents(command, record, snapshot))


def _documents(command: NewCommand, record: CommandRecord, snapshot: Snapshot) -> Iterator[Mapping[str, Any]]:
    nodes = {node.spec.provider_id: node for node in snapshot.nodes if node.spec.provider_id}
    for claim in command.candidates:
        if node := nodes.get(claim.status.provider_id):
            yield _change("v1", "Node", node, tainted(node))
        yield _change(claim.api_version, claim.kind, claim, as_candidate(claim, record))
    is_drift = command.reason is DisruptionReason.DRIFTED
    ran_well = owners_that_run_well(snapshot, command.candidates) if is_drift else ()
    yield from (_complete(as_replacement(claim, record, ran_well)) for claim in command.replacements)


def _complete(claim: NodeClaim) -> Mapping[str, Any]:
    """In a file a NodePool has no UID, and an API server takes no owner without one."""
    written = document(claim)
    owners = [owner for owner in written["metadata"].get("ownerReferences", ()) if owner.get("uid")]
    metadata = {key: value for key, value in written["metadata"].items() if key != "ownerReferences"}
    written["metadata"] = metadata | ({"ownerReferences": owners} if owners else {})
    return {"apiVersion": claim.api_version, "kind": claim.kind, **written}


def _change(version: str, kind: str, before: Any, after: Any) -> Mapping[str, Any]:
    changed = difference(document(before), document(after))
    metadata = {"name": before.metadata.name, **changed.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **changed}


def _print(documents: Iterable[Mapping[str, Any]]) -> None:
    yaml.safe_dump_all(documents, sys.stdout, sort_keys=False, width=120, explicit_start=True)
