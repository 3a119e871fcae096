"""How long hostile pods keep a decision, and how much memory they take: every kind of them, in sizes that hurt.

    make hostile [HOSTILE="--command disrupt --limits 1 --kinds repelling resources"]

Each case is a process of its own: `joinery plan` or `joinery disrupt` over pods of others and hostile ones. ``plan``
are the seconds from parsed objects to the plan, as the plan itself says, and may be a second more than the limit.
``CPU`` is all that the process took beyond a run without hostile pods: reading and showing are in it. ``MB`` is its
peak, and may be half of what the function has. Exit status 1 if anything is over.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from simulator.hostile import BYSTANDERS, KINDS, Cluster, cluster
from tools.bench.frame import JOINERY

NOW = "2026-01-01T00:00:00Z"
LIMITS = (0.001, 1.0, 20.0)
#: The memory of the functions that decide is 1,769 MB: half of it.
MOST_MEGABYTES = 1769 / 2
#: Seconds by which a decision may outlast its limit; and what reading and showing may take, for each thousand pods.
GRACE, PER_THOUSAND = 1.0, 1.0
#: No case harms the machine: so much memory, and so long.
_LARGEST, _LONGEST = 6 << 30, 240.0
_MEBI = 1024  # getrusage counts KiB
_LINE = "{:<28}{:>9}{:>7}{:>7}{:>9}{:>9}{:>7}  {}"


@dataclass(frozen=True)
class Case:
    """One process. ``limit``: its time limit in seconds."""

    kind: str
    size: int
    command: str
    limit: float


@dataclass(frozen=True)
class Outcome:
    """What a case took. ``seconds``: from parsed objects to the decision; ``cpu``: of the whole process.

    ``left``: how many pods of others have no place. ``problem``: why there is no answer.
    """

    case: Case
    pods: int
    cpu: float
    megabytes: float
    seconds: float = 0.0
    left: int = 0
    problem: str = ""

    def over(self, idle: float) -> str:
        """What is more than it may be; ``idle``: what a process takes without hostile pods."""
        limit = self.case.limit
        faults = {
            self.problem: bool(self.problem),
            # A process that had to wait for a processor is not at fault.
            "plan": self.seconds > limit + GRACE and self.cpu > idle + GRACE,
            "CPU": self.cpu > idle + limit + GRACE + PER_THOUSAND * self.pods / 1000,
            "MB": self.megabytes > MOST_MEGABYTES,
            f"{self.left} of others left": self.left > 0,
        }
        return ", ".join(name for name, is_so in faults.items() if is_so)


def run(arguments: list[str]) -> int:
    options = _options(arguments)
    wrong = 0
    print(_LINE.format("kind", "size", "pods", "limit", "plan", "CPU", "MB", ""))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.json"
        is_running = options.command == "disrupt"
        idle = _run(Case("(nobody)", 0, options.command, options.limits[0]), cluster([], running=is_running), file)
        print(_line(idle, 0.0), flush=True)
        for case in _cases(options):
            outcome = _run(case, cluster(KINDS[case.kind].make(case.size), running=is_running), file)
            wrong += bool(outcome.over(idle.cpu))
            print(_line(outcome, idle.cpu), flush=True)
    return 1 if wrong else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--command", choices=("plan", "disrupt"), default="plan", help="default: plan")
    parser.add_argument("--limits", type=float, nargs="+", default=list(LIMITS), help="time limits in seconds")
    parser.add_argument("--kinds", nargs="+", choices=sorted(KINDS), default=list(KINDS), metavar="KIND")
    parser.add_argument("--sizes", type=int, nargs="+", help="these instead of each kind's own")
    parser.add_argument("--small", action="store_true", help="the sizes of the tests")
    return parser.parse_args(arguments)


def _cases(options: argparse.Namespace) -> Iterator[Case]:
    for name in options.kinds:
        sizes = [KINDS[name].small] if options.small else options.sizes or KINDS[name].sizes
        for size in sizes:
            for limit in options.limits:
                yield Case(name, size, options.command, limit)


def _run(case: Case, made: Cluster, file: Path) -> Outcome:
    file.write_text(json.dumps(made.as_list))
    given = ["--time-limit", str(case.limit), "--now", NOW, "-o", "json"]
    command = [str(JOINERY), case.command, "-f", str(file), *given]
    out, err = file.with_suffix(".out"), file.with_suffix(".err")
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(command, stdout=stdout, stderr=stderr, preexec_fn=_confined)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    pods = sum(document["kind"] == "Pod" for document in made.documents)
    cpu, megabytes = used.ru_utime + used.ru_stime, used.ru_maxrss / _MEBI
    if process.returncode:
        return Outcome(case, pods, cpu, megabytes, problem=_problem(process.returncode, err.read_text()))
    answer = json.loads(out.read_bytes())
    without = {pod["pod"] for pod in answer.get("unschedulable", ())}
    left = len(without.intersection(made.names(BYSTANDERS)))
    seconds = float(answer["solver"]["seconds"])
    return Outcome(case, pods, cpu, megabytes, seconds=seconds, left=left)


def _confined() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_LARGEST, _LARGEST))
    resource.setrlimit(resource.RLIMIT_CPU, (int(_LONGEST), int(_LONGEST)))


def _problem(status: int, err: str) -> str:
    lines = err.strip().splitlines()
    return f"over {_LONGEST:g} s" if status < 0 else (lines[-1][:80] if lines else f"exit status {status}")


def _line(outcome: Outcome, idle: float) -> str:
    case, fault = outcome.case, outcome.over(idle)
    figures = f"{outcome.seconds:.2f}", f"{outcome.cpu - idle:.2f}", f"{outcome.megabytes:.0f}"
    return _LINE.format(
        case.kind, case.size, outcome.pods, f"{case.limit:g}", *figures, f"over: {fault}" if fault else "ok"
    )


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
