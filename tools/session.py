"""Record the session of ``joinery top`` that README shows: ``python -m tools.session``.

The screen itself is driven, on the story of ``make demo``. Each frame is Textual's own export; here they are put into
one SVG that shows them in turn. The story is the same each time, so a test can hold the picture against it.
"""

import asyncio
import re
from collections.abc import Iterator
from datetime import timedelta
from queue import Queue

from joinery_cli.live.screen import Top
from joinery_cli.view.top_view import TopView
from simulator.story import scenario as story
from simulator.story.simulation import Simulation
from simulator.story.top import view_of
from tools.template import ROOT

PICTURE = ROOT / "docs" / "images" / "top.svg"
SIZE = (100, 27)
SECONDS_A_FRAME = 4
#: At what minute of the story there is a look, and which keys are pressed before and after the frame is taken.
_FRAMES: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.25, ()),
    (1.5, ()),
    (1.5, ("end", "up", "enter")),
    (6.25, ("escape", "home")),
    (6.25, ("slash", *"leaving")),
)
#: What of an export would be fetched from elsewhere, and what differs by release.
_FETCHED = re.compile(r"@font-face \{.*?\}\s*(?=@font-face|\.)", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->")
_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def recorded() -> str:
    """The whole picture."""
    return animated(asyncio.run(_frames()))


async def _frames() -> list[str]:
    simulation, views = Simulation(story.load()), _Views()
    app, frames = Top(views, 0.0), []
    with simulation.running():
        async with app.run_test(size=SIZE) as pilot:
            for minute, keys in _FRAMES:
                simulation.engine.run_until(simulation.start + timedelta(minutes=minute))
                seen = view_of(simulation)
                views.waiting.put(seen)
                while f"{seen.now:%H:%M:%S}" not in app.export_screenshot():
                    await pilot.pause(0.02)
                if keys:
                    await pilot.press(*keys)
                await pilot.pause()
                frames.append(app.export_screenshot(simplify=True))
            views.waiting.put(None)
            await pilot.press("q")
    return frames


class _Views(Iterator[TopView]):
    """The next view comes when it is put in."""

    def __init__(self) -> None:
        self.waiting: Queue[TopView | None] = Queue()

    def __next__(self) -> TopView:
        if (one := self.waiting.get()) is None:
            raise StopIteration
        return one


def animated(frames: list[str]) -> str:
    """The frames in turn, without end; the first alone where a reader wants no motion."""
    box = _BOX.search(frames[0])
    whole = len(frames) * SECONDS_A_FRAME
    delays = "".join(f".f{number}{{animation-delay:{number * SECONDS_A_FRAME}s}}" for number in range(len(frames)))
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
    PICTURE.write_text(recorded())
