"""Annotations of ours, and where each is read. No API server knows them, so a slip would stay unseen."""

from collections.abc import Collection, Iterable, Iterator

from joinery.apis import labels
from joinery.apis.slips import meant_by

_DOMAIN = f"{labels.OWN_GROUP}/"
#: The last two are Joinery's own marks.
OF_POOLS = frozenset(
    {
        labels.NODE_SIZE, labels.MAX_NODE_SHARE, labels.REBALANCE, labels.DISRUPTION, labels.DISRUPTION_PRICE,
        labels.PAYBACK, labels.NEW_NODES_REPAY, labels.EXPIRATION_OBEYS_BUDGETS,
        labels.DISRUPTION_RATE, labels.DISRUPTED_LATELY, labels.REGISTRATIONS,
        labels.TERMINATE_FIRST,
    }
)  # fmt: skip
OF_PODS = frozenset({labels.SURGE_BEFORE_EVICTION, labels.DISRUPTION_PRICE, labels.EVICTION_RATE})

_ON_POOLS = "metadata.annotations of a NodePool"
_ON_PODS = "spec.template.metadata.annotations of a Deployment"


def nothing_reads(annotations: Iterable[str], known: Collection[str], kind: str) -> Iterator[str]:
    """Of each of our annotations that is not ``known`` on an object of that kind, that nothing reads it there."""
    for key in sorted(annotations):
        if key.startswith(_DOMAIN) and key not in known:
            yield f"metadata.annotations: nothing reads {key} of {kind}{_question(key, known)}"


def _question(key: str, known: Collection[str]) -> str:
    places = [place for keys, place in ((OF_POOLS, _ON_POOLS), (OF_PODS, _ON_PODS)) if key in keys]
    if places:
        return f": it belongs to {' or to '.join(places)}"
    names = {one.removeprefix(_DOMAIN): one for one in known or OF_POOLS | OF_PODS}
    meant = meant_by(key.removeprefix(_DOMAIN), names)
    return f"; is it {names[meant]}?" if meant else ""
