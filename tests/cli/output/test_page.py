"""``joinery plan -o html``, looked at in a real browser: figures, bars,
filter, keyboard, colours, and hostile names.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from joinery.decisions.scheduling.packing import Packing, Unplaced
from joinery_cli.page.document import page
from joinery_cli.view.costs import Costs
from joinery_cli.view.plan_groups import view
from tests.cli.conftest import NOW, Run, Write, pod_document
from tests.cli.output.looking import CONTRAST, Elements, Look
from tests.cli.packings import COSTS, LAUNCH, PACKING, PRICES, PROBLEM

HOSTILE = "<script>window.hacked=1</script>"
IMAGE = "<img src=x onerror=window.hacked=2>"
MANY = 10_000
MEGABYTE = 2**20


def _written(**changes: Any) -> str:
    return page(view(PROBLEM, replace(PACKING, **changes), COSTS, PRICES, seconds=0.31))


def _many_pods(number: int) -> dict[str, Any]:
    pods = [pod_document(f"svc-{n % 40}-{n:05}", priority=n % 40) for n in range(number)]
    for position, pod in enumerate(pods):
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"svc-{position % 40}",
            "uid": "u",
            "controller": True,
        }
        pod["metadata"]["ownerReferences"] = [owner]
    return {"apiVersion": "v1", "kind": "List", "items": pods}


# --- the page as a text ---


def test_one_plan_gives_one_page_byte_for_byte() -> None:
    """Nothing in the page depends on when or where it was written."""
    assert _written() == _written()


def test_the_page_needs_nothing_but_itself() -> None:
    """No element names anything outside the page, and its policy forbids the browser to load anything."""
    elements = Elements(_written()).found
    addresses = [
        v for _, attributes in elements for k, v in attributes.items() if k in ("src", "href", "action", "data")
    ]
    assert set(addresses) == {"#filter", "data:,"}
    policy = next(a["content"] for tag, a in elements if tag == "meta" and "http-equiv" in a)
    assert str(policy).startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-")


def test_a_plan_of_nothing_is_said_in_words() -> None:
    """No empty headings, and no bound where nothing is bought."""
    text = page(view(PROBLEM, Packing(), Costs(), PRICES, seconds=0.01))
    assert "<h1>Nothing is pending.</h1>" in text
    assert "Proven bound" not in text


# --- the page in a browser ---


def test_the_page_opens_without_complaint_and_without_the_network(look: Look) -> None:
    """Nothing on the console, and no request but for the page itself."""
    shown = look(_written())
    assert shown.ask("document.readyState") == "complete"
    assert shown.complaints == []
    assert [address.rpartition("/")[2] for address in shown.requests] == ["plan.html"]


def test_the_page_shows_the_figures_of_the_document(look: Look, run: Run, cluster: str, write: Write) -> None:
    """Cost, bound, gap, nodes and pods are those of ``-o json`` for the same files; every launch has its bar."""
    pods = write("pods.json", _many_pods(60))
    arguments = ("plan", "--now", NOW, "-f", cluster, "-f", pods, "-o")
    document = run(*arguments, "json").document
    shown = look(run(*arguments, "html").out)
    seen = {
        name: shown.ask(f"document.getElementById('{name}').textContent") for name in ("hourly", "lower-bound", "gap")
    }
    cost = document["cost"]
    assert seen == {
        "hourly": f"${cost['hourly']:,.4f}/h",
        "lower-bound": f"${cost['lowerBound']:,.4f}/h",
        "gap": f"{cost['gap']:.1%}",
    }
    bars = "[...document.querySelectorAll('[data-launches]')].map(row => [+row.dataset.launches, +row.dataset.pods])"
    drawn = shown.ask(bars)
    assert sum(nodes for nodes, _ in drawn) == len(document["launch"]) == int(shown.ask("launches.textContent"))
    assert sum(pods for _, pods in drawn) == 60 == int(shown.ask("placed.textContent"))


def test_every_part_of_a_plan_is_on_the_page(look: Look) -> None:
    """What is bought, what exists, what stays pending and why, and what was given up."""
    text = look(_written()).ask("document.body.innerText")
    for said in (
        "2 new nodes for 3 pods, 5 pods on existing capacity.", "NodePool default", "us-east-1a", "spot",
        "Existing capacity", "ip-10-0-1-7", "launching",
        "Stay pending", "NodePool default: 12 instance types have too little memory", ("operator [Resembles] of a is "
                                                                                       "unknown"),
        "Preferences dropped", "preferred node affinity: zone In us-east-1b",
    ):  # fmt: skip
        assert said in text


def test_a_node_pool_is_one_section_whatever_its_zones(look: Look) -> None:
    """A pool of three zones and two capacity types was six headings; where each node is bought is in its row."""
    elsewhere = replace(
        LAUNCH, name="b", offering=replace(LAUNCH.offering, zone="us-east-1b", capacity_type="on-demand")
    )
    text = look(_written(launches=(LAUNCH, elsewhere))).ask("document.body.innerText")
    assert text.count("NodePool default\n") == 1
    assert "us-east-1a spot" in text
    assert "us-east-1b on-demand" in text


def test_the_bar_of_the_bound_says_what_it_shows(look: Look) -> None:
    """Green and hatched alone say nothing, and a telephone shows no title."""
    said = look(_written(lower_bound=0.05)).ask("document.querySelector('.meter + .meter-says').innerText")
    assert said.startswith("proven to be needed: $0.0500/h")
    assert "what a better plan could save at most: $0.0" in said


def test_bars_are_as_full_as_their_nodes(look: Look) -> None:
    """The pieces of a bar take the share of it that their pods and daemons take of the node."""
    shown = look(_written())
    filled, figure = shown.ask(
        "(() => { const bar = document.querySelector('[data-launches] .bar');"
        " const track = bar.querySelector('.track').getBoundingClientRect().width;"
        " const pieces = [...bar.querySelectorAll('.track i')].map(i => i.getBoundingClientRect().width);"
        " return [pieces.reduce((a, b) => a + b) / track, bar.getAttribute('aria-label')]; })()"
    )
    assert figure == "cpu: 1.9 of 1.9 cpu, 98%"
    assert filled == pytest.approx(1900 / 1920, abs=0.01)


def test_the_filter_finds_a_pod_and_escape_shows_everything_again(look: Look) -> None:
    """A slash puts the cursor there; what does not match is hidden, sections without a match too."""
    shown = look(_written())
    visible = "[...document.querySelectorAll('[data-row]')].filter(row => row.checkVisibility()).length"
    everything = shown.ask(visible)
    shown.press("/", "/")
    shown.write("web-3")
    assert shown.ask(visible) == 1
    assert shown.ask("document.getElementById('found').value") == "1 node · 1 pod · $0.0566/h"
    assert shown.ask("[...document.querySelectorAll('main section')].filter(one => one.checkVisibility()).length") == 1
    shown.write(" nowhere")
    assert shown.ask("nothing.checkVisibility()") is True
    shown.press("Escape")
    assert shown.ask(visible) == everything


def test_the_sums_of_sections_follow_the_filter(look: Look) -> None:
    """Nodes, pods and dollars of what is shown; without a filter of everything."""
    shown = look(_written())
    sums = (
        "[...document.querySelectorAll('section .sum')].filter(one => one.checkVisibility()).map(one => "
        "one.textContent)"
    )
    everything = shown.ask(sums)
    assert everything[2:4] == ["2 nodes · 3 pods · $0.1131/h", "2 nodes · 5 pods"]
    shown.ask("filter.focus()")
    shown.write("default/web")
    assert shown.ask(sums) == ["2 nodes · 3 pods · $0.1131/h"]
    shown.write("-3")
    assert shown.ask(sums) == ["1 node · 1 pod · $0.0566/h"]
    shown.press("Escape")
    assert shown.ask(sums) == everything


def test_the_filter_looks_at_what_is_bought_not_at_what_else_might_be(look: Look) -> None:
    """m7a.xlarge could stand in for the new nodes; the only one that there is, exists already."""
    shown = look(_written())
    shown.ask("filter.focus()")
    shown.write("m7a.xlarge")
    assert shown.ask("[...document.querySelectorAll('[data-launches]')].some(row => row.checkVisibility())") is False
    assert shown.ask("document.getElementById('found').value") == "2 nodes · 5 pods"


def test_pods_that_stay_pending_are_named_without_a_click(look: Look) -> None:
    """Who opens the page because a pod waits looks for its name."""
    text = look(_written()).ask("document.querySelector('.reason').innerText")
    assert "2 pods: default/big-1, default/big-2" in text


def test_a_section_folds_to_its_heading(look: Look) -> None:
    """By a click on it; the heading with its sum stays."""
    shown = look(_written())
    visible = "[...document.querySelectorAll('[data-launches]')].filter(row => row.checkVisibility()).length"
    assert shown.ask(visible) > 0
    shown.ask("document.querySelector('[data-launches]').closest('section').querySelector('summary').click()")
    assert shown.ask(visible) == 0
    assert "NodePool default" in shown.ask("document.body.innerText")


def test_the_page_says_who_causes_the_cost(look: Look) -> None:
    """By NodePool, capacity type and namespace; on demand; and what the nodes there are cost."""
    text = look(_written()).ask("document.getElementById('costs').innerText")
    for said in (
        "namespace of the pods", "$0.1131", "On demand the same nodes would cost $0.2318/h",
        "The existing nodes cost $0.2318/h (1 node; not counted: 1 of Fargate, which is paid for by the pod)",
    ):  # fmt: skip
        assert said in text


def test_the_filter_finds_what_is_folded_away(look: Look, run: Run, cluster: str, write: Write) -> None:
    """A pod in the rest of a long section is found there."""
    text = _written(
        unplaced=tuple(
            Unplaced(f"default/odd-{n}", (replace(PACKING.unplaced[0].reasons[0], message=f"reason {n}"),))
            for n in range(90)
        )
    )
    shown = look(text)
    assert shown.ask("[...document.querySelectorAll('.reason')].filter(one => one.checkVisibility()).length") < 90
    shown.ask("filter.focus()")
    shown.write("odd-89")
    assert shown.ask("[...document.querySelectorAll('.reason')].filter(one => one.checkVisibility()).length") == 1


def test_a_row_unfolds_by_keyboard_and_tells_what_is_on_the_node(look: Look) -> None:
    """Tab reaches it, Enter opens it: pods by name, and every instance type of the request."""
    shown = look(_written())
    for _ in range(40):
        shown.press("Tab")
        if shown.ask("document.activeElement.parentElement.hasAttribute('data-launches')"):
            break
    shown.press("Enter", "\r")
    text = shown.ask("document.activeElement.parentElement.innerText")
    assert shown.ask("document.activeElement.parentElement.open") is True
    assert "default-1: default/web-1, default/web-2" in text
    assert "m7a.large, m7a.xlarge" in text


def test_a_workload_that_is_pressed_stands_out(look: Look) -> None:
    """Its pieces keep their colour and the others grow pale; Escape ends that."""
    shown = look(_written())
    opacity = "[...document.querySelectorAll('.track i')].map(piece => getComputedStyle(piece).opacity)"
    assert set(shown.ask(opacity)) == {"1"}
    shown.ask("document.querySelector('.workload').click()")
    assert set(shown.ask(opacity)) == {"1", "0.13"}
    shown.press("Escape")
    assert set(shown.ask(opacity)) == {"1"}


def test_pointing_at_a_piece_explains_it(look: Look) -> None:
    """Which workload, how many pods, what each asks for, and how full the node is."""
    shown = look(_written())
    x, y = shown.ask(
        "(() => { const box = document.querySelector('[data-launches] .track i:not(.before)').getBoundingClientRect();"
        " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    shown.point(x, y)
    said = "default/web × 2 pods\n0.5 cpu, 1 GiB each\ncpu: 1.9 of 1.9 cpu, 98%"
    assert shown.ask("document.getElementById('tip').textContent") == said


def test_hostile_names_are_only_names(look: Look) -> None:
    """A pod, a namespace, a reason called like markup is shown as it is called, and nothing of it runs."""
    reasons = (replace(PACKING.unplaced[0].reasons[0], message=f"no label team={IMAGE}"),)
    names = (f"default/{HOSTILE}", f"default/{IMAGE}", '"><b onmouseover=x>/a', "default/</style><script>")
    shown = look(_written(unplaced=tuple(Unplaced(name, reasons) for name in names)))
    shown.ask("document.getElementById('unfold').click()")
    shown.ask("document.querySelectorAll('.workload').forEach(one => one.click())")
    text = shown.ask("document.body.innerText")
    assert shown.ask("String(window.hacked)") == "undefined"
    assert shown.ask("document.querySelectorAll('script').length") == 1
    assert shown.ask("document.querySelectorAll('img, b[onmouseover]').length") == 0
    assert shown.complaints == []
    assert f"default/{HOSTILE}" in text
    assert f"default/{IMAGE}" in text


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_is_readable(look: Look, dark: bool) -> None:
    """Each has at least the contrast of 4.5 to 1 that WCAG asks for, on light pages and on dark ones."""
    shown = look(_written(), dark=dark)
    shown.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert shown.ask(CONTRAST) == []
    lightness = shown.ask("getComputedStyle(document.body).backgroundColor")
    assert lightness == ("rgb(18, 23, 29)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_nothing_sticks_out_of_a_narrow_window(look: Look, width: int) -> None:
    """A telephone scrolls down, not sideways."""
    shown = look(_written(), width=width)
    shown.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert shown.ask("document.documentElement.scrollWidth") <= width


def test_paper_gets_no_buttons(look: Look) -> None:
    """Printing leaves out what only a screen can use, and is dark on white whatever the reader prefers."""
    shown = look(_written(), dark=True)
    shown.media(dark=True, kind="print")
    assert shown.ask("document.querySelector('.tools').checkVisibility()") is False
    assert shown.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert shown.ask(CONTRAST) == []


def test_ten_thousand_pods_are_a_page_that_opens(look: Look, run: Run, cluster: str, write: Write) -> None:
    """Under three megabytes; every launch is drawn, alike ones once, and any pod can be found."""
    pods = write("pods.json", json.loads(json.dumps(_many_pods(MANY))))
    text = run("plan", "--now", NOW, "-f", cluster, "-f", pods, "-o", "html").out
    assert len(text.encode()) < 3 * MEGABYTE
    shown = look(text)
    assert shown.ask("placed.textContent") == f"{MANY:,}"
    counted = "[...document.querySelectorAll('[data-launches]')].reduce((sum, row) => sum + +row.dataset.launches, 0)"
    assert f"{shown.ask(counted):,}" == shown.ask("launches.textContent")
    shown.ask("filter.focus()")
    shown.write("svc-7-04567")
    assert (
        shown.ask("[...document.querySelectorAll('[data-launches]')].filter(row => row.checkVisibility()).length") == 1
    )
    assert shown.complaints == []
