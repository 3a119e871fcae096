"""``joinery top``: what is shown of a cluster, line by line; the screen and its keys; a line of JSON for each look."""

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from textual import events
from textual.widgets import Input

from joinery.controllers.reporting.record import decision_document, disruption_document
from joinery.decisions.disruption.decision import DisruptionDecision, StayingNode
from joinery.decisions.disruption.problem import DisruptionProblem
from joinery.decisions.scheduling.packing import Packing
from joinery.objects.errors import UnavailableError
from joinery.objects.karpenter.conditions import unknown
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.karpenter.labels import ON_DEMAND_SHARE, PAUSED
from joinery.objects.karpenter.meta import with_metadata
from joinery.objects.objections import Objection, ObjectionCode
from joinery.objects.snapshot.claims import observed, with_condition
from joinery_cli.live.looking import THREAD
from joinery_cli.live.screen import Top
from joinery_cli.output.top_json import top_document
from joinery_cli.output.top_lines import SORTS, Look, lines, summary
from joinery_cli.view.disruption_groups import view
from joinery_cli.view.top_groups import top_view
from joinery_cli.view.top_view import Phase, TopView
from simulator.builders import EPOCH, node, node_claim, node_pool, pod, pod_group
from tests.cli import packings
from tests.cli.conftest import CLUSTER, NOW, Run, Write
from tests.cli.disruptions import DISRUPTIONS, PRICE, PROBLEM, SOLD

_DEADLINE = 30.0


def _top(
    problem: DisruptionProblem = PROBLEM,
    decision: DisruptionDecision = DISRUPTIONS,
    packing: Packing = packings.PACKING,
) -> TopView:
    return top_view(problem, packing, view(problem, decision, SOLD, packings.PRICES, seconds=0.1), source="blue")


def _said(top: TopView, **look: object) -> list[str]:
    return [line.text.plain for line in lines(top, Look(**look))]  # type: ignore[arg-type]


def _with(problem: DisruptionProblem, **changes: object) -> DisruptionProblem:
    snapshot = replace(problem.packing.snapshot, **changes)  # type: ignore[arg-type]
    return replace(problem, packing=replace(problem.packing, snapshot=snapshot))


# --- what is shown ---


def test_each_node_says_why_it_goes_or_stays() -> None:
    """The reasons are those of ``joinery disrupt``."""
    states = {node.name: (node.phase, node.code) for node in _top().nodes}
    assert states == {
        "node-1": (Phase.GOES, "Underutilized"),
        "node-2": (Phase.GOES, "Empty"),
        "node-3": (Phase.STAYS, "NotWorthIt"),
        "node-4": (Phase.STAYS, "Unpriced"),
    }


def test_a_node_of_a_paused_node_pool_goes_without_a_command() -> None:
    """Within the budgets; the others say until when the pause is, and what keeps them."""
    annotated = [
        with_metadata(pool, annotations={PAUSED: "true"}) if pool.metadata.name == "default" else pool
        for pool in PROBLEM.packing.snapshot.node_pools
    ]
    states = {node.name: node for node in _top(_with(PROBLEM, node_pools=tuple(annotated)), DisruptionDecision()).nodes}
    going = [name for name, node in states.items() if (node.phase, node.code) == (Phase.GOES, "Paused")]
    kept = [node.why for node in states.values() if (node.phase, node.code) == (Phase.STAYS, "Paused")]
    assert going
    assert states[going[0]].why.startswith("NodePool default is paused until somebody resumes it, which saves $")
    assert all(why.startswith("NodePool default is paused until somebody resumes it; ") for why in kept)


@pytest.mark.parametrize(("share", "lacking"), [("100%", 1), ("3", 0)])
def test_a_node_pool_whose_share_on_demand_is_short_says_so(share: str, lacking: int) -> None:
    """In its heading, and by how much; as JSON also one that is kept. Of its four nodes three are on demand."""
    asking = with_metadata(node_pool(), annotations={ON_DEMAND_SHARE: share})
    snapshot = PROBLEM.packing.snapshot
    on_spot = node("node-4", instance_type="t1.micro", capacity_type="spot")
    top = _top(_with(PROBLEM, node_pools=(asking,), nodes=(*snapshot.nodes[:3], on_spot)))
    (heading,) = [line for line in _said(top) if line.startswith("▾ NodePool default: ")]
    assert heading.partition("; ")[2] == ("lacks 1 on demand" if lacking else "")
    (document,) = top_document(top)["shares"]
    assert document == {"nodePool": "default", "share": share, "nodes": 4, "onDemand": 3, "wanted": 3 + lacking}


