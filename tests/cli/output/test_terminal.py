"""What only a terminal gets: tables as wide as it is, and a word about what takes long."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time
from contextlib import redirect_stderr, redirect_stdout

import pytest

from joinery_cli.notices import counted, writing
from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW
from tools.template import ROOT

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def lines_on_a_terminal(columns: int, code: str = "") -> list[str]:
    """What a terminal of that width gets: the plan of an example, or both streams of some code."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    plan = ["-m", "joinery_cli", "plan", "-f", str(ROOT / "examples" / "cluster.yaml"), "--catalog", str(SAMPLE)]
    command = [sys.executable, *(["-c", code] if code else [*plan, "--now", NOW])]
    without = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    with os.fdopen(leader, "rb", buffering=0) as printed:
        child = subprocess.Popen(
            command,
            stdout=follower,
            stderr=follower if code else subprocess.DEVNULL,
            env={**without, "TERM": "xterm"},
        )
        os.close(follower)
        text = _read(printed.fileno())
        assert child.wait() == 0
    return _COLOURS.sub("", text).splitlines()


def _read(terminal: int) -> str:
    """Everything until the other end is closed, which Linux says as an error."""
    parts = []
    try:
        while part := os.read(terminal, 65536):
            parts.append(part)
    except OSError:
        pass
    return b"".join(parts).decode()


@pytest.mark.parametrize(("columns", "lines"), [(160, 1), (80, 2)])
def test_sentences_are_as_wide_as_the_terminal(columns: int, lines: int) -> None:
    """A reason that eighty columns have in two lines is one line of a wide terminal."""
    printed = [line for line in lines_on_a_terminal(columns) if str(SAMPLE) not in line]
    assert max(map(len, printed)) <= columns
    first = next(number for number, line in enumerate(printed) if "NodePool default: all" in line)
    said = " ".join(line.strip() for line in printed[first : first + lines])
    assert said.endswith("(the pod asks for 500)")


WAITING = """
import threading
from joinery_cli.notices import working
with working("planning", after={after}):
    for timer in threading.enumerate():
        if isinstance(timer, threading.Timer) and {after} == 0:
            timer.join()
print("done")
"""


@pytest.mark.parametrize(("after", "is_said"), [(0, True), (3600, False)])
def test_what_takes_long_is_said_while_it_does(after: int, is_said: bool) -> None:
    """And what does not, is not: it would only flash."""
    lines = lines_on_a_terminal(80, WAITING.format(after=after))
    assert any("planning …" in line for line in lines) is is_said
    assert lines[-1].endswith("done")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_of_many_things_a_terminal_shows_how_many_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a thousand records takes a while."""
    monkeypatch.setenv("TERM", "xterm")
    ends = time.monotonic() + 30
    with redirect_stderr(_Terminal()) as terminal:
        for number in counted([1, 2, 3], "reading records", after=0):
            while number == 2 and "reading records: 1 of 3 …" not in terminal.getvalue():
                assert time.monotonic() < ends


@pytest.mark.parametrize(("printed", "is_said"), [(io.StringIO, True), (_Terminal, False)])
def test_a_page_that_goes_into_a_file_is_said_to_be_written(
    printed: type[io.StringIO], is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table on the terminal itself is not written over."""
    monkeypatch.setenv("TERM", "xterm")
    ends = time.monotonic() + 30
    with redirect_stdout(printed()), redirect_stderr(_Terminal()) as terminal, writing(after=0):
        while is_said and "writing …" not in terminal.getvalue():
            assert time.monotonic() < ends
    assert ("writing …" in terminal.getvalue()) is is_said


def test_a_pipe_gets_nothing_of_it() -> None:
    """A log has no use for it."""
    done = subprocess.run([sys.executable, "-c", WAITING.format(after=0)], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("done\n", "")
