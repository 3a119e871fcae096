"""The screen of ``--watch``: what a command prints, to scroll in, made anew again and again."""

from collections.abc import Callable
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import ScrollableContainer
from textual.widgets import Footer, Static

from joinery_cli.live.looking import Looking


class OutputScreen(Looking):
    """``output``: what is printed. ``every``: seconds between two times."""

    CSS = """
    #output { scrollbar-size-vertical: 0; }
    #text { width: auto; }
    """

    def __init__(self, output: Callable[[], str], every: float) -> None:
        # An iterator that calls goes on after an error, as a generator would not. What is printed is never None.
        super().__init__(iter(output, None), every)

    def compose(self) -> ComposeResult:
        """The output, and below it what went wrong."""
        with ScrollableContainer(id="output"):
            yield Static("Reading and deciding ...", id="text")
        yield Static(id="error")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Keys scroll in the output. Textual calls the handlers of all classes, so this one calls no other."""
        self.query_one("#output").focus()

    def show(self, look: Any | None = None) -> None:
        """With the colours that it was printed in."""
        if look is not None:
            self.query_one("#text", Static).update(Text.from_ansi(look))