def test_a_node_that_comes_and_one_that_goes_say_at_which_step_they_are() -> None:
    """In lifecycle's own words."""
    joining = node_claim("claim-5", provider_id="aws:///us-east-1a/i-5", conditions=("Launched",))
    text = "no Node has its provider ID"
    booting = with_condition(joining, unknown("Registered", "NodeNotFound", text, observed(joining, EPOCH)))
    leaving = node_claim("claim-3", node="node-3", instance_type="m7a.xlarge", deleted=EPOCH)
    claims = (
        *(one for one in PROBLEM.packing.snapshot.node_claims if one.metadata.name != "claim-3"),
        booting,
        leaving,
    )
    nodes = {node.name: node for node in _top(_with(PROBLEM, node_claims=claims)).nodes}
    assert (nodes["claim-5"].phase, nodes["claim-5"].why) == (Phase.BOOTING, "no Node has its provider ID")
    assert (nodes["node-3"].phase, nodes["node-3"].why) == (Phase.LEAVING, "its drain begins")


def test_pods_that_wait_say_where_they_go_or_why_nowhere() -> None:
    """Those without a place come first, those of one owner and one answer together."""
    pending = _top().pending
    assert [(len(one.pods), one.home or one.reasons[0]) for one in pending][:3] == [
        (1, "NodePool default: 12 instance types have too little memory"),
        (1, "NodePool default: 12 instance types have too little memory"),
        (1, "operator [Resembles] of a is unknown"),
    ]
    assert {one.home for one in pending} >= {
        "a new m7a.large, spot, of NodePool default",
        "a NodeClaim whose node is on its way",
        "ip-10-0-1-7",
    }


_BUFFER = """
apiVersion: v1
kind: PodTemplate
metadata: {name: chunk, namespace: shop}
template: {spec: {containers: [{name: main, resources: {requests: {cpu: "1", memory: 2Gi}}}]}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare, namespace: shop}
spec: {podTemplateRef: {name: chunk}, replicas: 3}
"""


def test_room_that_a_buffer_wants_waits_beside_the_pods(run: Run, write: Write) -> None:
    """With what is bought for it, or why nothing is: it is no pod, and is counted apart."""
    path = write("cluster.yaml", CLUSTER + _BUFFER)
    lines = [" ".join(line.split()) for line in run("top", "-f", path, "--now", NOW, "-o", "wide").out.splitlines()]
    assert lines[1].endswith("0 pods wait; room for 3 is lacking")
    assert "3 0s shop/spare (headroom) → a new m7a.xlarge, on-demand, of NodePool default" in lines
    full = write("full.yaml", CLUSTER.replace("spec:\n  template", "spec:\n  limits: {cpu: 1}\n  template") + _BUFFER)
    refused = run("top", "-f", full, "--now", NOW, "-o", "wide").out
    assert "0 pods wait; room for 3 is lacking, 3 without a place" in refused
    assert "shop/spare (headroom)" in refused


def test_a_gang_that_kube_scheduler_has_not_tried_waits_too() -> None:
    """It marks no pod before all of them are there, so that no plan has them."""
    member = pod("train-1", scheduling_group={"podGroupName": "train"}, unschedulable=False)
    problem = _with(PROBLEM, pods=(*PROBLEM.packing.snapshot.pods, member), scheduling_groups=(pod_group("train"),))
    said = next(one for one in _top(problem, packing=Packing()).pending if one.pods == ("default/train-1",))
    assert said.reasons == ("PodGroup default/train places 4 pods together, and 1 of them exists",)


def test_a_pause_says_when_it_ends() -> None:
    """Nodes are bought again five minutes before."""
    text = f"from {EPOCH.minute} {EPOCH.hour} * * * for 2h"
    by_schedule = _with(PROBLEM, node_pools=(with_metadata(node_pool(), annotations={"joinery.dev/pause": text}),))
    ends = next(one for one in _top(by_schedule).coming if one.subject == "NodePool default")
    assert (ends.what, ends.at) == ("buys again", EPOCH + timedelta(minutes=115))
    by_hand = _with(PROBLEM, node_pools=(with_metadata(node_pool(), annotations={PAUSED: "true"}),))
    assert "is paused until somebody resumes it" in {one.what for one in _top(by_hand).coming}


def test_what_comes_next_has_commands_then_moments_then_what_nobody_dates() -> None:
    """A budget's window says when it opens; a node that is too young, from when on it is looked at."""
    later = EPOCH + timedelta(minutes=7)
    staying = (
        StayingNode("claim-3", Objection(ObjectionCode.BUDGET, "full"), DisruptionReason.UNDERUTILIZED),
        StayingNode("claim-4", Objection(ObjectionCode.CONSOLIDATE_AFTER, "young", later)),
    )
    window = {"nodes": "0", "schedule": "0 8 * * *", "duration": "8h"}
    closed = _with(PROBLEM, node_pools=(node_pool(budgets=[window]),))
    for_good = _with(PROBLEM, node_pools=(node_pool(budgets=[{"nodes": "0"}]),))
    decision = replace(DISRUPTIONS, staying=staying)
    said = [(one.subject, one.what.partition(":")[0], one.at) for one in _top(closed, decision).coming]
    assert said == [
        ("node-2", "Empty", None),
        ("node-1", "Underutilized", None),
        ("node-4", "ConsolidateAfter ends", later),
        ("NodePool default", "its budgets keep 1 node (Underutilized) and open", EPOCH + timedelta(hours=8)),
    ]
    assert _top(for_good, decision).coming[-1].at is None


