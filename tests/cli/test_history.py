"""``joinery history``: records of decisions as a table, a document and a page."""

import gzip
import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest
from moto import mock_aws

from joinery.controllers.reporting.record import decision_document, disruption_document
from joinery.decisions.disruption.decision import DisruptionDecision
from joinery.gateways.memory.bucket import sealed
from joinery.objects.karpenter.labels import INTERRUPTED_AT
from joinery_cli.page.history import page
from joinery_cli.reading.records import latest, read_record
from joinery_cli.view.history import History, history
from simulator.builders import EPOCH, node_claim
from tests.cli import packings
from tests.cli.conftest import Run, Write
from tests.cli.disruptions import DISRUPTIONS, PRICE, PROBLEM, SMALL_PRICE

DECISION = replace(DISRUPTIONS, prices={f"claim-{number}": PRICE for number in (1, 2, 3)})
MINUTE = timedelta(minutes=1)


def _disruption(after: timedelta, decision: DisruptionDecision = DECISION, **changes: Any) -> tuple[str, bytes]:
    snapshot = replace(PROBLEM.packing.snapshot, now=EPOCH + after, **changes)
    problem = replace(PROBLEM, packing=replace(PROBLEM.packing, snapshot=snapshot))
    return sealed("disruption", EPOCH + after, disruption_document(problem, decision, ()))


def _plan(after: timedelta) -> tuple[str, bytes]:
    problem = replace(packings.PROBLEM, snapshot=replace(packings.PROBLEM.snapshot, now=EPOCH + after))
    return sealed("provisioning", EPOCH + after, decision_document(problem, packings.PACKING, ()))


def _kept(folder: Path, *records: tuple[str, bytes]) -> list[str]:
    for key, document in records:
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(document)
    return [str(folder / key) for key, _ in records]


def _history(folder: Path, *records: tuple[str, bytes]) -> History:
    return history([read_record(path) for path in _kept(folder, *records)])


def test_a_moment_is_the_cluster_before_its_decision(tmp_path: Path) -> None:
    """With the prices and the bound of the decision; a type that no record has a price for counts as nothing."""
    (one,) = _history(tmp_path, _disruption(MINUTE)).moments
    assert (one.door, one.nodes, one.spot, one.unpriced) == ("disruption", 4, 0, 1)
    assert one.hourly == pytest.approx(3 * PRICE)
    assert one.bound == 0.35
    assert one.savings == {"Empty": pytest.approx(PRICE), "Underutilized": pytest.approx(PRICE - SMALL_PRICE)}
    assert one.said[0] == "2 commands, 2 nodes to go"


def test_a_command_that_is_decided_again_counts_once(tmp_path: Path) -> None:
    """It did not begin the first time, so it saves no more."""
    seen = _history(tmp_path, _disruption(MINUTE), _disruption(2 * MINUTE))
    assert [one.evictions for one in seen.moments] == [3, 0]
    assert sum(seen.savings.values()) == pytest.approx(2 * PRICE - SMALL_PRICE)


def test_an_interruption_counts_when_a_record_has_it_first(tmp_path: Path) -> None:
    """However many records follow."""
    taken = node_claim("claim-9", annotations={INTERRUPTED_AT: "2026-08-24T08:00:30Z"})
    claims = (*PROBLEM.packing.snapshot.node_claims, taken)
    records = [_disruption(n * MINUTE, node_claims=claims) for n in (1, 2)]
    assert [one.interrupted for one in _history(tmp_path, *records).moments] == [1, 0]


def test_records_of_a_version_that_decided_otherwise_are_part_of_the_history(tmp_path: Path) -> None:
    """A history goes on over an upgrade: only what every version writes is read."""
    key, document = _disruption(MINUTE)
    record = msgspec.json.decode(gzip.decompress(document))
    record["joinery"]["result"] |= {"gap": {"of": "another kind"}, "curve": 7, "new": True}
    seen = _history(tmp_path, (key, gzip.compress(msgspec.json.encode(record))))
    assert seen.moments[0].evictions == 3


