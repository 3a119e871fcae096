"""The screen of ``joinery top``: lines that another module makes, and keys. Views that were shown are kept, so that one
can look back.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Input, OptionList, Static
from textual.widgets.option_list import Option

from joinery_cli.explained_nodes import lines as explained_lines
from joinery_cli.live.looking import Looking
from joinery_cli.output.top_lines import NOTICES, SORTS, Line, Look, lines, summary
from joinery_cli.output.visible import visible
from joinery_cli.view.disruption_view import explain
from joinery_cli.view.top_view import TopView

#: So many views can be looked back at. Each keeps its whole cluster.
_KEPT = 60


class Top(Looking):
    """``feed``: gives the next view when asked. ``every``: seconds between two of them."""

    TITLE = "joinery top"
    CSS = """
    #summary { height: 3; }
    #lines { height: 1fr; border: none; padding: 0; background: transparent; }
    #lines { scrollbar-size-vertical: 1; scrollbar-gutter: stable; }
    #lines > .option-list--option { padding: 0; }
    #why { height: auto; max-height: 50%; border-top: solid $secondary; display: none; scrollbar-size-vertical: 0; }
    #filter { display: none; border: none; height: 1; padding: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "Sort"),
        # It goes before any other key, for what is typed right after it are words.
        Binding("slash", "filter", "Filter", priority=True),
        Binding("f", "fold", "Fold"),
        Binding("F", "fold_all", "Fold all", show=False),
        Binding("left", "look(-1)", "Back", show=False),
        Binding("right", "look(1)", "Forth", show=False),
        Binding("enter", "why", "Why"),
        Binding("escape", "close", "Close", show=False),
    ]

    def __init__(self, feed: Iterator[TopView], every: float) -> None:
        super().__init__(feed, every)
        self._views: deque[TopView] = deque(maxlen=_KEPT)
        self._at = -1
        self._look = Look(folded=frozenset({NOTICES}))
        self._shown: list[Line] = []

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Static("Reading and deciding ...", id="summary")
        yield OptionList(id="lines", markup=False)
        with VerticalScroll(id="why"):
            yield Static(id="explanation")
        yield Static(id="error")
        yield Input(id="filter", placeholder="words that a line must contain", compact=True)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Keys are for the lines. Textual calls the handlers of all classes, so this one calls no other."""
        self.query_one("#lines", OptionList).focus()

    def on_resize(self, event: events.Resize) -> None:
        """Lines are as wide as the terminal, less the column in which it shows how far one has come."""
        self._look_with(width=event.size.width - 1)

    # --- showing ---

    def _look_with(self, **changes: Any) -> None:
        self._look = replace(self._look, **changes)
        self.show()

    def show(self, look: Any | None = None) -> None:
        """Whoever looks at an earlier view goes on looking at it."""
        if look is not None:
            is_newest, is_full = self._at == len(self._views) - 1, len(self._views) == _KEPT
            self._views.append(look)
            is_followed = is_newest and (not self.is_paused or len(self._views) == 1)
            self._at = len(self._views) - 1 if is_followed else max(0, self._at - is_full)
        if self._views:
            self._draw()

    def _draw(self) -> None:
        view, look = self._views[self._at], self._look
        head = summary(view, look.width, state=self._state())
        self.query_one("#summary", Static).update(head)
        options = self.query_one("#lines", OptionList)
        before = options.highlighted
        selected = self._shown[before].key if before is not None and before < len(self._shown) else ""
        self._shown = list(lines(view, look))
        options.clear_options()
        options.add_options([Option(line.text, id=line.key) for line in self._shown])
        keys = [line.key for line in self._shown]
        if keys:
            options.highlighted = keys.index(selected) if selected in keys else min(before or 0, len(keys) - 1)
        if self.query_one("#why").display:
            self._explain()

    def _state(self) -> str:
        if self._at < len(self._views) - 1:
            return f"{len(self._views) - 1 - self._at} back"
        return "paused" if self.is_paused else "the end" if self.is_over else ""

    def _selected(self) -> Line | None:
        at = self.query_one("#lines", OptionList).highlighted
        return self._shown[at] if at is not None and at < len(self._shown) else None

    def _explain(self) -> None:
        """What ``joinery disrupt --explain`` says of the selected node; of another line all that was cut off."""
        line = self._selected()
        if line is None:
            return
        said = (line.whole or line.text.plain.strip()).split("\n")
        if line.node:
            view = self._views[self._at]
            said = list(explained_lines(explain(line.node, view.problem, view.seen)))
        self.query_one("#explanation", Static).update(Text("\n".join(map(visible, said))))

    # --- keys ---

    def action_sort(self) -> None:
        """By the next of the orders."""
        names = list(SORTS)
        self._look_with(sort=names[(names.index(self._look.sort) + 1) % len(names)])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where words are typed, a slash is one of their characters."""
        return action != "filter" or not isinstance(self.focused, Input)

    def action_filter(self) -> None:
        """Type what lines must contain."""
        field = self.query_one("#filter", Input)
        field.display = True
        self.screen.set_focus(field)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        self._look_with(wanted=event.value)

    def on_input_submitted(self) -> None:
        """Back to the lines, and keep the filter."""
        self.query_one("#lines").focus()

    def action_close(self) -> None:
        """Close what is open: the explanation, else the filter."""
        why, field = self.query_one("#why"), self.query_one("#filter", Input)
        if why.display:
            why.display = False
            return
        field.value, field.display = "", False
        self.query_one("#lines").focus()

    def action_fold(self) -> None:
        """The section of the selected line."""
        at = self.query_one("#lines", OptionList).highlighted or 0
        heading = next((line.key for line in reversed(self._shown[: at + 1]) if line.is_heading), None)
        if heading is not None:
            self._look_with(folded=self._look.folded ^ {heading})

    def action_fold_all(self) -> None:
        """All of them, or none."""
        everything = frozenset(line.key for line in self._shown if line.is_heading)
        self._look_with(folded=frozenset() if everything <= self._look.folded else everything)

    def action_pause(self) -> None:
        """Stay at this view, or go on from the newest."""
        super().action_pause()
        if not self.is_paused:
            self._at = len(self._views) - 1
        self.show()

    def action_look(self, step: int) -> None:
        """At an earlier view, or a later one."""
        self._at = min(max(0, self._at + step), len(self._views) - 1)
        self.show()

    def on_option_list_option_selected(self) -> None:
        """Enter: a heading folds, everything else is explained."""
        line = self._selected()
        if line is not None and line.is_heading:
            self.action_fold()
            return
        why = self.query_one("#why")
        why.display = not why.display
        self._explain()
        # The lines have less room now, or more.
        self.call_after_refresh(self.query_one("#lines", OptionList).scroll_to_highlight)

    def on_option_list_option_highlighted(self) -> None:
        """An open explanation follows the selection."""
        if self.query_one("#why").display:
            self._explain()