def test_one_snapshot_and_one_decision_give_one_view() -> None:
    """Nothing else is read: no clock, and no chance."""
    assert _said(_top()) == _said(_top())
    assert top_document(_top()) == top_document(_top())


# --- lines ---


@pytest.mark.parametrize("width", [80, 100, 160, 250])
def test_every_line_fits_the_terminal(width: int) -> None:
    """A long name is cut in its middle, a sentence at its end."""
    top = _top()
    shown = [*_said(top, width=width), *summary(top, width).plain.splitlines()]
    assert max(map(len, shown)) <= width
    assert any(
        line.startswith("  node-1 ") and "m7a.xlarge" in line and "goes (Underutilized)" in line for line in shown
    )


def test_a_long_name_keeps_both_of_its_ends() -> None:
    """Names of one Deployment differ at their end."""
    claim = node_claim("a-nodepool-with-a-name-that-nobody-reads-x7k2p")
    empty = _with(PROBLEM, node_claims=(claim,), nodes=(), pods=())
    (line,) = [line for line in _said(_top(empty, DisruptionDecision())) if "x7k2p" in line]
    assert line.startswith("  a-nodep…")


@pytest.mark.parametrize(
    ("sort", "first"), [("price", "node-1"), ("fullness", "node-2"), ("name", "node-1"), ("state", "node-2")]
)
def test_nodes_are_sorted_by_what_is_asked(sort: str, first: str) -> None:
    """Within their NodePool."""
    assert sort in SORTS
    assert [line.node for line in lines(_top(), Look(sort=sort)) if line.node][0] == first


def test_words_leave_only_the_lines_that_have_them() -> None:
    """All of the words, in the line or its heading; a heading without lines goes with them."""
    said = _said(_top(), wanted="node-3 notworthit")
    assert [line[:8] for line in said] == ["▾ NodePo", "  node-3"]
    assert _said(_top(), wanted="nothing has this") == []


def test_a_folded_heading_keeps_its_sums() -> None:
    """And hides its lines."""
    said = _said(_top(), folded=frozenset({"pool/default"}))
    assert [line for line in said if "NodePool default: 4 nodes" in line][0].startswith("▸")
    assert not any(line.startswith("  node-3 ") for line in said)


def test_what_steers_a_terminal_is_shown_not_sent() -> None:
    """Names come from whoever may write pods."""
    unplaced = replace(packings.PACKING.unplaced[2], pod="default/\x1b[2Jgone")
    said = "".join(_said(_top(packing=replace(packings.PACKING, unplaced=(unplaced,)))))
    assert "\x1b" not in said
    assert "\\x1b[2Jgone" in said


# --- the command ---


def test_a_look_without_a_terminal_is_one_table(run: Run, cluster: str, write: Write) -> None:
    """For ``joinery top | less``, and for a script that wants to see it once."""
    done = run("top", "-f", cluster, "--now", NOW)
    assert done.status == 0
    assert done.out.splitlines()[0].endswith("2026-01-01 00:00:00Z")
    assert done.out.splitlines()[1].startswith("0 nodes, $0.0000/h")


def test_records_are_streamed_as_they_were_decided(run: Run, write: Write, tmp_path: Path) -> None:
    """One line of JSON for each, the oldest first, with the recorded decision."""
    folder = tmp_path / "decisions/2026/01/01"
    folder.mkdir(parents=True)
    plan = decision_document(PROBLEM.packing, replace(packings.PACKING, existing=()), ())
    disruption = disruption_document(PROBLEM, DISRUPTIONS, ())
    for name, record in (
        ("decisions/2026/01/01/000200.000000-disruption-1a2b3c4d.json", disruption),
        ("decisions/2026/01/01/000100.000000-provisioning-1a2b3c4d.json", plan),
    ):
        write(name, record)
    done = run("top", "--records", str(tmp_path), "-o", "json")
    assert done.status == 0, done.err
    first, second = map(json.loads, done.out.splitlines())
    assert [one["source"].partition(",")[0] for one in (first, second)] == ["provisioning", "disruption"]
    assert sum(not one["home"] for one in first["pending"]) == 3
    assert {one["name"]: one["code"] for one in second["nodes"]}["node-2"] == "Empty"
    assert second["totals"]["managed"] == pytest.approx(3 * PRICE)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--records", "nowhere"), "nowhere: No such file or directory"),
        (("--records", "a", "-f", "b"), "--records: shows what was recorded; give it without files"),
        (("-f", "-"), "-f -: standard input can be read only once; give a file"),
        (("--every", "0"), "--every 0: must be more than 0 seconds"),
        (("--records", "a", "--last", "soon"), "--last soon: must be a duration of more than 0, such as 30m or 1h30m"),
    ],
)
def test_a_wrong_option_is_one_line(run: Run, arguments: tuple[str, ...], error: str) -> None:
    """With exit status 2."""
    done = run("top", *arguments)
    assert (done.status, done.out, done.err) == (2, "", f"joinery: {error}\n")


