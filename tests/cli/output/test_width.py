"""How wide a table is: as wide as the terminal, and eighty columns where there is none."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from joinery_cli.sources import SAMPLE
from tests.cli.conftest import NOW
from tools.template import ROOT

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def lines_on_a_terminal(columns: int) -> list[str]:
    """The plan of an example, as a terminal of that width gets it."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "joinery_cli", "plan", "-f", str(ROOT / "examples" / "cluster.yaml")]
    without = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    with os.fdopen(leader, "rb", buffering=0) as printed:
        child = subprocess.Popen(
            [*command, "--catalog", str(SAMPLE), "--now", NOW],
            stdout=follower,
            stderr=subprocess.DEVNULL,
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
