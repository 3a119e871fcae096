"""Runs ``joinery`` and measures what a decision takes."""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tools.consolidation import catalogue as catalogues
from tools.consolidation.catalogue import Catalogue
from tools.consolidation.documents import Document

#: The command line of the environment that this runs in.
JOINERY = Path(sys.executable).with_name("joinery")
_KIBIBYTES_A_MEBIBYTE = 1024


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What ``joinery disrupt`` is asked with. What is None is left to its defaults.

    move_price       dollars an eviction
    payback          a Go duration
    ignore_budgets   whether budgets of NodePools bind
    time_limit       seconds
    """

    move_price: float | None = None
    payback: str | None = None
    ignore_budgets: bool = False
    time_limit: float | None = None

    def arguments(self) -> list[str]:
        given = (("--move-price", self.move_price), ("--payback", self.payback), ("--time-limit", self.time_limit))
        valued = [text for option, value in given if value is not None for text in (option, str(value))]
        return [*valued, *(["--ignore-budgets"] if self.ignore_budgets else [])]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A decision and what it took. ``plan`` is None where there is none, and ``problem`` says why.

    ``wall`` and ``processor`` in seconds, with starting Python and reading the file; ``memory`` in MiB, the most that
    one process of the run had.
    """

    plan: Document | None
    problem: str
    wall: timedelta
    processor: timedelta
    memory: float


def disrupt(file: Path, catalogue: Path, now: str, asked: Asked, joinery: Path = JOINERY) -> Run:
    """Have ``joinery`` decide about a file."""
    command = [str(joinery), "disrupt", "-f", str(file), "--catalog", str(catalogue), "--now", now, "-o", "json"]
    return measured([*command, *asked.arguments()])


def measured(command: list[str]) -> Run:
    """Run a command that prints a JSON document."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=errors, text=True)
        # Not getrusage(RUSAGE_CHILDREN), whose memory is the most of any child so far.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - began
        plan, problem = _answer(process.returncode, *(_text(file) for file in (out, errors)))
    return Run(
        plan=plan,
        problem=problem,
        wall=timedelta(seconds=wall),
        processor=timedelta(seconds=usage.ru_utime + usage.ru_stime),
        memory=usage.ru_maxrss / _KIBIBYTES_A_MEBIBYTE,
    )


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read())


def _answer(status: int, out: str, errors: str) -> tuple[Document | None, str]:
    if status:
        last = errors.strip().splitlines()[-1:] or [""]
        return None, f"exit status {status}: {last[0]}"
    try:
        return json.loads(out), ""
    except ValueError as error:
        return None, f"what it printed is not JSON: {error}"


def catalogue_of(file: Path, catalogue: Path, types: Path) -> Catalogue:
    """What can be bought for the file's nodes.

    ``types``: where to write what ``joinery catalog`` prints; the judge reads it too.

    Raises:
        subprocess.CalledProcessError: the command fails.
    """
    command = [str(JOINERY), "catalog", "-f", str(file), "--catalog", str(catalogue), "-o", "json"]
    types.write_text(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
    return catalogues.load(types, catalogue)
