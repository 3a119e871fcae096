"""``joinery disrupt -o html``, looked at in a real browser: before and after, the curve, commands, what is held."""

from dataclasses import replace
from typing import Any

import pytest

from joinery.decisions.disruption.decision import CurvePoint, DecidedCommand, StayingNode
from joinery.decisions.scheduling.packing import ExistingPlacement
from joinery.objects.karpenter.disruption import DisruptionReason
from joinery.objects.objections import Objection, ObjectionCode
from joinery_cli.page.disruptions import page
from joinery_cli.view.disruption_groups import view
from simulator.builders import node, node_claim, pod
from tests.cli.disruptions import DISRUPTIONS, PRICE, PROBLEM, SMALL_PRICE, SOLD
from tests.cli.output.looking import CONTRAST, Elements, Look
from tests.cli.packings import PRICES

HOSTILE = "<script>window.hacked=1</script>"
IMAGE = '<img src=x onerror=window.hacked=2>"'
ROWS = "[...document.querySelectorAll('[data-row]')].filter(row => row.checkVisibility()).length"


def _written(**changes: Any) -> str:
    return page(view(PROBLEM, replace(DISRUPTIONS, **changes), SOLD, PRICES, seconds=0.31))


def test_one_decision_gives_one_page_that_needs_nothing_else() -> None:
    """Byte for byte; and no element names anything outside the page."""
    assert _written() == _written()
    elements = Elements(_written()).found
    addresses = [value for _, attributes in elements for key, value in attributes.items() if key in ("src", "href")]
    assert set(addresses) == {"#filter", "data:,"}


def test_nothing_to_do_is_said_in_words() -> None:
    """Both panels are alike then, and there is nothing to choose on a curve."""
    text = _written(commands=(), staying=(), after=3 * PRICE, curve=(CurvePoint(0, 3 * PRICE, is_chosen=True),))
    assert "<h1>Nothing to do: every node stays.</h1>" in text
    assert "What goes and what comes" not in text
    assert "Cost against evictions" not in text


def test_the_page_opens_without_complaint_and_shows_the_figures(look: Look) -> None:
    """Those of the document; nothing on the console, and no request but for the page itself."""
    shown = look(_written())
    assert shown.complaints == []
    assert [address.rpartition("/")[2] for address in shown.requests] == ["plan.html"]
    names = ("before", "after", "savings", "evictions", "lower-bound", "gap", "staying")
    seen = {name: shown.ask(f"document.getElementById('{name}').textContent") for name in names}
    assert seen == {
        "before": f"${3 * PRICE:.4f}/h", "after": f"${PRICE + SMALL_PRICE:.4f}/h",
        "savings": f"${2 * PRICE - SMALL_PRICE:.4f}/h", "evictions": "3", "lower-bound": "$0.3500/h", "gap": "5.1%",
        "staying": "2",
    }  # fmt: skip


def test_every_node_is_drawn_before_and_after_as_wide_as_its_price(look: Look) -> None:
    """Those that go are on the left only, those that come on the right only; half the price is half as wide."""
    shown = look(_written())
    panels = shown.ask(
        "[...document.querySelectorAll('.panel')].map(panel => [...panel.querySelectorAll('.bit')].map(bit =>"
        "[bit.className, bit.title.split(':')[0], bit.getBoundingClientRect().width, bit.style.getPropertyValue('--u')]"
        "))"
    )
    before, after = ({name: (kind, width, int(used)) for kind, name, width, used in bits} for bits in panels)
    assert {name: kind for name, (kind, _, _) in before.items()} == {
        "node-1": "bit goes", "node-2": "bit goes", "node-3": "bit receives", "node-4": "bit stays unpriced",
    }  # fmt: skip
    assert {name: kind for name, (kind, _, _) in after.items()} == {
        "node-3": "bit receives", "node-4": "bit stays unpriced", "default-1": "bit bought",
    }  # fmt: skip
    assert after["default-1"][1] == pytest.approx(before["node-1"][1] / 2, rel=0.02)
    assert (before["node-1"][2], before["node-3"][2], after["node-3"][2]) == (40, 40, 65)