# --- the screen ---


def _feed(*views: TopView | UnavailableError) -> Iterator[TopView]:
    class Feed(Iterator[TopView]):
        def __init__(self) -> None:
            self._left = iter(views)

        def __next__(self) -> TopView:
            assert [thread.name for thread in threading.enumerate()].count(THREAD) == 1
            one = next(self._left)
            if isinstance(one, UnavailableError):
                raise one
            return one

    return Feed()


def _screen(app: Top, *steps: tuple[str, str]) -> None:
    """Press each key, and wait until the screen shows the words."""

    async def drive() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            for key, words in steps:
                if key:
                    await pilot.press(*key.split())
                for _ in range(600):
                    if words in _shown(app):
                        break
                    await pilot.pause(0.05)
                assert words in _shown(app)
                assert "\\n" not in _shown(app)
            await pilot.press("q")

    asyncio.run(asyncio.wait_for(drive(), _DEADLINE))


def _shown(app: Top) -> str:
    parts = re.findall(r"<text[^>]*>([^<]*)</text>", app.export_screenshot(simplify=True))
    return " ".join(parts).replace("&#160;", " ")


def test_keys_sort_filter_fold_and_explain() -> None:
    """What each says is what ``--explain`` says."""
    _screen(
        Top(_feed(_top()), 0.0),
        ("", "NodePool default: 4 nodes"),
        ("s", "by fullness"),
        ("end enter", "would need another node"),
        ("escape F", "▸ NodePool default"),
        ("F", "▾ NodePool default"),
        ("slash n o d e minus 3 enter", "NotWorthIt"),
        ("slash backspace backspace backspace backspace backspace backspace enter home down enter", "pod: default/"),
    )


def test_words_that_are_typed_in_one_go_are_a_filter() -> None:
    """None of them is another key, such as `s` for the order, and a slash among them is a slash."""
    app = Top(_feed(_top()), 0.0)

    async def drive() -> None:
        async with app.run_test(size=(100, 40)) as pilot:
            while "NodePool default" not in _shown(app):
                await pilot.pause(0.02)
            for character in "/s/f":
                app.post_message(events.Key("slash" if character == "/" else character, character))
            while app.query_one("#filter", Input).value != "s/f":
                await pilot.pause(0.02)

    asyncio.run(asyncio.wait_for(drive(), _DEADLINE))


def test_one_may_look_back_while_time_goes_on() -> None:
    """And comes back to the newest."""
    other = replace(_top(), source="green")
    _screen(
        Top(_feed(_top(), other), 0.0), ("", "green"), ("left", "[1 back]"), ("right", "green"), ("space", "[paused]")
    )


def test_what_cannot_be_read_now_is_said_and_tried_again() -> None:
    """What was seen last stays."""
    feed = _feed(_top(), UnavailableError("the API server is away"))
    _screen(Top(feed, 0.0), ("", "the API server is away; trying again"), ("", "NodePool default"))


def test_a_first_look_that_fails_ends_the_screen_with_the_error() -> None:
    """As every other command does."""
    app = Top(_feed(UnavailableError("no cluster")), 0.0)

    async def drive() -> None:
        async with app.run_test() as pilot:
            await pilot.pause(0.5)

    asyncio.run(drive())
    assert str(app.return_value) == "no cluster"


def test_on_a_terminal_it_is_a_screen_that_q_leaves(cluster: str) -> None:
    """A real process on a pseudo-terminal of 80 columns."""
    primary, secondary = pty.openpty()
    command = [str(Path(sys.executable).with_name("joinery")), "top", "-f", cluster, "--now", NOW]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(command, stdin=secondary, stdout=secondary, stderr=secondary, env=environment)
    os.close(secondary)
    seen = b""
    while b"0 nodes" not in seen:
        seen += os.read(primary, 65536)
    os.write(primary, b"q")
    assert process.wait(_DEADLINE) == 0
    os.close(primary)
