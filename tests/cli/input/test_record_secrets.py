"""A record holds what a decision read, and nothing that an owner would not show: planned again it says the same."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from joinery.controllers.reporting.record import decision_document
from joinery.decisions.scheduling.packing import Packing
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.solve import solve
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.reading.inputs import load
from simulator import builders
from tests.cli.conftest import Run, Write

SECRET = "hunter2-do-not-tell"
CLUSTER = Path(__file__).parents[2] / "data" / "real" / "cluster.json.gz"
#: What no snapshot holds.
NOT_READ = ("Deployment", "StatefulSet", "ReplicaSet", "Job", "CronJob", "HorizontalPodAutoscaler", "Event", "Lease")
APPLIED = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"password": SECRET})}


def _plant(value: Any) -> Any:
    """A secret in every place where one may be, as people put them there."""
    if isinstance(value, list):
        return [_plant(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {key: _plant(each) for key, each in value.items()}
    if isinstance(found.get("metadata"), dict):
        meta = found["metadata"]
        found["metadata"] = {**meta, "annotations": {**(meta.get("annotations") or {}), **APPLIED}}
    if isinstance(found.get("containers"), list):
        told = {
            "env": [{"name": "PASSWORD", "value": SECRET}],
            "args": [f"--token={SECRET}"],
            "command": ["run", SECRET],
        }
        found["containers"] = [{**container, **told} for container in found["containers"]]
    if isinstance(found.get("csi"), dict):
        found["csi"] = {**found["csi"], "volumeAttributes": {"key": SECRET}}
    if {"type", "status", "lastTransitionTime"} <= found.keys() and found["type"] not in (
        "Ready",
        "ValidationSucceeded",
    ):
        found["message"] = SECRET
    return found


def _planted() -> list[dict[str, Any]]:
    listed = json.loads(gzip.decompress(CLUSTER.read_bytes()))["items"]
    items = [_plant(item) for item in listed if item["kind"] not in NOT_READ]
    for item in items:
        if item["kind"] == "EC2NodeClass":
            item["spec"] |= {
                "userData": f"#!/bin/sh\nexport TOKEN={SECRET}",
                "tags": {"token": SECRET},
                "context": SECRET,
                "kubelet": {**item["spec"].get("kubelet", {}), "staticPodURLHeader": {"Authorization": [SECRET]}},
            }
    return items


@pytest.fixture(scope="module")
def planted() -> str:
    """A real cluster, with secrets."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": _planted()})


def _snapshot(path: str) -> Snapshot:
    return load([path]).snapshot(builders.EPOCH)


def _record(snapshot: Snapshot) -> str:
    return msgspec.json.encode(decision_document(Problem(snapshot=snapshot, instance_types={}), Packing(), ())).decode()


def test_no_secret_gets_into_a_record(planted: str, write: Write) -> None:
    """Neither from annotations nor from environments, user data, tags, messages or parameters of volumes."""
    path = write("cluster.json", json.loads(planted))
    assert SECRET in planted
    assert SECRET not in _record(_snapshot(path))


def test_a_record_is_decided_like_the_cluster_it_was_made_of(planted: str, write: Write) -> None:
    """To the byte: what was left out is what no decision reads."""
    snapshot = _snapshot(write("cluster.json", json.loads(planted)))
    again = _snapshot(write("record.json", json.loads(_record(snapshot))))
    assert _decided(again) == _decided(snapshot)


def test_a_template_with_too_many_annotations_is_refused_by_its_record_too(write: Write) -> None:
    """Their number counts, what they say does not."""
    pool = builders.node_pool(annotations={"note": SECRET * 10_000})
    again = _snapshot(write("record.json", json.loads(_record(Snapshot(now=builders.EPOCH, node_pools=(pool,))))))
    snapshot = Snapshot(now=builders.EPOCH, node_pools=(pool,), pods=(builders.pod(),))
    asked = Snapshot(now=builders.EPOCH, node_pools=again.node_pools, pods=(builders.pod(),))
    assert _decided(asked) == _decided(snapshot)


def test_no_secret_gets_into_what_a_plan_prints(planted: str, run: Run, write: Write) -> None:
    """The table, the JSON and the page show decisions, not manifests."""
    path = write("cluster.json", json.loads(planted))
    for form in _forms():
        outcome = run("plan", "-o", form, "-f", path)
        assert outcome.status in (0, 1), outcome.err
        assert SECRET not in outcome.out + outcome.err


def _forms() -> Iterator[str]:
    yield from ("table", "json", "html")


def _decided(snapshot: Snapshot) -> bytes:
    types = {each.metadata.name: (builders.instance_type("m7a.4xlarge", cpu=16),) for each in snapshot.node_classes}
    return msgspec.json.encode(solve(Problem(snapshot=snapshot, instance_types=types)), enc_hook=str)