def test_the_curve_marks_the_chosen_point_and_the_bound(look: Look) -> None:
    """One of its points is chosen; the bound is a line across below all of them, as it counts moves as they do."""
    shown = look(_written())
    assert shown.ask("document.querySelectorAll('.curve .dot').length") == 3
    assert shown.ask("document.querySelector('.curve .chosen title').textContent") == (
        "3 evictions: $0.3477/h, and $0.3677/h with what they count as"
    )
    assert shown.ask("document.querySelectorAll('.curve .proven').length") == 1
    heights = shown.ask("[...document.querySelectorAll('.curve .dot')].map(dot => +dot.getAttribute('cy'))")
    bound = shown.ask("+document.querySelector('.curve .proven').getAttribute('d').match(/ (.+)L/)[1]")
    assert max(heights) < bound
    said = shown.ask("document.querySelector('figcaption').textContent")
    assert "Chosen: 3 evictions, $0.3477/h, and $0.3677/h with what they count as." in said
    assert "With 4 evictions the nodes would cost $0.3472/h, and $0.3739/h with what they count as." in said


@pytest.mark.parametrize("width", [390, 1280])
def test_labels_of_the_curve_are_legible_and_say_what_the_axis_counts(look: Look, width: int) -> None:
    """A drawing that shrinks with the window had letters of six pixels on a telephone."""
    shown = look(_written(), width=width)
    heights = shown.ask("[...document.querySelectorAll('.curve text')].map(one => one.getBoundingClientRect().height)")
    assert min(heights) >= 11
    labels = shown.ask("[...document.querySelectorAll('.curve text')].map(one => one.textContent)")
    assert "$/h of nodes, and of what evictions count as" in labels


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("workers-of-the-whole-shop-in-three-zones-and-more-x7k2p", 2),
        ("ip-10-0-118-171.ap-southeast-1.compute.internal", 1),
    ],
)
def test_a_command_names_its_node_in_one_line(look: Look, width: int, name: str, ends: int) -> None:
    """ "1 node → 0" did not say whose row it is. The middle of a long name is left out where there is no room; of
    EC2's names, which end alike, the end.
    """
    snapshot = PROBLEM.packing.snapshot
    nodes = (*(one for one in snapshot.nodes if one.metadata.name != "node-2"), node(name))
    claims = (
        *(one for one in snapshot.node_claims if one.metadata.name != "claim-2"),
        node_claim("claim-2", node=name),
    )
    packing = replace(PROBLEM.packing, snapshot=replace(snapshot, nodes=nodes, node_claims=claims))
    text = page(view(replace(PROBLEM, packing=packing), DISRUPTIONS, SOLD, PRICES, seconds=0.31))
    shown = look(text, width=width)
    assert shown.ask("document.querySelector('[data-row] .kind').textContent").startswith(f"1 Empty{name}→")
    head, *tail = shown.ask(
        "[...document.querySelector('[data-row] .cut').children].map(one => [one.scrollWidth - one.clientWidth, "
        "one.getClientRects().length, one.getBoundingClientRect().height])"
    )
    assert head[0] > 0
    assert [one[:2] for one in tail] == [[0, 1]] * (ends - 1)
    assert {head[2], *(one[2] for one in tail)} == {head[2]}
    assert head[2] < 30


def test_a_command_unfolds_to_its_nodes_and_routes(look: Look) -> None:
    """Which node goes, which comes, and which pod moves from where to where."""
    shown = look(_written())
    shown.ask("document.getElementById('unfold').click()")
    text = shown.ask("document.body.innerText")
    for said in (
        "1 Empty", "2 Underutilized", "its pods fit on node-3 and on a smaller node",
        "node-1 → node-3: default/web-1, default/web-2", "node-1 → default-1: default/web-3",
        "3 evictions count as $0.0300, which pays for itself in 16 min", "NodeClaim claim-1", "or any of 1 other type",
        "pods that must not be disrupted", "pod default/job must not be disrupted",
    ):  # fmt: skip
        assert said in text


