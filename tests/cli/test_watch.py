"""``--watch`` of ``joinery plan`` and ``joinery disrupt``: the same output again and again."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import pytest

from joinery.objects.errors import ConfigurationError
from joinery_cli.live.looking import THREAD
from joinery_cli.live.output_screen import OutputScreen
from joinery_cli.live.watching import output_of
from joinery_cli.main import main
from tests.cli.conftest import NOW, Run, Write, pod_document


def _watching(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [str(Path(sys.executable).with_name("joinery")), *arguments, "--watch", "--every", "0.01", "--now", NOW]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_json_is_a_line_each_time_and_files_are_read_anew(cluster: str, write: Write) -> None:
    """Whoever edits a file sees what becomes of it, also after a mistake in it."""
    pods = write("pods.json", pod_document())
    with _watching("plan", "-f", cluster, "-f", pods, "-o", "json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said = _lines(process.stderr)
        first = json.loads(process.stdout.readline())
        Path(pods).write_text("{")
        while b"pods.json" not in said.get():
            pass
        _replace(pods, {"kind": "List", "apiVersion": "v1", "items": [pod_document("a"), pod_document("b")]})
        while len(_planned(later := json.loads(process.stdout.readline()))) != 2:
            pass
        # Not as Ctrl-C does: what a shell runs in the background ignores that.
        process.terminate()
    assert _planned(first) == ["default/web"]
    assert _planned(later) == ["default/a", "default/b"]


def test_what_was_said_is_not_said_again(cluster: str) -> None:
    """A warning that is repeated each second hides the one that is new."""
    with _watching("plan", "-f", cluster, "-o", "json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len([process.stdout.readline() for _ in range(3)]) == 3
        process.terminate()
        assert process.stderr.read().count(b"SAMPLE PRICES") == 1


def _lines(stream: IO[bytes]) -> "SimpleQueue[bytes]":
    """The lines as they come. Read all the time: a pipe that nobody empties would stop the command."""
    lines: SimpleQueue[bytes] = SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _replace(path: str, document: Any) -> None:
    """At once: nobody reads half of it."""
    beside = Path(f"{path}.new")
    beside.write_text(json.dumps(document))
    os.replace(beside, path)


def _planned(document: Any) -> list[str]:
    return [pod for launch in document["launch"] for pod in launch["pods"]]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("-o", "html"), "--watch: shows a table or JSON, not -o html"),
        (("-f", "-"), "--watch: standard input can be read only once; give a file instead of -f -"),
        (("--every", "nan"), "--every nan: must be more than 0 seconds"),
        (("-f", "nowhere.yaml"), "nowhere.yaml: No such file or directory"),
    ],
)
def test_what_cannot_be_watched_is_one_line(run: Run, arguments: tuple[str, ...], error: str) -> None:
    """With exit status 2."""
    done = run("plan", "--watch", *arguments)
    assert (done.status, done.err.splitlines()[-1]) == (2, f"joinery: {error}")


def test_the_screen_shows_what_the_command_prints(cluster: str, write: Write) -> None:
    """In its colours, and in the terminal's width; a mistake that is made later is said below it."""
    pods = write("pods.json", pod_document())

    def plan() -> None:
        try:
            main(["plan", "-f", cluster, "-f", pods, "--now", NOW])
        except SystemExit as ended:
            if ended.code:
                raise ConfigurationError("mend it") from None

    app = OutputScreen(lambda: output_of(plan), 0.1)

    async def drive() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            await _until(pilot, "Launch")
            Path(pods).write_text("{")
            await _until(pilot, "mend it; trying again")
            await pilot.press("q")

    async def _until(pilot: Any, words: str) -> None:
        while words not in app.export_screenshot(simplify=True).replace("&#160;", " "):
            await pilot.pause(0.05)

    asyncio.run(asyncio.wait_for(drive(), 30))
    for thread in threading.enumerate():
        # Until it is done, what others print is its.
        if thread.name == THREAD:
            thread.join()
