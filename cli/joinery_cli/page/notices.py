"""What a person should hear beside a decision, at the head of its page:
the warnings first, the notes folded away with them.
"""

from collections import Counter
from collections.abc import Sequence

from joinery_cli.notices import Notice, Severity
from joinery_cli.page.text import NOTHING, Html, element, text
from joinery_cli.view.figures import count


def section(notices: Sequence[Notice]) -> Html:
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
