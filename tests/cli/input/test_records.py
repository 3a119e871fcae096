"""A decision record is a plan's input: what was decided once can be decided again on anybody's desk."""

import json
from dataclasses import replace

import msgspec
import pytest

from joinery.controllers.reporting.record import MOST_OF_PODS, decision_document
from joinery.decisions.scheduling.packing import Packing, Unplaced
from joinery.decisions.scheduling.problem import Problem
from joinery.decisions.scheduling.reason import Reason, ReasonCode
from joinery.objects.karpenter.labels import MAX_NODE_SHARE, NODE_SIZE, REBALANCE
from joinery.objects.karpenter.validation import validate
from joinery.objects.snapshot.known import Known
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.reading.inputs import load
from simulator.builders import (
    EPOCH,
    daemon_set,
    namespace,
    node,
    node_claim,
    node_class,
    node_pool,
    pdb,
    pod,
    storage_class,
    volume,
    volume_claim,
)
from tests.cli.conftest import Run, Write

SNAPSHOT = Snapshot(
    now=EPOCH,
    pods=(pod("pending", created=EPOCH), pod("running", node="n1", owner="web")),
    nodes=(node("n1"),),
    node_claims=(node_claim("c1", node="n1"),),
    node_pools=(node_pool("default", limits={"cpu": "100"}),),
    node_classes=(node_class(),),
    daemon_sets=(daemon_set(),),
    namespaces=(namespace("default"),),
    volume_claims=(volume_claim(volume="pv-data"),),
    volumes=(volume(),),
    storage_classes=(storage_class(),),
    disruption_budgets=(pdb(max_unavailable=1),),
)


def test_a_record_reads_back_as_the_snapshot_it_was_made_of(write: Write) -> None:
    """Every object of every kind survives, and nothing is ignored."""
    record = decision_document(Problem(snapshot=SNAPSHOT, instance_types={}), Packing(), ())
    inputs = load([write("record.json", record)])
    assert inputs.all_notices() == []
    assert inputs.snapshot(EPOCH) == SNAPSHOT


def test_a_record_says_what_its_cluster_does_not_serve(write: Write) -> None:
    """Or a pod that names a PodGroup, and was bought a node, would wait for it."""
    snapshot = replace(SNAPSHOT, unserved=frozenset({"volcano_groups"}))
    record = decision_document(Problem(snapshot=snapshot, instance_types={}), Packing(), ())
    assert load([write("record.json", record)]).snapshot(EPOCH) == snapshot


def test_a_pod_that_has_changed_is_recorded_as_it_is_now() -> None:
    """What was recorded of the others is kept from one record to the next."""
    known = Known()
    before, after = (pod("pod-1", node="node-1", labels={"at": at}) for at in ("first", "then"))
    same = pod("pod-2", node="node-2")
    for changing in (before, after):
        known.pods = (changing, same)
        snapshot = replace(SNAPSHOT, pods=known.pods, known=known)
        written = msgspec.json.encode(decision_document(Problem(snapshot=snapshot, instance_types={}), Packing(), ()))
        anew = replace(snapshot, known=Known())
        assert written == msgspec.json.encode(
            decision_document(Problem(snapshot=anew, instance_types={}), Packing(), ())
        )


def test_a_record_can_be_planned_again(run: Run, write: Write) -> None:
    """``joinery plan -f`` takes it like any other file."""
    path = write("record.json", decision_document(Problem(snapshot=SNAPSHOT, instance_types={}), Packing(), ()))
    outcome = run("plan", "-o", "json", "-f", path)
    assert outcome.status == 0, outcome.err
    assert [e["pods"] for e in outcome.document["existing"]] == [["default/pending"]]


def test_a_record_of_a_newer_version_is_planned_with_what_is_known(run: Run, write: Write) -> None:
    """What this version does not know is named, and left out."""
    whole = decision_document(Problem(snapshot=SNAPSHOT, instance_types={}), Packing(), ())
    record = json.loads(msgspec.json.encode(whole))
    record["joinery"] |= {"ofTheOther": {"a": 1}, "options": {"ofTheOther": 1}}
    record["items"].append({"apiVersion": "joinery.dev/v2", "kind": "Other", "metadata": {"name": "x"}})
    for item in record["items"]:
        item["ofTheOther"] = {"a": 1}
    outcome = run("plan", "-o", "json", "-f", write("record.json", record))
    assert outcome.status == 0, outcome.err
    assert [e["pods"] for e in outcome.document["existing"]] == [["default/pending"]]
    assert "EC2NodeClass default, NodeClaim c1 and 9 more: ofTheOther: no such field; it is ignored" in outcome.err
    assert "ignored 1 object of kind Other" in outcome.err


@pytest.mark.parametrize("key", [NODE_SIZE, MAX_NODE_SHARE, REBALANCE])
def test_a_node_pool_that_a_wrong_annotation_keeps_out_stays_out_of_its_record(write: Write, key: str) -> None:
    """A plan of the record would buy from it otherwise, which the decision did not."""
    pool = node_pool("default")
    wrong = pool.model_copy(update={"metadata": pool.metadata.model_copy(update={"annotations": {key: "replce"}})})
    snapshot = Snapshot(now=EPOCH, node_pools=(wrong,))

    record = decision_document(Problem(snapshot=snapshot, instance_types={}), Packing(), ())

    (read,) = load([write("record.json", record)]).snapshot(EPOCH).node_pools
    assert validate(read) == validate(wrong)
    assert validate(wrong)


def test_a_record_has_a_ceiling() -> None:
    """The largest pods are left out of it, and what quotes a pod is cut; each purchase would store it."""
    size = MOST_OF_PODS // 4
    large = [pod(f"large-{number}", labels={"a": "x" * size}) for number in range(5)]
    reason = Reason(ReasonCode.REQUIREMENTS, "x" * size)
    problem = Problem(snapshot=replace(SNAPSHOT, pods=(*large, *SNAPSHOT.pods)), instance_types={})
    record = decision_document(problem, Packing(unplaced=(Unplaced("default/large-0", (reason,)),)), ())
    assert len(written := msgspec.json.encode(record)) < MOST_OF_PODS + 10_000
    names = [item["metadata"]["name"] for item in json.loads(written)["items"] if item["kind"] == "Pod"]
    assert (names, record["joinery"]["podsLeftOut"]) == (["large-0", "large-1", "large-2", "pending", "running"], 2)
