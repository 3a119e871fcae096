"""Renders the templates of pages: every text of the cluster is escaped; one decision gives one page, byte for byte."""

import base64
import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from joinery.objects.karpenter.duration import spoken
from joinery_cli.notices import Severity, UserNotice
from joinery_cli.output.json import moment_text
from joinery_cli.output.visible import visible
from joinery_cli.page.bars import bars, colours, fullness, legend
from joinery_cli.page.fleet import strip
from joinery_cli.prices import Prices
from joinery_cli.view.disruption_words import moves, rule
from joinery_cli.view.figures import count, listed, money, part
from joinery_cli.view.workloads import DrawnWorkload

_PACKAGE = "joinery_cli.page"


@dataclass(frozen=True)
class Figure:
    """One of the figures at the head of a page. ``kind``: ``good`` or ``bad``."""

    name: str
    term: str
    value: str
    note: str
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """What every page has around its sections.

    ``title``: of the window. ``kind``: what is shown, such as ``plan``. ``headline``: what it comes to, in a sentence.
    ``explanations``: lines, of which the first is a heading; ``explained``: what they are of.
    """

    title: str
    kind: str
    now: datetime
    headline: str
    prices: Prices
    notices: tuple[UserNotice, ...]
    workloads: tuple[DrawnWorkload, ...]
    figures: tuple[Figure, ...]
    explanations: tuple[Iterable[str], ...]
    explained: str
    footer: tuple[str, ...]


def rendered(template: str, frame: Frame, *styles: str, **values: Any) -> str:
    """The whole page. ``styles``: names of style sheets that only this page needs. ``values``: of its sections."""
    script = _part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    numbers = Counter(notice.severity for notice in frame.notices)
    explanations = [(heading, Markup("\n").join(map(visible, rest))) for heading, *rest in frame.explanations]
    return _environment().get_template(template).render({
        **vars(frame), **values,
        "now": moment_text(frame.now),
        "notices": sorted(frame.notices, key=lambda notice: list(Severity).index(notice.severity)),
        "noticed": [count(numbers[severity], severity.value) for severity in Severity if numbers[severity]],
        "warning": Severity.WARNING,
        "explanations": explanations,
        "legend": legend(frame.workloads),
        "colours": colours(frame.workloads),
        "style": Markup("".join(map(_part, ("page.css", *styles)))),  # noqa: S704 - a file of this package
        "script": Markup(script),  # noqa: S704 - a file of this package
        "script_hash": f"sha256-{digest}",
    })  # fmt: skip


def _part(name: str) -> str:
    """A file of this package."""
    return (resources.files(_PACKAGE) / name).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else visible(value),
    )
    environment.globals |= {
        "bars": bars, "count": count, "fullness": fullness, "listed": listed, "money": money, "moves": moves,
        "number": "{:,}".format, "rule": rule, "share_of": part, "spoken": spoken, "strip": strip,
    }  # fmt: skip
    return environment
