"""Pods that were asked for by ``--explain``, at the end of the page: the same lines as in the terminal."""

from joinery.cli.explained import lines
from joinery.cli.page.text import NOTHING, Html, element, text
from joinery.cli.view.plan_view import PlanView
from joinery.scheduling.explain.explanation import Explanation


def section(plan: PlanView) -> Html:
    """A block for each pod; nothing where none was asked for."""
    if not plan.explanations:
        return NOTHING
    heading = element(
        "summary", element("h2", text("Explanations")), element("small", text("pods asked for by --explain"))
    )
    blocks = map(_block, plan.explanations)
    return element("section", element("details", heading, *blocks, class_="part", open_="open"), id="explanations")


def _block(explanation: Explanation) -> Html:
    heading, *rest = lines(explanation)
    # ``text`` shows line breaks of others as characters, so the lines are joined as markup.
    return element("div", element("h3", text(heading)), element("pre", Html("\n".join(map(text, rest)))))
