"""How long the command line takes to start, in seconds of processor, each run a process of its own.

A small plan is mostly its start: imports, the catalogue, the file. The least of the runs is what the command costs; the
median also has what the machine did beside it.
"""

import os
import subprocess
import sys
from collections.abc import Sequence

from tools.bench.frame import JOINERY, Target, show, spread
from tools.template import ROOT

_RUNS = 9
_EXAMPLES = ROOT / "examples"
#: Seconds of processor, by command.
_TARGETS: tuple[tuple[float, tuple[str, ...]], ...] = (
    (0.2, ("--version",)),
    (0.2, ("--help",)),
    (1.0, ("plan", "-f", str(_EXAMPLES / "spread.yaml"))),
    (1.0, ("disrupt", "-f", str(_EXAMPLES / "consolidation.yaml"))),
)


def main() -> None:
    show(("command", "target", "median", ""), (_measured(target, command).row for target, command in _TARGETS))


def _measured(target: float, command: Sequence[str]) -> Target:
    _seconds(command)  # so that files are cached and bytecode is there
    taken = [_seconds(command) for _ in range(_RUNS)]
    named = " ".join(os.path.relpath(word, ROOT) if word.startswith(os.sep) else word for word in command)
    return Target(f"joinery {named}", f"{target:.1f} s", f"{spread(taken)} s", min(taken) < target)


def _seconds(command: Sequence[str]) -> float:
    """Processor time, the system's too. Ends the measurement where the command fails."""
    process = subprocess.Popen([str(JOINERY), *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"joinery {' '.join(command)} failed")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
