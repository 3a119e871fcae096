"""Measures one file: decides, checks, judges, carries out, and decides again."""

import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from tools.consolidation.applied import applied
from tools.consolidation.catalogue import Catalogue
from tools.consolidation.contract import violations
from tools.consolidation.contract.cluster import go_duration
from tools.consolidation.documents import Document, moment, read, write
from tools.consolidation.figures import Measured, waits_for_budgets
from tools.consolidation.judging import Judge
from tools.consolidation.running import JOINERY, Asked, Run, catalogue_of, disrupt

_NOW = "2026-01-01T12:00:00Z"
_PAYBACK = timedelta(hours=1)
#: A NodePool of ten nodes whose budget is one node, and some more; and what a round takes, with its drains.
_ROUNDS = 20
_ROUND = timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How files are measured.

    catalogue   the file with what can be bought
    asked       what decisions are asked with
    now         the moment; None for that of the reference
    judge       the judge's binary; None for doing without
    again       whether to decide again about what a decision leads to, and on while budgets held it back
    free        whether to decide also with free moves and without budgets
    keep        where plans and final states are written; None for nowhere
    """

    catalogue: Path
    asked: Asked
    now: str | None = None
    judge: Path | None = None
    again: bool = False
    free: bool = False
    keep: Path | None = None
    joinery: Path = JOINERY

    def of(self, file: Path, reference: Mapping[str, Any]) -> Measured:
        """One file. ``reference``: a reference.json."""
        name = file.name.removesuffix(".json.gz")
        known = reference["snapshots"].get(name, {})
        stated = re.match(r"\S+", known.get("now") or reference.get("now") or _NOW)
        now = self.now or (stated[0] if stated else _NOW)
        run = self._decide(file, now, self.asked)
        if run.plan is None:
            return Measured(name=name, run=run, reference=known)
        with tempfile.TemporaryDirectory() as scratch:
            folder = self.keep or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.plan.json").write_text(json.dumps(run.plan, indent=1))
            types = folder / f"{name}.types.json"
            catalogue = catalogue_of(file, self.catalogue, types)
            objects = read(file)
            judge = Judge(self.judge, types, Path(scratch)) if self.judge else None
            rounds = self._rounds(objects, run.plan, catalogue, folder / f"{name}.after.json.gz", now)
            return Measured(
                name=name,
                run=run,
                reference=known,
                violations=tuple(self._violations(objects, run.plan, catalogue)),
                verdict=judge.verdict(objects, run.plan) if judge else None,
                rounds=tuple(rounds) if self.again else (),
                free=self._decide(file, now, self._free()) if self.free else None,
            )

    def _decide(self, file: Path, now: str, asked: Asked) -> Run:
        return disrupt(file, self.catalogue, now, asked, self.joinery)

    def _free(self) -> Asked:
        return Asked(move_price=0.0, ignore_budgets=True, time_limit=self.asked.time_limit)

    def _violations(self, objects: Sequence[Document], plan: Document, catalogue: Catalogue) -> Iterator[str]:
        payback = go_duration(self.asked.payback or "") or _PAYBACK
        return violations(objects, plan, catalogue, payback=payback, ignores_budgets=self.asked.ignore_budgets)

    def _rounds(
        self, objects: Sequence[Document], plan: Document, catalogue: Catalogue, file: Path, now: str
    ) -> Iterator[Run]:
        """Decisions about what decisions lead to, until one waits for no budget.

        The second is asked about the moment of the first, when every reason to take something back is freshest.
        """
        for number in range(_ROUNDS):
            objects = applied(objects, plan, catalogue)
            write(objects, file)
            later = moment(now) + number * _ROUND
            run = self._decide(file, later.strftime("%Y-%m-%dT%H:%M:%SZ"), self.asked)
            yield run
            if run.plan is None or not run.plan["commands"] or not waits_for_budgets(plan):
                return
            plan = run.plan
