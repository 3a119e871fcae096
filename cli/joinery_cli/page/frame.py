"""What the pages of all decisions share: one document that carries everything in itself.

A page asks the network for nothing; a content security policy forbids it to. Every text of the cluster is escaped.
"""

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from string import Template

from joinery_cli.notices import Notice, Severity
from joinery_cli.page.bars import colours, legend
from joinery_cli.page.text import NOTHING, Html, element, text
from joinery_cli.prices import Prices
from joinery_cli.view.figures import count
from joinery_cli.view.workloads import Workload

_PAGE = resources.files("joinery_cli.page")


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The parts of a page, from top to bottom.

    ``title``: of the window. ``kind``: what is shown, such as ``plan``. ``headline``: what it comes to, in a sentence.
    ``figures``, ``under_figures``: the most important figures, and what is drawn or said of them. ``sections``: the
    main column. ``style``: rules that only this page needs.
    """

    title: str
    kind: str
    now: datetime
    headline: str
    prices: Prices
    notices: tuple[Notice, ...]
    workloads: tuple[Workload, ...]
    figures: Html
    under_figures: Html
    sections: Html
    footer: Html
    style: str = ""


def framed(frame: Frame) -> str:
    """The whole page. One decision gives one page, byte for byte."""
    script = part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(part("page.html")).substitute(
        title=text(frame.title),
        kind=text(frame.kind),
        now=text(frame.now.isoformat().replace("+00:00", "Z")),
        headline=text(frame.headline),
        estimate=_estimate(frame.prices),
        notices=_notices(frame.notices),
        figures=frame.figures,
        under_figures=frame.under_figures,
        sections=frame.sections,
        legend=legend(frame.workloads),
        footer=frame.footer,
        colours=colours(frame.workloads),
        style=part("page.css") + frame.style,
        script=script,
        script_hash=f"sha256-{digest}",
    )


def part(name: str) -> str:
    """A file of this package."""
    return (_PAGE / name).read_text(encoding="utf-8")


def figure(name: str, term: str, value: str, note: str, *, kind: str = "") -> Html:
    """One of the figures at the head of a page. ``kind``: ``good`` or ``bad``."""
    shown = element("dd", element("span", text(value), id=name), element("small", text(note)))
    return element("div", element("dt", text(term)), shown, class_=kind)


def _estimate(prices: Prices) -> Html:
    """Said before any price is."""
    if not prices.is_estimate:
        return NOTHING
    said = f"Prices are an ESTIMATE: the cluster is in {prices.cluster_region}, the catalogue is of {prices.region}."
    return element("p", text(said), class_="estimate")


def _notices(notices: Sequence[Notice]) -> Html:
    """A list that is open where there is a warning; nothing where there is nothing to say."""
    if not notices:
        return NOTHING
    numbers = Counter(notice.severity for notice in notices)
    said = ", ".join(count(numbers[severity], severity.value) for severity in Severity if numbers[severity])
    ranked = sorted(notices, key=lambda notice: list(Severity).index(notice.severity))
    is_open = {"open_": "open"} if numbers[Severity.WARNING] else {}
    summary = element("summary", text(said))
    return element("details", summary, element("ul", *map(_line, ranked)), class_="notices", **is_open)


def _line(notice: Notice) -> Html:
    return element("li", element("b", text(f"{notice.severity}: ")), text(notice.message), class_=notice.severity.value)
