"""Whether a DisruptionPlan keeps the command line's contract and the rules of disruption.

Everything here is worked out from the cluster's objects, the catalogue and the document alone. The rules are
Karpenter's (disruption, v1.14); the shape is what ``joinery disrupt`` promises. Scheduling rules are the judge's.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

from tools.consolidation.catalogue import Catalogue
from tools.consolidation.contract import budgets, candidates, money, moves
from tools.consolidation.contract.cluster import Cluster
from tools.consolidation.documents import Document

_KEYS = {
    "": ("apiVersion", "kind", "now", "commands", "held", "cost", "moves", "curve", "solver"),
    "cost": ("before", "after", "lowerBound", "gap"),
    "moves": ("pods", "price"),
    "solver": ("method", "seconds"),
}
_COMMAND = ("reason", "message", "retire", "launch", "existing", "pods", "savings", "movePrice")


def violations(
    objects: Sequence[Document],
    plan: Document,
    catalogue: Catalogue,
    *,
    payback: timedelta = timedelta(hours=1),
    ignores_budgets: bool = False,
) -> Iterator[str]:
    """What the document does that it must not: a sentence each. ``payback``: what the decision was asked with."""
    missing = list(_missing(plan))
    if missing:
        yield from missing
        return
    cluster = Cluster(objects, plan["now"])
    yield from moves.violations(cluster, plan)
    yield from money.violations(cluster, plan, catalogue, payback)
    yield from candidates.violations(cluster, plan)
    if not ignores_budgets:
        yield from budgets.violations(cluster, plan)


def _missing(plan: Document) -> Iterator[str]:
    for part, keys in _KEYS.items():
        document = plan.get(part, {}) if part else plan
        yield from (f"{part or 'the document'} has no {key}" for key in keys if key not in document)
    for number, command in enumerate(plan.get("commands", ())):
        yield from (f"command {number} has no {key}" for key in _COMMAND if key not in command)
