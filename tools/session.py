"""Record the session of ``joinery simulate --top`` that README shows: ``make session`` (wants tmux).

A real terminal: tmux runs the command, keys are typed into it, and what its screen then shows is a frame. Rich draws
each frame; here they are put into one SVG that shows them in turn. The story is the same each time, so a test compares
the lines of the picture with it.
"""

import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tools.template import ROOT

PICTURE = ROOT / "docs" / "images" / "top.svg"
WIDTH, HEIGHT = 100, 27
_COMMAND = (".venv/bin/joinery", "simulate", "--top")
_SECONDS_A_FRAME = 3
_PATIENCE_SECONDS = 120.0
#: What is waited for on the screen, the keys that are then typed, and what they do: the title of the frame that is then
#: taken, none without one.
STEPS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("09:00:15Z", ("Space",), "space: stop the time"),
    ("paused", ("Space",), ""),
    ("09:01:30Z", ("Space",), "space: stop the time"),
    ("paused", ("s",), "s: sort by fullness"),
    ("by fullness", ("/", *"m6a"), "/m6a: filter"),
    ("m6a", ("Escape",), ""),
    ("▾ Next", ("Home", "f"), "f: fold"),
    ("▸ Next", ("Down", "Down", "Enter"), "Enter: why"),
    ("▸ Next", ("Escape",), ""),
    ("paused", ("Space",), ""),
    ("09:06:15Z", ("Space",), "space: stop the time"),
    ("paused", ("/", *"leaving"), "/leaving: filter"),
)
#: As Textual draws where a terminal has no colours of its own.
_THEME = TerminalTheme(
    (18, 18, 18), (224, 224, 224),
    [(40, 40, 40), (232, 93, 96), (110, 200, 110), (222, 184, 90), (90, 150, 235), (196, 130, 220), (80, 190, 200),
     (224, 224, 224)],
)  # fmt: skip
#: What of an export would be fetched from elsewhere, and what differs by release.
_FETCHED = re.compile(r"@font-face \{.*?\}\s*(?=@font-face|\.)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->")
_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


class Terminal:
    """A terminal that nobody sees: what it shows can be asked for, and keys typed into it."""

    def __init__(self, socket: Path) -> None:
        # Whatever the user has configured is not what is recorded.
        self._tmux = ("tmux", "-f", "/dev/null", "-S", str(socket))

    def _ask(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True).stdout

    def start(self, command: tuple[str, ...]) -> None:
        """The command alone, without a shell around it that would stay."""
        words = shlex.join(["env", "COLORTERM=truecolor", *command])
        self._ask("new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), words)

    def end(self) -> None:
        """With whatever runs in it."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def type(self, *keys: str) -> None:
        """Keys by tmux's names."""
        self._ask("send-keys", *keys)

    def screen(self) -> str:
        """All lines in their whole width, with the codes of their colours."""
        return self._ask("capture-pane", "-e", "-N", "-p")

    def shows(self, words: str) -> None:
        """Wait until the screen has them. Raises ``TimeoutError``."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while words not in Text.from_ansi(self.screen()).plain:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{words!r} was not shown:\n{self.screen()}")
            time.sleep(0.05)

    def still(self) -> str:
        """The screen, once it has stayed the same for a while. An escape and a key right after it would be one key."""
        before = ""
        while (now := self.screen()) != before:
            before = now
            time.sleep(0.5)
        return now


@contextmanager
def terminal(command: tuple[str, ...]) -> Iterator[Terminal]:
    """A terminal in which the command runs; both end with the block."""
    with TemporaryDirectory() as folder:
        started = Terminal(Path(folder) / "tmux")
        started.start(command)
        try:
            yield started
        finally:
            started.end()


def recorded() -> Iterator[str]:
    """The session's frames."""
    with terminal(_COMMAND) as screen:
        for number, (words, keys, title) in enumerate(STEPS):
            screen.shows(words)
            screen.type(*keys)
            seen = screen.still()
            if title:
                yield drawn(seen, title, f"s{number}")


def drawn(screen: str, title: str, name: str) -> str:
    """A screen as SVG. ``title``: above it. ``name``: what its styles are called by, for frames share a file."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(screen.rstrip("\n")), no_wrap=True, crop=False)
    return console.export_svg(title=f"joinery simulate --top  |  {title}", theme=_THEME, unique_id=name)


def animated(frames: list[str]) -> str:
    """The frames in turn, without end; the first alone where a reader wants no motion."""
    box = _BOX.search(frames[0])
    whole = len(frames) * _SECONDS_A_FRAME
    delays = "".join(f".f{number}{{animation-delay:{number * _SECONDS_A_FRAME}s}}" for number in range(len(frames)))
    style = (
        f".f{{visibility:hidden;animation:{whole}s step-end infinite shown}}.f0{{visibility:visible}}{delays}"
        f"@keyframes shown{{0%{{visibility:visible}}{100 / len(frames):.4g}%{{visibility:hidden}}}}"
        "@media(prefers-reduced-motion){.f{animation:none}}"
    )
    inner = "".join(f'<g class="f f{number}">{_plain(frame)}</g>\n' for number, frame in enumerate(frames))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box[0] if box else ""} role="img">'
        f"<title>joinery top on the story of make demo</title><style>{style}</style>\n{inner}</svg>\n"
    )


def _plain(frame: str) -> str:
    """Without what a browser would fetch, and without lines that end in blanks."""
    kept = _COMMENT.sub("", _FETCHED.sub("", frame))
    return "\n".join(line.rstrip() for line in kept.splitlines() if line.strip())


if __name__ == "__main__":
    PICTURE.write_text(animated(list(recorded())))
