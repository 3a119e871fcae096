"""Asks the judge, which links kube-scheduler's own plugins, about what a DisruptionPlan leaves behind.

The judge checks plans for pending pods. So it is given the cluster without retired nodes, with moved pods pending, and
a Plan that places them. Every state on the way there is such a cluster too.
"""

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.consolidation.applied import Prefix, kept, plan_of, prefix_of
from tools.consolidation.documents import Document, key_of, node_name, of_kind, write

_EVERY_PREFIX = 12
_SAMPLE = 10


@dataclass(frozen=True)
class Verdict:
    """What the judge says of the states that a plan leads through.

    states       how many were judged
    errors, warnings   its remarks, each with the number of ``commands`` carried out before
    preferences  how much of what the moved pods prefer is honoured before and after
    """

    states: int
    errors: tuple[Document, ...] = ()
    warnings: tuple[Document, ...] = ()
    preferences: tuple[int, int] = (0, 0)

    @property
    def ok(self) -> bool:
        return not self.errors


class JudgeError(RuntimeError):
    """The judge could not read what it was given."""


@dataclass(frozen=True)
class Judge:
    """``types``: what ``joinery catalog`` printed for the cluster. ``folder`` is scratch."""

    binary: Path
    types: Path
    folder: Path

    def verdict(self, objects: Sequence[Document], plan: Document) -> Verdict:
        """About the final state and a sample of the states on the way there."""
        lengths = sample(len(plan["commands"]))
        reports = {length: self._after(objects, plan, length) for length in lengths}
        remarks = {
            severity: tuple(
                {**remark, "commands": length} for length, report in reports.items() for remark in report[severity]
            )
            for severity in ("errors", "warnings")
        }
        final = reports[lengths[-1]]["preferences"]["satisfied"] if lengths else 0
        before = self._before(objects, plan)["preferences"]["satisfied"] if lengths else 0
        return Verdict(len(lengths), remarks["errors"], remarks["warnings"], (before, final))

    def _after(self, objects: Sequence[Document], plan: Document, length: int) -> Document:
        prefix = prefix_of(objects, plan, length)
        return self._report(kept(objects, prefix), plan_of(objects, plan, prefix))

    def _before(self, objects: Sequence[Document], plan: Document) -> Document:
        """The same pods where they were: what a plan says that puts each back on its own node."""
        moved = {pod for command in plan["commands"] for pod in command["pods"]}
        homes: dict[tuple[str, str], list[str]] = {}
        for pod in of_kind(objects, "Pod"):
            if key_of(pod) in moved:
                homes.setdefault((node_name(pod), ""), []).append(key_of(pod))
        target = {pod: node for (node, _), pods in homes.items() for pod in pods}
        prefix = Prefix([], homes, frozenset(), target)
        return self._report(kept(objects, prefix), plan_of(objects, plan, prefix))

    def _report(self, objects: Sequence[Document], plan: Document) -> Document:
        cluster, document = self.folder / "cluster.json.gz", self.folder / "plan.json"
        write(objects, cluster)
        document.write_text(json.dumps(plan))
        command = [
            *(str(self.binary), "-f", str(cluster), "--instance-types", str(self.types)),
            *("--plan", str(document), "-o", "json"),
        ]
        called = subprocess.run(command, capture_output=True, text=True, check=False)
        if called.returncode not in (0, 1):
            raise JudgeError(called.stderr.strip())
        return dict(json.loads(called.stdout))


def sample(commands: int) -> list[int]:
    """After how many commands the state is judged: after each, or of many after ten, with the first and the last."""
    if commands <= _EVERY_PREFIX:
        return list(range(1, commands + 1))
    return sorted({1 + round(step * (commands - 1) / (_SAMPLE - 1)) for step in range(_SAMPLE)})
