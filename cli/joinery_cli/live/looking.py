"""A screen that looks again and again: what its two kinds share.

Looking may take seconds, so a thread does it, and keys answer at once. Whoever quits does not wait for it.
"""

from collections.abc import Iterator
from threading import Event, Thread
from typing import Any, ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from joinery.objects.errors import JoineryError
from joinery_cli.output.visible import line_of

#: The thread that looks.
THREAD = "look"


class Looking(App[JoineryError | None]):
    """``looks``: asked for the next look, raises ``JoineryError`` where it fails. ``every``: seconds between two looks.

    Running it returns the error that the first look ended with: there is nothing to show then. A subclass composes a
    ``Static`` called ``error``, and shows what it is given by ``show``.
    """

    CSS = "#error { height: auto; color: red; display: none; }"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "pause", "Pause"),
        Binding("r", "again", "Again now", show=False),
        Binding("q", "quit", "Quit"),
    ]

    class Seen(Message):
        """A look succeeded."""

        def __init__(self, look: Any) -> None:
            super().__init__()
            self.look = look

    class Failed(Message):
        """A look failed."""

        def __init__(self, error: JoineryError) -> None:
            super().__init__()
            self.error = error

    class Over(Message):
        """There is no further look."""

    def __init__(self, looks: Iterator[Any], every: float) -> None:
        super().__init__(ansi_color=True)
        self._looks, self._every = looks, every
        self._has_seen = self._is_closed = False
        self.is_paused = self.is_over = False
        self._wanted = Event()
        self._wanted.set()

    def show(self, look: Any | None = None) -> None:
        """Show a new look; None: the same as before, of which something else has changed."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """The first look is taken at once."""
        Thread(target=self._look_on, name=THREAD, daemon=True).start()

    def _look_on(self) -> None:
        while True:
            self._wanted.wait(None if self.is_paused else self._every)
            if self._is_closed:
                return
            if self.is_paused and not self._wanted.is_set():
                continue
            self._wanted.clear()
            try:
                self.post_message(self.Seen(next(self._looks)))
            except StopIteration:
                self.post_message(self.Over())
                return
            except JoineryError as error:
                self.post_message(self.Failed(error))

    def on_looking_seen(self, message: Seen) -> None:
        """What went wrong before is over."""
        self._has_seen = True
        self.query_one("#error").display = False
        self.show(message.look)

    def on_looking_failed(self, message: Failed) -> None:
        """What was seen last stays."""
        if not self._has_seen:
            self.exit(message.error)
            return
        shown = self.query_one("#error", Static)
        shown.update(Text(f"{line_of(message.error)}; trying again"))
        shown.display = True

    def on_looking_over(self) -> None:
        """The last look stays."""
        self.is_over = True
        self.show()

    def action_pause(self) -> None:
        """Take no further look, or go on."""
        self.is_paused = not self.is_paused
        if not self.is_paused:
            self._wanted.set()

    def action_again(self) -> None:
        """Without waiting for its time."""
        self._wanted.set()

    async def action_quit(self) -> None:
        """End, whatever the thread is doing."""
        self._is_closed = True
        self._wanted.set()
        self.exit()