@pytest.mark.parametrize(
    ("words", "rows", "found"),
    [
        ("web-3", 1, "1 node · 1 pod · $0.1159/h"),
        ("node-2", 1, "1 node · $0.2318/h"),
        ("node-4", 2, "2 nodes"),
        ("t1.micro", 1, "1 node"),
        ("node-99", 0, "nothing"),
    ],
)
def test_the_filter_finds_pods_nodes_and_rules(look: Look, words: str, rows: int, found: str) -> None:
    """A pod by the command that moves it, a node by the one that retires it or by the rules that hold it."""
    shown = look(_written())
    shown.ask("filter.focus()")
    shown.write(words)
    assert shown.ask(ROWS) == rows
    assert shown.ask("document.getElementById('found').value") == found


def test_hostile_names_are_only_names(look: Look) -> None:
    """A message, a node and a claim called like markup are shown as they are called, and nothing of it runs."""
    held = (StayingNode(HOSTILE, Objection(ObjectionCode.POD, f"pod {IMAGE} must not be disrupted")),)
    commands = (replace(DISRUPTIONS.commands[0], message=IMAGE, retire=("claim-2", HOSTILE)),)
    shown = look(_written(staying=held, commands=commands))
    shown.ask("document.getElementById('unfold').click()")
    assert shown.ask("String(window.hacked)") == "undefined"
    assert shown.ask("document.querySelectorAll('script').length") == 1
    assert shown.ask("document.querySelectorAll('img').length") == 0
    assert shown.complaints == []
    assert HOSTILE in shown.ask("document.body.innerText")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_is_readable(look: Look, dark: bool) -> None:
    """Each has at least the contrast of 4.5 to 1 that WCAG asks for, on light pages and on dark ones."""
    shown = look(_written(), dark=dark)
    shown.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert shown.ask(CONTRAST) == []


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_sticks_out_of_a_narrow_window(look: Look, width: int) -> None:
    """A telephone scrolls down, not sideways."""
    shown = look(_written(), width=width)
    shown.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert shown.ask("document.documentElement.scrollWidth") <= width


def test_a_large_cluster_is_a_page_that_opens(look: Look) -> None:
    """Eight hundred nodes: each is drawn twice, in less than a megabyte, and any of them is found."""
    nodes = [node(f"node-{number}") for number in range(800)]
    claims = [node_claim(f"claim-{number}", node=f"node-{number}") for number in range(800)]
    pods = [pod(f"web-{number}", node=f"node-{number % 800}", owner="web") for number in range(2400)]
    snapshot = replace(PROBLEM.packing.snapshot, nodes=tuple(nodes), node_claims=tuple(claims), pods=tuple(pods))
    problem = replace(PROBLEM, packing=replace(PROBLEM.packing, snapshot=snapshot))
    commands = tuple(
        DecidedCommand(
            reason=DisruptionReason.UNDERUTILIZED,
            message="its pods fit elsewhere",
            retire=(f"claim-{number}",),
            existing=(ExistingPlacement("node-799", "claim-799", (f"default/web-{number}",)),),
            pods=(f"default/web-{number}",),
            savings=PRICE,
            move_price=0.01,
        )
        for number in range(300)
    )
    text = page(view(problem, replace(DISRUPTIONS, commands=commands, staying=()), SOLD, PRICES, seconds=0.31))
    assert len(text.encode()) < 2**20
    shown = look(text)
    assert shown.ask("document.querySelectorAll('.panel .bit').length") == 800 + 500
    shown.ask("filter.focus()")
    shown.write("node-299")
    assert shown.ask(ROWS) == 1
    assert shown.complaints == []