def test_the_table_the_document_and_the_page_say_the_same(run: Run, tmp_path: Path) -> None:
    """From a folder with the bucket's keys, whatever else is in it."""
    _kept(tmp_path, _disruption(2 * MINUTE), _plan(MINUTE))
    table, document, html = (run("history", str(tmp_path), "-o", kind) for kind in ("table", "json", "html"))
    assert [one.status for one in (table, document, html)] == [0, 0, 0]
    assert [one["door"] for one in document.document["moments"]] == ["provisioning", "disruption"]
    assert document.document["evictions"] == 3
    assert "Empty: decided to save $0.2318/h" in table.out
    assert "2 decisions from 2026-08-24 08:01 to 2026-08-24 08:02" in html.out


def test_every_point_of_the_page_leads_to_its_decision(tmp_path: Path) -> None:
    """To what was decided, inside of its row, which a browser opens for it (HTML, "ancestor revealing algorithm")."""
    html = page(_history(tmp_path, _plan(MINUTE), _disruption(2 * MINUTE)))
    led = set(re.findall(r'href="#(decision-\d+)"', html))
    assert led == set(re.findall(r'id="(decision-\d+)"', html)) == {"decision-1", "decision-2"}
    assert "<script src" not in html


def test_text_of_a_record_is_no_markup(tmp_path: Path) -> None:
    """A message quotes names of others."""
    evil = replace(DISRUPTIONS.commands[0], message="<script>alert(1)</script>")
    assert "<script>alert" not in page(_history(tmp_path, _disruption(MINUTE, replace(DECISION, commands=(evil,)))))


def test_the_last_ones_are_those_before_the_newest() -> None:
    """As names say it; a name that says nothing is kept."""
    old, new = (f"decisions/2026/08/{day}/080000.000000-disruption-1a2b3c4d.json.gz" for day in ("20", "24"))
    assert latest([new, old, "mine.json"], timedelta(hours=24)) == ["mine.json", new]
    assert latest([new, old], None) == [old, new]


def test_the_bucket_is_read_as_a_folder_is(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the addresses that others can read them by."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="records")
        for key, document in (_plan(MINUTE), _disruption(2 * MINUTE)):
            s3.put_object(Bucket="records", Key=key, Body=document)
        s3.put_object(Bucket="records", Key="catalog.json.gz", Body=b"")
        done = run("history", "s3://records", "-o", "json")
    assert done.status == 0, done.err
    records = [one["record"] for one in done.document["moments"]]
    assert [one.partition("/2026/08/24/")[0] for one in records] == ["s3://records/decisions"] * 2


def test_a_member_of_a_stack_has_a_past_of_its_own(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records are below its name, and are not among those of the stack's own cluster."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="records")
        for place, (key, document) in (("", _plan(MINUTE)), ("green/", _disruption(2 * MINUTE))):
            below = key.replace("decisions/", f"decisions/{place}")
            s3.put_object(Bucket="records", Key=below, Body=document)
        own = run("history", "s3://records", "-o", "json")
        green = run("history", "s3://records/decisions/green", "-o", "json")
    places = [[one["record"].partition("/2026/")[0] for one in done.document["moments"]] for done in (own, green)]
    assert places == [["s3://records/decisions"], ["s3://records/decisions/green"]]


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("pods.json", {"kind": "List", "items": []}, "is no record of a decision: Object missing required field"),
        ("broken.json", "{", "is no record of a decision: Input data was truncated"),
    ],
)
def test_a_file_that_is_no_record_is_named(run: Run, write: Write, name: str, content: Any, error: str) -> None:
    """In one line, with exit status 2."""
    path = write(name, content)
    done = run("history", path)
    assert (done.status, done.err.partition(error)[0]) == (2, f"joinery: {path}: ")


def test_a_folder_without_records_says_what_was_looked_for(run: Run, tmp_path: Path) -> None:
    """Bad input, and how records are called."""
    done = run("history", str(tmp_path))
    assert (done.status, "there is no record of a decision (decisions/YYYY/MM/DD/*.json.gz)" in done.err) == (2, True)
