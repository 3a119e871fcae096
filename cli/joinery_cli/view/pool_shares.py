"""Shares on demand of the NodePools that a plan buys of: how far they hold with it, and what they cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from joinery.decisions.scheduling.packing import Kept, Packing
from joinery.decisions.scheduling.pool_shares import planned_shares
from joinery.objects.snapshot.pool_shares import PoolShare
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.view.figures import NOTED_COST, money


@dataclass(frozen=True, slots=True)
class ShareFigures:
    """``pools``: by NodePool. ``hourly``: $/h that the new nodes cost more for all of them. ``is_proven``: whether a
    bound says so itself.
    """

    pools: Mapping[str, PoolShare]
    hourly: float
    is_proven: bool = False

    def sentences(self) -> Iterator[str]:
        """How far each holds, and what they cost."""
        for name, share in sorted(self.pools.items()):
            yield f"NodePool {name}: {share}"
        if self.hourly >= NOTED_COST and not self.is_proven:
            yield f"Shares on demand are about {money(self.hourly)}/h of it"

    def document(self) -> Mapping[str, object]:
        """As JSON."""
        pools = [{"nodePool": name, **share_document(share)} for name, share in sorted(self.pools.items())]
        return {"hourly": round(self.hourly, 6), "nodePools": pools}


def share_document(share: PoolShare) -> Mapping[str, object]:
    """One share as JSON."""
    return {"share": str(share.share), "nodes": share.nodes, "onDemand": share.on_demand, "wanted": share.wanted}


def share_figures(snapshot: Snapshot, packing: Packing) -> ShareFigures | None:
    """None where nothing is bought of a NodePool with a share."""
    pools = planned_shares(snapshot.pool_shares, packing.launches)
    is_proven = packing.kept.get(Kept.SHARES, 0.0) > 0
    return ShareFigures(pools, packing.share_cost, is_proven) if pools else None
