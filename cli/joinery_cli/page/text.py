"""Text that may be put into a page: only what went through here is ``Html``, and everything that did is escaped."""

from collections.abc import Iterable

from markupsafe import Markup, escape

from joinery_cli.output.visible import visible

#: Markup, which templates take as it is. mypy keeps the name of a pod from passing for it.
Html = Markup

NOTHING = Html("")


def text(anything: object) -> Html:
    """A text as markup: nothing in it means anything to a browser."""
    return Html(escape(visible(anything)))


def join(parts: Iterable[Html]) -> Html:
    return Html("\n".join(parts))


def element(name: str, *inside: Html, **attributes: object) -> Html:
    """``<name ...>inside</name>``.

    ``class_`` is written ``class``, ``aria_label`` ``aria-label``; empty ones are left out.
    """
    return Html(f"<{name}{_attributes(attributes)}>{''.join(inside)}</{name}>")


def _attributes(attributes: dict[str, object]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(visible(value))}"'
        for name, value in attributes.items()
        if value not in ("", None)
    )
