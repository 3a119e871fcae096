"""The snapshot of files with the topology spread that a scheduler gives to pods without any."""

from datetime import datetime

from joinery.objects.default_spread import DefaultSpreads
from joinery.objects.snapshot.default_spreads import SpreadFiller
from joinery.objects.snapshot.snapshot import Snapshot
from joinery_cli.reading.admission.workloads import revisions
from joinery_cli.reading.inputs import Inputs


def spread_by_default(inputs: Inputs, now: datetime, spreads: DefaultSpreads) -> Snapshot:
    """All objects of the files at that moment. Pods of a Deployment count by its ReplicaSet, also where no file has
    that.
    """
    snapshot = inputs.snapshot(now)
    if not spreads:
        return snapshot
    made_by = revisions(inputs.objects.get("workloads", {}), snapshot.pods)
    return SpreadFiller(spreads).filled(snapshot, {**snapshot.owners, **made_by})
